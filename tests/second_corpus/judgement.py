"""What TorchTidy says of a program, held against what the program is known to lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tests.accuracy.processes import ProgramError, capture_in, record_in
from tests.second_corpus.corpus import Loss, LossyProgram

FIRST = 5
"""So many findings are read; what is said later is not counted as said."""

How: TypeAlias = Literal["profile", "tidy_profile"]
"""By torch's own profiler as the README shows it, or by ours with the side file."""


@dataclass(frozen=True)
class Judged:
    """One recording of a program, judged.

    Attributes:
        findings: what is said, in the order of the report.
        named: by loss the places, from 0, of the findings that name it.
        unexplained: the findings that name no loss and are not said to be true besides.
        reasons: by rule why it did not look, or what it left out.
        step_ns: the step that savings are of.
    """

    program: LossyProgram
    findings: tuple[Finding, ...]
    named: Mapping[str, tuple[int, ...]]
    unexplained: tuple[Finding, ...]
    reasons: Mapping[str, str]
    step_ns: int

    def is_named(self, loss: str) -> bool:
        """Whether one of the first findings names the loss."""
        return any(place < FIRST for place in self.named[loss])

    def naming(self, loss: str) -> list[Finding]:
        """The findings that name the loss."""
        return [self.findings[place] for place in self.named[loss]]


def judged_recording(program: LossyProgram, how: How) -> Judged:
    """The judgement of a fresh recording.

    Raises:
        ProgramError: the program broke, or its trace cannot be read.
    """
    with TemporaryDirectory(prefix="torchtidy-second-") as name:
        folder = Path(name)
        (record_in if how == "profile" else capture_in)(folder, program.program)
        return judged(program, report_in(folder, program))


def report_in(folder: Path, program: LossyProgram) -> ProfileReport:
    """The report on the one recording in a folder.

    Raises:
        ProgramError: there is none that can be read.
    """
    report = analyze_path(folder, Job())
    if report.problems or not report.runs:
        said = report.problems[0].error if report.problems else "nothing was recorded"
        raise ProgramError(f"{program.name}: {said}")
    return report.runs[0].profiles[0]


def judged(program: LossyProgram, report: ProfileReport) -> Judged:
    """The judgement of a report on the program."""
    findings = tuple(report.findings)
    named = {
        loss.name: tuple(at for at, finding in enumerate(findings) if names(program, finding, loss))
        for loss in program.losses
    }
    explained = {place for places in named.values() for place in places}
    return Judged(
        program,
        findings,
        named,
        tuple(
            finding
            for place, finding in enumerate(findings)
            if place not in explained and finding.rule not in program.also
        ),
        {outcome.rule: outcome.reason for outcome in report.outcomes if outcome.reason},
        report.step_ns or report.steps.median_ns or 0,
    )


def names(program: LossyProgram, finding: Finding, loss: Loss) -> bool:
    """Whether a finding has a rule whose fix gives the loss back, and a place in a function that loses it."""
    if finding.rule not in loss.rules:
        return False
    own = [place.line for place in finding.places if Path(place.file).name == program.program.path.name]
    return any(program.function_at(line) in loss.functions for line in own)


def why_not(judgement: Judged, loss: Loss) -> str:
    """Why a loss is not among the first things said, as far as the report tells."""
    if not loss.rules:
        return "no rule looks for it"
    if later := judgement.named[loss.name]:
        return f"said, but at place {later[0] + 1}"
    reasons = [f"`{rule}`: {judgement.reasons[rule]}" for rule in sorted(loss.rules) if rule in judgement.reasons]
    return " ".join(reasons) or f"{_listed(sorted(loss.rules))} found nothing there"


def _listed(rules: Sequence[str]) -> str:
    return ", ".join(f"`{rule}`" for rule in rules)
