# cython: language_level=3, cdivision=True
"""One pass over the text of a piece of `traceEvents`, without the interpreter's lock.

It takes JSON as profilers write it and nothing else: whatever is unusual (a number with an exponent, a null, an escaped
key) is refused with a reason, and the portable decoder takes the piece. So everything here may be strict, and what it
does take it must take exactly as the portable decoder does; `tests/trace/test_decoders.py` compares the two.

No index is checked against the end of the text, and none needs to be: a `bytes` object ends with a NUL that no state of
the grammar accepts, and every loop looks at the byte under it before it goes on. Reads of more than one byte do compare
with the end. All tables grow.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from *:
    """
    /* Of a word read from memory, the first byte whose top bit is set; 0 where that is not known to be cheap. */
    #if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define TIDY_FIRST_MARKED(word) (__builtin_ctzll(word) >> 3)
    #else
    #define TIDY_FIRST_MARKED(word) 0
    #endif
    """
    int first_marked "TIDY_FIRST_MARKED" (uint64_t word) nogil

ctypedef const unsigned char* Text

cdef enum:
    WIDE = 13  # columns of int64: start, duration, flow, and the ids
    NARROW = 6  # columns of int32: phase, category, name, thread, inputs, end of the args
    FIRST_ID = 3
    FORWARD_THREAD = 4  # among the ids
    PARENT = 6
    IDS = 10
    OF_INPUTS = 11  # a key that says what an operator was called with
    START = 0
    DURATION = 1
    FLOW = 2
    PHASE = 0
    CATEGORY = 1
    NAME = 2
    THREAD = 3
    INPUTS = 4
    ARGS_END = 5
    TABLES = 5
    DEEPEST = 60  # levels of nesting, as many as bits of a word hold
    MOST_DIGITS = 18  # any such number fits int64
    PROBES_PER_TOKEN = 64
    EXPECTED_BITS = 12
    EXPECTED = 1 << EXPECTED_BITS

cdef enum Reason:
    NONE, SYNTAX, NUMBER, KIND, KEY, DEPTH, TIME, CROWDED, TOO_LARGE, MEMORY

REASONS = {
    SYNTAX: "malformed or cut inside an event",
    NUMBER: "a number written in an unusual way",
    KIND: "a field of an unusual type",
    KEY: "a key with escapes",
    DEPTH: "lists nested too deeply",
    TIME: "a time that no clock shows",
    CROWDED: "strings that collide",
    TOO_LARGE: "more than 2 GB at once",
}

cdef int64_t ABSENT = -1
cdef int64_t LATEST_US = 3074457345618258  # `chunks.LATEST_US`
cdef int64_t LONGEST_US = 8796093022208  # `chunks.LONGEST_US`
cdef Text NO_TEXT = <Text> <const char*> b'""'
cdef Text ZERO = <Text> <const char*> b"0"


cdef struct Token:  # one or two pieces of the text, as they stand there
    Text at
    Text second
    int32_t length
    int32_t second_length


cdef struct Table:  # open addressing; a slot holds a number + 1
    Token* tokens
    uint32_t* hashes
    int32_t* slots
    int32_t count
    int32_t room  # of tokens; there are twice as many slots
    int64_t probes


cdef struct Event:  # what is known of the event under the cursor
    Token phase
    Token category
    Token name
    Token thread
    int64_t start
    int64_t duration
    int64_t flow
    int64_t ids[IDS]
    int64_t second_external_id
    Text args
    Text args_end
    Token inputs  # from the first of their keys to the end of the last value
    bint are_inputs_last  # whether the last key was one of theirs
    bint are_inputs_together  # whether no other key is among them
    int32_t inputs_number  # ABSENT where it is still to be looked up


cdef struct Scan:
    Text text
    Text limit  # the NUL
    Text stop  # where the piece ends
    Reason reason
    Event event
    Table tables[TABLES]
    int64_t* wide[WIDE]
    int32_t* narrow[NARROW]
    Text* args
    int32_t* args_length
    int64_t args_bytes
    int32_t count
    int32_t room
    uint32_t seen  # which ids any event carries
    int32_t last_inputs
    int32_t expected[EXPECTED]  # inputs that came after other ones the last time, + 1


include "_json.pxi"


# Args


cdef inline int id_of(Token* key) noexcept nogil:
    """Which of `chunks.ID_FIELDS` a key of the args is, `IDS` for the second spelling, `OF_INPUTS`, or -1."""
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
            return IDS
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
    return -1


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
    cdef int64_t* value = &scan.event.second_external_id if which == IDS else &scan.event.ids[which]
    if which < IDS:
        scan.seen |= <uint32_t> 1 << which
    if at[0] == c'"':
        return after_quoted_id(scan, at, which, value)
    if which == PARENT and scan.limit - at >= 4 and is_same(at, "null", 4):  # a frame without one
        value[0] = ABSENT
        return at + 4
    return after_integer(scan, at, value)


# Inputs
#
# Half of a trace is what its operators were called with, and a loop calls the same operators in the same order again and
# again. So a call is expected to have the inputs that followed the last call's ones before: where it has, comparing the
# text replaces parsing it. What is equal to something that was parsed needs no other proof.


cdef inline uint32_t place_of_expected(Scan* scan) noexcept nogil:
    cdef Token* name = &scan.event.name
    cdef uint32_t mixed = <uint32_t> scan.last_inputs * 0x9E3779B1U
    mixed ^= (<uint32_t> name.length << 8 | name.at[name.length - 2]) * 0x85EBCA6BU  # by its last letter
    return mixed >> (32 - EXPECTED_BITS)


cdef inline Text after_expected(Scan* scan, Text at) noexcept nogil:
    """What is behind the expected inputs; NULL where there are others."""
    cdef int32_t number = scan.expected[place_of_expected(scan)] - 1
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
        end = after_expected(scan, first)
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
        return number_of(scan, &scan.tables[INPUTS], &event.inputs)
    if event.inputs_number == <int32_t> ABSENT:
        event.inputs_number = number_of(scan, &scan.tables[INPUTS], &event.inputs)
    scan.expected[place_of_expected(scan)] = event.inputs_number + 1
    scan.last_inputs = event.inputs_number
    return event.inputs_number


cdef Text after_args(Scan* scan, Text at) noexcept nogil:
    cdef Token key
    cdef int which
    if at[0] != c'{':
        return refused(scan, KIND)
    if scan.event.args != NULL:  # of two the last one counts
        forget_args(&scan.event)
    scan.event.args = at
    at = after_space(at + 1)
    if at[0] != c'}':
        while True:
            at = after_key(scan, at, &key)
            if at == NULL:
                return NULL
            which = id_of(&key)
            if which == OF_INPUTS:
                at = after_inputs(scan, at, &key)
            else:
                at = after_value(scan, at) if which < 0 else after_id(scan, at, which)
            if at == NULL:
                return NULL
            scan.event.are_inputs_last = which == OF_INPUTS
            at = after_space(at)
            if at[0] != c',':
                break
            at = after_space(at + 1)
        if at[0] != c'}':
            return refused(scan, SYNTAX)
    scan.event.args_end = at + 1
    return at + 1


# Strings, each known by a number


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


cdef inline int32_t number_of(Scan* scan, Table* table, Token* token) noexcept nogil:
    """The token's number, in order of appearance; -1 where it cannot be had."""
    cdef uint64_t wide_hash
    cdef uint32_t mask, slot, hash_
    cdef int32_t number
    if not has_room(table):
        refused(scan, MEMORY)
        return -1
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
        table.probes += 1
        slot = (slot + 1) & mask
    number = table.count
    table.tokens[number] = token[0]
    table.hashes[number] = hash_
    table.slots[slot] = number + 1
    table.count += 1
    return number


# Events


cdef inline Text after_text(Scan* scan, Text at, Token* token) noexcept nogil:
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


cdef inline Text after_field(Scan* scan, Text at, Token* key) noexcept nogil:
    """The value of one key of an event."""
    cdef Event* event = &scan.event
    if key.length == 2:
        if is_same(key.at, "ts", 2):
            return after_time(scan, at, LATEST_US, &event.start)
        if is_same(key.at, "ph", 2):
            return after_text(scan, at, &event.phase)
        if is_same(key.at, "id", 2):
            return after_integer(scan, at, &event.flow)
    elif key.length == 3:
        if is_same(key.at, "dur", 3):
            return after_time(scan, at, LONGEST_US, &event.duration)
        if is_same(key.at, "pid", 3):
            return after_place(scan, at, &event.thread.at, &event.thread.length)
        if is_same(key.at, "tid", 3):
            return after_place(scan, at, &event.thread.second, &event.thread.second_length)
        if is_same(key.at, "cat", 3):
            return after_text(scan, at, &event.category)
    elif key.length == 4:
        if is_same(key.at, "name", 4):
            return after_text(scan, at, &event.name)
        if is_same(key.at, "args", 4):
            return after_args(scan, at)
    return after_value(scan, at)


cdef void forget_args(Event* event) noexcept nogil:
    cdef int which
    memset(&event.inputs, 0, sizeof(Token))
    event.inputs.at = NO_TEXT
    event.are_inputs_last = False
    for which in range(IDS):
        event.ids[which] = ABSENT
    event.ids[FORWARD_THREAD] = 0
    event.second_external_id = ABSENT


cdef void forget(Event* event) noexcept nogil:
    memset(event, 0, sizeof(Event))
    event.phase.at = event.category.at = event.name.at = NO_TEXT
    event.phase.length = event.category.length = event.name.length = 2
    event.thread.at = event.thread.second = ZERO
    event.thread.length = event.thread.second_length = 1
    forget_args(event)


cdef Text after_event(Scan* scan, Text at) noexcept nogil:
    cdef Token key
    forget(&scan.event)
    if at[0] != c'{':
        return refused(scan, SYNTAX)
    at = after_space(at + 1)
    if at[0] == c'}':
        return at + 1
    while True:
        at = after_key(scan, at, &key)
        if at == NULL:
            return NULL
        at = after_field(scan, at, &key)
        if at == NULL:
            return NULL
        at = after_space(at)
        if at[0] == c'}':
            return at + 1
        if at[0] != c',':
            return refused(scan, SYNTAX)
        at = after_space(at + 1)


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
    for column in range(NARROW):
        if not has_grown(<void**> &scan.narrow[column], room * sizeof(int32_t)):
            return False
    if not has_grown(<void**> &scan.args, room * sizeof(Text)):
        return False
    if not has_grown(<void**> &scan.args_length, room * sizeof(int32_t)):
        return False
    scan.room = <int32_t> room
    return True


cdef bint is_kept(Scan* scan) noexcept nogil:
    """Puts the event into the columns."""
    cdef Event* event = &scan.event
    cdef int32_t row = scan.count
    cdef int which
    if not has_columns(scan):
        refused(scan, MEMORY)
        return False
    if event.second_external_id != ABSENT:
        event.ids[0] = event.second_external_id
        scan.seen |= 1
    scan.wide[START][row] = event.start
    scan.wide[DURATION][row] = event.duration
    scan.wide[FLOW][row] = event.flow
    for which in range(IDS):
        scan.wide[FIRST_ID + which][row] = event.ids[which]
    scan.narrow[PHASE][row] = number_of(scan, &scan.tables[PHASE], &event.phase)
    scan.narrow[CATEGORY][row] = number_of(scan, &scan.tables[CATEGORY], &event.category)
    scan.narrow[NAME][row] = number_of(scan, &scan.tables[NAME], &event.name)
    scan.narrow[THREAD][row] = number_of(scan, &scan.tables[THREAD], &event.thread)
    scan.narrow[INPUTS][row] = number_of_inputs(scan)
    scan.args[row] = event.args
    scan.args_length[row] = <int32_t> (event.args_end - event.args) if event.args != NULL else 0
    scan.args_bytes += scan.args_length[row]
    scan.narrow[ARGS_END][row] = <int32_t> scan.args_bytes
    scan.count += 1
    return scan.reason == NONE


cdef bint is_crowded(Scan* scan) noexcept nogil:
    """Whether strings were made to collide, which would take forever."""
    cdef int table
    for table in range(TABLES):
        if scan.tables[table].probes > PROBES_PER_TOKEN * (<int64_t> scan.count + 1024):
            return True
    return False


cdef void run(Scan* scan) noexcept nogil:
    cdef Text at = after_space(scan.text)
    if at == scan.stop:
        return
    while True:
        at = after_event(scan, at)
        if at == NULL:
            return
        if at > scan.stop:
            refused(scan, SYNTAX)
            return
        if not is_kept(scan):
            return
        at = after_space(at)
        if at == scan.stop:
            return
        if is_crowded(scan):
            refused(scan, CROWDED)
            return
        if at > scan.stop or at[0] != c',':
            refused(scan, SYNTAX)
            return
        at = after_space(at + 1)
        if at >= scan.stop:
            refused(scan, SYNTAX)
            return


# The Python side


class RefusedError(Exception):
    """The piece is left to the portable decoder; the message says why."""


cdef class Scanner:
    """Scans pieces one after the other, in memory that it keeps for the next. One thread may use it at a time."""

    cdef Scan scan

    def __cinit__(self):
        memset(&self.scan, 0, sizeof(Scan))

    def __dealloc__(self):
        cdef int column
        for column in range(WIDE):
            free(self.scan.wide[column])
        for column in range(NARROW):
            free(self.scan.narrow[column])
        for column in range(TABLES):
            free(self.scan.tables[column].tokens)
            free(self.scan.tables[column].hashes)
            free(self.scan.tables[column].slots)
        free(self.scan.args)
        free(self.scan.args_length)

    def columns(self, bytes text not None, Py_ssize_t start, Py_ssize_t end):
        """The events in `text[start:end]`, which are separated by commas.

        Returns:
            Their number; the int64 columns start, duration, flow and `chunks.ID_FIELDS`, None where no event has the
            id, of int32 where its values fit;
            the int32 columns phase, category, name, thread, inputs and end of the args; for each of the first five
            what its numbers stand for, as JSON, a thread as a list of `pid` and `tid`, inputs as an object; the text
            of all args.

        Raises:
            RefusedError: the piece has something that only the portable decoder takes.
        """
        cdef Scan* scan = &self.scan
        if not 0 <= start <= end <= len(text):
            raise ValueError("there is no such piece")
        if len(text) > 0x7FFFFFFF:  # lengths are int32
            raise RefusedError(REASONS[TOO_LARGE])
        self._begin(<Text> PyBytes_AS_STRING(text), start, end, len(text))
        with nogil:
            run(scan)
        if scan.reason == MEMORY:
            raise MemoryError
        if scan.reason != NONE:
            raise RefusedError(REASONS[scan.reason])
        return (
            scan.count,
            [self._wide(column) for column in range(WIDE)],
            [copied(scan.narrow[column], scan.count * sizeof(int32_t)) for column in range(NARROW)],
            [self._tokens(table) for table in range(TABLES)],
            self._args(),
        )

    cdef void _begin(self, Text text, Py_ssize_t start, Py_ssize_t end, Py_ssize_t length) noexcept:
        cdef Scan* scan = &self.scan
        cdef int table
        scan.text = text + start
        scan.stop = text + end
        scan.limit = text + length
        scan.reason = NONE
        scan.count = 0
        scan.seen = 0
        scan.args_bytes = 0
        scan.last_inputs = 0
        memset(scan.expected, 0, sizeof(scan.expected))
        for table in range(TABLES):
            scan.tables[table].count = 0
            scan.tables[table].probes = 0
            if scan.tables[table].room:
                memset(scan.tables[table].slots, 0, 2 * <size_t> scan.tables[table].room * sizeof(int32_t))

    cdef object _wide(self, int column):
        if column >= FIRST_ID:
            if not (self.scan.seen >> (column - FIRST_ID)) & 1:
                return None
            if fits_narrow(self.scan.wide[column], self.scan.count):
                return narrowed(self.scan.wide[column], self.scan.count)
        return copied(self.scan.wide[column], self.scan.count * sizeof(int64_t))

    cdef list _tokens(self, int which):
        cdef Table* table = &self.scan.tables[which]
        cdef Token token
        cdef int32_t number
        tokens = []
        for number in range(table.count):
            token = table.tokens[number]
            text = PyBytes_FromStringAndSize(<const char*> token.at, token.length)
            if which == THREAD:
                text = b"[%b,%b]" % (text, PyBytes_FromStringAndSize(<const char*> token.second, token.second_length))
            elif which == INPUTS:
                text = b"{%b}" % text
            tokens.append(text)
        return tokens

    cdef bytes _args(self):
        cdef Scan* scan = &self.scan
        cdef bytes joined = PyBytes_FromStringAndSize(NULL, scan.args_bytes)
        cdef char* to = PyBytes_AS_STRING(joined)
        cdef int32_t row
        with nogil:
            for row in range(scan.count):
                if scan.args_length[row]:
                    memcpy(to, scan.args[row], scan.args_length[row])
                    to += scan.args_length[row]
        return joined


cdef bytes copied(const void* column, size_t size):
    if column == NULL:
        return b""
    return PyBytes_FromStringAndSize(<const char*> column, size)


cdef bint fits_narrow(const int64_t* column, int32_t count) noexcept nogil:
    cdef int32_t row
    cdef bint fits = True
    for row in range(count):
        fits &= column[row] == <int32_t> column[row]
    return fits


cdef bytes narrowed(const int64_t* column, int32_t count):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef int32_t* to = <int32_t*> PyBytes_AS_STRING(made)
    cdef int32_t row
    for row in range(count):
        to[row] = <int32_t> column[row]
    return made
