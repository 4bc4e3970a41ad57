"""The compiled decoder: parts of the text are scanned natively at the same time.

What the scanner refuses is decoded portably. It is an optional part of the package: where there was no compiler at the
install, the portable decoder does everything.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tb_tidy_plugin.trace.chunks import ID_FIELDS, Chunk, ChunkDecoder, Ids, InputTexts
from tb_tidy_plugin.trace.columns import Numbers, Times
from tb_tidy_plugin.trace.document import KINETO_CUT
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.strings import NumberTable, Value

if TYPE_CHECKING:
    from tb_tidy_plugin.trace._scan import Scanner

MOST_THREADS = 4  # beyond that, what follows the scanning takes longer
SMALLEST_PART = 1 << 20
DEFAULTS = (0, 0, 0, *(getattr(Ids(), field) for field in ID_FIELDS))
EXTENSION = "tb_tidy_plugin.trace._scan"

_TEXTS = msgspec.json.Decoder(list[str])
_THREADS = msgspec.json.Decoder(list[tuple[int | str, int | str]])
_INPUTS = msgspec.json.Decoder(list[InputTexts])


def is_compiled() -> bool:
    """Whether the compiled decoder is there."""
    return importlib.util.find_spec(EXTENSION) is not None


@contextmanager
def fastest_decoder(threads: int | None = None) -> Iterator[ChunkDecoder]:
    """A new decoder for one trace: the compiled one where it is there, else the portable one.

    Args:
        threads: how many parts of the text are scanned at the same time; by default one per core, up to 4.
    """
    if not is_compiled():
        yield ChunkDecoder()
        return
    from tb_tidy_plugin.trace._scan import Scanner

    count = threads or min(MOST_THREADS, _cores())
    with ThreadPoolExecutor(count, "torchtidy-scan") as pool:
        yield ScanningDecoder([Scanner() for _ in range(count)], pool)


def _cores() -> int:
    """How many this process may use; systems other than Linux do not say, so there all count."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class _Part:
    """What was scanned, before its numbers are those of the whole trace.

    Attributes:
        wide, narrow: columns in the order of `Scanner.columns`.
        phases, categories, names, threads, inputs: what the numbers stand for.
        args: text of all args.
    """

    count: int
    wide: list[bytes | None]
    narrow: list[bytes]
    phases: list[str]
    categories: list[str]
    names: list[str]
    threads: list[tuple[int | str, int | str]]
    inputs: list[bytes]
    args: bytes


class ScanningDecoder(ChunkDecoder):
    """Makes the same chunks as `ChunkDecoder`, several times as fast.

    Attributes:
        refused: how many pieces of the text were left to the portable decoder, by reason.
    """

    def __init__(self, scanners: Sequence[Scanner], pool: ThreadPoolExecutor) -> None:
        super().__init__()
        self.refused: Counter[str] = Counter()
        self._scanners = scanners
        self._pool = pool

    def decode(self, text: bytes, end: int) -> list[Chunk]:
        """As the portable decoder does it."""
        from tb_tidy_plugin.trace._scan import RefusedError

        try:
            parts = self._scanned(text, end)
        except (RefusedError, *NOT_JSON) as reason:
            self.refused[str(reason)] += 1
            return super().decode(text, end)
        return [self._numbered(part) for part in parts]

    def _scanned(self, text: bytes, end: int) -> list[_Part]:
        bounds = _bounds(text, end, len(self._scanners))
        if len(bounds) == 1:
            return [_scanned(self._scanners[0], text, *bounds[0])]
        scanners = self._scanners[: len(bounds)]
        starts, ends = zip(*bounds, strict=True)
        return list(self._pool.map(_scanned, scanners, [text] * len(bounds), starts, ends))

    def _numbered(self, part: _Part) -> Chunk:
        phase, category, name, thread, inputs, args_end = (np.frombuffer(column, np.int32) for column in part.narrow)
        start_ns, duration_ns, flow, *ids = (
            _column(*each, part.count) for each in zip(DEFAULTS, part.wide, strict=True)
        )
        return Chunk(
            phase=_renumbered(phase, part.phases, self.phases),
            category=_renumbered(category, part.categories, self.categories),
            name=_renumbered(name, part.names, self.names),
            thread=_renumbered(thread, part.threads, self.threads),
            inputs=_renumbered(inputs, part.inputs, self.inputs),
            start_ns=start_ns,
            duration_ns=duration_ns,
            flow=flow,
            ids=dict(zip(ID_FIELDS, ids, strict=True)),
            args=part.args,
            args_end=args_end,
        )


def _bounds(text: bytes, end: int, most: int) -> list[tuple[int, int]]:
    """Start and end of parts of about the same size, cut where Kineto ends events; one where there is no such cut."""
    wanted = max(1, min(most, end // SMALLEST_PART))
    cuts = {text.rfind(KINETO_CUT, 0, end * number // wanted) for number in range(1, wanted)} - {-1}
    ends = [cut + len(b"\n  }") for cut in sorted(cuts)]
    return list(zip([0, *(cut + 1 for cut in ends)], [*ends, end], strict=True))


def _scanned(scanner: Scanner, text: bytes, start: int, end: int) -> _Part:
    count, wide, narrow, tokens, args = scanner.columns(text, start, end)
    *texts, threads, inputs = (b"[" + b",".join(each) + b"]" for each in tokens)
    phases, categories, names = map(_TEXTS.decode, texts)
    inputs_texts = [each.as_one() for each in _INPUTS.decode(inputs)]
    return _Part(count, wide, narrow, phases, categories, names, _THREADS.decode(threads), inputs_texts, args)


def _renumbered(column: Numbers, values: Sequence[Value], table: NumberTable[Value]) -> Numbers:
    return table.numbers(values, len(values))[column]


def _column(default: int, column: bytes | None, count: int) -> Times:
    """Of ids that no event has it takes no memory, of small ones half."""
    if column is None:
        return np.broadcast_to(np.int64(default), count)
    values: Times = np.frombuffer(column, f"i{len(column) // count if count else 8}")
    return values
