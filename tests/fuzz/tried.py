"""Texts that were tried: what they cost against what is usual, which were faults, and the shortest text of each."""

from __future__ import annotations

import gc
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tb_tidy_plugin.words.errors import TidyError
from tests.fuzz.harnesses import Take
from tests.fuzz.pipeline import UnsoundError

TIMES_THE_USUAL = 30.0
"""Processor time, against what the costliest of the texts to begin with takes for as many bytes."""

LEAST_S = 0.1
"""What a pause of the machine may add to the time of a text of a few bytes."""

FREE_BYTES = 64 << 20
BYTES_PER_BYTE = 24.0
"""Memory beyond what is usual, and for each byte of text: docs/limits.md."""

SHORTER_S = 20.0  # of processor time, for making a text shorter
OURS = re.compile(r"[/\\](?:tb_tidy_plugin|tests)[/\\]")


class Tried:
    """Texts that one harness has taken so far. The shortest text of each kind of fault is left in `found`."""

    def __init__(self, name: str, take: Take, seeds: Sequence[bytes], found: Path, say: Callable[[str], None]) -> None:
        self.name = name
        self.texts = 0
        self.used = 0
        self.faults: dict[str, int] = {}
        self._take, self._found, self._say = take, found, say
        self._usual_s, self._usual_bytes = _usual(take, seeds)
        found.mkdir(parents=True, exist_ok=True)

    def one(self, text: bytes) -> bool:
        """Takes a text; whether it was used, and not refused."""
        (self._found / f"{self.name}-last").write_bytes(text)  # it stays if the process ends here
        self.texts += 1
        try:
            is_used = self.within_bounds(text)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is what is looked for
            self._fault(text, fault)
            return False
        self.used += is_used
        return is_used

    def within_bounds(self, text: bytes) -> bool:
        """Whether a text was used.

        Raises:
            UnsoundError: it took too much time or memory.
            Exception: whatever else went wrong.
        """
        costs = _costs(self._take, text)
        if too_much := self._too_much(text, *costs):
            costs = _costs(self._take, text)  # a machine that is busy, or imports something, makes a first try slow
            too_much = self._too_much(text, *costs)
        if too_much:
            raise UnsoundError(too_much)
        return costs[0] > 0

    def _too_much(self, text: bytes, size: int, took_s: float, memory: int) -> str:
        """In which way a text took more than it may; empty where it did not."""
        usual_s = self._usual_s * max(1.0, (size or len(text)) / self._usual_bytes)
        most_s = max(TIMES_THE_USUAL * usual_s, LEAST_S)
        most_bytes = FREE_BYTES + BYTES_PER_BYTE * (size or len(text))
        if took_s <= most_s and memory <= most_bytes:
            return ""
        return f"too much: {took_s:.2f} s of {most_s:.2f} s, {memory:,} bytes of {most_bytes:,.0f}"

    def _fault(self, text: bytes, fault: Exception) -> None:
        name = self._name_of(fault)
        if len(text) >= self.faults.get(name, 1 << 30):
            return
        self.faults[name] = len(text)
        (self._found / name).write_bytes(text)
        shorter = self._shorter(text, name)
        self.faults[name] = len(shorter)
        (self._found / name).write_bytes(shorter)
        self._say(f"{name}, {len(shorter)} bytes: {str(fault)[:300]}")
        self._say(f"  python -m tests.fuzz --what {self.name} --replay {self._found / name}")

    def _name_of(self, fault: Exception) -> str:
        frames = traceback.extract_tb(fault.__traceback__)
        place = ([frame for frame in frames if OURS.search(frame.filename)] or frames)[-1]
        return f"{self.name}-{type(fault).__name__}-{Path(place.filename).stem}-{place.lineno}"

    def _shorter(self, text: bytes, name: str) -> bytes:
        """A part of the text with the same fault."""
        end = time.process_time() + SHORTER_S
        size = len(text) // 2
        while size and time.process_time() < end:
            for part in _without(text, size):
                if self._has(part, name):
                    text = part
                    break
                if time.process_time() > end:
                    return text
            else:
                size //= 2
            size = min(size, len(text) // 2)
        return text

    def _has(self, text: bytes, name: str) -> bool:
        try:
            self.within_bounds(text)
        except Exception as fault:  # noqa: BLE001 - as above
            return self._name_of(fault) == name
        return False

    def __str__(self) -> str:
        return f"{self.name}: {self.texts:,} texts, {self.used:,} used, {len(self.faults)} faults found"


def _without(text: bytes, size: int) -> Iterator[bytes]:
    return (text[:at] + text[at + size :] for at in range(0, len(text), size))


def _usual(take: Take, seeds: Sequence[bytes]) -> tuple[float, int]:
    """What the costliest text takes, in s of processor time, and its bytes."""
    for text in seeds:  # imports, and what is worked out once
        _costs(take, text)
    costs = [(_costs(take, text), len(text)) for text in seeds]
    return max((took_s, max(size, length, 1)) for (size, took_s, _), length in costs)


def _costs(take: Take, text: bytes) -> tuple[int, float, int]:
    """Bytes that were worked on (0 where the text was refused), s of processor time, and bytes of memory."""
    gc.collect(0)
    before = _forget_peak()
    began = time.process_time()
    try:
        size = take(text)
    except TidyError as refused:
        if not refused.error:
            raise UnsoundError("refused without a word") from refused
        size = 0
    return size, time.process_time() - began, _peak() - before


PROCESS = Path("/proc/self")


def _forget_peak() -> int:
    """The memory now, in bytes; 0 where the system does not tell."""
    try:
        (PROCESS / "clear_refs").write_text("5")
    except OSError:
        return 0
    return _peak()


def _peak() -> int:
    """The most memory since it was forgotten."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", (PROCESS / "status").read_text())
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0
