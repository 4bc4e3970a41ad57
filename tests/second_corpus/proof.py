"""What each loss costs: a program against itself without that loss, and against a copy of itself byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.accuracy.page import Promise, Proof
from tests.accuracy.processes import capture_in
from tests.accuracy.record import STEADY, Conditions
from tests.accuracy.turns import StepSeconds, in_turns
from tests.second_corpus.corpus import LossyProgram
from tests.second_corpus.judgement import Judged, judged, report_in

WORTH = 0.05
"""Smaller savings are not looked for: an owner would not."""


@dataclass(frozen=True)
class Round:
    """One recording, and the steps that were timed beside it.

    Attributes:
        judgement: of the recording.
        whole: the step of the program with all its losses.
        copy: the same of a copy, byte by byte the same: what differs is noise.
        without: the step without each loss, in the order of the program's losses.
    """

    judgement: Judged
    whole: StepSeconds
    copy: StepSeconds
    without: tuple[StepSeconds, ...]


@dataclass(frozen=True)
class Measured:
    """A program's rounds."""

    program: LossyProgram
    rounds: Sequence[Round]

    @property
    def noise(self) -> float:
        """The largest part by which the copy's step differed from the program's."""
        return max(abs(1 - each.copy.wall / each.whole.wall) for each in self.rounds)

    def proof(self, loss: str) -> Proof:
        """The step with and without a loss, with what the findings that name it promised."""
        at = [each.name for each in self.program.losses].index(loss)
        return Proof(
            f"{self.program.name}/{loss}",
            [(each.whole, each.without[at]) for each in self.rounds],
            [promised(each.judgement, loss) for each in self.rounds],
        )

    def is_clear(self, loss: str) -> bool:
        """Whether each round saves more than the copy ever differs by."""
        return min(self.proof(loss).saved) > self.noise

    def is_named(self, loss: str) -> bool:
        """Whether most recordings name the loss among the first findings."""
        return 2 * sum(each.judgement.is_named(loss) for each in self.rounds) > len(self.rounds)


def measured(program: LossyProgram, rounds: int, conditions: Conditions = STEADY) -> Measured:
    """The steps of a program with and without each of its losses, and what is said of it.

    Raises:
        ProgramError: it broke, or made no step in time.
    """
    return Measured(program, [_round(program, conditions) for _ in range(rounds)])


def promised(judgement: Judged, loss: str) -> Promise | None:
    """What the findings that name a loss promise together, None where none does."""
    savings = [finding.saving for finding in judgement.naming(loss) if finding.saving]
    if not savings or not judgement.step_ns:
        return None
    expected_ns, most_ns = sum(each.expected_ns for each in savings), sum(each.high_ns for each in savings)
    return Promise(judgement.step_ns, expected_ns, most_ns)


def _round(program: LossyProgram, conditions: Conditions) -> Round:
    with TemporaryDirectory(prefix="torchtidy-second-") as name:
        recorded, beside, copies = Path(name, "recorded"), Path(name, "timed"), Path(name, "copies")
        recorded.mkdir()
        beside.mkdir()
        capture_in(recorded, program.program, conditions=conditions)
        judgement = judged(program, report_in(recorded, program))
        copy = program.copy_in(copies / "copy")
        without = [program.copy_in(copies / loss.name, without=[loss.name]) for loss in program.losses]
        whole, same, *others = in_turns(beside, program.program, copy, *without, conditions=conditions)
        return Round(judgement, whole, same, tuple(others))
