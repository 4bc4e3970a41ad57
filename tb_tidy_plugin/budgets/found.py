"""Counts of a step that break a bound, with the lines that cause them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.budgets.bounds import CountBound
from tb_tidy_plugin.profile.step_counts import Counted, Events, NotCountedError, counted_events
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.words.units import Bytes, Count
from tb_tidy_plugin.words.visible import visible

_MOST_LINES = 5


def broken_count(analysis: Analysis, counted: Counted, bound: CountBound) -> str:
    """Lines of text about a count that breaks `bound`, with the events behind it; empty if all steps keep it."""
    profile, unit = analysis.profile, Bytes if counted == "bytes_moved" else Count
    try:
        events = counted_events(profile, counted)
    except NotCountedError as missing:
        return f"{counted}: cannot be counted, {missing}"
    sums = events.per_step(profile)
    wrong = [at for at, value in enumerate(sums) if not bound.holds(value)]
    if not wrong:
        return ""
    worst = max(wrong, key=lambda at: abs(sums[at] - bound.number))
    low, high = min(sums), max(sums)
    figure = f"{unit(high)}" if low == high else f"{unit(low)}–{unit(high)}"
    head = f"{counted}: {figure} per step; {bound.words} {unit(bound.number)}"
    return "\n".join([head, *_causes(analysis, events, worst, unit)])


def _causes(analysis: Analysis, events: Events, step: int, unit: type[Bytes | Count]) -> list[str]:
    """The places that add most in one step, largest first."""
    profile = analysis.profile
    here = np.flatnonzero(profile.step_of(events.rows) == step) if profile.steps.items else np.arange(len(events.rows))
    amounts: Counter[str] = Counter()
    for row, cause, amount in zip(
        *(each[here].tolist() for each in (events.rows, events.cause, events.amount)), strict=True
    ):
        event = row if cause == ABSENT else cause
        place = None if cause == ABSENT else analysis.aligner.place_of(event)
        amounts[f"{visible(profile.name(event))}{_where(place)}"] += amount
    lines = [f"  {unit(amount)}: {said}" for said, amount in amounts.most_common(_MOST_LINES)]
    return lines + ([f"  and {len(amounts) - _MOST_LINES} further places"] if len(amounts) > _MOST_LINES else [])


def _where(place: Frame | None) -> str:
    if place is None:
        return ", at a line that is not known"
    text = f": {visible(place.text)}" if place.text else ""
    return f" at {visible(place.file)}:{place.line} in {visible(place.function)}{text}"
