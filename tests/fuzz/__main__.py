"""`python -m tests.fuzz`: breaks what somebody else may have written, for as long as it is told.

`--what` names a harness of `tests/fuzz/harnesses.py`; `decoders` compares the two decoders on broken traces; `all`
takes turns, each in a process of its own. The shortest text of each fault is left in `--found`, and the command that
replays it is said. `tests/fuzz/sanitized.sh` does all this with the compiled decoder under AddressSanitizer and
UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from tests.fuzz.corpus import corpus_of
from tests.fuzz.harnesses import HARNESSES
from tests.fuzz.mutations import mutated, seeds
from tests.fuzz.tried import Tried

KEPT = 2000  # mutated texts that are broken further
LONGEST = 1 << 14  # bytes of such a text
TURN_MINUTES = 0.5
FOUND = 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Exits with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=("all", "decoders", *HARNESSES), default="decoders")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--replay", type=Path, help="Take this file only, and show what becomes of it.")
    given = parser.parse_args()
    given.found.mkdir(parents=True, exist_ok=True)
    if given.replay is not None:
        replay(given.what, given.replay)
    elif given.what == "all":
        sys.exit(FOUND if in_turns(given.minutes, given.seed, given.found) else 0)
    elif given.what == "decoders":
        sys.exit(FOUND if compare_decoders(given.minutes, given.seed, given.found) else 0)
    else:
        sys.exit(FOUND if run(given.what, given.minutes, given.seed, given.found) else 0)


def in_turns(minutes: float, seed: int, found: Path) -> list[str]:
    """The harnesses that found something. One whose process ends has found the text that it was at."""
    end, finders = time.monotonic() + 60 * minutes, list[str]()
    for number, name in enumerate(cycle(("decoders", *HARNESSES))):
        left = (end - time.monotonic()) / 60
        if left <= 0:
            return finders
        options = ("--what", name, "--minutes", str(min(TURN_MINUTES, left)), "--seed", str(seed + number))
        code = subprocess.call([sys.executable, "-m", "tests.fuzz", *options, "--found", str(found)])
        if code:
            finders.append(name)
        if code not in {0, FOUND}:
            _say(f"{name}: its process ended with {code}; the text is in {found / f'{name}-last'}")
    return finders


def replay(name: str, file: Path) -> None:
    """Takes one text, and lets whatever it raises be seen."""
    harness = HARNESSES[name]
    with tempfile.TemporaryDirectory() as folder:
        take = harness.prepare(Path(folder))
        is_used = Tried(name, take, harness.seeds(), file.parent, _say).within_bounds(file.read_bytes())
    _say("used" if is_used else "refused")


def run(name: str, minutes: float, seed: int, found: Path) -> int:
    """Number of different faults of one harness."""
    harness, make = HARNESSES[name], random.Random(seed)
    texts = [*harness.seeds(), *corpus_of(name), *(seeds() if name == "trace" else ())]
    with tempfile.TemporaryDirectory() as folder:
        tried = Tried(name, harness.prepare(Path(folder)), harness.seeds(), found, _say)
        _until(minutes, texts, lambda: harness.change(make.choice(texts), texts, make), tried.one)
    (found / f"{name}-last").unlink(missing_ok=True)
    _say(str(tried))
    return len(tried.faults)


def _until(minutes: float, texts: list[bytes], broken: Callable[[], bytes], one: Callable[[bytes], bool]) -> None:
    """Breaks texts until the time is over; those that still are used are broken further."""
    end, first = time.monotonic() + 60 * minutes, len(texts)
    while time.monotonic() < end:
        text = broken()
        if one(text) and len(text) < LONGEST:
            texts[first:] = [*texts[max(first, len(texts) - KEPT) :], text]


def compare_decoders(minutes: float, seed: int, found: Path) -> int:
    """Number of texts on which the decoders differ."""
    from tests.fuzz.agreement import Agreement  # needs what is compiled

    make, texts, agreement = random.Random(seed), seeds(), Agreement()
    tried = wrong = 0

    def one(text: bytes) -> bool:
        nonlocal tried, wrong
        (found / "decoders-last").write_bytes(text)  # it stays if the process ends here
        accepted = agreement.accepted
        if fields := agreement.differences(text, tried):
            wrong += 1
            name = f"decoders-{hashlib.sha256(text).hexdigest()[:12]}"
            (found / name).write_bytes(text)
            _say(f"{name}, blocks by {tried}: {', '.join(fields)}")
        tried += 1
        return agreement.accepted > accepted

    _until(minutes, texts, lambda: mutated(make.choice(texts), texts, make), one)
    (found / "decoders-last").unlink(missing_ok=True)
    _say(f"decoders: {tried:,} texts, {agreement.accepted:,} taken by the compiled one, {wrong} found")
    return wrong


if __name__ == "__main__":
    main()
