"""Host threads as lanes: time cut wherever an event begins or ends.

Between two cuts a thread does one thing: an operator's own work, or what the recording does not name. An edit of an
event changes how fast time passes between its two cuts, whatever the event tree says of what lies below it.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.intervals import union_by_lane
from tb_tidy_plugin.profile.lanes import BACKWARD
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct

Floats = NDArray[np.float64]


class HostLanes(msgspec.Struct, frozen=True):
    """The cuts of all host threads, thread after thread, ascending within each.

    Attributes:
        time_ns: when each cut is.
        work_ns: what passes from each cut to the next of its lane; 0 at a lane's last cut.
        first: the first cut of each lane, and behind the last lane the number of cuts.
        start_cut, end_cut: of each row of the profile, `ABSENT` for events of a device.
        main: the lane that the steps are marked on.
        runs_backward: which lanes the autograd engine works on, other than the main one.
        next_start: for each cut the next one, or itself, at which an event begins; else the lane's last.
        next_end: for each cut the end of the first operator that begins at it or later, and in no other; else itself.
        usual_rest_ns: how long it takes from an operator's end to the next event, as a rule.
        burst_start, burst_end: the cuts of each stretch of events without a rest between them, lane after lane.
    """

    time_ns: Times
    work_ns: Floats
    first: Rows
    start_cut: Rows
    end_cut: Rows
    main: int
    runs_backward: Mask
    next_start: Rows
    next_end: Rows
    usual_rest_ns: float
    burst_start: Rows
    burst_end: Rows

    def lane_of(self, cuts: Rows) -> Rows:
        """The lane of each cut."""
        lanes: Rows = np.searchsorted(self.first, cuts, side="right") - 1
        return lanes

    def cuts_of(self, lane: int) -> slice:
        """All cuts of a lane."""
        return slice(int(self.first[lane]), int(self.first[lane + 1]))

    def at_or_before(self, lane: int, times: Times) -> Rows:
        """The last cut of `lane` that is not after each of `times`; its first where there is none."""
        here = self.cuts_of(lane)
        found = np.searchsorted(self.time_ns[here], times, side="right") - 1
        cuts: Rows = here.start + np.maximum(found, 0)
        return cuts


def host_lanes(profile: Profile) -> HostLanes:
    """The lanes of a profile that has host events; the edges of steps are cuts of the main lane."""
    table = profile.table
    rows = np.flatnonzero(table.is_category((*HOST_TREE, Category.RUNTIME)) & (table.category != Category.MEMORY))
    threads, lane = np.unique(table.thread[rows], return_inverse=True)
    edges = np.concatenate([profile.steps.starts, profile.steps.ends])
    lanes, times = np.tile(lane.reshape(-1), 2), np.concatenate([table.start_ns[rows], table.end_ns[rows]])
    main = _main_lane(lanes, times, edges)
    marked = np.clip(edges, times[lanes == main].min(), times[lanes == main].max())
    first, time_ns, cut = _cut(np.append(lanes, np.full(len(marked), main)), np.append(times, marked))
    start_cut, end_cut = (np.full(len(table), ABSENT, np.int64) for _ in range(2))
    start_cut[rows], end_cut[rows] = cut[: len(rows)], cut[len(rows) : 2 * len(rows)]
    work_ns = np.append(np.diff(time_ns), 0).astype(np.float64)
    work_ns[first[1:] - 1] = 0
    backward = among(threads, distinct(table.thread[table.is_named(BACKWARD.search) & (start_cut != ABSENT)]))
    backward[main] = False
    next_start = _next_starts(first, start_cut[rows])
    operators = rows[table.category[rows] == Category.OPERATOR]
    ends = end_cut[operators]
    rest_ns = time_ns[next_start[ends]] - time_ns[ends]
    _, burst_start, burst_end = union_by_lane(lane.reshape(-1), start_cut[rows], end_cut[rows])
    return HostLanes(
        time_ns=time_ns,
        work_ns=work_ns,
        first=first,
        start_cut=start_cut,
        end_cut=end_cut,
        main=main,
        runs_backward=backward,
        next_start=next_start,
        next_end=_next_ends(first, start_cut[operators], ends),
        usual_rest_ns=float(np.median(rest_ns)) if len(rest_ns) else 0.0,
        burst_start=burst_start,
        burst_end=burst_end,
    )


def _main_lane(lanes: Rows, times: Times, edges: Times) -> int:
    """The lane in which most of `edges` are times of events, of those the one with most different times."""
    if not lanes.any():
        return 0
    first, time_ns, _ = _cut(lanes, times)
    lane, size = np.repeat(np.arange(len(first) - 1), np.diff(first)), np.diff(first)
    known, count = np.unique(edges, return_counts=True)
    at = np.minimum(np.searchsorted(known, time_ns), len(known) - 1)
    found = np.bincount(lane, np.where(known[at] == time_ns, count[at], 0), len(size))
    return int(np.lexsort((-np.arange(len(size)), size, found))[-1])


def _cut(lanes: Rows, times: Times) -> tuple[Rows, Times, Rows]:
    """The cuts of all lanes: `HostLanes.first` and `time_ns`, and the cut of its lane that each of `times` is."""
    order = np.lexsort((times, lanes))
    lanes, times = lanes[order], times[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (lanes[1:] != lanes[:-1]) | (times[1:] != times[:-1])
    cut = np.empty(len(order), np.int64)
    cut[order] = np.cumsum(is_new) - 1
    return np.cumsum([0, *np.bincount(lanes[is_new])]), times[is_new], cut


def _next_starts(first: Rows, starts: Rows) -> Rows:
    """For each cut the first one from it on that is one of `starts`, or the last of its lane."""
    count = int(first[-1])
    found = np.full(count, count, np.int64)
    found[starts] = starts
    found[first[1:] - 1] = first[1:] - 1
    nexts: Rows = np.minimum.accumulate(found[::-1])[::-1]
    return nexts


def _next_ends(first: Rows, starts: Rows, ends: Rows) -> Rows:
    """For each cut where the first of the longest events from `starts` to `ends` ends that begins there or later."""
    nexts = _next_starts(first, starts)
    end_of = np.arange(int(first[-1]))
    np.maximum.at(end_of, starts, ends)
    found: Rows = end_of[nexts]
    return found


def expanded(first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """All numbers of the ranges `first` to `last` (without it), and the range that each comes from."""
    count = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(first)), count)
    numbers: Rows = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    return numbers, owner
