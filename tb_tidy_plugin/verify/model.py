"""The answer of `tb-tidy verify` as JSON."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tb_tidy_plugin.report.value import Model

Equality: TypeAlias = Literal["equal", "up to rounding", "different", "not comparable"]


class ProgramSide(Model, frozen=True):
    """One of the two programs.

    Attributes:
        folder: its folder, or the revision.
        step_ns: the median over its turns of the mean step, up to the factor by which the ratio of both medians differs
            from `ratio`, half of it on each side.
        steps: number of timed steps.
        peak_bytes: peak memory, of the GPU if it used one, else of its process; 0 if unknown.
    """

    folder: str
    step_ns: int
    steps: int
    peak_bytes: int


class Kept(Model, frozen=True):
    """A finding's promise, if the program contains its fix afterwards.

    Attributes:
        expected, low, high: the part of the step, 0 to 1.
    """

    finding: str
    rule: str
    message: str
    expected: float
    low: float
    high: float


class Verification(Model, frozen=True):
    """Two programs, run in turns without the profiler.

    Attributes:
        ratio: time of a step afterwards divided by that before; `low` and `high` are its 95 % interval.
        verdict: `faster` or `slower` if the whole interval lies on one side of 1.
        results: of the first steps from the same seed: losses and all parameters.
        reason: why results differ or cannot be compared; empty if they are equal.
        losses: number of compared losses.
        promises: of the findings whose fix is in the program afterwards.
        promised: the part of the step that they save together; null without such findings.
        saved: the part of the step that is saved.
    """

    schema: int
    before: ProgramSide
    after: ProgramSide
    ratio: float
    low: float
    high: float
    verdict: Literal["faster", "slower", "no clear difference"]
    results: Equality
    reason: str
    losses: int
    promises: list[Kept]
    promised: float | None
    saved: float
