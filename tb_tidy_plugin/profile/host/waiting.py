"""Threads that wait: the Python frames in which they do, and the time at which a thread has done its last work.

The profiler writes a frame that is still open when recording ends as if it ended then, and so a monitor that sleeps in
its frame seems busy to the last nanosecond.
"""

from __future__ import annotations

import re

import numpy as np

from tb_tidy_plugin.profile.events.nesting import contained, outer_first, unfolded
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows

_FOR_THREADS = (
    r"^<built-in (?:method|function) (?:run_backward|acquire|wait|poll|select)\b"
    r"|(?:^|/)threading\.py\(\d+\): (?:wait|join)$"
    r"|(?:^|/)queue\.py\(\d+\): get$|(?:^|/)selectors\.py\(\d+\): select$"
    r"|(?:^|/)torch/autograd/graph\.py\(\d+\): _engine"
)
WAITING = re.compile(_FOR_THREADS)
"""Frames in which a thread waits for another one."""

WAITING_CALLS = re.compile(
    rf"{_FOR_THREADS}"
    r"|^<built-in (?:method|function) (?:sleep|epoll|_?accept4?|recv(?:_into|from|msg)?|read(?:_into|into|line)?"
    r"|waitpid|wait[34]|pause|sigwait\w*|get of _queue\.SimpleQueue|flock|lockf)\b"
    r"|(?:^|/)threading\.py\(\d+\): _wait_for_tstate_lock$"
    r"|(?:^|/)socket\.py\(\d+\): (?:accept|recv|readinto)$"
    r"|(?:^|/)subprocess\.py\(\d+\): (?:_?wait|communicate|_communicate)$"
    r"|(?:^|/)multiprocessing/connection\.py\(\d+\): (?:wait|poll|_poll|accept|recv|recv_bytes|_recv|_recv_bytes)$"
    r"|(?:^|/)multiprocessing/(?:popen_\w+\.py\(\d+\): (?:poll|wait)|process\.py\(\d+\): join|queues\.py\(\d+\): get)$"
    r"|(?:^|/)concurrent/futures/_base\.py\(\d+\): (?:result|wait)$"
)
"""Frames in which a thread does nothing: it waits for another thread, a clock, a message or another process."""

_QUERY = re.compile(r"(?:Event|Stream)Query")
"""Calls by which a host asks whether a device is done, and which wait for nothing."""

_MOST_BESIDE = 0.05
"""Most part of a pause that Python takes to return from a call, or to ask again, for it to be a pause still."""


@once
def working_frames(profile: Profile) -> Mask:
    """Mask of rows that are Python frames outside all waits, without those that were open when recording ended."""
    table = profile.table
    found: Mask = table.category == Category.PYTHON
    frames = np.flatnonzero(found)
    if not len(frames):
        return found
    found[frames[table.end_ns[frames] == table.end_ns[frames].max()]] = False
    idle = frames[table.is_named(WAITING_CALLS.search)[frames]]
    found[idle] = False
    found &= ~profile.inside(idle)
    return found


def busiest_in_python(profile: Profile) -> int:
    """The thread with most frames that work, among those that run operators if any does; `ABSENT` for none."""
    table = profile.table
    calls = np.flatnonzero(table.is_category((Category.OPERATOR, Category.RUNTIME)))
    count = len(table.threads)
    frames = np.bincount(table.thread[np.flatnonzero(working_frames(profile))], minlength=count)
    if len(calls):
        frames[np.bincount(table.thread[calls], minlength=count) == 0] = 0
    return int(np.argmax(frames)) if frames.any() else ABSENT


def work_end_ns(profile: Profile, rows: Rows) -> int:
    """Time at which a thread has done its last work: the end of its last call, or of the Python code after that.

    Frames that wait, that only return from a wait, or that were open when recording ended are no work after the last
    operator or call of the runtime: no event shows what the thread did in them.

    Args:
        profile: one trace.
        rows: all host events of the thread.
    """
    table = profile.table
    rows = rows[table.end_ns[rows] > table.start_ns[rows]]
    rows = outer_first(table, rows, table.category[rows] == Category.RUNTIME)
    parent = contained(table, rows)[0]
    times, label = unfolded(table.start_ns[rows], table.end_ns[rows], parent, 0)
    if not len(times):
        return 0
    is_named = label != ABSENT
    innermost = rows[label]
    is_call = is_named & (table.category[innermost] != Category.PYTHON) & ~table.is_named(_QUERY.search)[innermost]
    first = int(np.flatnonzero(is_call)[-1]) + 1 if is_call.any() else 0
    works_ns = np.where(is_named & working_frames(profile)[innermost], np.append(np.diff(times), 0), 0)[first:]
    after_ns = np.cumsum(works_ns[::-1])[::-1]  # Python work from each of `times` on
    is_over = after_ns <= _MOST_BESIDE * (times[-1] - times[first:])
    return int(times[first + int(np.argmax(is_over))])
