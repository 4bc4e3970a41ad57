"""The side file that `tb_tidy_plugin.capture` writes beside a trace. Its page is `docs/capture.md`.

It is as untrusted as the trace. Notes say which parts cannot be used; the trace does not depend on them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX, CAPTURE_VERSION
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    Captured,
    Category,
    EventTable,
    Numbers,
    PageFaults,
    Rows,
    SourceFile,
    TensorIds,
)
from tb_tidy_plugin.trace.compiled_code import CompiledCode
from tb_tidy_plugin.trace.measured_machine import MeasuredMachine
from tb_tidy_plugin.trace.reader import CutShortError, read_blocks
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath, is_file
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.settings import Settings
from tb_tidy_plugin.trace.side_file import refuse_link_away
from tb_tidy_plugin.words.errors import TraceError

MAX_TEXT_BYTES = 64 << 20  # of JSON, inflated: half a million calls and 8 MB of sources take 25 MB
MAX_SOURCE_CHARACTERS, MAX_ALL_CHARACTERS = 512_000, 8_000_000  # of one source and of all, as in the capture
MAX_ROWS = 1_000_000
CALL_FROM = b'"CallFrom"'

_Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Column = Annotated[list[_Number], msgspec.Meta(max_length=MAX_ROWS)]
_Inputs = Annotated[tuple[_Number, ...], msgspec.Meta(max_length=4096)]
_Line = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class CapturedCalls(msgspec.Struct, frozen=True):
    """Calls made by the user's own frames, one entry each.

    Attributes:
        start_ns: Unix time of the first, then the distance from one to the next.
        name: CRC-32 of the event's name.
        line: line in the caller's file.
    """

    start_ns: Column = []
    name: Column = []
    line: Annotated[list[_Line], msgspec.Meta(max_length=MAX_ROWS)] = []


class Tensors(msgspec.Struct, frozen=True):
    """Operators and the ids of their inputs; `start_ns` and `name` as in `CapturedCalls`."""

    start_ns: Column = []
    name: Column = []
    tensors: Annotated[list[_Inputs], msgspec.Meta(max_length=MAX_ROWS)] = []
    storages: Annotated[list[_Inputs], msgspec.Meta(max_length=MAX_ROWS)] = []


class CapturedSource(msgspec.Struct, frozen=True):
    """A file as it was when the job ran, by its name in the trace."""

    file: Annotated[str, msgspec.Meta(max_length=4096)]
    text: Annotated[str, msgspec.Meta(max_length=MAX_SOURCE_CHARACTERS)]


class StepTimes(msgspec.Struct, frozen=True):
    """Steps that were not recorded: their number, and their median in ns."""

    count: Annotated[int, msgspec.Meta(ge=1)]
    median_ns: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Faults(msgspec.Struct, frozen=True):
    recorded: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]], msgspec.Meta(max_length=10_000)]
    usual: Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]
    each_ns: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Workers(msgspec.Struct, frozen=True):
    count: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    processor_ns: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
    elapsed_ns: Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]


class CaptureFile(msgspec.Struct, frozen=True):
    """The fields read from the side file. Unknown fields are ignored."""

    version: Literal[1]
    settings: Settings | None = None
    complete: bool = True
    calls: CapturedCalls = CapturedCalls()
    tensors: Tensors | None = None
    sources: Annotated[list[CapturedSource], msgspec.Meta(max_length=10_000)] | None = None
    steps: StepTimes | None = None
    faults: _Faults | None = None
    workers: _Workers | None = None
    compiled: CompiledCode | None = None
    machine: MeasuredMachine | None = None


class _Versioned(msgspec.Struct):
    version: int


class _CallFrom(msgspec.Struct, gc=False):
    text: str = msgspec.field(name="CallFrom", default="")


def with_capture(table: EventTable, trace: AnyPath) -> EventTable:
    """`table` with the data of the side file beside `trace`, and with the calling lines that newer traces contain.

    Never raises for a side file that cannot be used: `Metadata.notes` then says why.
    """
    table = _with_own_lines(table)
    path = trace.with_name(trace.name + CAPTURE_SUFFIX)
    if not is_file(path):
        return table
    try:
        refuse_link_away(path, trace)
        return _joined(table, read_capture(path))
    except TraceError as problem:
        return table.not_using(path.name, problem)


def read_capture(path: AnyPath) -> CaptureFile:
    """Reads the side file `path`.

    Raises:
        UnreadError: it cannot be read.
        TraceError: it is not a side file of this version.
    """
    advice = "Record again with `tb_tidy_plugin.capture`, or delete it."
    text = _text(path, advice)
    try:
        version = decode(text, _Versioned).version
        if version != CAPTURE_VERSION:
            raise TraceError(
                f"It has version {version}; this reader knows version {CAPTURE_VERSION}.",
                "Use the tb-tidy that wrote it, or delete it.",
            )
        found = decode(text, CaptureFile)
    except msgspec.ValidationError as problem:
        raise TraceError(f"It does not match the format: {problem}.", advice) from None
    except (*NOT_JSON, RecursionError):
        raise TraceError("It is not JSON.", advice) from None
    if not _is_even(found):
        raise TraceError("Its columns are of different lengths.", advice)
    if found.compiled is not None and not found.compiled.is_sound():
        raise TraceError("It refers to stacks or lines of compiled code that it does not contain.", advice)
    return found


def _is_even(found: CaptureFile) -> bool:
    calls, tensors = found.calls, found.tensors or Tensors()
    return len(calls.start_ns) == len(calls.name) == len(calls.line) and len(tensors.start_ns) == len(
        tensors.name
    ) == len(tensors.tensors) == len(tensors.storages)


def _text(path: AnyPath, advice: str) -> bytes:
    pieces, size = [], 0
    try:
        for piece in read_blocks(path):
            size += len(piece)
            if size > MAX_TEXT_BYTES:
                raise TraceError(f"It is larger than {MAX_TEXT_BYTES >> 20} MiB.", advice)
            pieces.append(piece)
    except CutShortError as problem:
        raise TraceError(problem.error, advice) from None
    return b"".join(pieces)


def _joined(table: EventTable, found: CaptureFile) -> EventTable:
    given, faults, workers = found.sources or (), found.faults, found.workers
    sources = tuple(_within_all(given))
    captured = Captured(
        settings=found.settings,
        step_ns=found.steps.median_ns if found.steps else None,
        faults=PageFaults(tuple(faults.recorded), faults.usual, faults.each_ns) if faults else None,
        workers=workers.count if workers else 0,
        workers_busy=min(workers.processor_ns / (workers.count * workers.elapsed_ns), 1.0) if workers else None,
        sources=sources,
        tensors=_tensor_ids(table, found.tensors or Tensors()),
        compiled=found.compiled,
        machine=found.machine,
    )
    called_from, matched = _lines(table, found.calls)
    table = replace(
        table,
        called_from=np.where(called_from == ABSENT, table.called_from, called_from),
        metadata=replace(table.metadata, captured=captured),
    )
    if len(sources) < len(given):
        dropped = len(given) - len(sources)
        table = table.noted(f"{dropped:,} sources of the side file are not used: together they are too large.")
    total = len(found.calls.line)
    if total and not matched:
        return table.noted("The calling lines of the side file match no event: it belongs to another recording.")
    if not found.complete:
        return table.noted("The capture of calling lines ended early; the remaining lines come from the sources.")
    return table


def _within_all(given: Iterable[CapturedSource]) -> Iterator[SourceFile]:
    left = MAX_ALL_CHARACTERS
    for source in given:
        if len(source.text) <= left:
            left -= len(source.text)
            yield SourceFile(source.file, source.text)


def _lines(table: EventTable, calls: CapturedCalls) -> tuple[Numbers, int]:
    """The line that called each row, `ABSENT` if the side file has none; and the number of rows with one."""
    entries, found = _entries(table, calls.start_ns, calls.name, (Category.PYTHON,))
    lines = np.full(len(table), ABSENT, np.int32)
    lines[found] = np.array(calls.line, np.int32)[entries]
    return np.where(lines == 0, ABSENT, lines).astype(np.int32), len(found)


def _tensor_ids(table: EventTable, given: Tensors) -> dict[int, TensorIds]:
    entries, rows = _entries(table, given.start_ns, given.name, (Category.OPERATOR, Category.ANNOTATION))
    orders = table.file_order[rows].tolist()
    return {
        order: TensorIds(given.tensors[entry], given.storages[entry])
        for order, entry in zip(orders, entries.tolist(), strict=True)
    }


def _entries(
    table: EventTable, start_ns: Sequence[int], name: Sequence[int], categories: Iterable[Category]
) -> tuple[Rows, Rows]:
    """Entries of a column of starts and names that fit exactly one row, which no other one fits, and these rows."""
    starts = np.cumsum(np.array(start_ns, np.int64)) - table.metadata.base_ns - table.origin_ns
    rows = np.flatnonzero(table.is_category(categories) & among(table.start_ns, starts))
    used, number = np.unique(table.name[rows], return_inverse=True)
    checksums = np.array([zlib.crc32(table.names[at].encode("utf-8", "replace")) for at in used.tolist()], np.int64)
    # Rows and entries by their keys, rows first: if a key has exactly one row and one entry, they are neighbours.
    times = np.concatenate([table.start_ns[rows], starts])
    names = np.concatenate([checksums[number.reshape(-1)], np.array(name, np.int64)])
    order = np.lexsort((np.arange(len(times)) >= len(rows), names, times))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(times[order]) != 0) | (np.diff(names[order]) != 0)
    key, is_row = np.cumsum(is_first) - 1, order < len(rows)
    keys = int(is_first.sum())
    of_rows, of_entries = (np.bincount(key[side], minlength=keys) for side in (is_row, ~is_row))
    at = np.flatnonzero(is_first)[(of_rows == 1) & (of_entries == 1)]
    return order[at + 1] - len(rows), rows[order[at]]


def _with_own_lines(table: EventTable) -> EventTable:
    """The table with `CallFrom` (`file:line`), which torch after 2.13 writes into the args of Python events."""
    if not any(CALL_FROM in block for block in table.args.blocks):
        return table
    rows = np.flatnonzero(table.category == Category.PYTHON)
    lines = [_line_in(args.text) for args in table.args.decoded(rows, _CallFrom)]
    called_from = table.called_from.copy()
    called_from[rows] = lines
    return replace(table, called_from=called_from)


def _line_in(place: str) -> int:
    digits = place.rpartition(":")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 and int(digits) else ABSENT
