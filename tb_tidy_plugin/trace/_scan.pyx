# cython: language_level=3, cdivision=True
"""One pass over the text of pieces of `traceEvents`, without the interpreter's lock.

It takes JSON as profilers write it and nothing else: whatever is unusual (a number with an exponent, a null, an escaped
key) is refused with a reason, and the portable decoder takes the piece. So everything here may be strict, and what it
does take it must take exactly as the portable decoder does; `tests/trace/test_decoders.py` compares the two.

A trace is the same few texts again and again. So most of it is not parsed but compared with what is expected there:
what is equal to something that was parsed needs no other proof, and a wrong guess costs time, never a value.

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
    NARROW = 6  # columns of int32: phase, category, name, thread, inputs, args
    FIRST_ID = 3
    FORWARD_THREAD = 4  # among the ids
    PARENT = 6
    IDS = 10
    START = 0
    DURATION = 1
    FLOW = 2
    PHASE = 0  # of the columns of int32, and of the tables of texts
    CATEGORY = 1
    NAME = 2
    THREAD = 3
    INPUTS = 4
    ARGS = 5
    HEADS = 5
    TABLES = 6
    FIRST_PASSED_ON = 5  # so many tables are passed on to Python
    DEEPEST = 60  # levels of nesting, as many as bits of a word hold
    MOST_DIGITS = 18  # any such number fits int64
    PROBES_PER_TOKEN = 64
    MOST_KEPT = 1 << 25  # bytes of texts that are kept from piece to piece

cdef enum Key:  # of an event; those of args are numbered as the ids, then these
    PH, CAT, NAME_KEY, PID, TID, TS, DUR, ID, ARGS_KEY
    SECOND_EXTERNAL_ID = 10
    OF_INPUTS  # says what an operator was called with
    OTHER
    CLOSED  # no key: the object ends

cdef enum Place:  # of a step; 0 between the members of an event
    OF_ARGS = 1
    OPENING = 2  # at the brace with which an object begins
    NOWHERE = 4

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
cdef int64_t NO_TIME = -0x7FFFFFFFFFFFFFFF - 1  # `chunks.NO_TIME`
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
    Token* tokens  # copies, which stay when the text goes
    uint32_t* hashes
    int32_t* slots
    int32_t count
    int32_t passed_on  # how many of them Python knows
    int32_t room  # of tokens; there are twice as many slots


cdef enum:
    STEPS = 256
    LONGEST_STEP = 56
    HEAD_BITS = 14
    EXPECTED_HEADS = 1 << HEAD_BITS
    SHORTEST_HEAD = 8
    LONGEST_HEAD = 1 << 12
    INPUT_BITS = 12
    EXPECTED_INPUTS = 1 << INPUT_BITS
    RECENT_ARGS = 256


cdef struct Step:  # from behind a value to the next one: a comma, a key, a colon, and the space between
    unsigned char text[LONGEST_STEP]
    int32_t length
    int32_t key
    int32_t quote  # where the key's text begins, behind its quote
    int32_t key_length
    int32_t place
    int32_t following  # the step that came after this one the last time
    int32_t other  # and the one before


cdef struct Head:  # what the text from an event's brace to its first number says
    int32_t numbers[4]  # phase to thread; ABSENT for what it does not name
    int32_t key  # whose value follows
    int32_t step


cdef struct Recent:  # args among the last ones
    int32_t start
    int32_t length
    int32_t number


cdef struct Event:  # what is known of the event under the cursor
    Token tokens[4]  # phase to thread
    int32_t numbers[4]  # ABSENT where the token is to be looked up
    uint32_t named  # a bit for each token that its text names; thread's are two
    uint32_t named_in_head
    Text head  # where it begins; NULL where it was the expected one
    Text head_end
    int32_t head_key
    int32_t head_step
    bint is_head_whole  # whether nothing behind it says anything else
    bint has_args
    bint has_start
    int64_t second_external_id
    Text rest  # where members of the args begin that are in no column; NULL where the last one is
    Text rest_end
    int32_t rest_bytes  # those before, as they will stand in the text of all args
    Token inputs  # from the first of their keys to the end of the last value
    bint are_inputs_last  # whether the last key was one of theirs
    bint are_inputs_together  # whether no other key is among them
    int32_t inputs_number  # ABSENT where it is still to be looked up


cdef struct Scan:
    Text limit  # the NUL
    Text stop  # where the piece ends
    Reason reason
    Event event
    Table tables[TABLES]
    int64_t kept_bytes
    int64_t probes
    int64_t* wide[WIDE]
    uint64_t wide_bits[WIDE]  # which bits, the sign's aside, any value of a column has
    int32_t* narrow[NARROW]
    int32_t count
    int32_t room
    uint32_t seen  # which ids any event carries
    unsigned char* args  # texts of all args, one after the other
    int64_t args_room
    int32_t args_bytes
    int32_t* args_ends
    int32_t args_count
    int32_t args_ends_room
    Recent recent_args[RECENT_ARGS]
    Step steps[STEPS]
    int32_t step_count
    int32_t step  # the last one
    Head* heads
    int32_t heads_room
    int32_t last_head
    int32_t head_before
    int32_t expected_heads[EXPECTED_HEADS]  # heads that came after other ones the last time, + 1
    int32_t last_inputs
    int32_t expected_inputs[EXPECTED_INPUTS]  # the same of inputs


include "_json.pxi"
include "_interned.pxi"
include "_expected.pxi"
include "_args.pxi"
include "_events.pxi"


class RefusedError(Exception):
    """The pieces are left to the portable decoder; the message says why."""


cdef class Scanner:
    """Scans pieces one after the other, in memory that it keeps for the next. One thread may use it at a time."""

    cdef Scan scan

    def __cinit__(self):
        memset(&self.scan, 0, sizeof(Scan))
        forget_all(&self.scan)

    def __dealloc__(self):
        cdef int column
        forget_all(&self.scan)
        for column in range(WIDE):
            free(self.scan.wide[column])
        for column in range(NARROW):
            free(self.scan.narrow[column])
        for column in range(TABLES):
            free(self.scan.tables[column].tokens)
            free(self.scan.tables[column].hashes)
            free(self.scan.tables[column].slots)
        free(self.scan.args)
        free(self.scan.args_ends)
        free(self.scan.heads)

    def forget(self):
        """Forgets all texts: the next result stands alone."""
        forget_all(&self.scan)

    def columns(self, list pieces not None):
        """The events in `pieces`, each a text with the start and end of events in it that are separated by commas.

        Returns:
            Their number; the int64 columns start, duration, flow and `chunks.ID_FIELDS`, None where no event has the
            id, of int32 where its values fit;
            the int32 columns phase, category, name, thread, inputs and args;
            for each of the first five what its numbers stand for, as JSON, a thread as a list of `pid` and `tid`, inputs
            as an object: how many of them earlier results had, and those that are new;
            the texts of distinct args, each behind a comma, without what is in columns; and their int32 ends. They are
            numbered from 1 on.

        Raises:
            RefusedError: the pieces have something that only the portable decoder takes. The scanner has forgotten all
                texts, and so it has where a result says that earlier ones had none.
        """
        cdef Scan* scan = &self.scan
        cdef bytes text
        cdef Py_ssize_t start, end
        cdef int64_t size = 0
        for text, start, end in pieces:
            if not 0 <= start <= end <= len(text):
                raise ValueError("there is no such piece")
            size += len(text)
        if size > 0x7FFFFFFF:  # lengths are int32
            raise RefusedError(REASONS[TOO_LARGE])
        begin(scan)
        for text, start, end in pieces:
            if scan.reason == NONE:
                self._scan(text, start, end)
        if scan.reason != NONE:
            forget_all(scan)
        if scan.reason == MEMORY:
            raise MemoryError
        if scan.reason != NONE:
            raise RefusedError(REASONS[scan.reason])
        return (
            scan.count,
            [self._wide(column) for column in range(WIDE)],
            [copied(scan.narrow[column], scan.count * sizeof(int32_t)) for column in range(NARROW)],
            [self._new_texts(table) for table in range(FIRST_PASSED_ON)],
            copied(scan.args, scan.args_bytes),
            copied(scan.args_ends, scan.args_count * sizeof(int32_t)),
        )

    cdef void _scan(self, bytes text, Py_ssize_t start, Py_ssize_t end):
        cdef Scan* scan = &self.scan
        cdef Text at = <Text> PyBytes_AS_STRING(text)
        scan.stop = at + end
        scan.limit = at + len(text)
        with nogil:
            run(scan, at + start)

    cdef object _wide(self, int column):
        cdef Scan* scan = &self.scan
        if column >= FIRST_ID:
            if not (scan.seen >> (column - FIRST_ID)) & 1:
                return None
            if not scan.wide_bits[column] >> 31:
                return narrowed(scan.wide[column], scan.count)
        return copied(scan.wide[column], scan.count * sizeof(int64_t))

    cdef tuple _new_texts(self, int which):
        cdef Table* table = &self.scan.tables[which]
        cdef Token token
        cdef int32_t known = table.passed_on
        cdef int32_t number
        texts = []
        for number in range(known, table.count):
            token = table.tokens[number]
            text = PyBytes_FromStringAndSize(<const char*> token.at, token.length)
            if which == THREAD:
                text = b"[%b,%b]" % (text, PyBytes_FromStringAndSize(<const char*> token.second, token.second_length))
            elif which == INPUTS:
                text = b"{%b}" % text
            texts.append(text)
        table.passed_on = table.count
        return known, texts


cdef bytes copied(const void* column, size_t size):
    if column == NULL:
        return b""
    return PyBytes_FromStringAndSize(<const char*> column, size)


cdef bytes narrowed(const int64_t* column, int32_t count):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    cdef int32_t* to = <int32_t*> PyBytes_AS_STRING(made)
    cdef int32_t row
    for row in range(count):
        to[row] = <int32_t> column[row]
    return made
