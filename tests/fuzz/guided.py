"""`python -m tests.fuzz.guided --what capture --minutes 30`: as `tests.fuzz`, led by the code that is reached.

libFuzzer keeps each text that runs a branch of ours that none before it ran, and breaks it further; `tests.fuzz` breaks
at random. Needs `pip install atheris`, which `make test` does without.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tb_tidy_plugin"]):
    from tb_tidy_plugin.rules import catalogue
    from tests.fuzz.corpus import corpus_of
    from tests.fuzz.harnesses import HARNESSES
    from tests.fuzz.tried import Tried

    catalogue()  # rules are imported when they are first asked for

LONGEST = 1 << 14  # bytes of a text
MOST_MIB = 4096
SAY_EVERY = 1000
OURS = 0.7  # share of texts that are broken where values and marks are, and not at any byte


def main() -> None:
    """Exits with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=HARNESSES, default="trace")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns() % (1 << 31))
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    harness = HARNESSES[given.what]
    others = [*harness.seeds(), *corpus_of(given.what)]
    with tempfile.TemporaryDirectory() as name:
        corpus, work = Path(name, "corpus"), Path(name, "work")
        corpus.mkdir()
        work.mkdir()
        for number, text in enumerate(others):
            (corpus / str(number)).write_bytes(text[:LONGEST])
        tried = Tried(given.what, harness.prepare(work), harness.seeds(), given.found, _say)
        end = time.monotonic() + 60 * given.minutes

        def one(text: bytes) -> None:
            tried.one(text)
            if tried.texts % SAY_EVERY == 0:
                _say(str(tried))
            if time.monotonic() > end:
                _say(str(tried))
                os._exit(min(len(tried.faults), 1))  # libFuzzer returns to nobody

        def broken(text: bytes, longest: int, seed: int) -> bytes:
            make = random.Random(seed)
            chosen = harness.change(text, others, make) if make.random() < OURS else atheris.Mutate(text, longest)
            return bytes(chosen[:longest])

        _say(f"seed {given.seed}, {len(others)} texts to begin with")
        options = [f"-max_len={LONGEST}", f"-seed={given.seed}", f"-rss_limit_mb={MOST_MIB}", "-verbosity=0"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=broken)
        atheris.Fuzz()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
