# cython: language_level=3, boundscheck=True, wraparound=False
"""The loops of `tree.py`, `nesting.py` and `intervals.py`, without the interpreter; all have the same in Python.

Every index is checked, since what they come from is a trace.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

cdef int32_t ABSENT = -1

cdef struct Entry:  # of a stack: a frame, the least end of it and all below, and the entry below
    int64_t frame
    int64_t end
    int64_t below


cdef struct Stacks:
    Entry* entries
    int64_t used  # so many of them were ever taken
    int64_t spare  # the first of those that were given back, each above the next; `ABSENT` for none


cdef inline int64_t taken(Stacks* stacks) noexcept nogil:
    """An entry that is in no stack. What was given back last comes first, so that little memory is ever touched."""
    cdef int64_t entry = stacks.spare
    if entry == ABSENT:
        entry = stacks.used
        stacks.used += 1
    else:
        stacks.spare = stacks.entries[entry].below
    return entry


cdef inline int64_t open_at(Stacks* stacks, int64_t[::1] top, int64_t thread, int64_t time) except -2 nogil:
    """The topmost entry of `thread` that is still open at `time`, `ABSENT` where there is none."""
    cdef int64_t entry = top[thread], below
    while entry != ABSENT and stacks.entries[entry].end < time:
        below = stacks.entries[entry].below
        stacks.entries[entry].below = stacks.spare
        stacks.spare = entry
        entry = below
    top[thread] = entry
    return entry


def replay(
    const int32_t[::1] thread,
    const int64_t[::1] start,
    const int64_t[::1] end,
    const int32_t[::1] forward,
    int64_t[::1] top,
    int32_t[::1] parent,
    int32_t[::1] depth,
):
    """Fills `parent` (a position) and `depth` of events sorted by start.

    Args:
        thread: of each event. start, end: in ns. forward: its forward thread, `ABSENT` where it names none.
        top: all `ABSENT`, one entry per thread.
        parent, depth: what is filled.
    """
    cdef Py_ssize_t count = thread.shape[0]
    cdef Stacks stacks
    stacks.used, stacks.spare = 0, ABSENT
    # At most two entries per event: itself, and the foreign frame below it.
    stacks.entries = <Entry*> malloc((2 * <size_t> count + 1) * sizeof(Entry))
    if stacks.entries == NULL:
        raise MemoryError
    try:
        with nogil:
            nest(thread, start, end, forward, top, parent, depth, &stacks)
    finally:
        free(stacks.entries)


cdef int nest(
    const int32_t[::1] thread,
    const int64_t[::1] start,
    const int64_t[::1] end,
    const int32_t[::1] forward,
    int64_t[::1] top,
    int32_t[::1] parent,
    int32_t[::1] depth,
    Stacks* stacks,
) except -1 nogil:
    cdef Entry* entries = stacks.entries
    cdef int64_t entry, below
    cdef Py_ssize_t at
    cdef bint is_foreign
    for at in range(thread.shape[0]):
        entry = open_at(stacks, top, thread[at], start[at])
        is_foreign = False
        if entry == ABSENT and forward[at] != ABSENT:
            entry = open_at(stacks, top, forward[at], start[at])
            is_foreign = entry != ABSENT
        parent[at] = ABSENT
        depth[at] = 0
        if entry != ABSENT:
            parent[at] = <int32_t> entries[entry].frame
            depth[at] = depth[parent[at]] + 1
        if end[at] <= start[at]:
            continue  # a leaf
        below = entry
        if is_foreign:  # that frame stays on top of this thread's stack for good, as in the live profiler
            below = taken(stacks)
            entries[below].frame = entries[entry].frame
            entries[below].end = INT64_MAX
            entries[below].below = ABSENT
        entry = taken(stacks)
        entries[entry].frame = at
        entries[entry].end = end[at] if below == ABSENT else min(end[at], entries[below].end)
        entries[entry].below = below
        top[thread[at]] = entry
    return 0


def pre_order(const int32_t[::1] parent, int32_t[::1] size, int32_t[::1] free_from, int32_t[::1] position):
    """Fills `position`, where each event stands in pre-order, and `size`, of its subtree.

    Args:
        parent: each stands before its children.
        size, position: what is filled. free_from: room to work, one entry more.
    """
    cdef Py_ssize_t count = parent.shape[0]
    cdef Py_ssize_t at
    cdef int64_t above
    with nogil:
        for at in range(count):
            size[at] = 1
        for at in range(count - 1, -1, -1):
            if parent[at] != ABSENT:
                size[parent[at]] += size[at]
        free_from[count] = 0  # of the roots
        for at in range(count):
            above = count if parent[at] == ABSENT else parent[at]
            position[at] = free_from[above]
            free_from[above] += size[at]
            free_from[at] = position[at] + 1


def contain(
    const int32_t[::1] thread,
    const int64_t[::1] start,
    const int64_t[::1] end,
    int32_t[::1] parent,
    int32_t[::1] last,
    int64_t[::1] self_ns,
    int64_t[::1] covered,
):
    """Fills `parent`, `last` and `self_ns` of calls sorted by thread, start and falling end.

    Args:
        thread, start, end: of each call, times in ns.
        parent, last, self_ns: what is filled; the two first as positions.
        covered: room to work: up to when the calls directly inside each one cover it.
    """
    cdef int32_t top = ABSENT  # the stack is the chain of parents
    cdef int32_t at
    with nogil:
        for at in range(thread.shape[0]):
            while top != ABSENT and (thread[at] != thread[top] or start[at] >= end[top] or end[at] > end[top]):
                last[top] = at - 1
                top = parent[top]
            parent[at] = top
            self_ns[at] = end[at] - start[at]
            covered[at] = start[at]
            if top != ABSENT and end[at] > covered[top]:
                self_ns[top] -= end[at] - max(start[at], covered[top])
                covered[top] = end[at]
            top = at
        while top != ABSENT:
            last[top] = <int32_t> thread.shape[0] - 1
            top = parent[top]


def around(const int32_t[::1] parent, const uint8_t[::1] wanted, int32_t[::1] found):
    """Fills `found`: the nearest wanted one of each event and those around it, `ABSENT` where none is.

    Args:
        parent: each stands before its children. wanted: 1 or 0 for each event.
        found: what is filled, with positions.
    """
    cdef int32_t at
    with nogil:
        for at in range(parent.shape[0]):
            if wanted[at]:
                found[at] = at
            elif parent[at] == ABSENT:
                found[at] = ABSENT
            else:
                found[at] = found[parent[at]]


def above(const int32_t[::1] parent, const uint8_t[::1] wanted, int32_t[::1] found):
    """Fills `found`: the nearest wanted one of those around each event, without itself. Arguments as of `around`."""
    cdef int32_t at, outer
    with nogil:
        for at in range(parent.shape[0]):
            outer = parent[at]
            found[at] = outer if outer == ABSENT or wanted[outer] else found[outer]


cdef inline int64_t change(
    int64_t[::1] times, int32_t[::1] label, int64_t used, int64_t time, int32_t now
) except -2 nogil:
    """Notes that `now` is innermost from `time` on: the last one of several at one time. Returns how many there are."""
    if used == 0 or times[used - 1] != time:
        times[used] = time
        used += 1
    label[used - 1] = now
    return used


def unfold(
    const int64_t[::1] start,
    const int64_t[::1] end,
    const int32_t[::1] parent,
    int32_t first,
    int64_t[::1] times,
    int32_t[::1] label,
):
    """Fills `times`, when the innermost of one thread's calls changes, and `label`, which it is from then on.

    Returns how many there are; `ABSENT` where a call ends after one that had begun before it, which only sorting shows.

    Args:
        start, end, parent: of its calls, as `contain` has them; `parent` among all threads' calls.
        first: position of its first call among these.
        times, label: what is filled, each with room for two entries per call.
    """
    cdef int32_t top = ABSENT  # a position of all threads' calls
    cdef int64_t used = 0
    cdef int32_t at
    with nogil:
        for at in range(start.shape[0]):
            while top != ABSENT and end[top - first] <= start[at]:
                used = change(times, label, used, end[top - first], parent[top - first])
                top = parent[top - first]
            if top != parent[at]:
                used = ABSENT
                break
            top = at + first
            used = change(times, label, used, start[at], top)
        while top != ABSENT and used != ABSENT:
            used = change(times, label, used, end[top - first], parent[top - first])
            top = parent[top - first]
    return used


def unite(const int64_t[:] starts, const int64_t[:] ends, int64_t[::1] first, int64_t[::1] last):
    """Fills `first` and `last`, start and end of each interval of the union; empty and negative ones do not count.

    Returns how many there are; `ABSENT` if the intervals do not begin one after the other.
    """
    cdef Py_ssize_t at
    cdef int64_t used = 0, begun = 0
    with nogil:
        for at in range(starts.shape[0]):
            if ends[at] <= starts[at]:
                continue
            if used and starts[at] < begun:
                used = ABSENT
                break
            begun = starts[at]
            if used and begun <= last[used - 1]:
                last[used - 1] = max(last[used - 1], ends[at])
            else:
                first[used] = begun
                last[used] = ends[at]
                used += 1
    return used


def cover(const int64_t[:] starts, const int64_t[:] ends, const int64_t[:] times, int64_t[::1] found):
    """Fills `found`: the time before each of `times` that the intervals cover, which are disjoint and ascending.

    Returns whether the times are ascending, too; if they are not, what is filled does not count.
    """
    cdef Py_ssize_t at, interval = 0
    cdef int64_t before = 0
    cdef bint are_ascending = True
    with nogil:
        for at in range(times.shape[0]):
            if at and times[at] < times[at - 1]:
                are_ascending = False
                break
            while interval < starts.shape[0] and ends[interval] <= times[at]:
                before += ends[interval] - starts[interval]
                interval += 1
            found[at] = before
            if interval < starts.shape[0] and starts[interval] < times[at]:
                found[at] += times[at] - starts[interval]
    return are_ascending
