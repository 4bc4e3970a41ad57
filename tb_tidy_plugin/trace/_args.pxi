# The args of an event. Part of `_scan.pyx`.


cdef int arg_of(Token* key) noexcept nogil:
    """Which of `chunks.ID_FIELDS` a key is, or what else."""
    if key.length == 6:
        if is_same(key.at, "Ev Idx", 6):
            return 2
        if is_same(key.at, "device", 6):
            return 7
        if is_same(key.at, "stream", 6):
            return 8
    elif key.length == 11:
        if is_same(key.at, "External id", 11):
            return 0
        if is_same(key.at, "correlation", 11):
            return 1
        if is_same(key.at, "external id", 11):
            return SECOND_EXTERNAL_ID
    elif key.length == 15:
        if is_same(key.at, "Concrete Inputs", 15):
            return OF_INPUTS
        if is_same(key.at, "Sequence number", 15):
            return 3
    elif key.length == 13:
        if is_same(key.at, "Input Strides", 13):
            return OF_INPUTS
        if is_same(key.at, "Fwd thread id", 13):
            return FORWARD_THREAD
    elif key.length == 10:
        if is_same(key.at, "Input type", 10) or is_same(key.at, "Input Dims", 10):
            return OF_INPUTS
    elif key.length == 9:
        if is_same(key.at, "Python id", 9):
            return 5
    elif key.length == 16:
        if is_same(key.at, "Python parent id", 16):
            return PARENT
    elif key.length == 5:
        if is_same(key.at, "bytes", 5):
            return 9
    return OTHER


# Ids


cdef Text after_quoted_id(Scan* scan, Text at, int which, int64_t* value) noexcept nogil:
    """ROCm quotes some numbers and has others as `"0x0"`, which is none to the portable decoder."""
    cdef Text first = at + 1
    cdef Text end = after_plain(scan, first)
    cdef bint is_number = True
    if end[0] != c'"':
        return refused(scan, KIND)
    at = first
    while at < end:
        is_number &= is_digit(at[0]) or at[0] in (c'-', c'+', c'.', c'e', c'E')
        at += 1
    if not is_number:
        value[0] = 0 if which == FORWARD_THREAD else ABSENT
    elif after_integer(scan, first, value) != end:
        return refused(scan, NUMBER)
    return end + 1


cdef inline Text after_id(Scan* scan, Text at, int which) noexcept nogil:
    cdef int column = FIRST_ID + which if which < IDS else FIRST_ID
    cdef int64_t value = ABSENT
    if at[0] == c'"':
        at = after_quoted_id(scan, at, which, &value)
    elif which == PARENT and at[0] == c'n':  # null: a frame without one
        at = after_word(scan, at)
    else:
        at = after_integer(scan, at, &value)
    scan.seen |= <uint32_t> 1 << (column - FIRST_ID)
    scan.wide_bits[column] |= <uint64_t> (value if value >= 0 else ~value)
    if which < IDS:
        scan.wide[column][scan.count] = value
    else:
        scan.event.second_external_id = value
    return at


# Inputs


cdef inline uint32_t place_of_inputs(Scan* scan) noexcept nogil:
    cdef Token* name = &scan.event.tokens[NAME]
    cdef uint32_t mixed = <uint32_t> scan.last_inputs * 0x9E3779B1U
    mixed ^= (<uint32_t> name.length << 8 | name.at[name.length - 2]) * 0x85EBCA6BU  # by its last letter
    return mixed >> (32 - INPUT_BITS)


cdef inline Text after_expected_inputs(Scan* scan, Text at) noexcept nogil:
    """What is behind the expected inputs; NULL where there are others."""
    cdef int32_t number = scan.expected_inputs[place_of_inputs(scan)] - 1
    cdef Token* expected
    cdef Text end
    if number < 0:
        return NULL
    expected = &scan.tables[INPUTS].tokens[number]
    if scan.limit - at < expected.length:
        return NULL
    end = at + expected.length
    if memcmp(at, expected.at, expected.length) != 0 or not (end[0] == c',' or end[0] == c'}'):
        return NULL
    scan.event.inputs_number = number
    return end


cdef Text after_inputs(Scan* scan, Text at, Token* key) noexcept nogil:
    """The value of one key of the inputs; or all of them at once, where they are the expected ones."""
    cdef Event* event = &scan.event
    cdef Text first = key.at - 1
    cdef Text end = NULL
    event.inputs_number = <int32_t> ABSENT
    if event.inputs.length == 0:
        event.inputs.at = first
        event.are_inputs_together = True
        end = after_expected_inputs(scan, first)
    elif not event.are_inputs_last:
        event.are_inputs_together = False
    if end == NULL:
        end = after_value(scan, at)
    if end != NULL:
        event.inputs.length = <int32_t> (end - event.inputs.at)
    return end


cdef inline int32_t number_of_inputs(Scan* scan) noexcept nogil:
    cdef Event* event = &scan.event
    if event.inputs.length == 0 or not event.are_inputs_together:
        return number_of(scan, INPUTS, &event.inputs)
    if event.inputs_number == <int32_t> ABSENT:
        event.inputs_number = number_of(scan, INPUTS, &event.inputs)
    scan.expected_inputs[place_of_inputs(scan)] = event.inputs_number + 1
    scan.last_inputs = event.inputs_number
    return event.inputs_number


# The rest, which stays text


cdef bint has_kept_rest(Scan* scan, int32_t more) noexcept nogil:
    """Writes the open members, then has room for `more` bytes; False where there is no memory."""
    cdef Event* event = &scan.event
    cdef int64_t length = event.rest_end - event.rest if event.rest != NULL else 0
    cdef int64_t needed = scan.args_bytes + 2 + event.rest_bytes + length + more
    cdef unsigned char* to
    if needed > scan.args_room:
        if not has_grown(<void**> &scan.args, 2 * needed):
            refused(scan, MEMORY)
            return False
        scan.args_room = 2 * needed
    if length:
        to = scan.args + scan.args_bytes + 1 + event.rest_bytes
        to[0] = c',' if event.rest_bytes else c'{'
        memcpy(to + 1, event.rest, length)
        event.rest_bytes += <int32_t> length + 1
        event.rest = NULL
    return True


cdef int32_t number_of_rest(Scan* scan) noexcept nogil:
    """The number of the args' rest among the texts; one that was there a moment ago is not written again."""
    cdef Event* event = &scan.event
    cdef Recent* recent
    cdef unsigned char* text
    cdef int32_t length
    if event.rest == NULL and event.rest_bytes == 0:
        return 0
    if not has_kept_rest(scan, 1):
        return 0
    scan.args[scan.args_bytes] = c','
    text = scan.args + scan.args_bytes + 1
    text[event.rest_bytes] = c'}'
    length = event.rest_bytes + 1
    recent = &scan.recent_args[(length ^ (<int32_t> text[length - 2] << 4)) & (RECENT_ARGS - 1)]
    if recent.length == length and memcmp(scan.args + recent.start, text, length) == 0:
        return recent.number
    if scan.args_count == scan.args_ends_room:
        scan.args_ends_room = 2 * scan.args_ends_room if scan.args_ends_room else 1 << 12
        if not has_grown(<void**> &scan.args_ends, scan.args_ends_room * sizeof(int32_t)):
            scan.args_ends_room = scan.args_count
            refused(scan, MEMORY)
            return 0
    recent.start, recent.length = scan.args_bytes + 1, length
    scan.args_bytes += 1 + length
    scan.args_ends[scan.args_count] = scan.args_bytes
    scan.args_count += 1
    recent.number = scan.args_count
    return recent.number


# All of them


cdef inline Text after_arg(Scan* scan, Text at, Token* key, int which) noexcept nogil:
    """The value of one key."""
    cdef Event* event = &scan.event
    if which == OTHER:
        if event.rest == NULL:
            event.rest = key.at - 1
        at = after_value(scan, at)
        event.rest_end = at
    else:
        if event.rest != NULL and not has_kept_rest(scan, 0):
            return NULL
        at = after_inputs(scan, at, key) if which == OF_INPUTS else after_id(scan, at, which)
    event.are_inputs_last = which == OF_INPUTS
    return at


cdef Text after_args(Scan* scan, Text at) noexcept nogil:
    cdef Token key
    cdef int which = CLOSED
    cdef int32_t outer = scan.step
    if at[0] != c'{':
        return refused(scan, KIND)
    forget_args(scan)  # of two the last one counts
    at = after_step(scan, at, OF_ARGS | OPENING, &key, &which)
    while at != NULL and which != CLOSED:
        at = after_arg(scan, at, &key, which)
        if at != NULL:
            at = after_step(scan, at, OF_ARGS, &key, &which)
    scan.step = outer
    return at
