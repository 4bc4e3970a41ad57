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


class Tried:
    """Texts that were taken through everything so far. The shortest text of each kind of fault is left in `found`."""

    def __init__(self, folder: Path, found: Path, say: Callable[[str], None]) -> None:
        self.texts = 0
        self.read = 0
        self.faults: dict[str, int] = {}
        self._folder, self._found, self._say = folder, found, say

    def one(self, text: bytes) -> None:
        """Takes a text through everything."""
        (self._found / "last").write_bytes(text)  # it stays if the process ends here
        self.texts += 1
        try:
            self.read += bool(check(text, self._folder, MOST_S).runs)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is what is looked for
            place = traceback.extract_tb(fault.__traceback__)[-1]
            name = f"{type(fault).__name__}-{Path(place.filename).stem}-{place.lineno}"
            if len(text) < self.faults.setdefault(name, 1 << 30):
                self.faults[name] = len(text)
                (self._found / name).write_bytes(text)
                self._say(f"{name}: {fault}")

    def __str__(self) -> str:
        return f"{self.texts} texts, {self.read} read, {len(self.faults)} faults found"


def run(minutes: float, seed: int, found: Path, say: Callable[[str], None]) -> int:
    """Number of different faults in recordings that are broken at random."""
    make, texts = random.Random(seed), seeds()
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        tried = Tried(Path(folder), found, say)
        while time.monotonic() < end:
            tried.one(mutated(make.choice(texts), texts, make))
    say(str(tried))
    return len(tried.faults)
