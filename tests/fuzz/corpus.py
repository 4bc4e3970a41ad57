"""Texts worth trying again and again: each runs lines of ours, or is refused in words, as no other of its harness.

They are in `tests/fuzz/corpus/`, a folder for each harness, and replayed in every test run. `python -m
tests.fuzz.corpus NAME --minutes 3` looks for more: it breaks those that are there, led by the lines that they run, and
keeps the fewest. What is called `found-…` was a fault once, and stays.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

from tb_tidy_plugin.words.errors import TidyError
from tests.fuzz.harnesses import HARNESSES, Take

CORPUS = Path(__file__).parent / "corpus"
PACKAGE = Path(__file__).resolve().parents[2] / "tb_tidy_plugin"
FOUND = "found-"
LONGEST = 6_000
LONGEST_END = 120
NUMBERS = re.compile(r"[0-9a-fx]*\d[0-9a-fx]*|/\S*|`[^`]*`|'[^']*'")
"""What differs from text to text that end alike."""

MOST_TEXTS = 40
MOST_BYTES = 22_000  # of one harness

Steps: TypeAlias = set[tuple[CodeType | str, int, int]]
"""From which line to which, in which function; and with which words it ended."""


def corpus_of(name: str) -> list[bytes]:
    """The texts of one harness, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


class Watch:
    """The lines that are run, of the modules that a harness is about."""

    def __init__(self, about: Sequence[str]) -> None:
        self._about = tuple(str(PACKAGE / path) for path in about)
        self._wanted: dict[CodeType, bool] = {}
        self.steps: Steps = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Notes what is run meanwhile, in all threads."""
        self.steps = set()
        before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401 - as Python has it
        code = frame.f_code
        wanted = self._wanted.get(code)
        if wanted is None:
            wanted = self._wanted[code] = code.co_filename.startswith(self._about)
        if not wanted:
            return None
        before = 0

        def line(frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401 - as Python has it
            nonlocal before
            if event == "line":
                self.steps.add((code, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line


def steps_of(watch: Watch, take: Take, text: bytes) -> Steps:
    """What a text runs, and how it ends; nothing for a fault, which `tests.fuzz` looks for."""
    end = "used"
    with watch.watching():
        try:
            take(text)
        except TidyError as refused:
            end = NUMBERS.sub("#", str(refused))[:LONGEST_END]
        except Exception:  # noqa: BLE001 - whatever it is
            return set()
    return {*watch.steps, (end, 0, 0)}


def distilled(texts: Sequence[tuple[bytes, Steps]], usual: Steps) -> list[bytes]:
    """The fewest of the texts that run all that they run together beyond what is `usual`, short ones first."""
    left, chosen = sorted(texts, key=lambda each: (len(each[0]), each[0])), list[bytes]()
    known = set(usual)
    while left:
        new = [(len(steps - known), -len(text), at) for at, (text, steps) in enumerate(left)]
        gain, _, at = max(new)
        text, steps = left.pop(at)
        if not gain or len(chosen) == MOST_TEXTS:
            return chosen
        if sum(map(len, chosen)) + len(text) <= MOST_BYTES:
            chosen.append(text)
            known |= steps
    return chosen


def grow(name: str, minutes: float, seed: int) -> tuple[int, list[bytes]]:
    """How many texts were tried, and the corpus that came of it."""
    harness, make = HARNESSES[name], random.Random(seed)
    watch, end = Watch(harness.about), time.monotonic() + 60 * minutes
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        take = harness.prepare(Path(folder))
        usual = set[Any]().union(*(steps_of(watch, take, text) for text in [*harness.seeds()] * 2))
        pool = [(text, steps_of(watch, take, text)) for text in corpus_of(name)]
        seen = usual.union(*(steps for _, steps in pool))
        texts = [*harness.seeds(), *(text for text, _ in pool)]
        while time.monotonic() < end:
            text = harness.change(make.choice(texts), texts, make)
            tried += 1
            if len(text) <= LONGEST and (steps := steps_of(watch, take, text)) - seen:
                seen |= steps
                pool.append((text, steps))
                texts.append(text)
    return tried, distilled(pool, usual)


def main() -> None:
    """Writes the corpus of one harness again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=HARNESSES)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    given = parser.parse_args()
    tried, texts = grow(given.name, given.minutes, given.seed)
    folder = CORPUS / given.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if not path.name.startswith(FOUND):
            path.unlink()
    for text in texts:
        (folder / hashlib.sha256(text).hexdigest()[:12]).write_bytes(text)
    sys.stdout.write(f"{given.name}: {tried:,} tried, {len(texts)} kept, {sum(map(len, texts)):,} bytes\n")


if __name__ == "__main__":
    main()
