"""Cost of a parameter beside its layer's operators: accumulating its gradient, and the optimizer's loop over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import BATCHED, accumulations
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows, Times

_LOOPS = r"^Optimizer\.(?:step|zero_grad)#"
"""Python loops over all parameters."""

CALL_NS = 5_000
"""Operators that take longer per parameter work on elements, of which small parameters have few."""

ParameterCosts: TypeAlias = Mapping[int, tuple[tuple[int, int], ...]]
"""Spans in which each parameter takes time, by the row that accumulates its gradient."""


def costs_of_parameters(profile: Profile) -> ParameterCosts:
    """The time of each parameter in the accumulation of its gradient and in optimizers, by the row of the accumulation.

    All parameters of a step share its optimizers' time equally, without that of operators that work on elements. The
    recording does not show each one's part of that time, so they take it in the order of their gradients.
    """
    handed, loops = accumulations(profile), profile.matching(_LOOPS, Category.ANNOTATION)
    operators = np.flatnonzero(profile.calls.outermost & profile.inside(loops)[: profile.tree.size])
    steps, loops_in, operators_in = (profile.step_of(rows) for rows in (handed, loops, operators))
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    loops_of, operators_of = _by_step(loops, loops_in), _by_step(operators, operators_in)
    for step, ours in _by_step(handed, steps).items():
        time = _per_call(profile, loops_of.get(step, loops[:0]), operators_of.get(step, operators[:0]), len(ours))
        shares = _shares(time, len(ours))
        for row, share in zip(ours.tolist(), shares, strict=True):
            outer = _outer(profile, row)
            found[row] = ((profile.start_ns(outer), profile.end_ns(outer)), *share)
    return found


def _by_step(rows: Rows, steps: Rows) -> dict[int, Rows]:
    parts = positions_of_each(steps)
    return {step: rows[here] for here in parts if (step := int(steps[here[0]])) != ABSENT}


def handed_over_by(profile: Profile, node: int) -> list[int]:
    """The rows that accumulate the gradients computed by `node` of the backward pass: right after it."""
    ends = profile.tree.last_descendant
    handed, found = accumulations(profile), list[int]()
    row = int(ends[_outer(profile, node)]) + 1
    at = int(np.searchsorted(handed, row))
    while at < len(handed) and _outer(profile, int(handed[at])) == row:
        found.append(int(handed[at]))
        row, at = int(ends[row]) + 1, at + 1
    return found


def _outer(profile: Profile, row: int) -> int:
    above = profile.parent(row)
    return above if above is not None and profile.name(above).startswith("autograd::engine::") else row


def _per_call(profile: Profile, loops: Rows, operators: Rows, parameters: int) -> Intervals:
    """The time of `loops` without that of those `operators` in them that work on elements."""
    names = [profile.name(row) for row in operators.tolist()]
    calls = np.array([parameters if BATCHED.match(name) else 1 for name in names], np.int64)
    on_elements = operators[profile.table.durations_of(operators) > CALL_NS * calls]
    return profile.covered(loops).minus(profile.covered(on_elements))


def _shares(time: Intervals, count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """`time` cut into `count` equally long parts, each as starts and ends."""
    edges: Times = np.round(np.linspace(0, time.total_ns, count + 1)).astype(np.int64)
    passed = np.concatenate([[0], np.cumsum(time.ends - time.starts)])
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        first, last = int(np.searchsorted(passed, low, side="right")) - 1, int(np.searchsorted(passed, high))
        within = slice(first, last)
        columns = (time.starts[within], passed[:-1][within], passed[1:][within])
        spans = zip(*(column.tolist() for column in columns), strict=True)
        yield tuple((start + max(low - at, 0), start + min(high, end) - at) for start, at, end in spans)
