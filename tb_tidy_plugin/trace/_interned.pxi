# Texts, each kept once and known by a number, in order of appearance. Part of `_scan.pyx`.


cdef inline uint64_t hash_of(Text at, int32_t length, uint64_t seed) noexcept nogil:
    cdef uint64_t word
    cdef uint64_t mixed = seed ^ <uint64_t> length
    while length >= 8:
        memcpy(&word, at, 8)
        mixed = (mixed ^ word) * 0x9E3779B97F4A7C15ULL
        mixed ^= mixed >> 32
        at += 8
        length -= 8
    word = 0
    memcpy(&word, at, length)
    mixed = (mixed ^ word) * 0x9E3779B97F4A7C15ULL
    return mixed ^ (mixed >> 32)


cdef inline bint is_same_token(Token* one, Token* other) noexcept nogil:
    return (
        one.length == other.length
        and one.second_length == other.second_length
        and memcmp(one.at, other.at, one.length) == 0
        and (one.second_length == 0 or memcmp(one.second, other.second, one.second_length) == 0)
    )


cdef bint has_grown(void** array, size_t bytes) noexcept nogil:
    cdef void* larger = realloc(array[0], bytes)
    if larger == NULL:
        return False
    array[0] = larger
    return True


cdef bint has_room(Table* table) noexcept nogil:
    """Makes room for one more token; False where there is no memory."""
    cdef size_t room
    cdef int32_t number
    cdef uint32_t mask, slot
    if table.count < table.room:
        return True
    room = 2 * <size_t> table.room if table.room else 1 << 10
    if not (
        has_grown(<void**> &table.tokens, room * sizeof(Token))
        and has_grown(<void**> &table.hashes, room * sizeof(uint32_t))
        and has_grown(<void**> &table.slots, 2 * room * sizeof(int32_t))
    ):
        return False
    table.room = <int32_t> room
    mask = <uint32_t> (2 * room - 1)
    memset(table.slots, 0, 2 * room * sizeof(int32_t))
    for number in range(table.count):
        slot = table.hashes[number] & mask
        while table.slots[slot]:
            slot = (slot + 1) & mask
        table.slots[slot] = number + 1
    return True


cdef bint is_copied(Scan* scan, Token* token, Token* to) noexcept nogil:
    """Makes `to` a copy of the token's text; False where there is no memory."""
    cdef size_t size = <size_t> token.length + <size_t> token.second_length
    cdef unsigned char* copy = <unsigned char*> malloc(size + 1)
    if copy == NULL:
        return False
    memcpy(copy, token.at, token.length)
    if token.second_length:
        memcpy(copy + token.length, token.second, token.second_length)
    to[0] = token[0]
    to.at = copy
    to.second = copy + token.length
    scan.kept_bytes += size + sizeof(Token)
    return True


cdef int32_t number_of(Scan* scan, int which, Token* token) noexcept nogil:
    """The token's number in a table; ABSENT where it cannot be had."""
    cdef Table* table = &scan.tables[which]
    cdef uint64_t wide_hash
    cdef uint32_t mask, slot, hash_
    cdef int32_t number
    if not has_room(table):
        refused(scan, MEMORY)
        return <int32_t> ABSENT
    wide_hash = hash_of(token.at, token.length, 0)
    if token.second_length:
        wide_hash = hash_of(token.second, token.second_length, wide_hash)
    hash_ = <uint32_t> wide_hash
    mask = 2 * <uint32_t> table.room - 1
    slot = hash_ & mask
    while table.slots[slot]:
        number = table.slots[slot] - 1
        if table.hashes[number] == hash_ and is_same_token(&table.tokens[number], token):
            return number
        scan.probes += 1
        slot = (slot + 1) & mask
    number = table.count
    if not is_copied(scan, token, &table.tokens[number]):
        refused(scan, MEMORY)
        return <int32_t> ABSENT
    table.hashes[number] = hash_
    table.slots[slot] = number + 1
    table.count += 1
    return number


cdef void forget_texts(Table* table) noexcept nogil:
    cdef int32_t number
    for number in range(table.count):
        free(<void*> table.tokens[number].at)
    table.count = 0
    table.passed_on = 0
    if table.room:
        memset(table.slots, 0, 2 * <size_t> table.room * sizeof(int32_t))
