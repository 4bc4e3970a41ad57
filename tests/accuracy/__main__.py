"""Writes `docs/accuracy.md`: `python -m tests.accuracy` counts; with `--proof` it measures whether the fixes help."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from importlib.metadata import version
from tempfile import TemporaryDirectory

from tb_tidy_plugin.rules import catalogue
from tests.accuracy.corpus import Program, programs
from tests.accuracy.page import (
    Proof,
    page,
    proof_in,
    proof_row,
    proof_section,
    real_section,
    with_section,
)
from tests.accuracy.proof import pairs, proof
from tests.accuracy.record import REAL, STEADY, Conditions
from tests.accuracy.verdicts import Verdict, verdict_on
from tests.support.recordings import ROOT

PAGE = ROOT / "docs" / "accuracy.md"
AT_ONCE = 2


def main() -> None:
    """Writes the page, or says of chosen programs what is found in them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="*", help="judge the programs of this name (`rule-name/*`); no page is written"
    )
    parser.add_argument("--proof", action="store_true", help="measure slow against fixed instead of counting")
    parser.add_argument("--conditions", choices=sorted(REAL), help="of the proof: as jobs run, instead of steady ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", default="", help="of the section: what was different on this machine")
    given = parser.parse_args()
    chosen = [program for program in programs() if fnmatch(program.name, given.only)]
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if given.proof and given.conditions:
        proofs = _measured(chosen, given.rounds, REAL[given.conditions])
        note = f" ({given.note})" if given.note else ""
        section = real_section(given.conditions, proofs, given.rounds, note)
        text = with_section(before, section)
    elif given.proof:
        text = with_section(before, proof_section(_measured(chosen, given.rounds), given.rounds))
    else:
        text = page(_judged(chosen), [rule.name() for rule in catalogue()], version("torch"), proof_in(before))
    if given.only == "*":
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def _judged(chosen: Sequence[Program]) -> list[Verdict]:
    """Several at once, but none beside one whose ranks run at once themselves: each rank needs a core."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        verdicts = list(threads.map(_judged_unless_together, chosen))
    return [verdict or _judged_aloud(program) for program, verdict in zip(chosen, verdicts, strict=True)]


def _judged_unless_together(program: Program) -> Verdict | None:
    return _judged_aloud(program) if program.ranks == 1 else None


def _judged_aloud(program: Program) -> Verdict:
    verdict = verdict_on(program)
    found = ", ".join(verdict.answer.findings) or "nothing"
    wrong = f"; wrong: {', '.join(sorted(verdict.wrong))}" if verdict.wrong else ""
    sys.stderr.write(f"{program}: {found}{wrong}\n")
    return verdict


def _measured(chosen: Sequence[Program], rounds: int, conditions: Conditions = STEADY) -> list[Proof]:
    """On as many threads as the programs run, and without what earlier benchmarks have left in this user's cache."""
    proofs = []
    with TemporaryDirectory(prefix="torchtidy-proof-") as cache:
        os.environ.update(XDG_CACHE_HOME=cache, OMP_NUM_THREADS=str(conditions.threads(ranks=1)))
        for slow, fixed in pairs(chosen):
            proofs.append(proof(slow, fixed, rounds, conditions))
            sys.stderr.write(f"{' | '.join(proof_row(proofs[-1]))}\n")
    return proofs


if __name__ == "__main__":
    main()
