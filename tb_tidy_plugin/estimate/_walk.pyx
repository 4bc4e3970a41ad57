# cython: language_level=3, boundscheck=True, wraparound=False
"""The loops of `replay.py` over the activities of devices, and of `host.py` over the events of a host thread, without
the interpreter; both have the same in Python.

Every index is checked, since what they come from is a trace.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free as give_back, malloc

cdef int64_t ABSENT = -1
cdef int MOST_PASSED = 64  # events that end before one that begins after them: an annotation of one or two with stacks


def begin(
    const int64_t[::1] stream,
    const int64_t[::1] epoch,
    const double[::1] launched,
    const double[::1] after_stream,
    const int64_t[::1] other,
    const double[::1] after_other,
    const double[::1] duration,
    Py_ssize_t first,
    Py_ssize_t last,
    const double[::1] offsets,
    double[::1] free,
    double[::1] ends,
):
    """Fills `ends` of the activities from `first` to `last`, without it, and when all work of each stream is done.

    Args:
        stream, epoch, launched, after_stream, other, after_other, duration: of each activity; `other` is an index of
            `ends`.
        offsets: of each epoch.
        free, ends: what is filled; the last of `ends` is that of no activity.
    """
    cdef Py_ssize_t at
    cdef double start, end
    with nogil:
        for at in range(first, last):
            start = offsets[epoch[at]] + launched[at]
            start = max(start, free[stream[at]] + after_stream[at])
            start = max(start, ends[other[at]] + after_other[at])
            end = start + duration[at]
            ends[at] = end
            free[stream[at]] = max(free[stream[at]], end)


def cut(
    const int64_t[::1] start,
    const int64_t[::1] end,
    const int64_t[::1] marks,
    int64_t[::1] times,
    int32_t[::1] start_cut,
    int32_t[::1] end_cut,
):
    """Fills `times` with each different time of one thread, and the positions in it at which its events begin and end.

    Returns how many there are; `ABSENT` where an event ends after too many that began before it, which is for sorting.

    Args:
        start, end: of the events, in the order in which they begin.
        marks: further times, ascending, none of them after the last end.
        times: what is filled, with room for all of these. start_cut, end_cut: what is filled, one entry per event.
    """
    cdef Py_ssize_t count = start.shape[0]
    # The events that are open, the one that ends first on top.
    cdef int32_t* opened = <int32_t*> malloc((<size_t> count + 1) * sizeof(int32_t))
    if opened == NULL:
        raise MemoryError
    cdef int64_t used
    try:
        with nogil:
            used = cut_into(start, end, marks, times, start_cut, end_cut, opened)
    finally:
        give_back(opened)
    return used


cdef int64_t cut_into(
    const int64_t[::1] start,
    const int64_t[::1] end,
    const int64_t[::1] marks,
    int64_t[::1] times,
    int32_t[::1] start_cut,
    int32_t[::1] end_cut,
    int32_t* opened,
) except -2 nogil:
    cdef Py_ssize_t at, place, mark = 0, depth = 0
    cdef int64_t used = 0
    cdef int32_t last
    for at in range(start.shape[0] + 1):
        while depth and (at == start.shape[0] or end[opened[depth - 1]] <= start[at]):
            depth -= 1
            last = opened[depth]
            used = cut_at(end[last], marks, &mark, times, used)
            end_cut[last] = <int32_t> (used - 1)
        if at == start.shape[0]:
            break
        if end[at] < start[at]:
            return ABSENT
        used = cut_at(start[at], marks, &mark, times, used)
        start_cut[at] = <int32_t> (used - 1)
        place = depth  # below those that end before it
        while place and end[opened[place - 1]] < end[at]:
            if depth - place == MOST_PASSED:
                return ABSENT
            opened[place] = opened[place - 1]
            place -= 1
        opened[place] = <int32_t> at
        depth += 1
    return used


cdef inline int64_t cut_at(
    int64_t time, const int64_t[::1] marks, Py_ssize_t* mark, int64_t[::1] times, int64_t used
) except -2 nogil:
    """Notes a cut at `time` and at the marks before it; returns how many there are."""
    while mark[0] < marks.shape[0] and marks[mark[0]] <= time:
        if used == 0 or times[used - 1] != marks[mark[0]]:
            times[used] = marks[mark[0]]
            used += 1
        mark[0] += 1
    if used == 0 or times[used - 1] != time:
        times[used] = time
        used += 1
    return used


def add_up(
    const int64_t[::1] time,
    const int64_t[::1] first,
    const float[::1] recorded,
    double unrecorded,
    double kept,
    const int64_t[::1] cuts,
    const double[::1] left,
    const int64_t[::1] places,
    double[::1] passed,
):
    """Fills `passed`: what has passed on all lanes up to each of `places`.

    Args:
        time: of each cut. first: of each lane its first cut, and the number of cuts.
        recorded: what the profiler takes at each cut; so many times, `unrecorded`, it is taken off what passes to the
            next one. kept: which part of the rest passes.
        cuts, left: ascending; which part of that passes from each of `cuts` to the next one, so there is one fewer.
        places: ascending. passed: what is filled, one entry per place.
    """
    cdef Py_ssize_t at, change = 0, place = 0, lane = 1
    cdef double work, sum_ = 0
    with nogil:
        for at in range(time.shape[0]):
            if place == places.shape[0]:
                break
            if places[place] == at:
                passed[place] = sum_
                place += 1
            work = 0
            if at + 1 == first[lane]:
                lane += 1
            else:
                work = <double> (time[at + 1] - time[at])
            work = max(work - recorded[at] * unrecorded, 0.0) * kept
            while change < left.shape[0] and cuts[change + 1] <= at:
                change += 1
            if change < left.shape[0] and cuts[change] <= at:
                work = work * left[change]
            sum_ += work
