"""Python functions of a server's engine that run while its device waits: the scheduler, the sampler, the tokeniser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals, Spans
from tb_tidy_plugin.profile.iterations import Iteration, iterations_of
from tb_tidy_plugin.trace.columns import Category, Mask, Rows

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile


class HoldingUp(msgspec.Struct, frozen=True):
    """A function that the device waits for.

    Attributes:
        name: its file and name.
        calls: spans in ns without device work, by row of the call, in order of time for each thread.
    """

    name: str
    calls: dict[int, Spans]

    @property
    def waits_ns(self) -> int:
        """Time in ns that the device waits for all calls."""
        return sum(end - start for spans in self.calls.values() for start, end in spans)


def functions_that_hold_up(profile: Profile, function: str, *, inside: bool) -> list[HoldingUp]:
    """Functions on the threads of iterations that the device waits for, in order of their first call.

    A call inside another matching one is part of it. A server's loop contains its iterations, and is skipped.

    Args:
        profile: one trace.
        function: regular expression that matches the names.
        inside: True if calls inside an iteration's mark also count.

    Returns:
        Each function with the calls that the device waits for, from the first iteration's window to the last one's.
    """
    table, found = profile.table, dict[str, HoldingUp]()
    rows = profile.matching(function, Category.PYTHON)
    for thread, (whole, iterations) in _by_thread(profile).items():
        mine = rows[table.thread[rows] == thread]
        mine = mine[~_around_or_inside(profile, mine, iterations, inside=inside)]
        mine = mine[np.lexsort((-table.end_ns[mine], table.start_ns[mine]))]
        reach = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, table.end_ns[mine]))[:-1]
        mine = mine[table.start_ns[mine] >= reach]
        running = Intervals(table.start_ns[mine], table.end_ns[mine])
        idle = whole.minus(profile.device_busy).intersection(running)
        of_call = np.searchsorted(running.starts, idle.starts, side="right") - 1
        for at, span in zip(mine[of_call].tolist(), idle.spans, strict=True):
            calls = found.setdefault(profile.name(at), HoldingUp(profile.name(at), {})).calls
            calls[at] = (*calls.get(at, ()), span)
    return list(found.values())


def share_held_up(profile: Profile, functions: Iterable[HoldingUp]) -> float:
    """Share of the time from the first iteration to the last in which the device waits for these functions."""
    served_ns = sum(whole.total_ns for whole, _ in _by_thread(profile).values())
    return sum(each.waits_ns for each in functions) / served_ns if served_ns else 0.0


def _by_thread(profile: Profile) -> dict[int, tuple[Intervals, list[Iteration]]]:
    """The iterations of each thread, and the time from the first one's window to the last one's."""
    threads: dict[int, list[Iteration]] = {}
    for each in iterations_of(profile):
        threads.setdefault(each.thread, []).append(each)
    return {
        thread: (
            Intervals.union(
                np.array([min(each.start_ns for each in mine)]), np.array([max(each.end_ns for each in mine)])
            ),
            mine,
        )
        for thread, mine in threads.items()
    }


def _around_or_inside(profile: Profile, rows: Rows, iterations: list[Iteration], *, inside: bool) -> Mask:
    """Mask of `rows` that contain or leave a mark of `iterations`, or, unless `inside` is True, start in one."""
    starts = np.array([each.host_start_ns for each in iterations])
    ends = np.array([each.host_end_ns for each in iterations])
    begin, end = profile.table.start_ns[rows], profile.table.end_ns[rows]
    before = np.searchsorted(starts, begin, side="right")  # marks that have begun
    contains = np.searchsorted(starts, end, side="left") > before
    lies_in = (before > 0) & (ends[np.maximum(before - 1, 0)] > begin)
    lies_around = lies_in & (ends[np.maximum(before - 1, 0)] < end)
    return contains | lies_around | (lies_in & (not inside))
