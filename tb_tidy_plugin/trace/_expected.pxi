# What is expected to come next, since it came there the last time. Part of `_scan.pyx`.
#
# Three things are: the *step* from one value of an object to the next; the *head* of an event, which is its text as far
# as it says nothing but phase, category, name and thread; and the *inputs* of an operator, in `_args.pxi`. A loop does
# the same again and again, so that the two before it tell the next one.


# Steps


cdef inline uint64_t word_at(Text at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline bint is_this(Step* step, Text at) noexcept nogil:
    """Whether the step's text is at `at`, where as much can be read as the longest has."""
    cdef int32_t done = 0
    if step.length < 8:
        return is_same(at, <const char*> step.text, step.length)
    while done <= step.length - 8:
        if word_at(at + done) != word_at(step.text + done):
            return False
        done += 8
    done = step.length - 8
    return word_at(at + done) == word_at(step.text + done)


cdef void learn_step(Scan* scan, Text at, Text end, Token* key, int which, int place) noexcept nogil:
    """Makes the text up to `end` the current step, and expects it where the last one was."""
    cdef Step* step
    cdef int32_t number
    cdef int32_t length = <int32_t> (end - at) if end - at <= LONGEST_STEP else 0
    cdef int32_t last = scan.step
    scan.step = 0
    if length == 0:
        return
    for number in range(1, scan.step_count):
        step = &scan.steps[number]
        if step.length == length and step.place == place and memcmp(step.text, at, length) == 0:
            break
    else:
        if scan.step_count == STEPS:
            return
        number = scan.step_count
        scan.step_count += 1
        step = &scan.steps[number]
        memcpy(step.text, at, length)
        step.length = length
        step.key = which
        step.place = place
        step.quote = <int32_t> (key.at - at) if which != CLOSED else 0
        step.key_length = key.length if which != CLOSED else 0
        step.following = step.other = 0
    scan.step = number
    scan.steps[last].other = scan.steps[last].following
    scan.steps[last].following = number


cdef inline Text after_step(Scan* scan, Text at, int place, Token* key, int* which) noexcept nogil:
    """`at` is at an opening brace, or behind a value; the result is at the next value, or behind the object."""
    cdef Step* last = &scan.steps[scan.step]
    cdef Step* step = &scan.steps[last.following]
    if scan.limit - at < LONGEST_STEP:
        return after_new_step(scan, at, place, key, which)
    if step.place != place or not is_this(step, at):
        step = &scan.steps[last.other]
        if step.place != place or not is_this(step, at):
            return after_new_step(scan, at, place, key, which)
        last.other, last.following = last.following, last.other
    scan.step = last.following
    which[0] = step.key
    key.at = at + step.quote
    key.length = step.key_length
    return at + step.length


cdef Text after_new_step(Scan* scan, Text at, int place, Token* key, int* which) noexcept nogil:
    cdef Text first = at
    cdef unsigned char before = c'{' if place & OPENING else c','
    at = after_space(at)
    if at[0] == before:
        at = after_space(at + 1)
        if at[0] != c'}' or before == c',':
            at = after_key(scan, at, key)
            if at == NULL:
                return NULL
            which[0] = arg_of(key) if place & OF_ARGS else field_of(key)
            learn_step(scan, first, at, key, which[0], place)
            return at
    if at[0] != c'}':
        return refused(scan, SYNTAX)
    which[0] = CLOSED
    learn_step(scan, first, at + 1, key, CLOSED, place)
    return at + 1


# Heads


cdef inline uint32_t place_of_head(Scan* scan) noexcept nogil:
    cdef uint32_t mixed = (<uint32_t> scan.last_head * 0x9E3779B1U) ^ (<uint32_t> scan.head_before * 0x85EBCA6BU)
    return mixed >> (32 - HEAD_BITS)


cdef inline Text after_expected_head(Scan* scan, Text at, int* which) noexcept nogil:
    """`at` is behind the brace; the result is at the first value behind the head, NULL where another head is there."""
    cdef Event* event = &scan.event
    cdef int32_t number = scan.expected_heads[place_of_head(scan)] - 1
    cdef Token* text
    cdef Head* head
    cdef int field
    if number < 0:
        return NULL
    text = &scan.tables[HEADS].tokens[number]
    if scan.limit - at < text.length or memcmp(at, text.at, text.length) != 0:
        return NULL
    head = &scan.heads[number]
    for field in range(4):
        event.numbers[field] = head.numbers[field]
        if head.numbers[field] != <int32_t> ABSENT:
            event.tokens[field] = scan.tables[field].tokens[head.numbers[field]]
    event.head = NULL
    scan.head_before = scan.last_head
    scan.last_head = number + 1
    scan.step = head.step
    which[0] = head.key
    return at + text.length


cdef void learn_head(Scan* scan) noexcept nogil:
    """The head of the event, which is in the columns now, is expected where the last ones were."""
    cdef Event* event = &scan.event
    cdef Token text
    cdef uint32_t named = event.named_in_head
    cdef int32_t number
    cdef int32_t expected = 0
    cdef int field
    cdef bint is_one_place = (named >> PID & 1) == (named >> TID & 1)
    if event.is_head_whole and event.head_end != NULL and is_one_place:
        memset(&text, 0, sizeof(Token))
        text.at = event.head
        text.length = <int32_t> (event.head_end - event.head)
        if SHORTEST_HEAD <= text.length <= LONGEST_HEAD:
            number = number_of(scan, HEADS, &text)
            if number == <int32_t> ABSENT or not has_heads(scan):
                return
            for field in range(4):
                scan.heads[number].numbers[field] = (
                    event.numbers[field] if named >> field & 1 else <int32_t> ABSENT
                )
            scan.heads[number].key = event.head_key
            scan.heads[number].step = event.head_step
            expected = number + 1
            scan.expected_heads[place_of_head(scan)] = expected
    scan.head_before = scan.last_head
    scan.last_head = expected


cdef bint has_heads(Scan* scan) noexcept nogil:
    """As much room for heads as for their texts; False where there is no memory."""
    if scan.heads_room < scan.tables[HEADS].room:
        if not has_grown(<void**> &scan.heads, scan.tables[HEADS].room * sizeof(Head)):
            refused(scan, MEMORY)
            return False
        scan.heads_room = scan.tables[HEADS].room
    return True
