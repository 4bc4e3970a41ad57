"""The steps of a profile, and their source.

Only host events name steps: the device carries copies of the same annotations, 1 ns earlier and 2 ns longer than the
work below them, which must never be counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.torchfacts.event_names import COPY_OR_FILL, GIVES_WORK
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, EventTable, Mask, Rows, Times, blocks_of
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.vocabulary import Oddity, StepBasis

UNMARKED: frozenset[StepBasis] = frozenset({"whole_trace", "none"})

ODD_SHARE = 0.25
"""Least difference from the median, as a part of it, for a step to be odd: twice the spread of quiet real jobs."""

ODD_SCORE = 3.5 / 0.6745
"""Least difference of an odd step in units of the median of all differences, which is large in noisy jobs. The number
is that of Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993).
"""

PROFILER_STEP = re.compile(r"ProfilerStep#\d+")
SERVING_STEP = re.compile(
    r"execute_(?:diffusion_|context_|new_|\d)|execute_model|step\[|(?:eager_)?(?:prefill|decode)\[bs="
)
"""Annotations of vLLM, SGLang, ATOM and xDiT around one scheduled batch."""

FRAMEWORK_STEP = re.compile(
    r"^\[pl\]\[profile\]run_training_batch$"
    r"|(?:^|/)loops/training_epoch_loop\.py\(\d+\): advance$"
    r"|(?:^|/)megatron/(?:training/)?training\.py\(\d+\): train_step$"
    r"|(?:^|/)deepspeed/runtime/(?:pipe/)?engine\.py\(\d+\): train_batch$"
)
"""Lightning's annotation, and the functions in which Lightning, Megatron and DeepSpeed run one whole step."""

OPTIMIZER_STEP = re.compile(r"Optimizer\.step#.+")
FRAMEWORK_TURN = re.compile(
    r".*accelerate/optimizer\.py\(\d+\): step$|.*deepspeed/runtime/engine\.py\(\d+\): step$"
    r"|.*transformers/trainer\.py\(\d+\): training_step$"
)
"""Functions that Accelerate, DeepSpeed and Hugging Face's trainer call once per step: a step lies between two ends."""

LOADER_NEXT = re.compile(r"enumerate\(DataLoader\)#.{0,500}__next__")

LEAST_TURNS = 2
"""Least number of ends: a step lies between two of them."""

NESTED_SHARE = 0.5
"""A mark is inside an earlier one if more than this part of it is; if less, the earlier one ends where it begins."""

OVERLAP_BY_CHANCE = 0.1
"""Marks of two threads take turns if they overlap by less than this part, and are nested if all but this part does."""

CUT_SHORT = 0.1
"""A first or last mark with less than this part of the others' work, and of their time, is no step: it holds what the
script does before its loop, or after it.
"""

BEGINS_WORK = re.compile(f"{GIVES_WORK}|{COPY_OR_FILL}")
"""Runtime calls that give a device work, and those that also wait for it."""


Test: TypeAlias = Callable[[str], object]


class Step(msgspec.Struct, frozen=True):
    """One step, times relative to the profile's start."""

    name: str
    index: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """End minus start."""
        return self.end_ns - self.start_ns


class UnusedMarks(msgspec.Struct, frozen=True):
    """Marks that are not steps of their own.

    Attributes:
        empty: those in which no operator and no device work begins while it does in others, and a first or last one
            that is cut short; in order of start.
        nested: number of those inside an earlier mark. elsewhere: number of those on other threads.
        cut: number of steps that end where the next mark begins, before the end of their own.
    """

    empty: tuple[Step, ...] = ()
    nested: int = 0
    elsewhere: int = 0
    cut: int = 0


class ProfileSteps(msgspec.Struct, frozen=True, dict=True):
    """All steps in order of start, none of which overlap.

    Attributes:
        basis: their source. thread: the thread that marks them, `ABSENT` if none does.
        unused: marks that are not steps.
    """

    basis: StepBasis
    items: tuple[Step, ...]
    thread: int = ABSENT
    unused: UnusedMarks = UnusedMarks()

    @cached_property
    def median_ns(self) -> int | None:
        """Median duration; None without steps."""
        return median_ns_of([step.duration_ns for step in self.items])

    def mean_of(self, total_ns: int) -> int:
        """A time divided by the number of steps; all of it without steps."""
        return round(total_ns / max(len(self.items), 1))

    def percentile_ns(self, percentile: float) -> int | None:
        """This percentile of the durations (nearest rank interpolated); None without steps."""
        if not self.items:
            return None
        durations = sorted(step.duration_ns for step in self.items)
        place = percentile / 100 * (len(durations) - 1)
        return round(float(np.interp(place, np.arange(len(durations)), durations)))

    @cached_property
    def oddities(self) -> tuple[Oddity | None, ...]:
        """Oddity of each step: the first long ones are warm-up, any other is an outlier; None for ordinary steps."""
        median = self.median_ns or 0
        distances = [abs(step.duration_ns - median) for step in self.items]
        limit = max(ODD_SHARE * median, ODD_SCORE * (median_ns_of(distances) or 0))
        odd = [distance > limit for distance in distances]
        long = [step.duration_ns > median for step in self.items]
        warm = next((at for at in range(len(odd)) if not (odd[at] and long[at])), 0)
        return tuple("warmup" if at < warm else "outlier" if is_odd else None for at, is_odd in enumerate(odd))

    @cached_property
    def starts(self) -> Times:
        return np.array([step.start_ns for step in self.items], np.int64)

    @cached_property
    def ends(self) -> Times:
        return np.array([step.end_ns for step in self.items], np.int64)

    def index_of(self, times: Times) -> Rows:
        """The step that contains each of `times`, `ABSENT` outside all steps."""
        if not self.items:
            return np.full(len(times), ABSENT, np.int64)
        found = np.empty(len(times), np.int64)
        for block in blocks_of(len(times)):
            at = np.searchsorted(self.starts, times[block], side="right") - 1
            found[block] = np.where((at >= 0) & (times[block] < self.ends[at]), at, ABSENT)
        return found


def median_ns_of(durations_ns: Sequence[int]) -> int | None:
    """The median; None without durations."""
    return round(float(np.median(durations_ns))) if len(durations_ns) else None


def steps_of(table: EventTable) -> ProfileSteps:
    """The steps of a recording, by the first kind of mark it has; without marks the whole recording is one."""
    annotation = table.category == Category.ANNOTATION
    called = annotation | (table.category == Category.PYTHON)
    marks: tuple[tuple[StepBasis, Mask, Test], ...] = (
        ("profiler_step", annotation, PROFILER_STEP.fullmatch),
        ("serving_step", annotation, SERVING_STEP.match),
        ("framework_step", called, FRAMEWORK_STEP.search),
    )
    for basis, chosen, test in marks:
        if len(rows := np.flatnonzero(chosen & table.is_named(test))):
            return _marked(table, basis, rows)
    turns: tuple[tuple[StepBasis, Mask, Test, Times], ...] = (
        ("optimizer_step", annotation, OPTIMIZER_STEP.fullmatch, table.end_ns),
        ("framework_step", called, FRAMEWORK_TURN.match, table.end_ns),
        ("data_loader", annotation, LOADER_NEXT.fullmatch, table.start_ns),
    )
    for basis, chosen, test, times in turns:
        rows = _most_frequent_name(table, np.flatnonzero(chosen & table.is_named(test)))
        if len(found := distinct(times[rows])) >= LEAST_TURNS:
            return _between(basis, found, int(table.thread[rows[0]]))
    host = table.is_category((*HOST_TREE, Category.RUNTIME))
    if not table.is_category(HOST_TREE).any():
        return ProfileSteps("none", ())
    whole = Step("whole trace", 0, int(table.start_ns[host].min()), int(table.end_ns.max()))
    return ProfileSteps("whole_trace", (whole,))


def _marked(table: EventTable, basis: StepBasis, rows: Rows) -> ProfileSteps:
    rows, nested, elsewhere = _one_by_one(table, rows)
    starts, ends = table.start_ns[rows], table.end_ns[rows].copy()
    cut = starts[1:] < ends[:-1]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    empty = np.zeros(len(rows), np.bool_) if basis == "serving_step" else _empty(table, starts, ends)

    def steps(chosen: Mask) -> tuple[Step, ...]:
        columns = (rows[chosen], starts[chosen], ends[chosen])
        found = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(
            Step(table.names[table.name[row]], index, start, end) for index, (row, start, end) in enumerate(found)
        )

    unused = UnusedMarks(steps(empty), nested, elsewhere, int(cut.sum()))
    return ProfileSteps(basis, steps(~empty), int(table.thread[rows[0]]), unused)


def _one_by_one(table: EventTable, rows: Rows) -> tuple[Rows, int, int]:
    """The marks that follow each other, in order of start; the number of those inside them, and on other threads.

    If marks of several threads overlap without one being inside the other, only the thread with most of them counts.
    """
    threads = table.thread[rows]
    of_each = [_not_nested(table, rows[threads == thread]) for thread in distinct(threads).tolist()]
    if len(of_each) > 1 and _has_clash(table, np.concatenate(of_each)):
        most = max(of_each, key=lambda mine: (len(mine), -table.start_ns[mine[0]]))
        elsewhere = int((threads != table.thread[most[0]]).sum())
        return most, len(rows) - elsewhere - len(most), elsewhere
    outer = _not_nested(table, np.concatenate(of_each))
    return outer, len(rows) - len(outer), 0


def _has_clash(table: EventTable, rows: Rows) -> bool:
    """True if marks of two threads overlap, by more than chance and without one being inside the other."""
    rows = _by_start(table, rows)
    reach, last = np.iinfo(np.int64).min, ABSENT
    columns = (table.thread[rows], table.start_ns[rows], table.end_ns[rows])
    for thread, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if thread != last and OVERLAP_BY_CHANCE < (reach - start) / max(end - start, 1) < 1 - OVERLAP_BY_CHANCE:
            return True
        if end > reach:
            reach, last = end, thread
    return False


def _not_nested(table: EventTable, rows: Rows) -> Rows:
    """The `rows` that are not mostly inside an earlier one, in order of start."""
    rows = _by_start(table, rows)
    outer, reach = [], np.iinfo(np.int64).min
    columns = (rows, table.start_ns[rows], table.end_ns[rows])
    for row, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if reach <= start or min(reach, end) - start < NESTED_SHARE * (end - start):
            outer.append(row)
            reach = end
    return np.array(outer, np.int64)


def _by_start(table: EventTable, rows: Rows) -> Rows:
    """`rows` in order of start, of equal ones the longest first."""
    return rows[np.lexsort((-table.end_ns[rows], table.start_ns[rows]))]


def _empty(table: EventTable, starts: Times, ends: Times) -> Mask:
    """Mask of marks in which no work begins, though it does in others; the marks do not overlap.

    A server's marks are not asked: the work of its batches may be launched elsewhere. Work is an operator outside of
    loaders, or a call that gives a device work. Waiting for a device is none: a script does that after its loop, in a
    last step that it did not mean to take.
    """
    none = np.zeros(len(starts), np.bool_)
    if len(starts) < 2:
        return none
    begun = np.sort(table.start_ns[_work_of_host(table)])
    count = np.searchsorted(begun, ends) - np.searchsorted(begun, starts)
    empty: Mask = count == 0
    if empty.all():
        return none
    lengths = ends - starts
    for edge in (0, -1):
        others = ~empty
        others[edge] = False
        if others.any() and count[edge] < CUT_SHORT * np.median(count[others]):
            empty[edge] |= lengths[edge] < CUT_SHORT * np.median(lengths[others])
    return empty


def _work_of_host(table: EventTable) -> Rows:
    """Operators outside of loaders, and calls that give a device work."""
    gives = (table.category == Category.RUNTIME) & table.is_named(BEGINS_WORK.search)
    operator = table.category == Category.OPERATOR
    loads = np.flatnonzero((table.category == Category.ANNOTATION) & table.is_named(LOADER_NEXT.fullmatch))
    for thread in distinct(table.thread[loads]).tolist():
        here = loads[table.thread[loads] == thread]
        time = Intervals.union(table.start_ns[here], table.end_ns[here])
        mine = np.flatnonzero(operator & (table.thread == thread))
        operator[mine[time.containing(table.start_ns[mine])]] = False
    return np.flatnonzero(gives | operator)


def _most_frequent_name(table: EventTable, rows: Rows) -> Rows:
    """The marks of one optimizer: a job with several steps each of them."""
    names = table.name[rows]
    counts = Counter(names.tolist())
    return rows[names == counts.most_common(1)[0][0]] if counts else rows


def _between(basis: StepBasis, times: Times, thread: int) -> ProfileSteps:
    pairs = zip(times[:-1].tolist(), times[1:].tolist(), strict=True)
    return ProfileSteps(
        basis, tuple(Step(f"step {index + 1}", index, *pair) for index, pair in enumerate(pairs)), thread
    )
