"""Limits on the size of a trace and on its analysis, since a small malicious file could exhaust the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from tb_tidy_plugin.allowance import Allowance, LimitKind, LimitReachedError, ScaledBound, bounds_memory, within
from tb_tidy_plugin.errors import TraceError

GB, MB = 10**9, 10**6
FREE_BYTES = 64 << 20
"""So much text is read whatever it was packed into: short and regular recordings shrink a hundredfold."""

CONFIGURED = "`[limits]` in the configuration, which TensorBoard takes by `--torchtidy_config`"

MOST_DEVICES = 64
"""Devices that are told apart, four times as many as a machine has; each is work for every table."""

LONGEST_EVENT_NAME = 1 << 14
"""Characters of a name that are kept; the longest of a real kernel are some 8,000."""

NO_THREAD = "can't start new thread"
"""What Python says where there is no memory for a thread's stack."""

GZIP_RATIO = 15
"""Bytes of text in one of a gz file; 10 to 30 in recordings."""

PROCESSOR_S, WALL_S, MEMORY_BYTES = ScaledBound(60, 1e-6), ScaledBound(600, 1e-5), ScaledBound(160e6, 24)
"""What an analysis may take, as a rule.

Recordings take 0.02 to 0.04 s for a MB of text, and the least favourable text that was found 0.74 s. The clock allows
for a machine with ten times as much to do as it can. Memory is what `docs/limits.md` promises.
"""

_KEYS: Mapping[LimitKind, str] = {"processor": "max-processor-s", "wall": "max-wall-s", "memory": "max-memory-gb"}
"""What sets each limit of an allowance, in `[limits]` and on the command line."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one trace file; where it, or what is made of it, is beyond one, it is refused as a whole.

    Attributes:
        text_bytes: of JSON, inflated.
        inflation: how many times the size of the gz file the text may have.
        processor_s: processor time of the analysis.
        wall_s: its time on the clock.
        memory_bytes: its memory, beyond what its process had before.
    """

    text_bytes: float = 16 * GB
    inflation: float = 300.0
    processor_s: ScaledBound = PROCESSOR_S
    wall_s: ScaledBound = WALL_S
    memory_bytes: ScaledBound = MEMORY_BYTES

    def check(self, text_bytes: int, packed_bytes: int | None = None) -> None:
        """Looks at what was read so far; `packed_bytes` of the file, None where it is not compressed.

        Raises:
            TraceError: it is beyond a limit; says which, and how that is raised.
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
        """What the analysis may take."""
        return Allowance(self.processor_s, self.wall_s, self.memory_bytes)

    def reached(self, limit: LimitKind, work: str = "analysis") -> TraceError:
        """What to say of `work` on the trace that has reached a limit of its allowance."""
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
        TraceError: it took all that it may, and the process goes on.
    """
    try:
        with within(limits.allowance):
            yield
    except LimitReachedError as problem:
        raise limits.reached(problem.limit, work) from None
    except (MemoryError, RuntimeError) as problem:
        if not bounds_memory() or (isinstance(problem, RuntimeError) and str(problem) != NO_THREAD):
            raise
        raise limits.reached("memory", work) from None


def likely_text(name: str, size: int) -> int:
    """How many bytes of text a trace file of this name and size should hold."""
    return size * GZIP_RATIO if name.endswith(".gz") else size
