# cython: language_level=3, boundscheck=True, wraparound=False
"""The loop of `replay.py` over the activities of devices, without the interpreter; that has the same in Python.

Every index is checked, since what they come from is a trace.
"""

from libc.stdint cimport int64_t


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
