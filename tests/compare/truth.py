"""Comparisons of the corpus' programs held against what is known of them: `python -m tests.compare` writes it down.

A slow program and its fixed one are recorded in turns, several times each. Slow against fixed, the finding must be gone
and no verdict may be wrong; a program against itself must show no clear difference, at least 19 times in 20.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.compare.reading import asked_for
from tests.accuracy.corpus import Program
from tests.accuracy.processes import record_in
from tests.support.recordings import ROOT

PROOF_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| ([\d.]+) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is said of one pair.

    Attributes:
        rule: what the pair is about.
        comparison: all recordings of slow against all of fixed.
        measured: the ratio of steps without the profiler, as `make proof` measured it; None where it did not.
        same: the verdicts on two recordings of one program, of either.
    """

    rule: str
    comparison: Comparison
    measured: float | None
    same: Sequence[str]

    @property
    def states(self) -> list[str]:
        """What became of the rule's findings."""
        return [change.state for change in self.comparison.findings if change.rule == self.rule]

    @property
    def agrees(self) -> bool | None:
        """Whether the interval holds the measured ratio; None where there is none."""
        ratio = self.comparison.step_ratio
        return None if self.measured is None or ratio is None else ratio.low <= self.measured <= ratio.high


def truth(slow: Program, fixed: Program, folder: Path, rounds: int) -> Truth:
    """Records both as often as `folder` does not hold them yet, and compares."""
    for turn in range(rounds):
        for program in (slow, fixed):
            into = _folder(folder, program) / str(turn)
            if not into.exists():
                into.mkdir(parents=True)
                record_in(into, program)
    sides = [asked_for(_folder(folder, program), Job()) for program in (slow, fixed)]
    same = [verdict for side in sides for verdict in verdicts_on_itself(side)]
    return Truth(slow.rule, compared(*sides), measured().get(slow.rule), same)


def _folder(folder: Path, program: Program) -> Path:
    return folder / program.rule / program.path.stem


def verdicts_on_itself(side: Asked) -> Iterator[str]:
    """The verdict on each two recordings of one program."""
    runs = list(dict.fromkeys(recording.run for recording in side.recordings))
    of_run = [Asked(run, [recording for recording in side.recordings if recording.run == run]) for run in runs]
    for one, other in combinations(of_run, 2):
        yield compared(one, other).verdict


def measured() -> dict[str, float]:
    """By rule the fixed program's step divided by the slow one's, without the profiler, from `docs/accuracy.md`."""
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    _, _, proof = page.partition("## Do the fixes help?\n")
    section, _, _ = proof.partition("\n## ")
    return {rule: 1 / float(times) for rule, times in PROOF_ROW.findall(section)}
