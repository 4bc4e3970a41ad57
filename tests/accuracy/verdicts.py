"""What all rules say of a program, against what is true of it; and the counts over many programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.report.model import Finding, ProfileReport, RunReport, Status
from tb_tidy_plugin.rulekit import AnyRule
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tests.accuracy.corpus import Program
from tests.accuracy.processes import ProgramError, record_in

MOST_AGAIN, MOST_AGAIN_TOGETHER = 2, 4
"""How often; of ranks more often: they wait for each other wherever something else uses the machine, too."""


@dataclass(frozen=True)
class Answer:
    """What the report says of a program: by rule what it found, why it did not look, and how it broke.

    Attributes:
        step_ns: the step that savings refer to, of the slowest rank. The host's mark says nothing of a device that runs
            behind.
        checked: the rules that could look; one over ranks says nothing at all about a run of which one was recorded.
    """

    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    not_checked: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    step_ns: int = 0
    checked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """An answer, judged.

    Attributes:
        answer: the answer that is judged: that of the last recording, with what an unsteady rule found in the other.
        missed: the program's own rule, where it found nothing.
        false_alarms: rules that found what is not there.
        stale: rules that the program says find something in it, and do not.
        unsteady: rules that were wrong in some recordings only; none of the above.
    """

    program: Program
    answer: Answer
    missed: frozenset[str] = frozenset()
    false_alarms: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    unsteady: frozenset[str] = frozenset()

    @property
    def wrong(self) -> frozenset[str]:
        """The rules that were wrong in any way."""
        return self.missed | self.false_alarms | self.stale | frozenset(self.answer.failed)

    @property
    def complaints(self) -> list[str]:
        """What is wrong, a line each."""
        said = self.answer.findings
        return [
            *(f"missed: {rule}. {self.answer.not_checked.get(rule, '')}".rstrip() for rule in sorted(self.missed)),
            *(f"false alarm: {rule}: {each.message}" for rule in sorted(self.false_alarms) for each in said[rule]),
            *(f"ALSO names {rule}, which finds nothing" for rule in sorted(self.stale)),
            *(f"broke: {rule}: {error}" for rule, error in sorted(self.answer.failed.items())),
        ]

    @property
    def true_findings(self) -> frozenset[str]:
        """The rules that found what is there, in each recording."""
        return (frozenset(self.answer.findings) & self.program.true_of_it) - self.unsteady


def verdict_on(program: Program, rules: Sequence[AnyRule] | None = None) -> Verdict:
    """The verdict on a program; one that is wrong somewhere is recorded again before it counts.

    Costs differ from recording to recording, and some lie next to a rule's threshold. Such a rule is called unsteady,
    which is neither right nor wrong, and is shown.

    Raises:
        ProgramError: the program broke.
    """
    verdict = judged(program, answer_of(program, rules))
    again = MOST_AGAIN if program.ranks == 1 else MOST_AGAIN_TOGETHER
    for _ in range(0 if program.is_drawn else again):
        if verdict.wrong:
            verdict = both(verdict, judged(program, answer_of(program, rules)))
    return verdict


def answer_of(program: Program, rules: Sequence[AnyRule] | None = None) -> Answer:
    """What the report says of a fresh recording, or of what is drawn.

    Raises:
        ProgramError: the program broke, or its trace cannot be read.
    """
    with TemporaryDirectory(prefix="torchtidy-accuracy-") as name:
        folder = Path(name)
        if program.is_drawn:
            draw_into(folder, program.path.read_text(encoding="utf-8"))
        else:
            record_in(folder, program)
        return answer_in(folder, program, rules)


def answer_in(folder: Path, program: Program, rules: Sequence[AnyRule] | None = None) -> Answer:
    """What the report says of recordings of the program that are in `folder`.

    Raises:
        ProgramError: a trace cannot be read.
    """
    report = analyze_path(folder, Job() if rules is None else Job(rules))
    if report.problems:
        raise ProgramError(f"{program}: {report.problems[0].error}")
    parts: list[ProfileReport | RunReport] = []
    for run in report.runs:
        parts += [run, *run.profiles]
    return merged(parts)


def merged(parts: Sequence[ProfileReport | RunReport]) -> Answer:
    """One answer from those of all ranks and of the run: found by any of them, not checked where none of them could."""
    findings: dict[str, list[Finding]] = {}
    for finding in (finding for part in parts for finding in part.findings):
        findings.setdefault(finding.rule, []).append(finding)
    checked = {outcome.rule for part in parts for outcome in part.outcomes if outcome.status != "not_checked"}
    unchecked = _with_status(parts, "not_checked")
    return Answer(
        findings,
        {rule: unchecked[rule] for rule in sorted(unchecked) if rule not in checked},
        _with_status(parts, "failed"),
        max((part.step_ns or 0 for part in parts if isinstance(part, ProfileReport)), default=0),
        checked=frozenset(checked),
    )


def _with_status(parts: Sequence[ProfileReport | RunReport], status: Status) -> dict[str, str]:
    outcomes = [outcome for part in parts for outcome in part.outcomes]
    return {outcome.rule: outcome.reason or "" for outcome in outcomes if outcome.status == status}


def judged(program: Program, answer: Answer) -> Verdict:
    """One answer against what is true of the program."""
    found = frozenset(answer.findings)
    own = frozenset({program.rule} if program.kind == "slow" else ())
    return Verdict(
        program, answer, missed=own - found, false_alarms=found - program.true_of_it, stale=program.claims - found
    )


def both(first: Verdict, second: Verdict) -> Verdict:
    """What is wrong in both recordings is wrong, what is wrong in one unsteady; a rule that broke once broke."""
    missed, stale = first.missed & second.missed, first.stale & second.stale
    false_alarms = first.false_alarms & second.false_alarms
    failed = {**first.answer.failed, **second.answer.failed}
    unsteady = (first.wrong | first.unsteady | second.wrong) - missed - stale - false_alarms - frozenset(failed)
    once = {rule: found for rule, found in first.answer.findings.items() if rule in unsteady}
    answer = replace(second.answer, findings={**once, **second.answer.findings}, failed=failed)
    return Verdict(second.program, answer, missed, false_alarms, stale, unsteady)


@dataclass(frozen=True)
class Count:
    """How often a rule was right and wrong; a program counts once, however many findings it has.

    Attributes:
        present: programs that are there to show its pattern.
        found: those of them in which it was found.
        true: all programs in which it found what is there.
        false_alarms: programs in which it found what is not there.
        unsteady: programs in which it was wrong in some recordings only.
        checked: programs in which it could look.
    """

    present: int = 0
    found: int = 0
    true: int = 0
    false_alarms: int = 0
    unsteady: int = 0
    checked: int = 0

    @property
    def recall(self) -> float | None:
        """Part of what is there that was found; None where there is nothing."""
        return self.found / self.present if self.present else None

    @property
    def precision(self) -> float | None:
        """Part of what was found that is there; None where nothing was found."""
        found = self.true + self.false_alarms
        return self.true / found if found else None


def count(verdicts: Iterable[Verdict], rule: str) -> Count:
    """The counts of one rule."""
    given = list(verdicts)
    own = [verdict for verdict in given if verdict.program.kind == "slow" and verdict.program.rule == rule]
    return Count(
        present=len(own),
        found=sum(rule in verdict.true_findings for verdict in own),
        true=sum(rule in verdict.true_findings for verdict in given),
        false_alarms=sum(rule in verdict.false_alarms for verdict in given),
        unsteady=sum(rule in verdict.unsteady for verdict in given),
        checked=sum(rule in verdict.answer.checked for verdict in given),
    )


def total(counts: Iterable[Count]) -> Count:
    """The counts of several rules together."""
    given = list(counts)
    return Count(*(sum(values) for values in zip(*(_values(each) for each in given), strict=True)))


def _values(counted: Count) -> tuple[int, ...]:
    return (
        counted.present, counted.found, counted.true, counted.false_alarms, counted.unsteady, counted.checked,
    )  # fmt: skip
