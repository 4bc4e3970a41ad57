"""Changes to a graph by edits of events: stretches of host time, activities and waits.

An edited host event changes its thread's time from its start to its end, whatever runs there, and what it launched. If
a rule names the lost time, an edit changes host time only then, and of an activity only the part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.estimate.faults import LARGE_NS
from tb_tidy_plugin.estimate.graph import Graph
from tb_tidy_plugin.estimate.host import Floats, HostLanes, expanded
from tb_tidy_plugin.estimate.replay import Changes
from tb_tidy_plugin.profile.events.intervals import Intervals, covered
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, loading_calls
from tb_tidy_plugin.rulekit import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, distinct, united
from tb_tidy_plugin.trace.strings import numbers_where

OTHERS_SHARE = 0.5
"""Most that the rest gets faster, as a part of the removed long operators' time: it finds more in its caches."""

LEAST = 3
"""Least number of operators, besides one for each step, that is not a coincidence."""

Outlook: TypeAlias = Literal["least", "expected", "most"]
"""The least, the most likely, or the largest saving."""

_Kind: TypeAlias = tuple[type[Edit], tuple[float, float, float], int]
"""Kind of an edit; the part it leaves at least, most likely and at most; how much of it runs at once."""


class Stretches(msgspec.Struct, frozen=True):
    """Stretches of host lanes, ascending: those from the cut `first` to `last`, without it, and a share of each."""

    first: Rows
    last: Rows
    share: Floats

    @classmethod
    def of_cuts(cls, cuts: Rows, share: Floats) -> Stretches:
        """Those of the shares of ascending cuts, of which many that follow each other have the same share."""
        begins = np.ones(len(cuts), np.bool_)
        begins[1:] = (np.diff(cuts) != 1) | (share[1:] != share[:-1])
        return cls(cuts[begins], cuts[np.append(begins[1:], begins[:1])] + 1, share[begins])


NO_STRETCHES = Stretches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class Touch(msgspec.Struct, frozen=True):
    """Parts of a graph that edits of one kind change.

    Attributes:
        left: remaining part of it, by outlook.
        host: stretches of host time, and the affected part of each.
        work, work_shares: activities, and the affected part of each.
        waits: those that no longer happen.
        leaves_line: the activities no longer happen in line with others.
        beside_ns: time that the work runs beside the rest, if it does.
        beyond_ns: the part of it outside the edited events' own time.
        others_ns: most time that the rest gains without it.
    """

    left: tuple[float, float, float]
    host: Stretches
    work: Rows
    work_shares: Floats
    waits: Rows
    leaves_line: bool
    beside_ns: float = 0.0
    beyond_ns: float = 0.0
    others_ns: float = 0.0


def touches(graph: Graph, edits: Iterable[Edit], lost: Sequence[tuple[int, int]] | None = None) -> Iterator[Touch]:
    """The parts that `edits` change, grouped by what they leave; only in `lost` time if that is given."""
    spans = None
    if lost is not None:
        edges = np.array(lost, np.int64).reshape(-1, 2)
        spans = clipped_to_steps(graph.profile, Intervals.union(edges[:, 0], edges[:, 1]))
    groups: dict[_Kind, list[int]] = {}
    for edit in edits:
        groups.setdefault(_kind(edit), []).extend((edit.event,) if isinstance(edit, Unblock) else edit.events)
    for (kind, left, at_once), events in groups.items():
        rows = distinct(np.array(events, np.int64))
        if spans is None:  # which are in steps, wherever their events began
            rows = graph.profile.in_steps(rows)
        touch = _touch(graph, kind, left, at_once, rows, spans)
        if kind in {Remove, Scale} and not len(graph.device):
            touch = replace(touch, others_ns=_others_ns(graph, left, rows, spans))
            if spans is None:
                yield _freed(graph, left, rows)
        yield touch


class Touched(msgspec.Struct, frozen=True):
    """Touches of one or more fixes together.

    Attributes:
        cuts: starts and ends of all their stretches of host time, ascending.
        at: for each touch the positions in `cuts` after which its stretches take the time up to the next one, and the
            affected part of each.
    """

    graph: Graph
    touches: tuple[Touch, ...]
    cuts: Rows
    at: tuple[tuple[Rows, Floats], ...]

    def changes(self, outlook: Outlook) -> Changes:
        """All touches together; a part that several of them touch keeps the least that any of them leaves."""
        graph = self.graph
        host, device = np.ones(max(len(self.cuts) - 1, 0)), np.ones(len(graph.device))
        gone, unblocked = np.zeros(len(graph.device), np.bool_), np.zeros(len(graph.waits), np.bool_)
        beside_ns = 0.0
        for touch, (at, share) in zip(self.touches, self.at, strict=True):
            left = touch.left[("most", "expected", "least").index(outlook)]
            host[at] = np.minimum(host[at], 1 - share * (1 - left))
            device[touch.work] = np.minimum(device[touch.work], 1 - touch.work_shares * (1 - left))
            if left < 1:
                gone[touch.work] |= touch.leaves_line
                unblocked[touch.waits] = True
                beside_ns += touch.beside_ns if outlook != "most" else 0.0
        return Changes(self.cuts, host, device, gone, unblocked, beside_ns)

    def phases_ns(self) -> tuple[Floats, Floats]:
        """Length of each uninterrupted phase of a thread that changes, before and in the expected case."""
        changes = self.changes("expected")
        is_shorter = changes.left < 1
        if not is_shorter.any():
            return np.empty(0), np.empty(0)
        before_ns = np.diff(self.graph.host.passed_ns(changes.cuts, changes.cuts[:0], changes.left[:0]))
        first = np.flatnonzero(is_shorter & ~np.append(False, is_shorter[:-1]))

        def lengths(times_ns: Floats) -> Floats:
            found: Floats = np.add.reduceat(np.where(is_shorter, times_ns, 0.0), first)
            return found

        return lengths(before_ns), lengths(before_ns * changes.left)


def together(graph: Graph, touches: Iterable[Touch]) -> Touched:
    """These touches as one."""
    found = tuple(touches)
    cuts = united(np.empty(0, np.int64), *(edges for touch in found for edges in (touch.host.first, touch.host.last)))

    def taken(host: Stretches) -> tuple[Rows, Floats]:
        at, stretch = expanded(np.searchsorted(cuts, host.first), np.searchsorted(cuts, host.last))
        return at, host.share[stretch]

    return Touched(graph, found, cuts, tuple(taken(touch.host) for touch in found))


def _kind(edit: Edit) -> _Kind:
    match edit:
        case Scale(_, factor, low, high):
            return Scale, (low, factor, high), 1
        case Overlap(_, at_once, left):
            return Overlap, (0.0, left, 1.0), at_once  # nothing is certain to hide
        case Unblock():
            return Unblock, (0.0, 0.0, 0.0), 1
        case _:
            return Remove, (0.0, 0.0, 0.0), 1


def _touch(
    graph: Graph, kind: type[Edit], left: tuple[float, float, float], at_once: int, rows: Rows, spans: Intervals | None
) -> Touch:
    begin, end = _cuts(graph, rows)
    nothing = np.empty(0, np.int64)
    waits = _inside(np.where(graph.wait_for_device, graph.places[graph.wait_begin], ABSENT), begin, end)
    waits = waits if kind in (Remove, Unblock) else nothing
    if kind is Unblock:
        return Touch(left, NO_STRETCHES, nothing, np.empty(0), waits, leaves_line=False)
    work = np.flatnonzero(among(graph.device.row, rows))
    if kind is not Overlap:
        work = united(work, _inside(graph.device.launch_cut, begin, end))
    work_shares = _shares(graph, work, spans)
    work, work_shares = work[work_shares > 0], work_shares[work_shares > 0]
    beside_ns = 0.0
    if kind is Overlap:
        beside_ns = (covered(graph.profile.table, rows) if spans is None else spans).total_ns / at_once
    leaves_line = kind is Overlap or (kind is Remove and spans is None)
    host = _stretches(graph, begin, spans) if spans is not None else _own_stretches(graph, rows)
    return Touch(left, host, work, work_shares, waits, leaves_line, beside_ns)


def _freed(graph: Graph, left: tuple[float, float, float], rows: Rows) -> Touch:
    """Time in which results of operators, or what they replaced, are freed to the system.

    Large CPU memory is mapped for each new tensor, and unmapped in time that no event has: from the end of the operator
    that replaces a tensor, or of the next one, which reads the tensor last, to the next event's start. It counts if it
    is longer than usual and shorter than half of the operator, which had to write that memory. Operators in place
    create nothing to free. Python code may take that time, too: if too few operators show it, it is part of the largest
    saving only, and never of the least.
    """
    host, rests, table = graph.host, graph.host.rests, graph.profile.table
    is_long = (table.end_ns[rows] - table.start_ns[rows] >= LARGE_NS) & (host.start_cut[rows] != ABSENT)
    in_place = numbers_where(table.names, lambda name: aten.is_a("in_place", name))
    makes = (table.category[rows] == Category.OPERATOR) & ~among(table.name[rows], in_place)
    rows = rows[makes & is_long]
    ends = np.concatenate([host.end_cut[rows], rests.next_end[host.end_cut[rows]]])
    nexts = rests.next_start[ends]
    rest_ns = host.time_ns[nexts] - host.time_ns[ends]
    duration_ns = table.end_ns[rows] - table.start_ns[rows]
    freed_ns = np.clip(rest_ns - rests.usual_ns, 0, np.tile(duration_ns / 2, 2))
    free, at = expanded(ends, nexts)
    cuts = distinct(free)
    share_of = np.zeros(len(cuts))
    np.maximum.at(share_of, np.searchsorted(cuts, free), (freed_ns / np.maximum(rest_ns, 1))[at])
    cuts, share_of = cuts[share_of > 0], share_of[share_of > 0]
    nothing = np.empty(0, np.int64)
    beyond_ns = float((host.work_ns(cuts) * share_of).sum())
    is_habit = len(rows) >= max(len(graph.profile.steps.items), LEAST)
    spared = (left[0], left[1] if is_habit else 1.0, 1.0)
    freed = Stretches.of_cuts(cuts, share_of)
    return Touch(spared, freed, nothing, np.empty(0), nothing, leaves_line=False, beyond_ns=beyond_ns)


def _others_ns(graph: Graph, left: tuple[float, float, float], rows: Rows, spans: Intervals | None) -> float:
    """Time that the rest may gain on a CPU: it finds more in caches that less data has passed through."""
    table = graph.profile.table
    is_long = table.end_ns[rows] - table.start_ns[rows] >= LARGE_NS
    rows = rows[among(table.category[rows], (Category.OPERATOR, Category.PYTHON)) & is_long]
    time = covered(table, rows)
    return (time if spans is None else time.intersection(spans)).total_ns * (1 - left[0]) * OTHERS_SHARE


def _cuts(graph: Graph, rows: Rows) -> tuple[Rows, Rows]:
    """Start and end of the host events among `rows`, and of what is below them on other threads."""
    host, tree = graph.host, graph.profile.tree
    rows = rows[host.start_cut[rows] != ABSENT]
    below = rows[rows < tree.size]
    first = np.searchsorted(graph.foreign, below, side="right")
    last = np.searchsorted(graph.foreign, tree.last_descendant[below], side="right")
    rows = united(rows, graph.foreign[expanded(first, last)[0]])
    rows = rows[host.start_cut[rows] != ABSENT]
    return host.start_cut[rows].astype(np.int64), host.end_cut[rows].astype(np.int64)


def _inside(cuts: Rows, begin: Rows, end: Rows) -> Rows:
    """The entries of `cuts` in any of the stretches from `begin` to before `end`."""
    order = np.argsort(cuts, kind="stable")
    found, _ = expanded(np.searchsorted(cuts[order], begin), np.searchsorted(cuts[order], end))
    return distinct(order[found])


def _own_stretches(graph: Graph, rows: Rows) -> Stretches:
    """The whole stretches between cuts that edited host events take, without calls in which operators load kernels.

    Another operator would load what they share.
    """
    is_operator = graph.profile.table.category[rows] == Category.OPERATOR
    loading = Intervals.union(*_cuts(graph, loading_calls(graph.profile)))
    there = Intervals.union(*_cuts(graph, rows[is_operator])).minus(loading)
    there = there.plus(Intervals.union(*_cuts(graph, rows[~is_operator])))
    return Stretches(there.starts, there.ends, np.ones(len(there.starts)))


def _stretches(graph: Graph, begin: Rows, spans: Intervals) -> Stretches:
    """The stretches in `spans` on any thread, if host events are edited."""
    if not len(begin):
        return NO_STRETCHES
    host = graph.host
    near = [_near(host, lane, spans) for lane in range(len(host.first) - 1)]
    cuts = np.concatenate([expanded(each.starts, each.ends)[0] for each in near])
    starts, ends = host.time_ns[cuts], host.time_ns[cuts + 1]
    covered_ns = spans.within(starts, ends)
    found = np.flatnonzero(covered_ns)
    return Stretches.of_cuts(cuts[found], covered_ns[found] / (ends - starts)[found])


def _near(host: HostLanes, lane: int, spans: Intervals) -> Intervals:
    """The cuts of a lane between which and the next cut there may be time of `spans`."""
    first, last = int(host.first[lane]), int(host.first[lane + 1]) - 1
    time_ns = host.time_ns[first : last + 1]
    begin = np.maximum(np.searchsorted(time_ns, spans.starts, side="right") - 1, 0)
    return Intervals.union(first + begin, np.minimum(first + np.searchsorted(time_ns, spans.ends), last))


def _shares(graph: Graph, work: Rows, spans: Intervals | None) -> Floats:
    """The part of each activity in `spans`, which are in the device's own clock."""
    if spans is None:
        return np.ones(len(work))
    table, rows = graph.profile.table, graph.device.row[work]
    length = np.maximum(table.end_ns[rows] - table.start_ns[rows], 1)
    shares: Floats = spans.within(table.start_ns[rows], table.end_ns[rows]) / length
    return shares
