"""EventTable: one trace as columns, each declared here once with its meaning and unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tb_tidy_plugin.system.decoders import decode, decoder_of
from tb_tidy_plugin.system.threads import on_all_cores
from tb_tidy_plugin.trace.compiled_code import CompiledCode
from tb_tidy_plugin.trace.measured_machine import MeasuredMachine
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.settings import Settings
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.errors import TraceError, UnreadError

Times: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]
Ids: TypeAlias = NDArray[np.int64] | NDArray[np.int32]
Grids: TypeAlias = NDArray[np.int64]
"""Three columns: thread blocks along each axis."""
Mask: TypeAlias = NDArray[np.bool_]

ABSENT = -1
"""In every column of ids: the event does not carry that id."""

BLOCK_ROWS = 1 << 15
LONG_ROWS = 1 << 17
"""From this length of a column, what a second thread saves is more than what it takes."""

_Scalar = TypeVar("_Scalar", bound=np.generic)
_Args = TypeVar("_Args", bound=msgspec.Struct)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def repeated(value: int, count: int, dtype: type[np.integer] = np.int64) -> NDArray[Any]:
    """A read-only column of `count` times the same value, which takes no memory."""
    return np.broadcast_to(dtype(value), count)


def taken(column: NDArray[_Scalar], rows: Rows) -> NDArray[_Scalar]:
    """The column's values at `rows`. A repeated column stays a repeated one."""
    if len(column) and column.strides == (0,):
        return np.broadcast_to(column[0], len(rows))
    return column[rows]


def of_each(work: Callable[[_Item], _Result], items: Sequence[_Item], count: int) -> list[_Result]:
    """The results of `work` for `items`, such as columns with `count` entries; for long ones, several at once."""
    return on_all_cores(work, items) if count >= LONG_ROWS else [*map(work, items)]


def blocks_of(count: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices of columns with `count` entries, by default so short that what is made of one fits the cache."""
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def joined_columns(columns: Sequence[NDArray[_Scalar]]) -> NDArray[_Scalar]:
    """The values of `columns`, of which at least one is given. Where all are one value again and again, so are they."""
    if all(len(column) and column.strides == (0,) and column[0] == columns[0][0] for column in columns):
        return np.broadcast_to(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns)


class Category(IntEnum):
    """Kind of a row's event, whatever name Kineto used for it at the time."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    PYTHON = 3
    MEMORY = 4
    RUNTIME = 5
    KERNEL = 6
    COPY = 7
    FILL = 8
    DEVICE_ANNOTATION = 9
    OVERHEAD = 10


HOST_TREE = (Category.OPERATOR, Category.ANNOTATION, Category.PYTHON, Category.MEMORY)
"""Categories that PyTorch's collection code builds its event tree from."""

DEVICE_WORK = (Category.KERNEL, Category.COPY, Category.FILL)
"""Work that a device executes."""


class Thread(msgspec.Struct, frozen=True):
    """A host thread or a device stream: `pid` and `tid` as text, exactly as the trace has them."""

    pid: str
    tid: str


class Flows(msgspec.Struct, frozen=True):
    """Flow arrows (`ph` of `s` and `f`), one entry each, in file order.

    Attributes:
        kind: number of the flow's category in `EventTable.names` (`ac2g`, `fwdbwd`, …).
        is_start: True for `s`.
        flow: the id that joins start and end.
        time_ns: like `EventTable.start_ns`.
        thread: index into `EventTable.threads`.
    """

    kind: Numbers
    is_start: Mask
    flow: Times
    time_ns: Times
    thread: Numbers


class ArgsText(msgspec.Struct, frozen=True):
    """The `args` of all events as JSON text, decoded only when needed.

    Data in columns of the table (ids, and operators' inputs) may be missing here.

    Attributes:
        blocks: text of many args each, as read.
        ends: end of each text, in bytes, as if all blocks were one; it begins one byte after the end of the one before.
            The first one is empty.
        number: number of each event's text; 0 for none.
    """

    blocks: tuple[bytes, ...]
    ends: Times
    number: Numbers

    def text(self, row: int) -> bytes:
        """JSON text of one event's args, `{}` if it has none."""
        [text] = self._texts(np.array([row]))
        return text

    def _texts(self, rows: Rows) -> list[bytes]:
        number, block_starts = self.number[rows], np.cumsum([0, *map(len, self.blocks)])
        before, end = self.ends[number - 1], np.where(number, self.ends[number], -1)
        block = np.searchsorted(block_starts[1:-1], before, side="right")
        places = (block, before + 1 - block_starts[block], end - block_starts[block])
        blocks = self.blocks
        return [
            blocks[block][start:end] if end > 0 else b"{}"
            for block, start, end in zip(*(each.tolist() for each in places), strict=True)
        ]

    def decoded(self, rows: Rows, kind: type[_Args]) -> list[_Args]:
        """The args of `rows` as values of the type `kind`; fields that an event lacks take their default.

        Args of an event that do not fit `kind` (malformed, or of an unexpected type) become all defaults.
        """
        texts = self._texts(rows)
        joined = b"[" + b",".join(texts) + b"]"
        try:
            return decode(joined, list[kind], strict=False)  # type: ignore[valid-type] # made at run time
        except NOT_JSON:
            one = decoder_of(kind, strict=False)
            return [_decoded_or_default(text, one.decode, kind) for text in texts]


def _decoded_or_default(text: bytes, decoded: Callable[[bytes], _Args], default: Callable[[], _Args]) -> _Args:
    try:
        return decoded(text)
    except NOT_JSON:
        return default()


Small = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Amount = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
ShortText = Annotated[str, msgspec.Meta(max_length=1024)]


class DeviceProperties(msgspec.Struct, frozen=True):
    """One entry of `deviceProperties`; only the fields in use."""

    id: Small = ABSENT
    name: ShortText = ""
    totalGlobalMem: Amount = 0  # noqa: N815 - the trace's spelling
    computeMajor: Small | None = None  # noqa: N815 - as above
    computeMinor: Small | None = None  # noqa: N815 - as above
    numSms: Small = 0  # noqa: N815 - as above


class SourceFile(msgspec.Struct, frozen=True):
    """A source file as it was when the job ran, by its name in the trace."""

    file: str
    text: str


class TensorIds(msgspec.Struct, frozen=True):
    """The ids of each input's tensor and of its storage, for one operator; 0 for other inputs.

    Two inputs are the same tensor, or share memory, if their ids are equal. Ids are never reused.
    """

    tensors: tuple[int, ...]
    storages: tuple[int, ...]


class PageFaults(msgspec.Struct, frozen=True):
    """Number of times that steps waited for memory to be mapped.

    Attributes:
        recorded: of each recorded step. usual: of a step that was not recorded, the median.
        each_ns: time that the machine took for one page of 4 kB.
    """

    recorded: tuple[int, ...]
    usual: int
    each_ns: int


class Captured(msgspec.Struct, frozen=True):
    """Data of the capture side file besides calling lines, which are a column.

    Attributes:
        settings: of the job, None if they could not be read there.
        step_ns: median of the steps that were not recorded, None if none was timed.
        faults: of the steps, None if the system counted none.
        workers: number of loaders' workers in the recorded steps, 0 if unknown.
        workers_busy: part of that time in which a worker computed, the mean of all workers; None if unknown.
        sources: the user's own files in the recording.
        tensors: by the operator's `file_order`, if tensors were recorded.
        compiled: data on compiled code, None if nothing was compiled.
        machine: its speed, None if it was not measured.
    """

    settings: Settings | None = None
    step_ns: int | None = None
    faults: PageFaults | None = None
    workers: int = 0
    workers_busy: float | None = None
    sources: tuple[SourceFile, ...] = ()
    tensors: Mapping[int, TensorIds] = msgspec.field(default_factory=dict)
    compiled: CompiledCode | None = None
    machine: MeasuredMachine | None = None


class Metadata(msgspec.Struct, frozen=True):
    """The allow-listed part of the data beside the events; anything else may hold secrets and is dropped.

    Attributes:
        options: which of `record_shapes`, `with_stack`, `profile_memory`, `with_modules`, `with_flops` are stated.
        keys: names of version entries present (`cupti_version`, `hip_runtime_version`, …), which identify the platform.
        rank, world_size, backend: from `distributedInfo`, None if absent.
        inferred_devices: kind, by index, of each device whose activity came from a side file (`trace/external.py`).
        notes: sentences for the user about files beside the trace.
        unread: names of files beside the trace that could not be read this time.
        unknown_events: number of events with a category that is not known.
        base_ns: Unix time in ns that the trace's own times count from.
        captured: data of the capture side file.
    """

    options: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    devices: tuple[DeviceProperties, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    process_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    inferred_devices: Mapping[int, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    unknown_events: int = 0
    base_ns: int = 0
    captured: Captured = msgspec.field(default_factory=Captured)


class Replays(msgspec.Struct, frozen=True):
    """Inserted events of a table for the captures of its replayed graphs (`profile/graphs/replay.py`).

    Attributes:
        work, cause: `file_order` of replayed device work, and of the inserted event that launched it in the capture.
        known: how each pair is known. grid: of each launch in the capture, thread blocks along three axes, else 0.
        first_inserted: `file_order` of the first inserted event; all from there on are inserted.
        known_inserted: how each of them is known.
        sources: files that hold the captures; empty text for the recording itself.
    """

    work: Rows
    cause: Rows
    known: Numbers
    grid: Grids
    first_inserted: int
    known_inserted: Numbers
    sources: tuple[str, ...]


class GraphCapture(msgspec.Struct, frozen=True):
    """The recording of the capture of graphs that another recording replays; `name` is its file's."""

    name: str
    table: EventTable


class ExpertSizes(msgspec.Struct, frozen=True):
    """A mixture of experts.

    Attributes:
        layers: number of layers with experts. experts: of one layer. per_token: number of them that a token goes to.
        expert_bytes: weights of one.
    """

    layers: int
    experts: int
    per_token: int
    expert_bytes: int

    def bytes_read(self, tokens: int) -> int:
        """Weights in bytes that all layers read for this many tokens, each equally likely to go to any expert."""
        touched = self.experts * (1 - (1 - self.per_token / self.experts) ** tokens)
        return round(self.layers * touched * self.expert_bytes)


class EventTable(msgspec.Struct, frozen=True):
    """One trace: one row per complete event or memory instant, sorted by (thread, start, tie-break).

    All columns have one entry per row; `ABSENT` stands for an id that an event does not have. They are read-only: a
    column of one repeated value takes no memory.

    Attributes:
        start_ns, end_ns: relative to `origin_ns`; equal for instants.
        name: number in `names`. category: a `Category`. thread: number in `threads`.
        external_id: joins operators with what they launched. correlation: joins a launch with device work.
        event_index: the profiler's own order (`Ev Idx`), which settles ties.
        sequence: autograd sequence number. forward_thread: the profiler's small id of the forward thread, 0 for none.
        inputs: an operator's arguments, a number in `input_texts`, which are JSON objects; 0 for none.
        python_id, python_parent_id: ids of Python frames; a parent may be absent from the file.
        called_from: line, in its caller's file, that made a Python call; known for few.
        device, stream: where device work ran. bytes: size of a copy or fill.
        file_order: position among all events of the file, to identify an event.
        origin_ns: the trace's start in its own clock, `round(ts * 1000)` of the first event.
        dropped: number of events left out because they are impossible, by reason.
        partial: the file ended early or was damaged; the table holds the readable part.
        graphs: captures found beside the recording, or named by the user.
        replays: their inserted events, None without any.
        memory_snapshot: the allocator's snapshot beside the recording, None if there is none.
        experts: experts by the `config.json` beside the recording, None if there is none.
    """

    start_ns: Times
    end_ns: Times
    name: Numbers
    category: NDArray[np.int8]
    thread: Numbers
    external_id: Ids
    correlation: Ids
    event_index: Ids
    sequence: Ids
    forward_thread: Numbers
    python_id: Ids
    python_parent_id: Ids
    called_from: Numbers
    device: Numbers
    stream: Times
    bytes: Times
    file_order: Numbers
    inputs: Numbers
    args: ArgsText
    flows: Flows
    names: tuple[str, ...]
    input_texts: tuple[str, ...]
    threads: tuple[Thread, ...]
    metadata: Metadata
    origin_ns: int
    dropped: Mapping[str, int]
    partial: str | None
    graphs: tuple[GraphCapture, ...] = ()
    replays: Replays | None = None
    memory_snapshot: AnyPath | None = None
    experts: ExpertSizes | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        """End minus start, per row."""
        return self.end_ns - self.start_ns

    def durations_of(self, rows: Ids) -> Times:
        """End minus start of these rows."""
        return self.end_ns[rows] - self.start_ns[rows]

    def take(self, rows: Rows) -> EventTable:
        names = [name for name in self.__struct_fields__ if name in ROW_COLUMNS]
        given = [*(getattr(self, name) for name in names), self.args.number]
        *columns, number = of_each(lambda column: taken(column, rows), given, len(rows))
        args = replace(self.args, number=number)
        return replace(self, args=args, **dict(zip(names, columns, strict=True)))

    def not_using(self, side_file: str, problem: TraceError) -> EventTable:
        """The table with a note that the side file of this name is not used, and why."""
        unread = (side_file,) if isinstance(problem, UnreadError) else ()
        table = self.noted(f"The side file `{side_file}` is not used. {problem.error} {problem.advice}")
        return replace(table, metadata=replace(table.metadata, unread=(*table.metadata.unread, *unread)))

    def noted(self, note: str) -> EventTable:
        """The table with a further note on files beside the trace."""
        return replace(self, metadata=replace(self.metadata, notes=(*self.metadata.notes, note)))

    def without(self, rows: Rows, reason: str) -> EventTable:
        """The table without `rows`, which count as dropped for this reason."""
        kept = np.ones(len(self), np.bool_)
        kept[rows] = False
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + len(rows)}
        return replace(self.take(np.flatnonzero(kept)), dropped=dropped)

    def is_category(self, categories: Iterable[Category]) -> Mask:
        """Mask of rows in any of `categories`."""
        return among(self.category, [*categories])

    def is_named(self, test: Callable[[str], object]) -> Mask:
        """Mask of rows with a name for which `test` holds; tests each distinct name once."""
        return among(self.name, numbers_where(self.names, test))


ROW_COLUMNS = frozenset(
    {
        "start_ns", "end_ns", "name", "category", "thread", "external_id", "correlation", "event_index", "sequence",
        "forward_thread", "python_id", "python_parent_id", "called_from", "device", "stream", "bytes",
        "file_order", "inputs",
    }
)  # fmt: skip
