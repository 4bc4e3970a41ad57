"""Whether the fixes help: slow against fixed, and against what the report on slow promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

from tb_tidy_plugin.analysis.answers import RECIPES
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.pairs import BUDGET_S, pairs_in
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import PairMeasurement
from tb_tidy_plugin.benchmarks.store import save_beside
from tb_tidy_plugin.rulekit import Benchmark
from tests.accuracy.corpus import Program
from tests.accuracy.page import Promise, Proof
from tests.accuracy.processes import capture_in
from tests.accuracy.record import STEADY, Conditions
from tests.accuracy.turns import StepSeconds, in_turns
from tests.accuracy.verdicts import Answer, answer_in


def pairs(programs: Sequence[Program]) -> Iterator[tuple[Program, Program]]:
    """The slow and the fixed program of each rule that has both, to run on the CPU."""
    recorded = [program for program in programs if not program.is_drawn and program.rule]
    for _, group in groupby(recorded, lambda program: program.rule):
        by_kind = {program.kind: program for program in group}
        if "slow" in by_kind and "fixed" in by_kind:
            yield by_kind["slow"], by_kind["fixed"]


class Round(NamedTuple):
    """The seconds of both programs, and what the report on slow promises: by itself, and with a benchmark."""

    seconds: tuple[StepSeconds, StepSeconds]
    promise: Promise | None
    benchmarked: Promise | None


def proof(slow: Program, fixed: Program, rounds: int, conditions: Conditions = STEADY) -> Proof:
    """How much faster the fixed program is, and what the report on the slow one promises."""
    found = [_round(slow, fixed, conditions) for _ in range(rounds)]
    return Proof(slow.rule, *zip(*found, strict=True))


def promised(answer: Answer, rule: str) -> Promise | None:
    """What is said of all findings of a rule together, None where there are none."""
    savings = [finding.saving for finding in answer.findings.get(rule, ()) if finding.saving]
    expected_ns, most_ns = sum(each.expected_ns for each in savings), sum(each.high_ns for each in savings)
    return Promise(answer.step_ns, expected_ns, most_ns) if savings else None


Measure: TypeAlias = Callable[[str, Benchmark], Measurement | NotMeasured]


def benchmarked(folder: Path, program: Program, measure: Measure | None = None) -> Promise | None:
    """The promise once the statements of the program's own rule are measured; None where that changes nothing.

    `measure` takes a rule and its statements; by default it runs them on this machine.
    """
    measure = measure or _measurement
    job = Job()
    for pair in pairs_in(analyse(job, folder, RECIPES), job.rules):
        if pair.rule == program.rule and pair.statements.of_events:
            result = measure(pair.rule, pair.statements)
            if isinstance(result, Measurement):
                for trace in pair.findings:
                    save_beside(trace, [result])
    answer = answer_in(folder, program)
    savings = [finding.saving for finding in answer.findings.get(program.rule, ())]
    is_measured = any(saving is not None and "measured" in saving.basis for saving in savings)
    return promised(answer, program.rule) if is_measured else None


def _benchmarked(folder: Path, slow: Program, conditions: Conditions) -> Promise | None:
    """Under steady conditions only, as a benchmark's process has its own."""
    return benchmarked(folder, slow) if conditions == STEADY else None


@cache
def _measurement(rule: str, pair: Benchmark) -> Measurement | NotMeasured:
    """Once in all rounds, whose recordings have the same shapes."""
    return PairMeasurement(MeasuringRequest(rule=rule, pair=pair, asked="cpu", budget_s=BUDGET_S)).result()


def _round(slow: Program, fixed: Program, conditions: Conditions) -> Round:
    """What is recorded is not timed: the memory of a process is another one after a recording."""
    with TemporaryDirectory(prefix="torchtidy-proof-") as name:
        folder, beside = Path(name, "recorded"), Path(name, "timed")
        folder.mkdir()
        beside.mkdir()
        capture_in(folder, slow, conditions=conditions)
        before, after = in_turns(beside, slow, fixed, conditions=conditions)
        return Round(
            (before, after), promised(answer_in(folder, slow), slow.rule), _benchmarked(folder, slow, conditions)
        )
