"""Runs of one, two and four times the size: by how much more each takes than the one before it."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.growth.taken import Taken, Taker
from tests.support.growing import INPUTS, Growing

MOST_GROWTH = 2.6
"""Where the input doubles: 2 is proportional, 4 its square; the rest is for caches and sorting."""

MOST_PER_BYTE = 24.0
"""Bytes of memory for each further byte of text: docs/limits.md."""

LEAST_S, LEAST_BYTES = 0.05, 8 << 20
"""What is less is taken to be this much: too little to tell how it grows."""

ATTEMPTS = 4
"""As often is each size measured before it is said to take too much; the least of it counts."""


@dataclass(frozen=True)
class Size:
    """One size of an input: how many of it, their text in bytes, and what it takes besides what every run takes."""

    count: int
    text_bytes: int
    seconds: float
    memory_bytes: float
    fault: str


def small_run(folder: Path) -> Path:
    """A run that is too small to take anything but what every run takes."""
    folder.mkdir()
    INPUTS["kernels"].write(folder, 20)
    return folder


def sizes_of(taker: Taker, growing: Growing, small: Path, folder: Path, times: float = 1.0) -> list[Size]:
    """The three sizes; what seems to grow too fast is measured again."""
    found: list[Size] = []
    for attempt in range(ATTEMPTS):
        again = [_size(taker, growing, small, folder, round(growing.count * times * factor)) for factor in (1, 2, 4)]
        found = [_least(*pair) for pair in zip(found, again, strict=True)] if attempt else again
        if any(each.fault for each in found) or not complaints(found):
            break
    return found


def _size(taker: Taker, growing: Growing, small: Path, folder: Path, count: int) -> Size:
    fixed = taker.of(small)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    growing.write(folder, count)
    taken: Taken = taker.of(folder)
    return Size(
        count,
        sum(map(_text_bytes, folder.iterdir())),
        taken.seconds - fixed.seconds,
        taken.grown_bytes - fixed.grown_bytes,
        taken.fault,
    )


def _least(one: Size, other: Size) -> Size:
    seconds, memory = min(one.seconds, other.seconds), min(one.memory_bytes, other.memory_bytes)
    return Size(one.count, one.text_bytes, seconds, memory, one.fault or other.fault)


def _text_bytes(path: Path) -> int:
    if path.name.endswith(".gz"):
        with gzip.open(path) as stream:
            return sum(map(len, iter(lambda: stream.read(1 << 20), b"")))
    return path.stat().st_size


def growths(sizes: list[Size]) -> tuple[list[float], list[float], float]:
    """By how much time and memory grow with each doubling, and the memory for each further byte of text."""
    seconds = [max(each.seconds, LEAST_S) for each in sizes]
    memory = [max(each.memory_bytes, LEAST_BYTES) for each in sizes]
    per_byte = (memory[-1] - memory[0]) / max(sizes[-1].text_bytes - sizes[0].text_bytes, 1)
    pairs = [(0, 1), (1, 2)]
    return [seconds[b] / seconds[a] for a, b in pairs], [memory[b] / memory[a] for a, b in pairs], per_byte


def complaints(sizes: list[Size]) -> list[str]:
    """What grows too fast."""
    faults = [each.fault for each in sizes if each.fault]
    if faults:
        return faults
    seconds, memory, per_byte = growths(sizes)
    found = [f"time grows {each:.2f} times" for each in seconds if each > MOST_GROWTH]
    found += [f"memory grows {each:.2f} times" for each in memory if each > MOST_GROWTH]
    return found + ([f"{per_byte:.0f} bytes of memory for each byte of text"] if per_byte > MOST_PER_BYTE else [])


def line_of(name: str, sizes: list[Size]) -> str:
    """A line of the table: how many, how long, how much memory."""
    seconds, memory, per_byte = growths(sizes)
    parts = [
        f"{name:<40}",
        " ".join(f"{each.count:>8,}" for each in sizes),
        " ".join(f"{each.seconds:6.2f}" for each in sizes) + " s",
        " ".join(f"{each:4.1f}" for each in seconds),
        " ".join(f"{each.memory_bytes / 1e6:6.0f}" for each in sizes) + " MB",
        " ".join(f"{each:4.1f}" for each in memory),
        f"{per_byte:4.0f} B/B",
        "; ".join(complaint.splitlines()[-1] for complaint in complaints(sizes)),
    ]
    return "  ".join(parts).rstrip()
