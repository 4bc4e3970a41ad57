"""Whether the fixes help: slow against fixed, in turns, each in a fresh process, without the profiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.accuracy.corpus import Program
from tests.accuracy.page import Speedup
from tests.accuracy.processes import step_seconds
from tests.accuracy.verdicts import answer_of


def pairs(programs: Sequence[Program]) -> Iterator[tuple[Program, Program]]:
    """The slow and the fixed program of each rule that has both, to run on the CPU."""
    recorded = [program for program in programs if not program.is_drawn and program.rule]
    for _, group in groupby(recorded, lambda program: program.rule):
        by_kind = {program.kind: program for program in group}
        if "slow" in by_kind and "fixed" in by_kind:
            yield by_kind["slow"], by_kind["fixed"]


def speedup(slow: Program, fixed: Program, rounds: int) -> Speedup:
    """How much faster the fixed program is, and what the report expects."""
    findings = answer_of(slow).findings.get(slow.rule, ())
    expected = max((finding.saving.speedup or 1.0 for finding in findings if finding.saving), default=None)
    return Speedup(slow.rule, [_ratio(slow, fixed, swapped=bool(turn % 2)) for turn in range(rounds)], expected)


def _ratio(slow: Program, fixed: Program, *, swapped: bool) -> float:
    if swapped:
        return 1 / _ratio(fixed, slow, swapped=False)
    return _seconds(slow) / _seconds(fixed)


def _seconds(program: Program) -> float:
    with TemporaryDirectory(prefix="torchtidy-proof-") as folder:
        return step_seconds(Path(folder), program)
