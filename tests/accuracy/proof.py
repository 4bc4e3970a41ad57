"""Whether the fixes help: slow against fixed, in turns, each in a fresh process, without the profiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.accuracy.corpus import Program
from tests.accuracy.page import Promise, Proof
from tests.accuracy.processes import capture_in, step_seconds
from tests.accuracy.record import StepSeconds
from tests.accuracy.verdicts import Answer, answer_in


def pairs(programs: Sequence[Program]) -> Iterator[tuple[Program, Program]]:
    """The slow and the fixed program of each rule that has both, to run on the CPU."""
    recorded = [program for program in programs if not program.is_drawn and program.rule]
    for _, group in groupby(recorded, lambda program: program.rule):
        by_kind = {program.kind: program for program in group}
        if "slow" in by_kind and "fixed" in by_kind:
            yield by_kind["slow"], by_kind["fixed"]


def proof(slow: Program, fixed: Program, rounds: int) -> Proof:
    """How much faster the fixed program is, and what the report on the slow one promises."""
    found = [_round(slow, fixed, swapped=bool(turn % 2)) for turn in range(rounds)]
    times, promises = [(before, after) for before, after, _ in found], [promise for *_, promise in found]
    return Proof(slow.rule, times, promises)


def promised(answer: Answer, rule: str) -> Promise | None:
    """What is said of all findings of a rule together, None where there are none."""
    savings = [finding.saving for finding in answer.findings.get(rule, ()) if finding.saving]
    expected_ns, most_ns = sum(each.expected_ns for each in savings), sum(each.high_ns for each in savings)
    step_ns = min(answer.step_ns, answer.true_step_ns or answer.step_ns)
    return Promise(step_ns, expected_ns, most_ns) if savings else None


def _round(slow: Program, fixed: Program, *, swapped: bool) -> tuple[StepSeconds, StepSeconds, Promise | None]:
    """The seconds of slow and of fixed, measured the other way round where `swapped`, and what is promised of slow."""
    if swapped:
        after, (before, promise) = _seconds(fixed), _captured(slow)
    else:
        (before, promise), after = _captured(slow), _seconds(fixed)
    return before, after, promise


def _captured(program: Program) -> tuple[StepSeconds, Promise | None]:
    """The seconds of a program and what the report on its recording promises, both of the same process."""
    with TemporaryDirectory(prefix="torchtidy-proof-") as folder:
        seconds = capture_in(Path(folder), program)
        return seconds, promised(answer_in(Path(folder), program), program.rule)


def _seconds(program: Program) -> StepSeconds:
    with TemporaryDirectory(prefix="torchtidy-proof-") as folder:
        return step_seconds(Path(folder), program)
