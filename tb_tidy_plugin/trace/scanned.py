"""The compiled decoder: scans parts of the text natively at the same time.

Text that the scanner refuses is decoded portably. It is an optional part of the package: if there was no compiler at
installation, or if it is older than its sources, the portable decoder does everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.system.allowance import sharing_limits
from tb_tidy_plugin.system.compiled import DECODER, is_usable
from tb_tidy_plugin.system.decoders import decoder_of
from tb_tidy_plugin.system.threads import MOST_AT_ONCE, cores
from tb_tidy_plugin.trace.chunks import ID_FIELDS, USUAL, Chunk, ChunkDecoder, InputTexts, as_one
from tb_tidy_plugin.trace.columns import Ids, Numbers
from tb_tidy_plugin.trace.document import TextPiece, parts_of
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.strings import asked_once

if TYPE_CHECKING:
    from tb_tidy_plugin.trace._scan import Scanner

SMALLEST_PART = 1 << 20
USUAL_IDS = tuple(getattr(USUAL, field) for field in ID_FIELDS)

_Numbers: TypeAlias = list[Numbers]
"""The trace's number of each entry, for each table of a scanner."""

TABLES = 5
NO_NUMBERS = np.empty(0, np.int32)

_TEXTS = decoder_of(list[str])
_THREADS = decoder_of(list[tuple[int | str, int | str]])
_INPUTS = decoder_of(InputTexts)


@contextmanager
def fastest_decoder(threads: int | None = None) -> Iterator[ChunkDecoder]:
    """A new decoder for one trace: the compiled one if it is installed, else the portable one.

    Args:
        threads: number of parts of the text that are scanned at the same time; by default one per core, up to 4.
    """
    if not is_usable(DECODER):
        yield ChunkDecoder()
        return
    from tb_tidy_plugin.trace._scan import Scanner

    count = threads or min(MOST_AT_ONCE, cores())
    with ThreadPoolExecutor(count, "torchtidy-scan") as pool:
        yield ScanningDecoder([Scanner() for _ in range(count)], pool)


class _Part(msgspec.Struct, frozen=True):
    """Scanned text, before its numbers are converted to those of the whole trace.

    Attributes:
        wide, narrow: columns in the order of `Scanner.columns`.
        known: number of texts of each table that the scanner returned before.
        phases, categories, names, threads, inputs: the texts for the numbers from there on.
        args, args_ends: as in `Chunk`.
    """

    count: int
    wide: list[bytes | None]
    narrow: list[bytes]
    known: list[int]
    phases: list[str]
    categories: list[str]
    names: list[str]
    threads: list[tuple[int | str, int | str]]
    inputs: list[bytes]
    args: bytes
    args_ends: bytes


class ScanningDecoder(ChunkDecoder):
    """Produces the same chunks as `ChunkDecoder`, several times as fast.

    Attributes:
        refused: number of times that text was left to the portable decoder, by reason.
    """

    def __init__(self, scanners: Sequence[Scanner], pool: ThreadPoolExecutor) -> None:
        super().__init__()
        self.refused: Counter[str] = Counter()
        self._scanners = scanners
        self._numbers: list[_Numbers] = []
        self._pool = pool
        self._forget()

    def _forget(self) -> None:
        for scanner in self._scanners:
            scanner.forget()
        self._numbers = [[NO_NUMBERS] * TABLES for _ in self._scanners]

    def decode(self, pieces: Sequence[TextPiece]) -> list[Chunk]:
        from tb_tidy_plugin.trace._scan import RefusedError

        try:
            parts = self._scanned(pieces)
        except (RefusedError, *NOT_JSON) as reason:
            self._forget()
            self.refused[str(reason)] += 1
            return super().decode(pieces)
        return [self._numbered(part, numbers) for part, numbers in zip(parts, self._numbers, strict=False)]

    def _scanned(self, pieces: Sequence[TextPiece]) -> list[_Part]:
        size = pieces[-1].end - pieces[-1].start
        parts = parts_of(pieces, max(1, min(len(self._scanners), size // SMALLEST_PART)))
        if len(parts) == 1:
            return [_scanned(self._scanners[0], parts[0])]
        coming = [
            self._pool.submit(sharing_limits(_scanned), scanner, part)
            for scanner, part in zip(self._scanners, parts, strict=False)
        ]
        wait(coming)  # for all of them: a scanner must have answered before its next call
        return [each.result() for each in coming]

    def _numbered(self, part: _Part, numbers: _Numbers) -> Chunk:
        news = (
            self.phases.numbers(part.phases, len(part.phases)),
            self.categories.numbers(part.categories, len(part.categories)),
            self.names.numbers(part.names, len(part.names)),
            self.threads.numbers(part.threads, len(part.threads)),
            self.inputs.numbers(part.inputs, len(part.inputs)),
        )
        numbers[:] = [
            np.concatenate([old[:known], new]) for old, known, new in zip(numbers, part.known, news, strict=True)
        ]
        phase, category, name, thread, inputs, args_number = (np.frombuffer(column, np.int32) for column in part.narrow)
        start_ns, duration_ns, flow = (np.frombuffer(column or b"", np.int64) for column in part.wide[:3])
        ids = (_column(*each, part.count) for each in zip(USUAL_IDS, part.wide[3:], strict=True))
        return Chunk(
            phase=numbers[0][phase],
            category=numbers[1][category],
            name=numbers[2][name],
            thread=numbers[3][thread],
            inputs=numbers[4][inputs],
            start_ns=start_ns,
            duration_ns=duration_ns,
            flow=flow,
            ids=dict(zip(ID_FIELDS, ids, strict=True)),
            args=part.args,
            args_ends=np.frombuffer(part.args_ends, np.int32),
            args_number=args_number,
        )


def _scanned(scanner: Scanner, pieces: list[TextPiece]) -> _Part:
    count, wide, narrow, tables, args, args_ends = scanner.columns(list(pieces))
    *texts, threads = (b"[" + b",".join(new) + b"]" for _, new in tables[:-1])
    phases, categories, names = map(_TEXTS.decode, texts)
    return _Part(
        count,
        wide,
        narrow,
        [known for known, _ in tables],
        phases,
        categories,
        names,
        _THREADS.decode(threads),
        [*map(asked_once(_in_usual_order), tables[-1][1])],
        args,
        args_ends,
    )


def _in_usual_order(inputs: bytes) -> bytes:
    return as_one(msgspec.structs.astuple(_INPUTS.decode(inputs)))


def _column(default: int, column: bytes | None, count: int) -> Ids:
    """A column of ids; one that no event has takes no memory, small ones take half."""
    if column is None:
        return np.broadcast_to(np.int32(default), count)
    values: Ids = np.frombuffer(column, f"i{len(column) // count if count else 8}")
    return values
