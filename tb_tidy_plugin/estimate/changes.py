"""Changes to a graph by edits of events: stretches of host time, activities and waits.

An edited host event changes its thread's time from its start to its end, whatever runs there, and what it launched.
Where a rule names the time that is lost, an edit changes host time only then, and of an activity only the part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin import aten
from tb_tidy_plugin.estimate.faults import LARGE_NS
from tb_tidy_plugin.estimate.graph import Graph
from tb_tidy_plugin.estimate.host import Floats, HostLanes, expanded
from tb_tidy_plugin.estimate.replay import Changes
from tb_tidy_plugin.profile.critical import clipped_to_steps, in_steps
from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.lanes import covered
from tb_tidy_plugin.rulekit import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, distinct, united
from tb_tidy_plugin.trace.strings import numbers_where

OTHERS_SHARE = 0.5
"""Of the time of long operators that go: by so much what stays gets faster at most, which finds more in its caches."""

LEAST = 3
"""So many operators, and one for each step, are no coincidence."""

Outlook: TypeAlias = Literal["least", "expected", "most"]
"""How much is saved: the least, what is most likely, the most."""

_Kind: TypeAlias = tuple[type[Edit], tuple[float, float, float], int]
"""Kind of an edit; what it leaves at least, most likely and at most; how much of it runs at once."""


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
    """What edits of one kind touch in a graph.

    Attributes:
        left: what remains of it, by outlook.
        host: stretches of host time, and which part of each.
        work, work_shares: activities, and which part of each.
        waits: those that no longer happen.
        leaves_line: the activities no longer happen in line with others.
        beside_ns: how long what is touched runs beside the rest, if it does.
        beyond_ns: how much of it lies outside the edited events' own time.
        others_ns: by how much what stays may get faster without it, at most.
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
    """What `edits` touch, those that leave equally much together; only `lost` time where it is given."""
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
            rows = in_steps(graph.profile, rows)
        touch = _touch(graph, kind, left, at_once, rows, spans)
        if kind in {Remove, Scale} and not len(graph.device):
            touch = replace(touch, others_ns=_others_ns(graph, left, rows, spans))
            if spans is None:
                yield _freed(graph, left, rows)
        yield touch


class Touched(msgspec.Struct, frozen=True):
    """Touches of one or more fixes together.

    Attributes:
        cuts: where any of their stretches of host time begins or ends, ascending.
        at: of each touch the positions in `cuts` from which on its stretches take the time up to the next one, and the
            share of each.
    """

    graph: Graph
    touches: tuple[Touch, ...]
    cuts: Rows
    at: tuple[tuple[Rows, Floats], ...]

    def changes(self, outlook: Outlook) -> Changes:
        """All touches together; what several of them touch keeps the least that any of them leaves."""
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
    return Touch(left, _stretches(graph, begin, end, spans), work, work_shares, waits, leaves_line, beside_ns)


def _freed(graph: Graph, left: tuple[float, float, float], rows: Rows) -> Touch:
    """The time in which what operators made, or what that replaced, is given back to the system.

    Large memory of a CPU is mapped again for each tensor, and unmapped in time that no event has: from the end of the
    operator that replaces a tensor, or of the next one, which reads the tensor last, to the next event's start. It
    counts as far as it is longer than is usual and shorter than half of the operator, which had to write that memory.
    Operators in place make nothing that could be given back. Python code may take that time, too: where too few
    operators show it, it is part of the most only, and never of the least.
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
    """By how much what stays may get faster on a CPU: it finds more in caches that less has passed through."""
    table = graph.profile.table
    is_long = table.end_ns[rows] - table.start_ns[rows] >= LARGE_NS
    rows = rows[among(table.category[rows], (Category.OPERATOR, Category.PYTHON)) & is_long]
    time = covered(table, rows)
    return (time if spans is None else time.intersection(spans)).total_ns * (1 - left[0]) * OTHERS_SHARE


def _cuts(graph: Graph, rows: Rows) -> tuple[Rows, Rows]:
    """Where the host events among `rows`, and what hangs below them on other threads, begin and end."""
    host, tree = graph.host, graph.profile.tree
    rows = rows[host.start_cut[rows] != ABSENT]
    below = rows[rows < tree.size]
    first = np.searchsorted(graph.foreign, below, side="right")
    last = np.searchsorted(graph.foreign, tree.last_descendant[below], side="right")
    rows = united(rows, graph.foreign[expanded(first, last)[0]])
    rows = rows[host.start_cut[rows] != ABSENT]
    return host.start_cut[rows].astype(np.int64), host.end_cut[rows].astype(np.int64)


def _inside(cuts: Rows, begin: Rows, end: Rows) -> Rows:
    """The entries of `cuts` that lie in one of the stretches from `begin` to `end`, its end left out."""
    order = np.argsort(cuts, kind="stable")
    found, _ = expanded(np.searchsorted(cuts[order], begin), np.searchsorted(cuts[order], end))
    return distinct(order[found])


def _stretches(graph: Graph, begin: Rows, end: Rows, spans: Intervals | None) -> Stretches:
    """The stretches between cuts that edited host events take, wholly; else what lies in `spans` on any thread."""
    if spans is None:
        there = Intervals.union(begin, end)
        return Stretches(there.starts, there.ends, np.ones(len(there.starts)))
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
    """The cuts of a lane from which on something of `spans` may lie before the next cut."""
    first, last = int(host.first[lane]), int(host.first[lane + 1]) - 1
    time_ns = host.time_ns[first : last + 1]
    begin = np.maximum(np.searchsorted(time_ns, spans.starts, side="right") - 1, 0)
    return Intervals.union(first + begin, np.minimum(first + np.searchsorted(time_ns, spans.ends), last))


def _shares(graph: Graph, work: Rows, spans: Intervals | None) -> Floats:
    """Which part of each activity lies in `spans`, which are of the device's own clock."""
    if spans is None:
        return np.ones(len(work))
    table, rows = graph.profile.table, graph.device.row[work]
    length = np.maximum(table.end_ns[rows] - table.start_ns[rows], 1)
    shares: Floats = spans.within(table.start_ns[rows], table.end_ns[rows]) / length
    return shares
