"""Writes the table of `docs/fixes.md`: `python -m tests.accuracy.fixes` fixes the corpus' slow programs, and proves it.

Each slow program that can run here is recorded as users do with the capture. The fixes of its own rule are written
into a copy, reviewed or not, and both make a few steps from the same seed. With `--proof` both are timed in turns, too,
which needs a quiet machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tb_tidy_plugin.analysis.answers import FIXES
from tb_tidy_plugin.analysis.fixing import Fixer, Proposal, written
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.fixes.change import SAME_RESULTS, SAME_UP_TO_ROUNDING
from tb_tidy_plugin.report.fix_model import Unfixed
from tb_tidy_plugin.rulekit import Rule
from tb_tidy_plugin.rules import catalogue
from tests.accuracy.corpus import Program, programs
from tests.accuracy.page import Promise
from tests.accuracy.processes import ProgramError, capture_in, results_in
from tests.accuracy.proof import promised
from tests.accuracy.record import Results
from tests.accuracy.turns import in_turns
from tests.accuracy.verdicts import answer_in
from tests.support.recordings import ROOT, SHARED

PAGE = ROOT / "docs" / "fixes.md"
HEADING = "## Fixes of the corpus"
ROUNDING = 1e-3
HEADER = ("program", "fixed", "safety", "results", "saving kept")
KEPT_TARGET = 0.8

SHARED_NAMES = {"ema-per-parameter-loop": "moving-average-per-parameter"}
"""Rules that are called otherwise than the shared programs with their patterns."""

FOR_FIXERS = ROOT / "tests" / "fixes" / "programs"
"""Slow programs of rules that the corpus has none of; a name is the rule's."""

FIXERS = frozenset(rule.name() for rule in catalogue() if issubclass(rule, Rule) and rule.can_fix())


@dataclass(frozen=True)
class Fixed:
    """What became of one slow program.

    Attributes:
        proposals: the fixes of its own rule. reason: why there is none.
        applied: how many of them were written.
        results: `equal`, `up to rounding`, `different`, or `not seen` where no step returns or learns anything; empty
            where nothing was written.
        kept: the part of the promised saving that came, None where it was not timed, or nothing was promised.
    """

    program: Program
    proposals: Sequence[Proposal] = ()
    reason: str = ""
    applied: int = 0
    results: str = ""
    kept: float | None = None

    @property
    def safety(self) -> str:
        """The least of its fixes' safeties."""
        every = [each.change.safety for each in self.proposals]
        known = [SAME_RESULTS, SAME_UP_TO_ROUNDING]
        return max(every, key=lambda each: known.index(each) if each in known else len(known), default="")

    @property
    def holds(self) -> bool:
        """Whether results are as its fixes say."""
        wanted = {SAME_RESULTS: {"equal"}, SAME_UP_TO_ROUNDING: {"equal", "up to rounding"}}
        return self.results in wanted.get(self.safety, {"equal", "up to rounding", "different"})


def slow_programs(only: str = "*") -> list[Program]:
    """The slow programs of rules with a fixer that run here: this corpus', those for fixers, and the shared ones."""
    own = [each for each in programs() if each.kind == "slow" and not each.is_drawn and each.ranks == 1]
    shared = [
        Program(path, "slow", SHARED_NAMES.get(path.parent.name, path.parent.name))
        for path in sorted(SHARED.glob("accuracy/*/slow.py"))
    ]
    further = [Program(path, "slow", path.stem) for path in sorted(FOR_FIXERS.glob("*.py"))]
    return [each for each in (*own, *further, *shared) if each.rule in FIXERS and fnmatch(each.name, only)]


def fixed(program: Program, rounds: int = 0) -> Fixed:
    """The program's fixes, applied to a copy and proved; timed in so many rounds.

    Raises:
        ProgramError: the program or its fixed copy broke.
    """
    with TemporaryDirectory(prefix="torchtidy-fixes-") as name:
        folder = Path(name)
        before, after = (_copy(program, folder / each) for each in ("before", "after"))
        promises = []
        for at in range(max(rounds, 1)):
            recorded = _made(folder / f"recorded-{at}")
            capture_in(recorded, after)
            promises.append(promised(answer_in(recorded, after), program.rule))
        proposals, unfixed = _proposals(folder / "recorded-0", after)
        if not proposals:
            return Fixed(program, reason=unfixed[0].reason if unfixed else "The rule finds nothing.")
        done, _ = written(proposals)
        found = Fixed(program, proposals, applied=len(done))
        if done:
            old = results_in(_made(folder / "results-before"), before)
            new = results_in(_made(folder / "results-after"), after)
            kept = _kept(folder, before, after, promises) if rounds else None
            found = replace(found, results=compared(old, new), kept=kept)
        return found


def _copy(program: Program, folder: Path) -> Program:
    return replace(program, path=Path(shutil.copy(program.path, _made(folder) / "train.py")))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _proposals(recorded: Path, program: Program) -> tuple[list[Proposal], list[Unfixed]]:
    """The fixes of the program's own rule, and the places without one."""
    job = Job(source_roots=(program.path.parent,))
    fixer = Fixer(job)
    answers = [each.answer for each in analyse(job, recorded, FIXES) if each.answer is not None]
    found = [each for answer in answers for each in fixer.proposals(answer)]
    proposals = [each for each in found if isinstance(each, Proposal) and each.fix.rule == program.rule]
    return proposals, [each for each in found if isinstance(each, Unfixed) and each.rule == program.rule]


def compared(before: Results, after: Results) -> str:
    """Whether two programs computed the same."""
    if before == after:
        return "equal" if before.digest else "not seen"
    numbers = (before.losses, after.losses), (before.sums, after.sums)
    if all(len(old) == len(new) and all(map(_is_near, old, new)) for old, new in numbers):
        return "up to rounding"
    return "different"


def _is_near(old: float, new: float) -> bool:
    return abs(old - new) <= ROUNDING * max(abs(old), abs(new), 1e-6)


def _kept(folder: Path, before: Program, after: Program, promises: Sequence[Promise | None]) -> float | None:
    """The median over the rounds of the saved part of a step over the part that was promised."""
    kept = []
    for at, promise in enumerate(promises):
        old, new = in_turns(_made(folder / f"timed-{at}"), before, after)
        if promise is not None and promise.expected > 0:
            kept.append((1 - new.wall / old.wall) / promise.expected)
    return median(kept) if kept else None


def section(found: Sequence[Fixed], drawn: Iterable[str], *, is_timed: bool) -> str:
    """The section of the page: counts, then a row for each program."""
    with_diff = [each for each in found if each.proposals]
    rules = {each.program.rule for each in found}
    fixed_rules = {each.program.rule for each in with_diff}
    seen = [each for each in with_diff if each.results != "not seen"]
    kept = [each.kept for each in with_diff if each.kept is not None]
    lines = [
        HEADING,
        "",
        "`make fixes` records each slow program of the corpus and of `tests/fixes/programs` that runs on a CPU, and",
        "writes the fixes of its rule into a copy, including those that need review. Both programs run five steps from",
        "the same seed. The table compares the results of the steps and a hash of all parameters.",
        "`make fixes PROOF=--proof` also times both in turns, which needs a quiet machine.",
        "",
        f"- Rules of the table above with such a program: {len(rules)}; with a diff: {len(fixed_rules)}.",
        f"- Programs with a diff: {_share(len(with_diff), len(found))}.",
        f"- Applied: {_share(sum(each.applied == len(each.proposals) for each in with_diff), len(with_diff))}.",
        f"- Results as stated in the diff: {sum(each.holds for each in seen)} of {len(seen)}.",
        f"- Not comparable, because no step returns or trains anything: {len(with_diff) - len(seen)}.",
        f"- At least {KEPT_TARGET:.0%} of the promised saving kept: "
        + (f"{sum(each >= KEPT_TARGET for each in kept)} of {len(kept)}." if is_timed else "not timed."),
        f"- Not run, because the pattern needs a GPU: {', '.join(f'`{rule}`' for rule in sorted(drawn))}.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(_cells(each))} |" for each in found),
    ]
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0 of 0"


def _cells(found: Fixed) -> Iterator[str]:
    yield f"{found.program.rule}{' (shared)' if found.program.path.is_relative_to(SHARED) else ''}"
    yield f"{found.applied} of {len(found.proposals)}" if found.proposals else f"no: {found.reason}"
    yield found.safety.partition(":")[0] or "–"
    yield found.results or "–"
    yield "–" if found.kept is None else f"{found.kept:.0%}"


def with_section(page: str, new: str) -> str:
    """The page with its section replaced, or added at its end."""
    start = page.find(HEADING)
    if start < 0:
        return f"{page.rstrip()}\n\n{new}"
    end = page.find("\n## ", start)
    return page[:start] + new + ("" if end < 0 else page[end:])


def main() -> None:
    """Writes the section, or prints that of chosen programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="programs of this name (`rule-name/*`); no page is written")
    parser.add_argument("--proof", action="store_true", help="also time both programs; needs a quiet machine")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    found = []
    for program in slow_programs(given.only):
        try:
            found.append(fixed(program, given.rounds if given.proof else 0))
        except ProgramError as problem:
            sys.stderr.write(f"{program}: {problem}\n")
            found.append(Fixed(program, reason="The program broke."))
        sys.stderr.write(f"{' | '.join(_cells(found[-1]))}\n")
    run = {each.program.rule for each in found}
    drawn = {each.rule for each in programs() if each.is_drawn and each.kind == "slow"} & FIXERS
    text = section(found, drawn - run, is_timed=given.proof)
    if given.only == "*":
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
