"""Runs of one, two and four times the size: by how much more each takes than the one before it."""

from __future__ import annotations

import gzip
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.growth.taken import Taken, Taker
from tests.support.growing import INPUTS, MANY, Growing

FACTORS = (1, 2, 4)
ENDS = (1, 4)
"""Sizes without the one between, which changes no mean of two doublings."""

MOST_GROWTH = 2.6
"""Where the input doubles, in the mean of two doublings: 2 is proportional, 4 its square; the rest is for caches."""

MOST_PER_BYTE = 24.0
"""Bytes of memory for each byte of text, besides `FREE_BYTES`: docs/limits.md."""

FREE_BYTES = 16 << 20
"""Of the 160 MB that every analysis may take: what little text needs, too."""

LEAST_S, LEAST_BYTES = 0.1, 8 << 20
"""What is less is taken to be this much: too little to tell how it grows."""

SHOWN_S = 1.0
"""Least time of the smallest size in the table of `python -m tests.growth`."""

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


def times_of(taker: Taker, name: str, growing: Growing, folder: Path) -> float:
    """How many times its `count` an input has to be for its smallest size to take `SHOWN_S`, or as in `MANY`."""
    if name in MANY:
        return MANY[name] / growing.count
    times = 1.0
    while (size := _size(taker, growing, folder, round(growing.count * times))).seconds < SHOWN_S and not size.fault:
        times *= min(max(1.1 * SHOWN_S / max(size.seconds, LEAST_S), 1.5), 8)
    return times


def sizes_of(
    taker: Taker, growing: Growing, folder: Path, times: float = 1.0, factors: Sequence[int] = FACTORS
) -> list[Size]:
    """Each size, from the smallest to one four times as large; what seems to grow too fast is measured again."""
    found: list[Size] = []
    for attempt in range(ATTEMPTS):
        again = [_size(taker, growing, folder, round(growing.count * times * factor)) for factor in factors]
        found = [_least(*pair) for pair in zip(found, again, strict=True)] if attempt else again
        if any(each.fault for each in found) or not complaints(found):
            break
    return found


def _size(taker: Taker, growing: Growing, folder: Path, count: int) -> Size:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    growing.write(folder, count)
    taken: Taken = taker.of(folder)
    return Size(
        count,
        sum(map(_text_bytes, folder.iterdir())),
        taken.seconds - taker.fixed.seconds,
        taken.grown_bytes - taker.fixed.grown_bytes,
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
    """By how much time and memory grow from size to size, and the memory for each byte of text."""
    seconds = [max(each.seconds, LEAST_S) for each in sizes]
    memory = [max(each.memory_bytes, LEAST_BYTES) for each in sizes]
    per_byte = max(sizes[-1].memory_bytes - FREE_BYTES, 0) / max(sizes[-1].text_bytes, 1)
    return [b / a for a, b in pairwise(seconds)], [b / a for a, b in pairwise(memory)], per_byte


def complaints(sizes: list[Size]) -> list[str]:
    """What grows too fast."""
    faults = [each.fault for each in sizes if each.fault]
    if faults:
        return faults
    seconds, memory, per_byte = growths(sizes)
    means = {"time": math.sqrt(math.prod(seconds)), "memory": math.sqrt(math.prod(memory))}
    found = [f"{what} grows {mean:.2f} times a doubling" for what, mean in means.items() if mean > MOST_GROWTH]
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
