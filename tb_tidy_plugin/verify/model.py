"""The answer of `tb-tidy verify`, as JSON holds it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tb_tidy_plugin.report.value import Model

Equality: TypeAlias = Literal["equal", "up to rounding", "different", "not comparable"]


class ProgramSide(Model, frozen=True):
    """One of the two programs.

    Attributes:
        folder: where it ran, or the revision.
        step_ns: the median over its turns of the mean step.
        steps: how many were timed.
        peak_bytes: most memory, of the GPU where it used one, else of its process; 0 where it is not known.
    """

    folder: str
    step_ns: int
    steps: int
    peak_bytes: int


class Kept(Model, frozen=True):
    """What a finding promised, where its fix is in the program afterwards.

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
        verdict: `faster` or `slower` where the whole interval lies on one side of 1.
        results: of the first steps from the same seed: losses and all parameters.
        reason: why results differ or cannot be compared; empty where they are equal.
        losses: how many were compared.
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
