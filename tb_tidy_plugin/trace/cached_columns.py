"""An `EventTable` as an entry of the cache, and back: columns are memory-mapped, args are compressed.

Small traces are not stored: reading them takes a tenth of a second. Loaded entries are checked as untrusted: columns
must have their types and lengths, and numbers must refer to something that exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import fields
from numpy.typing import NDArray

from tb_tidy_plugin.system.allowance import has_read
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.assemble import NARROW_IDS
from tb_tidy_plugin.trace.cache import Cache, EntryPiece, code_state, key_of, state_of
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    ROW_COLUMNS,
    Amount,
    ArgsText,
    Category,
    EventTable,
    Flows,
    Metadata,
    Thread,
)
from tb_tidy_plugin.trace.names import BESIDE
from tb_tidy_plugin.trace.reader import DAMAGED, packed, unpacked
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath, size_of
from tb_tidy_plugin.words.visible import log_called

log = log_called("tb_tidy_plugin")

COLUMNS = "columns"
WORTH_KEEPING = 16 << 20  # least bytes of a trace file
TEXT_RATIO = 3  # bytes of text per byte of an entry: 2 to 6 in recordings
ALIGNMENT = 64
LENGTH_BYTES = 8
FLOW_COLUMNS = tuple(column.name for column in fields(Flows))
ARGS_COLUMNS = ("ends", "number")

_TIMES = ("start_ns", "end_ns", "flows.time_ns", "flows.flow", "args.ends")
_NUMBERS = (
    "name", "thread", "inputs", "forward_thread", "called_from", "device", "file_order", "args.number", "flows.kind",
    "flows.thread",
)  # fmt: skip
TYPES: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(_TIMES, np.int64),
    **dict.fromkeys(_NUMBERS, np.int32),
    "category": np.int8,
    "flows.is_start": np.bool_,
}
"""Fixed types of columns; all others are ids, of either width."""

_MOST_INFLATION = 1100
"""More than the highest ratio of deflate."""

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]


class _Array(msgspec.Struct, frozen=True):
    """A column: its name and type, and its offset behind the head. A `repeated` one has only its first value."""

    name: str
    dtype: str
    count: _Size
    start: _Size
    repeated: bool


class _Head(msgspec.Struct, frozen=True):
    """Everything except the columns. `texts` are the lengths of the blocks of args as text, `packed` as compressed."""

    arrays: list[_Array]
    texts: list[_Size]
    packed: list[_Size]
    names: tuple[str, ...]
    input_texts: tuple[str, ...]
    threads: tuple[Thread, ...]
    metadata: Metadata
    origin_ns: Amount
    dropped: dict[str, int]
    partial: str | None


def columns_key(path: AnyPath) -> str | None:
    """Cache key of a trace's columns; None for a trace whose columns are not stored."""
    state = state_of(path) if size_of(path) >= WORTH_KEEPING else ()
    if not state:
        return None
    beside = [state_of(path.with_name(path.name + suffix)) for suffix in BESIDE]
    try:
        return key_of(code_state("trace"), state, beside)
    except OSError:  # this package's own code cannot be read
        return None


def load_columns(cache: Cache, key: str) -> EventTable | None:
    """The stored table; None if there is none."""
    content = cache.load(COLUMNS, key)
    if content is None:
        return None
    has_read(TEXT_RATIO * len(content))
    try:
        return _table(content)
    except (*NOT_JSON, ValueError, TypeError, KeyError, IndexError, DAMAGED) as problem:
        log.info("columns %s are ignored: %s", key, problem)
        return None


def keep_columns(cache: Cache, key: str, table: EventTable) -> None:
    """Stores a table without copying most of its memory."""
    cache.keep(COLUMNS, key, _pieces(table))


def _pieces(table: EventTable) -> Iterator[EntryPiece]:
    texts = [packed(block) for block in table.args.blocks]
    columns, arrays, at = list[NDArray[Any]](), list[_Array](), 0
    for name, column in _columns(table).items():
        repeated = len(column) > 0 and column.strides == (0,)
        columns.append(np.ascontiguousarray(column[:1] if repeated else column))
        arrays.append(_Array(name, column.dtype.str, len(column), at, repeated))
        at += _aligned(columns[-1].nbytes)
    head = msgspec.json.encode(
        _Head(
            arrays=arrays,
            texts=[len(block) for block in table.args.blocks],
            packed=[len(text) for text in texts],
            names=table.names,
            input_texts=table.input_texts,
            threads=table.threads,
            metadata=table.metadata,
            origin_ns=table.origin_ns,
            dropped=dict(table.dropped),
            partial=table.partial,
        )
    )
    yield len(head).to_bytes(LENGTH_BYTES, "little")
    yield head
    yield bytes(_aligned(LENGTH_BYTES + len(head)) - LENGTH_BYTES - len(head))
    for column in columns:
        yield column.view(np.uint8).data
        yield bytes(_aligned(column.nbytes) - column.nbytes)
    yield from texts


def _columns(table: EventTable) -> dict[str, NDArray[Any]]:
    rows = {name: getattr(table, name) for name in sorted(ROW_COLUMNS)}
    flows = {f"flows.{name}": getattr(table.flows, name) for name in FLOW_COLUMNS}
    return rows | flows | {f"args.{name}": getattr(table.args, name) for name in ARGS_COLUMNS}


def _table(content: memoryview) -> EventTable:
    end = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    head = decode(content[LENGTH_BYTES:end], _Head)
    begin = _aligned(end)
    columns = {each.name: _column(content, each, begin) for each in head.arrays}
    at = begin + max((each.start + _aligned(_stored(each)) for each in head.arrays), default=0)
    blocks = []
    for size, length in zip(head.texts, head.packed, strict=True):
        if size > _MOST_INFLATION * length:
            raise ValueError("args that are not there")
        blocks.append(unpacked(content[at : at + length], size))
        at += length
    rows: dict[str, Any] = {name: columns[name] for name in ROW_COLUMNS}
    table = EventTable(
        **rows,
        args=ArgsText(blocks=tuple(blocks), **_part(columns, "args", ARGS_COLUMNS)),
        flows=Flows(**_part(columns, "flows", FLOW_COLUMNS)),
        names=head.names,
        input_texts=head.input_texts,
        threads=head.threads,
        metadata=head.metadata,
        origin_ns=head.origin_ns,
        dropped=head.dropped,
        partial=head.partial,
    )
    _check(table)
    return table


def _column(content: memoryview, array: _Array, begin: int) -> NDArray[Any]:
    kept = 1 if array.repeated else array.count
    if array.start % ALIGNMENT:
        raise ValueError(f"`{array.name}` in between")
    column: NDArray[Any] = np.frombuffer(content, _dtype(array), kept, begin + array.start)
    return np.broadcast_to(column[0], array.count) if array.repeated else column


def _stored(array: _Array) -> int:
    """Number of its stored bytes."""
    return _dtype(array).itemsize * (1 if array.repeated else array.count)


def _dtype(array: _Array) -> np.dtype[Any]:
    """The dtype of a column, never constructed from the entry's text.

    Raises:
        ValueError: the column has another one.
    """
    allowed = (TYPES[array.name],) if array.name in TYPES else (np.int64, np.int32)
    for each in map(np.dtype, allowed):
        if array.dtype == each.str:
            return each
    raise ValueError(f"`{array.name}` of another type")


def _check(table: EventTable) -> None:
    """Raises ValueError if a column has a wrong length, or a number that refers to nothing."""
    rows, flows, ends = len(table), table.flows, table.args.ends
    columns = [*(getattr(table, name) for name in ROW_COLUMNS), table.args.number]
    lengths = {len(column) for column in columns} | {rows}
    if len(lengths) > 1 or len({len(getattr(flows, name)) for name in FLOW_COLUMNS}) > 1:
        raise ValueError("columns of unequal lengths")
    if rows > 1 and not table.file_order.strides[0]:
        raise ValueError("more events than are there")
    within: list[tuple[NDArray[Any], int, int]] = [
        (table.name, 0, len(table.names)), (table.thread, 0, len(table.threads)),
        (table.inputs, 0, len(table.input_texts)), (table.category, 0, len(Category)),
        (table.forward_thread, ABSENT, NARROW_IDS["forward_thread"] + 1), (table.args.number, 0, len(ends)),
        (flows.kind, 0, len(table.names)), (flows.thread, 0, len(table.threads)),
        (ends, 0, sum(map(len, table.args.blocks)) + 1),
    ]  # fmt: skip
    if any(len(column) and not least <= column.min() <= column.max() < end for column, least, end in within):
        raise ValueError("numbers of nothing")
    if (table.end_ns < table.start_ns).any() or (ends[1:] < ends[:-1]).any():
        raise ValueError("an end before its start")


def _part(columns: Mapping[str, NDArray[Any]], part: str, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    return {name: columns[f"{part}.{name}"] for name in names}


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
