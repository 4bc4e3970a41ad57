"""Limits on the size of a trace and on its analysis, since a small malicious file could exhaust the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from tb_tidy_plugin.system.allowance import (
    Allowance,
    Held,
    LimitKind,
    LimitReachedError,
    ScaledBound,
    bounds_memory,
    within,
)
from tb_tidy_plugin.words.errors import TraceError

GB, MB = 10**9, 10**6
FREE_BYTES = 64 << 20
"""Bytes of text that are always read, however well they were compressed: short, regular recordings shrink a lot."""

CONFIGURED = "`[limits]` in the configuration, which TensorBoard takes by `--torchtidy_config`"

MOST_DEVICES = 64
"""Most devices that are distinguished, four times as many as in a machine; each costs time in every table."""

LONGEST_EVENT_NAME = 1 << 14
"""Most characters kept of a name; the longest real kernel's has about 8,000."""

NO_THREAD = "can't start new thread"
"""Python's message if there is no memory for a thread's stack."""

GZIP_RATIO = 15
"""Bytes of text per byte of a gz file; 10 to 30 in recordings."""

PROCESSOR_S, WALL_S, MEMORY_BYTES = ScaledBound(60, 1e-6), ScaledBound(600, 1e-5), ScaledBound(160e6, 24)
"""Default limits of an analysis.

Recordings take 0.02 to 0.04 s per MB of text, and the least favourable known text 0.74 s. The limit on wall time
allows for a machine with ten times as much to do as it can. The limit on memory is what `docs/limits.md` promises.
"""

_KEYS: Mapping[LimitKind, str] = {"processor": "max-processor-s", "wall": "max-wall-s", "memory": "max-memory-gb"}
"""Setting of each limit of an allowance, in `[limits]` and on the command line."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one trace file; if it, or its analysis, exceeds one, it is refused as a whole.

    Attributes:
        text_bytes: of JSON, inflated.
        inflation: ratio of the text's size to that of the gz file.
        processor_s: processor time of the analysis.
        wall_s: wall time of the analysis.
        memory_bytes: its memory, beyond what its process had before.
    """

    text_bytes: float = 16 * GB
    inflation: float = 300.0
    processor_s: ScaledBound = PROCESSOR_S
    wall_s: ScaledBound = WALL_S
    memory_bytes: ScaledBound = MEMORY_BYTES

    def check(self, text_bytes: int, packed_bytes: int | None = None) -> None:
        """Checks the bytes read so far; `packed_bytes` are those of the file, None if it is not compressed.

        Raises:
            TraceError: a limit is exceeded; says which, and how to raise it.
        """
        if text_bytes > self.text_bytes:
            raise TraceError(
                f"The trace contains more than {self.text_bytes / GB:g} GB of text, the limit `max-text-gb`.",
                f"Record fewer steps, or raise it: `--max-text-gb`, or {CONFIGURED}.",
            )
        if packed_bytes is not None and text_bytes > max(FREE_BYTES, self.inflation * packed_bytes):
            raise TraceError(
                f"The gz file decompresses to more than {self.inflation:g} times its size, the limit "
                "`max-inflation`; recordings reach 10 to 30 times.",
                f"If you trust the file, raise it: `--max-inflation`, or {CONFIGURED}.",
            )

    @property
    def allowance(self) -> Allowance:
        return Allowance(self.processor_s, self.wall_s, self.memory_bytes)

    def reached(self, limit: LimitKind, work: str = "analysis") -> TraceError:
        """The error for `work` on the trace that has reached a limit of its allowance."""
        amounts = {
            "processor": f"took more processor time than {_seconds(self.processor_s)}",
            "wall": f"took longer than {_seconds(self.wall_s)}",
            "memory": f"needs more memory than {_memory(self.memory_bytes)}",
        }
        return TraceError(
            f"The {work} {amounts[limit]}, the limit `{_KEYS[limit]}`.",
            f"If you trust the file, raise it: `--{_KEYS[limit]}`, or {CONFIGURED}. Otherwise record fewer steps.",
        )


def _seconds(bound: ScaledBound) -> str:
    return f"{bound.at_once:,g} s" + (f" and {bound.per_byte * MB:g} s for each MB of text" if bound.per_byte else "")


def _memory(bound: ScaledBound) -> str:
    each = f" and {bound.per_byte:g} bytes for each byte of text" if bound.per_byte else ""
    return f"{bound.at_once / MB:,g} MB{each}"


USUAL_LIMITS = Limits()


@contextmanager
def held_to(limits: Limits, work: str = "analysis") -> Iterator[None]:
    """Work on a trace that ends at the limits, in processes that enforce an allowance.

    Raises:
        TraceError: it reached a limit, and the process goes on.
    """
    held = Held()
    try:
        with within(limits.allowance) as held:
            yield
    except LimitReachedError as problem:
        raise limits.reached(problem.limit, work) from None
    except (MemoryError, RuntimeError) as problem:
        if not bounds_memory() or (isinstance(problem, RuntimeError) and str(problem) != NO_THREAD):
            raise
        if held.free_share_bytes is not None:
            raise _beyond_free_memory(held.free_share_bytes, work) from None
        raise limits.reached("memory", work) from None


def _beyond_free_memory(share_bytes: float, work: str) -> TraceError:
    return TraceError(
        f"The {work} needs more memory than {share_bytes / MB:,.0f} MB, its share of what this machine had free.",
        "Free memory, give one trace all of it with `--jobs 1`, or record fewer steps.",
    )


def likely_text(name: str, size: int) -> int:
    """Expected bytes of text in a trace file of this name and size."""
    return size * GZIP_RATIO if name.endswith(".gz") else size
