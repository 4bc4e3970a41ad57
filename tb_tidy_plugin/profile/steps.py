"""The steps of a profile, and what they were taken from.

Only host events name steps: the device carries copies of the same annotations, 1 ns earlier and 2 ns longer than the
work below them, which must never be counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, EventTable, Rows, Times
from tb_tidy_plugin.trace.strings import numbers_where

StepBasis: TypeAlias = Literal["profiler_step", "optimizer_step", "data_loader", "whole_trace", "none"]
"""What steps were taken from; `none` where only a device was recorded."""

Oddity: TypeAlias = Literal["warmup", "outlier"]

ODD_SHARE = 0.25
"""A step that differs from the median by less than this part of it is not odd: twice the spread of quiet real jobs."""

ODD_SCORE = 3.5 / 0.6745
"""Nor is one that differs by less than this many times the median of all differences, which noisy jobs have. The number
is that of Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993)."""

PROFILER_STEP = re.compile(r"ProfilerStep#\d+")
OPTIMIZER_STEP = re.compile(r"Optimizer\.step#.+")
LOADER_NEXT = re.compile(r"enumerate\(DataLoader\)#.{0,500}__next__")


@dataclass(frozen=True, slots=True)
class Step:
    """One step, times relative to the profile's start."""

    name: str
    index: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """End minus start."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Steps:
    """All steps in order of start, and their basis; what is asked of them again and again is worked out once."""

    basis: StepBasis
    items: tuple[Step, ...]

    @cached_property
    def median_ns(self) -> int | None:
        """Median duration; None where there is no step."""
        return median_ns_of([step.duration_ns for step in self.items])

    def percentile_ns(self, percentile: float) -> int | None:
        """This percentile of the durations (nearest rank interpolated); None where there is no step."""
        durations = [step.duration_ns for step in self.items]
        return round(float(np.percentile(durations, percentile))) if durations else None

    @cached_property
    def oddities(self) -> tuple[Oddity | None, ...]:
        """For each step what is odd about it: the first ones that are long are warm-up, any other is an outlier."""
        median = self.median_ns or 0
        distances = [abs(step.duration_ns - median) for step in self.items]
        limit = max(ODD_SHARE * median, ODD_SCORE * (median_ns_of(distances) or 0))
        odd = [distance > limit for distance in distances]
        long = [step.duration_ns > median for step in self.items]
        warm = next((at for at in range(len(odd)) if not (odd[at] and long[at])), 0)
        return tuple("warmup" if at < warm else "outlier" if is_odd else None for at, is_odd in enumerate(odd))

    @cached_property
    def starts(self) -> Times:
        """Start of each step."""
        return np.array([step.start_ns for step in self.items], np.int64)

    @cached_property
    def ends(self) -> Times:
        """End of each step."""
        return np.array([step.end_ns for step in self.items], np.int64)

    def index_of(self, times: Times) -> Rows:
        """The step that each of `times` lies in, `ABSENT` outside all steps."""
        if not self.items:
            return np.full(len(times), ABSENT, np.int64)
        at = np.searchsorted(self.starts, times, side="right") - 1
        return np.where((at >= 0) & (times < self.ends[at]), at, ABSENT)


def median_ns_of(durations_ns: Sequence[int]) -> int | None:
    """The median; None of nothing."""
    return round(float(np.median(durations_ns))) if len(durations_ns) else None


def steps_of(table: EventTable) -> Steps:
    """Profiler steps; else the time between ends of optimizer steps; else between batches; else the whole trace."""
    marked = _annotations(table, PROFILER_STEP)
    if len(marked):
        return Steps("profiler_step", _marked(table, marked))
    optimizer = _most_frequent_name(table, _annotations(table, OPTIMIZER_STEP))
    if len(optimizer) > 1:
        return Steps("optimizer_step", _between(np.sort(table.end_ns[optimizer])))
    batches = _annotations(table, LOADER_NEXT)
    if len(batches) > 1:
        return Steps("data_loader", _between(np.sort(table.start_ns[batches])))
    host = table.is_category((*HOST_TREE, Category.RUNTIME))
    if not table.is_category(HOST_TREE).any():
        return Steps("none", ())
    whole = Step("whole trace", 0, int(table.start_ns[host].min()), int(table.end_ns.max()))
    return Steps("whole_trace", (whole,))


def _annotations(table: EventTable, pattern: re.Pattern[str]) -> Rows:
    rows = np.flatnonzero(table.category == Category.ANNOTATION)
    return rows[np.isin(table.name[rows], numbers_where(table.names, pattern.fullmatch))]


def _marked(table: EventTable, rows: Rows) -> tuple[Step, ...]:
    rows = rows[np.argsort(table.start_ns[rows], kind="stable")]
    return tuple(
        Step(table.names[table.name[row]], index, int(table.start_ns[row]), int(table.end_ns[row]))
        for index, row in enumerate(rows.tolist())
    )


def _most_frequent_name(table: EventTable, rows: Rows) -> Rows:
    """A job with several optimizers steps each of them: one of them marks the steps."""
    names = table.name[rows]
    counts = Counter(names.tolist())
    return rows[names == counts.most_common(1)[0][0]] if counts else rows


def _between(times: Times) -> tuple[Step, ...]:
    pairs = zip(times[:-1].tolist(), times[1:].tolist(), strict=True)
    return tuple(Step(f"step {index + 1}", index, start, end) for index, (start, end) in enumerate(pairs))
