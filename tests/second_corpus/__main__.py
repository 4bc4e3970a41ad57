"""Writes what `docs/accuracy.md` says of the second corpus: what is named; with `--proof`, what each loss costs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from tempfile import TemporaryDirectory

from tests.accuracy.__main__ import AT_ONCE, PAGE
from tests.accuracy.page import percent, with_section
from tests.accuracy.record import REAL, STEADY, Conditions
from tests.second_corpus.corpus import LossyProgram, lossy_programs
from tests.second_corpus.judgement import judged_recording
from tests.second_corpus.page import NOT_MEASURED, TIMED_HEADING, Pair, counted_section, timed_section
from tests.second_corpus.proof import Measured, measured


def main() -> None:
    """Writes the sections, or prints those of chosen programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="the programs of this name; no page is written")
    parser.add_argument("--proof", action="store_true", help="measure each loss instead of counting what is named")
    parser.add_argument("--conditions", choices=sorted(REAL), help="of the proof: as jobs run, instead of steady ones")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    chosen = [program for program in lossy_programs() if fnmatch(program.name, given.only)]
    before = PAGE.read_text(encoding="utf-8")
    if given.proof:
        conditions = REAL.get(given.conditions, STEADY)
        note = f", under the conditions `{given.conditions}`" if given.conditions else ""
        section = timed_section(_measured(chosen, given.rounds, conditions), given.rounds, note)
        text = with_section(before, section)
    else:
        section = counted_section(_judged(chosen))
        text = with_section(before, section)
        if TIMED_HEADING not in text:
            text = with_section(text, NOT_MEASURED)
    if given.only == "*":
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(section)


def _judged(chosen: Sequence[LossyProgram]) -> list[Pair]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(_judged_aloud, chosen))


def _judged_aloud(program: LossyProgram) -> Pair:
    plain, tidy = judged_recording(program, "profile"), judged_recording(program, "tidy_profile")
    for judgement in (plain, tidy):
        named = sum(judgement.is_named(loss.name) for loss in program.losses)
        others = ", ".join(finding.rule for finding in judgement.unexplained) or "nothing"
        sys.stderr.write(f"{program.name}: {named} of {len(program.losses)} named; besides: {others}\n")
    return plain, tidy


def _measured(chosen: Sequence[LossyProgram], rounds: int, conditions: Conditions) -> list[Measured]:
    found = []
    with TemporaryDirectory(prefix="torchtidy-proof-") as cache:
        os.environ.update(XDG_CACHE_HOME=cache, OMP_NUM_THREADS=str(conditions.threads(ranks=1)))
        for program in chosen:
            found.append(measured(program, rounds, conditions))
            clear = sum(found[-1].is_clear(loss.name) for loss in program.losses)
            noise = percent(found[-1].noise)
            sys.stderr.write(f"{program.name}: {clear} of {len(program.losses)} clear of {noise} noise\n")
    return found


if __name__ == "__main__":
    main()
