# Events, and the columns that they go into. Part of `_scan.pyx`.


cdef int field_of(Token* key) noexcept nogil:
    if key.length == 2:
        if is_same(key.at, "ts", 2):
            return TS
        if is_same(key.at, "ph", 2):
            return PH
        if is_same(key.at, "id", 2):
            return ID
    elif key.length == 3:
        if is_same(key.at, "dur", 3):
            return DUR
        if is_same(key.at, "pid", 3):
            return PID
        if is_same(key.at, "tid", 3):
            return TID
        if is_same(key.at, "cat", 3):
            return CAT
    elif key.length == 4:
        if is_same(key.at, "name", 4):
            return NAME_KEY
        if is_same(key.at, "args", 4):
            return ARGS_KEY
    return OTHER


cdef inline Text after_text(Scan* scan, Text at, int which) noexcept nogil:
    """A phase, a category or a name: a string."""
    cdef Token* token = &scan.event.tokens[which]
    token.at = at
    if at[0] != c'"':
        return refused(scan, KIND)
    at = after_string(scan, at + 1)
    if at != NULL:
        token.length = <int32_t> (at - token.at)
    return at


cdef inline Text after_place(Scan* scan, Text at, Text* where, int32_t* length) noexcept nogil:
    """A `pid` or a `tid`: a number or a string."""
    cdef int64_t unused = 0
    where[0] = at
    at = after_string(scan, at + 1) if at[0] == c'"' else after_integer(scan, at, &unused)
    if at != NULL:
        length[0] = <int32_t> (at - where[0])
    return at


cdef Text after_named(Scan* scan, Text at, int which) noexcept nogil:
    """The value of a key that says what an event is, and where."""
    cdef Event* event = &scan.event
    cdef Token* thread = &event.tokens[THREAD]
    event.named |= <uint32_t> 1 << which
    event.is_head_whole &= event.head_end == NULL
    event.numbers[which if which < THREAD else THREAD] = <int32_t> ABSENT
    if which == PID:
        return after_place(scan, at, &thread.at, &thread.length)
    if which == TID:
        return after_place(scan, at, &thread.second, &thread.second_length)
    return after_text(scan, at, which)


cdef inline Text after_field(Scan* scan, Text at, int which) noexcept nogil:
    """The value of one key of an event."""
    cdef Event* event = &scan.event
    if which <= TID:
        return after_named(scan, at, which)
    if which == OTHER:
        return after_value(scan, at)
    if event.head_end == NULL:
        event.head_end = at
        event.head_key = which
        event.head_step = scan.step
        event.named_in_head = event.named
    if which == TS:
        event.has_start = True
        return after_time(scan, at, LATEST_US, &scan.wide[START][scan.count])
    if which == DUR:
        return after_time(scan, at, LONGEST_US, &scan.wide[DURATION][scan.count])
    if which == ID:
        return after_integer(scan, at, &scan.wide[FLOW][scan.count])
    return after_args(scan, at)


cdef inline int64_t usual(int column) noexcept nogil:
    """What stands in a column where an event says nothing."""
    return ABSENT if column >= FIRST_ID and column != FIRST_ID + FORWARD_THREAD else 0


cdef void forget_args(Scan* scan) noexcept nogil:
    cdef Event* event = &scan.event
    cdef int which
    if event.has_args:
        for which in range(IDS):
            scan.wide[FIRST_ID + which][scan.count] = usual(FIRST_ID + which)
    event.has_args = True
    event.second_external_id = ABSENT
    event.rest = NULL
    event.rest_bytes = 0
    memset(&event.inputs, 0, sizeof(Token))
    event.inputs.at = NO_TEXT
    event.are_inputs_last = False


cdef inline void forget(Scan* scan) noexcept nogil:
    cdef Event* event = &scan.event
    cdef int field
    memset(event, 0, sizeof(Event))
    for field in range(THREAD):
        event.tokens[field].at = NO_TEXT
        event.tokens[field].length = 2
    event.tokens[THREAD].at = event.tokens[THREAD].second = ZERO
    event.tokens[THREAD].length = event.tokens[THREAD].second_length = 1
    for field in range(4):
        event.numbers[field] = <int32_t> ABSENT
    event.is_head_whole = True
    event.second_external_id = ABSENT
    event.inputs.at = NO_TEXT


cdef inline Text after_event(Scan* scan, Text at) noexcept nogil:
    cdef Token key
    cdef Text first
    cdef int which = CLOSED
    forget(scan)
    if at[0] != c'{':
        return refused(scan, SYNTAX)
    first = after_expected_head(scan, at + 1, &which)
    if first == NULL:
        scan.event.head = at + 1
        scan.step = 0
        first = after_step(scan, at, OPENING, &key, &which)
    at = first
    while at != NULL and which != CLOSED:
        at = after_field(scan, at, which)
        if at != NULL:
            at = after_step(scan, at, 0, &key, &which)
    return at


# Columns


cdef void clear(Scan* scan, int column, int32_t first, int32_t end) noexcept nogil:
    """Makes the column what it is where events say nothing."""
    memset(&scan.wide[column][first], 0xFF if usual(column) else 0, <size_t> (end - first) * sizeof(int64_t))


cdef bint has_columns(Scan* scan) noexcept nogil:
    """Makes room for one more event; False where there is no memory."""
    cdef size_t room
    cdef int column
    if scan.count < scan.room:
        return True
    room = 2 * <size_t> scan.room if scan.room else 1 << 14
    for column in range(WIDE):
        if not has_grown(<void**> &scan.wide[column], room * sizeof(int64_t)):
            return False
        clear(scan, column, scan.room, <int32_t> room)
    for column in range(NARROW):
        if not has_grown(<void**> &scan.narrow[column], room * sizeof(int32_t)):
            return False
    scan.room = <int32_t> room
    return True


cdef bint is_none(Scan* scan) noexcept nogil:
    """Whether it has no phase, as `{}`; then nothing of it is left in the columns."""
    cdef Event* event = &scan.event
    cdef int column
    if event.numbers[PHASE] != <int32_t> ABSENT or event.tokens[PHASE].length > 2:
        return False
    for column in range(WIDE):
        scan.wide[column][scan.count] = usual(column)
    return True


cdef inline bint is_kept(Scan* scan) noexcept nogil:
    """Puts the event into the columns."""
    cdef Event* event = &scan.event
    cdef int32_t row = scan.count
    cdef int field
    if not event.has_start:
        scan.wide[START][row] = NO_TIME
    if event.second_external_id != ABSENT:
        scan.wide[FIRST_ID][row] = event.second_external_id
    for field in range(4):
        if event.numbers[field] == <int32_t> ABSENT:
            event.numbers[field] = number_of(scan, field, &event.tokens[field])
        scan.narrow[field][row] = event.numbers[field]
    scan.narrow[INPUTS][row] = number_of_inputs(scan)
    scan.narrow[ARGS][row] = number_of_rest(scan)
    if event.head != NULL:
        learn_head(scan)
    scan.count += 1
    return scan.reason == NONE


cdef inline bint is_crowded(Scan* scan) noexcept nogil:
    """Whether strings were made to collide, which would take forever."""
    return scan.probes > PROBES_PER_TOKEN * (<int64_t> scan.count + 1024)


cdef void run(Scan* scan, Text at) noexcept nogil:
    at = after_space(at)
    while at < scan.stop:
        if not has_columns(scan):
            refused(scan, MEMORY)
            return
        at = after_event(scan, at)
        if at == NULL:
            return
        if at > scan.stop:
            refused(scan, SYNTAX)
            return
        if not is_none(scan) and not is_kept(scan):
            return
        at = after_space(at)
        if at >= scan.stop:
            return
        if is_crowded(scan):
            refused(scan, CROWDED)
            return
        if at[0] != c',':
            refused(scan, SYNTAX)
            return
        at = after_space(at + 1)
        if at >= scan.stop:
            refused(scan, SYNTAX)
            return


# All of a scan


cdef void begin(Scan* scan) noexcept nogil:
    cdef int column
    for column in range(WIDE):
        if scan.room and (column < FIRST_ID or (scan.seen >> (column - FIRST_ID)) & 1):
            clear(scan, column, 0, min(scan.count + 1, scan.room))  # the last one may have been refused half way
        scan.wide_bits[column] = 0
    if scan.kept_bytes > MOST_KEPT:
        forget_all(scan)
    scan.reason = NONE
    scan.count = 0
    scan.probes = 0
    scan.seen = 0
    scan.args_bytes = 0
    scan.args_count = 0
    memset(scan.recent_args, 0, sizeof(scan.recent_args))


cdef void forget_all(Scan* scan) noexcept nogil:
    """Forgets all texts, and what is expected of them."""
    cdef int table
    for table in range(TABLES):
        forget_texts(&scan.tables[table])
    scan.kept_bytes = 0
    scan.last_head = scan.head_before = scan.last_inputs = 0
    memset(scan.expected_heads, 0, sizeof(scan.expected_heads))
    memset(scan.expected_inputs, 0, sizeof(scan.expected_inputs))
    memset(scan.steps, 0, sizeof(Step))
    scan.steps[0].place = NOWHERE
    scan.step_count = 1
    scan.step = 0
