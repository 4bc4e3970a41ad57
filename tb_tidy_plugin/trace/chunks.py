"""One piece of the list of events, decoded by msgspec and converted to columns at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice, repeat
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.system.decoders import decode, decoder_of
from tb_tidy_plugin.trace.columns import ABSENT, Numbers, Times
from tb_tidy_plugin.trace.columns import Ids as IdColumn
from tb_tidy_plugin.trace.document import SLICE_BYTES, TextPiece, as_list, parts_of
from tb_tidy_plugin.trace.metadata import NOTHING
from tb_tidy_plugin.trace.recover import NOT_JSON, event_texts, mended
from tb_tidy_plugin.trace.strings import NumberTable

EXACT_FLOAT_US = float(1 << 43)
"""Up to 101 days, float64 is close enough to a time in µs with three decimals to round to the right ns."""

LATEST_US = float((1 << 63) // 3000)  # until 2067: the difference of two such times still fits int64 ns
LONGEST_US = EXACT_FLOAT_US  # a longer duration is an overflow, see https://github.com/pytorch/kineto/issues/646
UNREADABLE = "unreadable"
AT_ONCE = 1 << 12  # damaged events
NO_TIME = -(1 << 63)
"""The start of an event without a time, or with an impossible one."""

NO_ARGS = msgspec.Raw(b"{}")
INT64_MAX = (1 << 63) - 1
INT32_MAX = (1 << 31) - 1


class TraceEvent(msgspec.Struct, gc=False):
    """One entry of `traceEvents`, times as float64."""

    ph: str = ""
    cat: str | None = ""
    name: str | None = ""
    pid: int | str | None = 0
    tid: int | str | None = 0
    ts: float = math.nan
    dur: float = 0.0
    id: int | str | None = 0
    args: msgspec.Raw = NO_ARGS


class ExactEvent(TraceEvent, gc=False):
    """The same with a decimal time, for absolute times that float64 cannot represent."""

    ts: Decimal = Decimal("inf")  # type: ignore[assignment] # the only difference


class InputTexts(msgspec.Struct, gc=False):
    """An operator's arguments, undecoded: few of the texts are distinct."""

    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)


INPUT_FIELDS = InputTexts.__struct_fields__
INPUT_KEYS = tuple(each.encode_name.encode() for each in msgspec.structs.fields(InputTexts))
NO_INPUTS = b"{}"
"""`as_one` of an event without inputs; its number is 0."""


def as_one(texts: Iterable[msgspec.Raw]) -> bytes:
    """Texts in the order of `INPUT_FIELDS` in one JSON object, without missing ones."""
    pairs = zip(INPUT_KEYS, texts, strict=True)
    return b"{" + b",".join([b'"%b":%b' % (key, bytes(text)) for key, text in pairs if text]) + b"}"


class EventArgs(msgspec.Struct, gc=False):
    """The few args needed of every event, in Kineto's order; all others stay text."""

    external_id: int = msgspec.field(name="External id", default=ABSENT)
    sequence: int = msgspec.field(name="Sequence number", default=ABSENT)
    forward_thread: int = msgspec.field(name="Fwd thread id", default=0)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    python_parent_id: int | None = msgspec.field(name="Python parent id", default=ABSENT)
    python_id: int = msgspec.field(name="Python id", default=ABSENT)
    event_index: int = msgspec.field(name="Ev Idx", default=ABSENT)
    device: int = ABSENT
    stream: int = ABSENT
    correlation: int = ABSENT
    bytes: int = ABSENT
    external_id_2021: int = msgspec.field(name="external id", default=ABSENT)


ID_FIELDS = ("external_id", "correlation", "event_index", "sequence", "forward_thread", "python_id", "python_parent_id",
             "device", "stream", "bytes")  # fmt: skip
SECOND_SPELLING = "external_id_2021"
USUAL = EventArgs()
IdTexts = msgspec.defstruct(
    "IdTexts",
    [
        (field.name, msgspec.Raw, msgspec.field(name=field.encode_name, default=NOTHING))
        for field in msgspec.structs.fields(EventArgs)
    ],
)
"""The same args, undecoded: if one of them is invalid, the others can still be used."""

_EventList: TypeAlias = Sequence[TraceEvent]
_Columns: TypeAlias = dict[str, tuple[Any, ...]]

_Kind: TypeAlias = tuple[str, str | None, str | None, int | str | None, int | str | None]


class Chunk(msgspec.Struct, frozen=True):
    """Columns of one piece: one entry per entry of `traceEvents` with a phase, in file order.

    Attributes:
        phase, category, name, thread: numbers in the decoder's string tables; thread in its list of (pid, tid).
        inputs: numbers of operators' arguments.
        start_ns, duration_ns: duration is -1 if it is impossible.
        ids: one column per name in `ID_FIELDS`, of int64 or int32. flow: the event's `id`.
        args: texts of args, each preceded by a byte that is not part of it; args_ends: where each ends.
        args_number: number of each event's text, from 1; 0 for none.
    """

    phase: Numbers
    category: Numbers
    name: Numbers
    thread: Numbers
    inputs: Numbers
    start_ns: Times
    duration_ns: Times
    flow: Times
    ids: dict[str, IdColumn]
    args: bytes
    args_ends: Numbers
    args_number: Numbers


class _Kinds(dict[_Kind, int]):
    """Numbers for kinds and places of events: thousands of events share one, so that its parts are looked up once."""

    def __init__(self, tables: Sequence[NumberTable[Any]]) -> None:
        super().__init__()
        self._phases, self._categories, self._names, self._threads = tables
        self._parts = np.empty((0, 4), np.int32)
        self._new: list[tuple[int, int, int, int]] = []

    def __missing__(self, kind: _Kind) -> int:
        phase, category, name, *thread = kind
        self._new.append((
            self._phases.number(phase),
            self._categories.number(category),
            self._names.number(name),
            self._threads.number(tuple(thread)),
        ))  # fmt: skip
        number = self[kind] = len(self)
        return number

    def columns(self, events: _EventList) -> tuple[Numbers, ...]:
        """Numbers of phases, categories, names and threads."""
        kinds_of = [(each.ph, each.cat, each.name, each.pid, each.tid) for each in events]
        kinds = np.fromiter(map(self.__getitem__, kinds_of), np.int32, len(events))
        if self._new:
            self._parts = np.concatenate([self._parts, np.array(self._new, np.int32)])
            self._new.clear()
        return tuple(part[kinds] for part in self._parts.T)


class ChunkDecoder:
    """Turns text into chunks and keeps the string tables that all chunks of one trace share.

    This is the portable decoder, which needs no compiler, and the interface of the compiled one (`scanned.py`).
    """

    def __init__(self) -> None:
        self.phases = NumberTable[str | None]()
        self.categories = NumberTable[str | None]()
        self.names = NumberTable[str | None]()
        self.threads = NumberTable[tuple[object, object]]()
        self.inputs = NumberTable[bytes]()
        self.inputs.number(NO_INPUTS)
        self.flow_names = NumberTable[str]()
        self.dropped: Counter[str] = Counter()
        self._kinds = _Kinds((self.phases, self.categories, self.names, self.threads))
        self._inputs: dict[bytes, int] = {}
        self._plain = decoder_of(list[TraceEvent])
        self._exact = decoder_of(list[ExactEvent])
        self._alone = decoder_of(ExactEvent)
        self._needs_exact = False
        self._ids = decoder_of(list[EventArgs], strict=False)

    def decode(self, pieces: Sequence[TextPiece]) -> list[Chunk]:
        """Columns of the events in consecutive `pieces`, in one chunk or more.

        Raises:
            MsgspecError, UnicodeDecodeError, RecursionError: `NOT_JSON`; the text is something else.
        """
        size = pieces[-1].end - pieces[-1].start
        return [self._chunk(as_list(part)) for part in parts_of(pieces, max(1, size // SLICE_BYTES))]

    def _chunk(self, text: bytes) -> Chunk:
        if not self._needs_exact:
            events: _EventList = _with_phase(self._plain.decode(text))
            times = np.array([event.ts for event in events], np.float64)
            if np.fmax.reduce(np.abs(times), initial=0) < EXACT_FLOAT_US:  # ignores missing times
                return self._columns(events, _nanoseconds(times))
            self._needs_exact = True
        events = _with_phase(self._exact.decode(text))
        return self._columns(events, _exact_nanoseconds(events))

    def recover(self, text: bytes) -> list[Chunk]:
        """Columns of the events in damaged text; unreadable ones count as dropped."""
        whole = mended(text).strip(b", \t\r\n")
        try:
            return self.decode([TextPiece(whole, 0, len(whole))])
        except NOT_JSON:
            return list(self._one_by_one(event_texts(whole)))

    def _one_by_one(self, texts: Iterator[bytes]) -> Iterator[Chunk]:
        while some := list(islice(texts, AT_ONCE)):
            events = _with_phase(event for text in some if (event := self._single(text)) is not None)
            yield self._columns(events, _exact_nanoseconds(events))

    def _single(self, text: bytes) -> TraceEvent | None:
        try:
            return self._alone.decode(text)
        except NOT_JSON:
            pass
        try:
            return _tolerant(decode(text, dict[str, msgspec.Raw]))
        except (*NOT_JSON, TypeError, ValueError, ArithmeticError):
            self.dropped[UNREADABLE] += 1
            return None

    def _columns(self, events: _EventList, start_ns: Times) -> Chunk:
        count = len(events)
        texts = [event.args for event in events]
        args = b"[" + b",".join(texts)
        ids = self._ids_of(args + b"]", texts)
        phase, category, name, thread = self._kinds.columns(events)
        return Chunk(
            phase=phase,
            category=category,
            name=name,
            thread=thread,
            inputs=self._inputs_of(ids),
            start_ns=start_ns,
            duration_ns=_durations(np.array([event.dur for event in events], np.float64)),
            flow=self._flows(events),
            ids=_id_columns(ids),
            args=args if texts else b"",
            args_ends=np.cumsum(np.fromiter(map(len, texts), np.int32, count) + 1, dtype=np.int32),
            args_number=np.arange(1, count + 1, dtype=np.int32),
        )

    def _ids_of(self, joined: bytes, texts: list[msgspec.Raw]) -> _Columns:
        try:
            ids = self._ids.decode(joined)
        except NOT_JSON:  # one invalid value in millions: decode the invalid event's ids one by one
            ids = [_tolerant_ids(bytes(text)) for text in texts]
        columns = zip(*map(msgspec.structs.astuple, ids), strict=True) if ids else repeat(())
        return dict(zip(EventArgs.__struct_fields__, columns, strict=False))

    def _inputs_of(self, ids: _Columns) -> Numbers:
        """Numbers of the inputs, looked up by their raw texts; only new texts are normalised."""
        columns = [ids[field] for field in INPUT_FIELDS]
        texts = list(map(b",".join, zip(*columns, strict=True)))
        try:
            return np.fromiter(map(self._inputs.__getitem__, texts), np.int32, len(texts))
        except KeyError:
            for text, parts in zip(texts, zip(*columns, strict=True), strict=True):
                if text not in self._inputs:
                    self._inputs[text] = self.inputs.number(as_one(parts))
        return np.fromiter(map(self._inputs.__getitem__, texts), np.int32, len(texts))

    def _flows(self, events: _EventList) -> Times:
        ids, names = [event.id for event in events], self.flow_names
        if not set(map(type, ids)) <= {int}:
            ids = [each if type(each) is int else -2 - names.number(str(each)) for each in ids]
        return _int_column(ids)


def _with_phase(events: Iterable[TraceEvent]) -> _EventList:
    """The real events: some writers end their lists with `{}`, and a small text could hold millions of them."""
    return [event for event in events if event.ph]


def _nanoseconds(times_us: NDArray[np.float64]) -> Times:
    """Integer ns of times in µs, exact to the third decimal; `NO_TIME` for other values."""
    possible = np.abs(times_us) < LATEST_US
    times = np.where(possible, times_us, 0)
    whole = np.floor(times)
    nanoseconds: Times = whole.astype(np.int64) * 1000 + np.rint((times - whole) * 1000).astype(np.int64)
    nanoseconds[~possible] = NO_TIME
    return nanoseconds


def _exact_nanoseconds(events: _EventList) -> Times:
    """The same for decimal times, which are exact at any size.

    msgspec also reads them from texts, and a decimal NaN cannot be compared, unlike a float's.
    """
    limit = int(LATEST_US)
    times: list[Decimal] = [event.ts for event in events]  # type: ignore[misc] # those of `ExactEvent`
    return np.array(
        [round(time * 1000) if time.is_finite() and -limit < time < limit else NO_TIME for time in times], np.int64
    )


def _durations(durations: NDArray[np.float64]) -> Times:
    """Integer ns of durations in µs; -1 for impossible ones."""
    possible = (durations >= 0) & (durations < LONGEST_US)
    nanoseconds: Times = np.rint(np.where(possible, durations, 0) * 1000).astype(np.int64)
    nanoseconds[~possible] = -1
    return nanoseconds


def _id_columns(ids: _Columns) -> dict[str, IdColumn]:
    """Columns by `ID_FIELDS`; an id that no event has takes no memory, small ones take half."""
    columns = [ids[field] for field in (*ID_FIELDS, SECOND_SPELLING)]
    count = len(columns[0])
    try:
        values = np.fromiter(chain.from_iterable(columns), np.int64, len(columns) * count).reshape(len(columns), count)
    except (TypeError, OverflowError):
        values = np.stack([_int_column(column) for column in columns])
    values[0] = np.where(values[-1] != ABSENT, values[-1], values[0])  # `external_id`, in either spelling
    low, high = values.min(axis=1, initial=INT64_MAX).tolist(), values.max(axis=1, initial=-INT64_MAX).tolist()
    return {
        field: _narrowed(values[at], getattr(USUAL, field), low[at], high[at]) for at, field in enumerate(ID_FIELDS)
    }


def _narrowed(column: Times, usual: int, low: int, high: int) -> IdColumn:
    """`column`, whose values are between `low` and `high`, in as little memory as possible."""
    if low == high == usual or not len(column):
        return np.broadcast_to(np.int32(usual), len(column))
    return column.astype(np.int32) if max(-low, high) <= INT32_MAX else column.copy()


def _int_column(values: Sequence[Any]) -> Times:
    """A column of ints and nulls; `ABSENT` for values outside int64."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, OverflowError):  # a null, or beyond int64
        return np.array([ABSENT if value is None or abs(value) > INT64_MAX else value for value in values], np.int64)


def _tolerant(fields: dict[str, msgspec.Raw]) -> TraceEvent:
    """An event whose fields have unexpected types; raises if its time is invalid."""
    plain: dict[str, Any] = {key: decode(raw) for key, raw in fields.items() if key != "args"}
    return ExactEvent(
        ph=str(plain.get("ph", "")),
        cat=str(plain.get("cat") or ""),
        name=str(plain.get("name") or ""),
        pid=str(plain.get("pid", "")),
        tid=str(plain.get("tid", "")),
        ts=Decimal(str(plain.get("ts"))),
        dur=float(plain.get("dur") or 0),
        id=str(plain.get("id", "")),
        args=fields.get("args", NO_ARGS),
    )


def _tolerant_ids(text: bytes) -> EventArgs:
    ids = EventArgs()
    try:
        texts = decode(text or b"{}", IdTexts)
    except NOT_JSON:
        return ids
    for name in INPUT_FIELDS:
        setattr(ids, name, getattr(texts, name))
    for name in (*ID_FIELDS, SECOND_SPELLING):
        try:
            setattr(ids, name, decode(getattr(texts, name), int, strict=False))
        except NOT_JSON:
            continue
    return ids
