"""`python -m tests.fuzz --what report`: breaks recordings and takes each through everything that we do with one."""

from __future__ import annotations

import random
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutations import mutated, seeds
from tests.fuzz.pipeline import check

MOST_S = 20.0  # of processor time for a few kB


def run(minutes: float, seed: int, found: Path, say: Callable[[str], None]) -> int:
    """Number of different faults; the shortest text of each is left in `found`."""
    make, texts = random.Random(seed), seeds()
    end, tried, read = time.monotonic() + 60 * minutes, 0, 0
    faults: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            text = mutated(make.choice(texts), texts, make)
            (found / "last").write_bytes(text)  # it stays if the process ends here
            try:
                read += bool(check(text, Path(folder), MOST_S).runs)
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is what is looked for
                place = traceback.extract_tb(fault.__traceback__)[-1]
                name = f"{type(fault).__name__}-{Path(place.filename).stem}-{place.lineno}"
                if len(text) < faults.setdefault(name, 1 << 30):
                    faults[name] = len(text)
                    (found / name).write_bytes(text)
                    say(f"{name}: {fault}")
            tried += 1
    say(f"{tried} texts, {read} read, {len(faults)} faults found")
    return len(faults)
