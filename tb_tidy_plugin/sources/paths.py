"""The best way through an automaton that explains what was observed, and how much better it is than the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.sources.automaton import Automaton, Site
from tb_tidy_plugin.sources.observed import Observation, cost_of

Costs = NDArray[np.float64]

DROPPED = 2.5
"""Cost of an observation that no site explains."""

CUT = 2.0
"""Cost of a frame that was open when the recording began or ended, at a node where no frame begins or ends."""

LARGEST = 1500  # nodes; larger bodies are data


@dataclass(frozen=True, slots=True)
class Choice:
    """What explains one observation.

    Attributes:
        site: the site, None where none does.
        margin: how much worse the best explanation on another line is.
        ties: lines of all explanations that are hardly worse.
    """

    site: Site | None
    margin: float
    ties: tuple[int, ...]


class Paths:
    """An automaton made ready for many frames of one function: the cheapest silent way between any two nodes."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.silent = _closed(automaton)
        self.begins = np.array([site.begin for site in automaton.sites], np.int64)
        self.ends = np.array([site.end for site in automaton.sites], np.int64)

    def explained(self, observations: Sequence[Observation], line: int, *, cut: bool, tie: float) -> tuple[list[Choice], float]:
        """A choice for each observation, and the cost of the best way, per observation."""
        count, sites = len(observations), self.automaton.sites
        if not count or not sites:
            return [Choice(None, 0.0, ()) for _ in observations], 0.0
        emitted = [self._candidates(observation) for observation in observations]
        forward = self._swept(emitted, self._first(line, cut=cut), self.begins, self.ends, self.silent)
        last = self._last(cut=cut)
        backward = self._swept(emitted[::-1], last, self.ends, self.begins, self.silent.T)[::-1]
        best = float((forward[-1][1] + last).min())
        return [
            self._choice(emitted[at], forward[at][2], backward[at][2], best, tie) for at in range(count)
        ], best / count

    def _candidates(self, observation: Observation) -> tuple[NDArray[np.int64], Costs, Costs]:
        found = [(at, cost, site.again) for at, site in enumerate(self.automaton.sites) if (cost := cost_of(site, observation)) is not None]
        numbers = np.array([at for at, _, _ in found], np.int64)
        costs = np.array([cost for _, cost, _ in found])
        again = np.array([np.inf if repeat is None else repeat for _, _, repeat in found])
        return numbers, costs, again

    def _first(self, line: int, *, cut: bool) -> Costs:
        costs = np.full(self.automaton.nodes, CUT if cut else np.inf)
        same = [node for node, at in self.automaton.starts if at == line]
        for node, _ in self.automaton.starts:
            costs[node] = 0.0 if node in same or not same else 1.0
        return costs

    def _last(self, *, cut: bool) -> Costs:
        thrown = 2.0
        costs = np.full(self.automaton.nodes, CUT if cut else thrown)
        costs[self.automaton.ends] = 0.0
        costs = (self.silent + costs[None, :]).min(axis=1)
        return costs

    def _swept(self, emitted, first, begins, ends, silent):  # type: ignore[no-untyped-def]
        """Per observation: costs of reaching its candidates, with it, from one side; and of all nodes after it."""
        reached = first
        swept = []
        for numbers, costs, again in emitted:
            finite = np.flatnonzero(np.isfinite(reached))
            near = (reached[finite, None] + silent[finite][:, begins[numbers]]).min(axis=0) if len(numbers) else np.zeros(0)
            repeated = reached[ends[numbers]] + again
            arrived = np.minimum(near, repeated) + costs
            after = reached + DROPPED
            np.minimum.at(after, ends[numbers], arrived)
            swept.append((numbers, after, arrived))
            reached = after
        return swept

    def _choice(self, emitted, forward, backward, best, tie):  # type: ignore[no-untyped-def]
        numbers, costs, _ = emitted
        if not len(numbers):
            return Choice(None, 0.0, ())
        totals = forward + backward - costs
        order = np.argsort(totals, kind="stable")
        top = self.automaton.sites[numbers[order[0]]]
        if totals[order[0]] > best + 1e-6 + DROPPED * 0:
            dropped_better = totals[order[0]] - best
            if dropped_better > 1e-6:
                return Choice(None, 0.0, ())
        lines: dict[int, float] = {}
        for at in order.tolist():
            lines.setdefault(self.automaton.sites[numbers[at]].line, float(totals[at]))
        others = [cost for line, cost in lines.items() if line != top.line]
        margin = min(others) - float(totals[order[0]]) if others else np.inf
        ties = tuple(sorted(line for line, cost in lines.items() if cost - float(totals[order[0]]) < tie))
        return Choice(top, margin, ties)


def _closed(automaton: Automaton) -> Costs:
    """The cheapest silent way from each node to each other one.

    Edges that lead on make an order in which one pass settles them; each edge that leads back is then added by itself.
    """
    count = automaton.nodes
    closed = np.full((count, count), np.inf)
    np.fill_diagonal(closed, 0.0)
    leading_on: dict[int, list[tuple[int, float]]] = {}
    back = []
    for begin, end, cost in automaton.edges:
        if begin < end:
            leading_on.setdefault(begin, []).append((end, cost))
        elif begin > end:
            back.append((begin, end, cost))
    for begin in range(count - 1, -1, -1):
        for end, cost in leading_on.get(begin, ()):
            np.minimum(closed[begin], closed[end] + cost, out=closed[begin])
    for begin, end, cost in back:
        if closed[begin, end] > cost:
            np.minimum(closed, closed[:, begin, None] + cost + closed[None, end, :], out=closed)
    return closed
