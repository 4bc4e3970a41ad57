# The grammar of JSON, as functions that take where a thing begins and return what is behind it, or NULL once they have
# refused it. Part of `_scan.pyx`, which says why nothing here looks for the end of the text.

# Characters


cdef unsigned char PLAIN[256]  # in a string: neither its end, nor an escape, nor a control character
for _byte in range(256):
    PLAIN[_byte] = _byte >= 0x20 and _byte not in b'"\\'


cdef inline Text refused(Scan* scan, Reason reason) noexcept nogil:
    if scan.reason == NONE:
        scan.reason = reason
    return NULL


cdef inline Text after_space(Text at) noexcept nogil:
    while at[0] == c' ' or at[0] == c'\n' or at[0] == c'\t' or at[0] == c'\r':
        at += 1
    return at


cdef inline bint is_digit(unsigned char byte) noexcept nogil:
    return c'0' <= byte <= c'9'


cdef inline bint is_hex(unsigned char byte) noexcept nogil:
    return is_digit(byte) or c'a' <= (byte | 0x20) <= c'f'


cdef inline bint is_same(Text at, const char* word, size_t length) noexcept nogil:
    return memcmp(at, word, length) == 0


cdef inline Text after_plain(Scan* scan, Text at) noexcept nogil:
    """The next byte that is not plain; eight at a time, by the tests of https://graphics.stanford.edu/~seander/bithacks.html."""
    cdef uint64_t word, quote, slash, marked
    while scan.limit - at >= 8:
        memcpy(&word, at, 8)
        quote = word ^ 0x2222222222222222ULL
        slash = word ^ 0x5C5C5C5C5C5C5C5CULL
        marked = (
            ((word - 0x2020202020202020ULL) & ~word)
            | ((quote - 0x0101010101010101ULL) & ~quote)
            | ((slash - 0x0101010101010101ULL) & ~slash)
        ) & 0x8080808080808080ULL
        if marked:
            at += first_marked(marked)
            break
        at += 8
    while PLAIN[at[0]]:
        at += 1
    return at


cdef Text after_escape(Scan* scan, Text at) noexcept nogil:
    """`at` is behind the backslash. Halves of pairs are refused: pairing them up is the portable decoder's business."""
    cdef int digit
    if at[0] == c'u':
        for digit in range(1, 5):
            if not is_hex(at[digit]):
                return refused(scan, SYNTAX)
        if (at[1] | 0x20) == c'd' and at[2] >= c'8':
            return refused(scan, KIND)
        return at + 5
    if at[0] in (c'"', c'\\', c'/', c'b', c'f', c'n', c'r', c't'):
        return at + 1
    return refused(scan, SYNTAX)


cdef inline Text after_string(Scan* scan, Text at) noexcept nogil:
    """`at` is behind the opening quote; the result is behind the closing one."""
    at = after_plain(scan, at)
    while at[0] == c'\\':
        at = after_escape(scan, at + 1)
        if at == NULL:
            return NULL
        at = after_plain(scan, at)
    if at[0] != c'"':
        return refused(scan, SYNTAX)
    return at + 1


cdef inline Text after_colon(Scan* scan, Text at) noexcept nogil:
    at = after_space(at)
    if at[0] != c':':
        return refused(scan, SYNTAX)
    return after_space(at + 1)


cdef inline Text after_key(Scan* scan, Text at, Token* key) noexcept nogil:
    """Reads a key and its colon; `key` is without its quotes."""
    if at[0] != c'"':
        return refused(scan, SYNTAX)
    at += 1
    key.at = at
    while PLAIN[at[0]]:  # keys are short
        at += 1
    if at[0] == c'\\':
        return refused(scan, KEY)
    if at[0] != c'"':
        return refused(scan, SYNTAX)
    key.length = <int32_t> (at - key.at)
    return after_colon(scan, at + 1)


# Numbers


cdef inline Text after_integer(Scan* scan, Text at, int64_t* value) noexcept nogil:
    cdef bint is_negative = at[0] == c'-'
    cdef int64_t number = 0
    cdef Text first
    if is_negative:
        at += 1
    first = at
    while is_digit(at[0]) and at - first < MOST_DIGITS:
        number = 10 * number + (at[0] - c'0')
        at += 1
    if at == first:
        return refused(scan, KIND)
    if is_digit(at[0]) or at[0] == c'.' or (at[0] | 0x20) == c'e' or (first[0] == c'0' and (at > first + 1 or is_negative)):
        return refused(scan, NUMBER)
    value[0] = -number if is_negative else number
    return at


cdef inline Text after_time(Scan* scan, Text at, int64_t longest_us, int64_t* nanoseconds) noexcept nogil:
    """µs with up to three decimals, straight from the digits: a float64 could not hold absolute ones."""
    cdef int64_t whole = 0
    cdef int64_t part = 0
    cdef int64_t unit = 100
    cdef Text first = at
    while is_digit(at[0]) and at - first < MOST_DIGITS:
        whole = 10 * whole + (at[0] - c'0')
        at += 1
    if at == first:
        return refused(scan, KIND)
    if is_digit(at[0]) or (first[0] == c'0' and at > first + 1):
        return refused(scan, NUMBER)
    if whole >= longest_us:
        return refused(scan, TIME)
    if at[0] == c'.':
        at += 1
        first = at
        while is_digit(at[0]):
            if unit == 0 and at[0] != c'0':
                return refused(scan, NUMBER)
            part += unit * (at[0] - c'0')
            unit //= 10
            at += 1
        if at == first:
            return refused(scan, SYNTAX)
    if (at[0] | 0x20) == c'e':
        return refused(scan, NUMBER)
    nanoseconds[0] = 1000 * whole + part
    return at


cdef inline Text after_number(Scan* scan, Text at) noexcept nogil:
    """Any number that JSON knows."""
    cdef Text first
    if at[0] == c'-':
        at += 1
    first = at
    while is_digit(at[0]):
        at += 1
    if at == first or (first[0] == c'0' and at > first + 1):
        return refused(scan, SYNTAX)
    if at[0] == c'.':
        at += 1
        first = at
        while is_digit(at[0]):
            at += 1
        if at == first:
            return refused(scan, SYNTAX)
    if (at[0] | 0x20) == c'e':
        at += 1
        if at[0] == c'+' or at[0] == c'-':
            at += 1
        first = at
        while is_digit(at[0]):
            at += 1
        if at == first:
            return refused(scan, SYNTAX)
    return at


# Values that are passed over


cdef inline Text after_word(Scan* scan, Text at) noexcept nogil:
    if scan.limit - at >= 5:
        if is_same(at, "true", 4) or is_same(at, "null", 4):
            return at + 4
        if is_same(at, "false", 5):
            return at + 5
    return refused(scan, SYNTAX)


cdef inline Text after_plain_value(Scan* scan, Text at) noexcept nogil:
    if at[0] == c'"':
        return after_string(scan, at + 1)
    if at[0] == c'-' or is_digit(at[0]):
        return after_number(scan, at)
    return after_word(scan, at)


cdef inline Text after_any_key(Scan* scan, Text at) noexcept nogil:
    if at[0] != c'"':
        return refused(scan, SYNTAX)
    at = after_string(scan, at + 1)
    if at == NULL:
        return NULL
    return after_colon(scan, at)


cdef Text after_value(Scan* scan, Text at) noexcept nogil:
    """Checks the syntax of any value. No recursion: one bit per level tells objects from lists."""
    cdef uint64_t objects = 0
    cdef int depth = 0
    cdef unsigned char close
    while True:
        if at[0] == c'[' or at[0] == c'{':
            if depth == DEEPEST:
                return refused(scan, DEPTH)
            objects = (objects << 1) | (at[0] == c'{')
            depth += 1
            close = at[0] + 2  # `]` and `}` lie two behind their opening
            at = after_space(at + 1)
            if at[0] != close:
                if objects & 1:
                    at = after_any_key(scan, at)
                    if at == NULL:
                        return NULL
                continue
        else:
            at = after_plain_value(scan, at)
            if at == NULL or depth == 0:
                return at
            at = after_space(at)
        while at[0] == (c'}' if objects & 1 else c']'):
            at += 1
            objects >>= 1
            depth -= 1
            if depth == 0:
                return at
            at = after_space(at)
        if at[0] != c',':
            return refused(scan, SYNTAX)
        at = after_space(at + 1)
        if objects & 1:
            at = after_any_key(scan, at)
            if at == NULL:
                return NULL
