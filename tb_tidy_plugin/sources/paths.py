"""The best path through an automaton that explains the observations, and how much better it is than the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.sources.observed import Observation, cost_of
from tb_tidy_plugin.sources.sites import Automaton, Site

_Costs: TypeAlias = NDArray[np.float64]
_Numbers: TypeAlias = NDArray[np.int64]

DROPPED = 2.5
"""Cost of an observation that no site explains."""

_CUT = 2.0
"""Cost of beginning or ending in the middle: the recording began or ended there, or an exception did."""

OTHER_START = 1.0
"""Cost of beginning at a possible start of a frame with another line."""

MOST_OBSERVATIONS = 20_000  # observations of one frame; more take seconds
MOST_COSTS = 8_000_000  # observations times nodes, each with two numbers of 8 bytes
MOST_KEPT = 4_096  # nodes times candidates of an observation whose paths are kept until the next equal one
ROUNDING = 1e-6


class Choice(msgspec.Struct, frozen=True):
    """Explanation of one observation: a site, None without one, and the lines of all equally good explanations."""

    site: Site | None
    ties: tuple[int, ...]


NO_CHOICE = Choice(None, ())


class Reading(msgspec.Struct, frozen=True):
    """One path: a choice for each observation, and its cost per observation."""

    choices: list[Choice]
    cost: float


class _Candidates(msgspec.Struct, frozen=True):
    """The sites that may explain one observation, their costs, and the costs if they have just made another."""

    sites: _Numbers
    costs: _Costs
    again: _Costs


class Paths:
    """An automaton prepared for many frames of one function: the cheapest silent path between any two nodes."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._silent = _closed(automaton)
        self._begins = np.array([site.begin for site in automaton.sites], np.int64)
        self._ends = np.array([site.end for site in automaton.sites], np.int64)
        self._known: dict[Observation, _Candidates] = {}

    def can_explain(self, seen: Sequence[Observation]) -> bool:
        """True if an explanation is possible, in bounded time and memory."""
        return bool(self._automaton.sites) and len(seen) <= min(MOST_OBSERVATIONS, MOST_COSTS // self._automaton.nodes)

    def explained(self, seen: Sequence[Observation], line: int, *, is_open: bool, tie: float) -> Reading:
        """The cheapest reading of the observations of one frame.

        Args:
            seen: the children of the frame.
            line: the frame's line.
            is_open: True if the frame was open when the recording began.
            tie: readings that cost at most this much more are equally good.
        """
        if not seen:
            return Reading([], 0.0)
        candidates = [self._candidates(observation) for observation in seen]
        first, last = self._first(line, is_open=is_open), self._last(is_open=is_open)
        onward = _swept(candidates, first, _Side(self._begins, self._ends, self._silent))
        backward = _swept(candidates[::-1], last, _Side(self._ends, self._begins, self._silent.T))[::-1]
        totals = [
            there + back - each.costs for each, (_, there), (_, back) in zip(candidates, onward, backward, strict=True)
        ]
        best = float((onward[-1][0] + last).min())
        choices = [self._choice(each, total, best, tie) for each, total in zip(candidates, totals, strict=True)]
        return Reading(choices, best / len(seen))

    def _candidates(self, seen: Observation) -> _Candidates:
        known = self._known.get(seen)
        if known is None:
            costs = [(at, cost_of(site, seen)) for at, site in enumerate(self._automaton.sites)]
            found = [(at, cost) for at, cost in costs if cost is not None]
            again = [self._automaton.sites[at].again for at, _ in found]
            known = self._known[seen] = _Candidates(
                sites=np.array([at for at, _ in found], np.int64),
                costs=np.array([cost for _, cost in found], np.float64),
                again=np.array([np.inf if cost is None else cost for cost in again], np.float64),
            )
        return known

    def _first(self, line: int, *, is_open: bool) -> _Costs:
        """Costs of starting at each node. A frame that was already open has the line of that time, which may be any."""
        starts = self._automaton.starts
        is_named = any(at == line for _, at in starts)
        costs = np.full(self._automaton.nodes, _CUT if is_open or not is_named else np.inf)
        for node, at in starts:
            costs[node] = 0.0 if at == line else OTHER_START
        for site in self._automaton.sites:
            if not is_named and site.line <= line <= site.end_line:
                costs[[site.begin, site.end]] = 0.0
        return costs

    def _last(self, *, is_open: bool) -> _Costs:
        costs = np.full(self._automaton.nodes, _CUT)
        costs[self._automaton.ends] = 0.0
        ended: _Costs = (self._silent + costs[None, :]).min(axis=1)
        return ended

    def _choice(self, candidates: _Candidates, totals: _Costs, best: float, tie: float) -> Choice:
        """The line of the best reading; none if that leaves the observation unexplained."""
        if not len(totals) or totals.min() > best + ROUNDING:
            return NO_CHOICE
        sites = self._automaton.sites
        good = candidates.sites[totals <= best + tie].tolist()
        ties = sorted({sites[at].line for at in good})
        return Choice(sites[int(candidates.sites[totals.argmin()])], tuple(ties))


class _Side(msgspec.Struct, frozen=True):
    """An automaton from one of its sides: the nodes where each site is entered and left, and the silent paths."""

    enters: _Numbers
    leaves: _Numbers
    silent: _Costs


class _Step(msgspec.Struct, frozen=True):
    """One observation from one side: where each candidate is left, and the silent paths from each node to it."""

    leaves: _Numbers
    silent: _Costs


def _swept(candidates: Sequence[_Candidates], first: _Costs, side: _Side) -> list[tuple[_Costs, _Costs]]:
    """Costs of all nodes after each observation, and of its candidates with it, from one side to the other."""
    reached, swept = first, []
    steps: dict[int, _Step] = {}
    for each in candidates:
        after = reached + DROPPED
        arrived = each.costs
        if len(each.sites):
            step = steps.get(id(each)) or _step(each, side)
            if step.silent.size <= MOST_KEPT:
                steps[id(each)] = step
            near = (reached[:, None] + step.silent).min(axis=0)
            arrived = np.minimum(near, reached[step.leaves] + each.again) + each.costs
            np.minimum.at(after, step.leaves, arrived)
        swept.append((after, arrived))
        reached = after
    return swept


def _step(candidates: _Candidates, side: _Side) -> _Step:
    return _Step(side.leaves[candidates.sites], side.silent[:, side.enters[candidates.sites]])


def _closed(automaton: Automaton) -> _Costs:
    """The cheapest silent path from each node to each other one.

    Forward edges form an order that one pass settles; each backward edge is then added by itself.
    """
    closed = np.full((automaton.nodes, automaton.nodes), np.inf)
    np.fill_diagonal(closed, 0.0)
    for begin, end, cost in sorted(automaton.edges, reverse=True):
        if begin < end:
            np.minimum(closed[begin], closed[end] + cost, out=closed[begin])
    for begin, end, cost in automaton.edges:
        if begin > end and closed[begin, end] > cost:
            np.minimum(closed, closed[:, begin, None] + cost + closed[None, end, :], out=closed)
    return closed
