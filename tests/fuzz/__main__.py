"""`python -m tests.fuzz`: breaks traces for some minutes and compares the decoders on what comes out.

With `--what report` each is taken through reading, all rules, all tables and every form of output (`report.py`).

Each text on which they differ, or that ends the process, is left in `--found`. `tests/fuzz/sanitized.sh` does all
this with the compiled decoder under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

from tests.fuzz import report
from tests.fuzz.agreement import Agreement
from tests.fuzz.mutations import mutated, seeds

KEPT = 2000  # mutated texts that are broken further


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Exits with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=("decoders", "report"), default="decoders")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    given.found.mkdir(parents=True, exist_ok=True)
    if given.what == "report":
        sys.exit(min(report.run(given.minutes, given.seed, given.found, _say), 1))
    sys.exit(0 if run(given.minutes, given.seed, given.found) == 0 else 1)


def run(minutes: float, seed: int, found: Path) -> int:
    """Number of texts on which the decoders differ."""
    make, texts, agreement = random.Random(seed), seeds(), Agreement()
    end, tried, wrong, accepted = time.monotonic() + 60 * minutes, 0, 0, 0
    first = len(texts)
    _say(f"seed {seed}, {first} texts to begin with")
    while time.monotonic() < end:
        text = mutated(make.choice(texts), texts, make)
        (found / "last").write_bytes(text)  # it stays if the process ends here
        fields = agreement.differences(text, tried)
        if fields:
            wrong += 1
            name = hashlib.sha256(text).hexdigest()[:12]
            (found / name).write_bytes(text)
            _say(f"{name}, blocks by {tried}: {', '.join(fields)}")
        if agreement.accepted > accepted and len(text) < 1 << 14:  # still JSON: worth breaking further
            texts[first:] = [*texts[max(first, len(texts) - KEPT) :], text]
        accepted = agreement.accepted
        tried += 1
        if tried % 20_000 == 0:
            _say(f"{tried} texts, {accepted} taken by the compiled decoder, {wrong} found")
    _say(f"{tried} texts, {accepted} taken by the compiled decoder, {wrong} found")
    return wrong


if __name__ == "__main__":
    main()
