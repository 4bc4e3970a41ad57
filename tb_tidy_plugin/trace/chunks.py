"""One piece of the list of events, decoded by msgspec and turned into columns at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.trace.columns import ABSENT, Numbers, Times
from tb_tidy_plugin.trace.document import as_list
from tb_tidy_plugin.trace.recover import NOT_JSON, event_texts, mended
from tb_tidy_plugin.trace.strings import NumberTable

EXACT_FLOAT_US = float(1 << 43)
"""Up to 101 days, float64 is close enough to a time in µs with three decimals to round to the right ns."""

LATEST_US = float((1 << 63) // 3000)  # until 2067: the time between two such times still fits int64 ns
LONGEST_US = EXACT_FLOAT_US  # a longer duration is an overflow, see https://github.com/pytorch/kineto/issues/646
UNREADABLE = "unreadable"
NO_TIME = -(1 << 63)
"""The start of an event whose time no clock can show."""

NO_ARGS = msgspec.Raw(b"")
INT64_MAX = (1 << 63) - 1


class Event(msgspec.Struct, gc=False):
    """One entry of `traceEvents`, times as float64."""

    ph: str = ""
    cat: str | None = ""
    name: str | None = ""
    pid: int | str | None = 0
    tid: int | str | None = 0
    ts: float = 0.0
    dur: float = 0.0
    id: int | str | None = 0
    args: msgspec.Raw = NO_ARGS


class ExactEvent(Event, gc=False):
    """The same with a decimal time, for absolute times that float64 cannot hold."""

    ts: Decimal = Decimal(0)  # type: ignore[assignment]


class InputTexts(msgspec.Struct, gc=False, kw_only=True):
    """What an operator was called with, undecoded: few of its texts are distinct."""

    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NO_ARGS)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default=NO_ARGS)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NO_ARGS)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NO_ARGS)

    def as_one(self) -> bytes:
        """All of them in one JSON object, in this order."""
        texts = zip(INPUT_KEYS, (self.dims, self.dtypes, self.strides, self.concrete), strict=True)
        return b"{" + b",".join([b'"%b":%b' % (key, bytes(text)) for key, text in texts if text]) + b"}"


INPUT_KEYS = tuple(each.encode_name.encode() for each in msgspec.structs.fields(InputTexts))
NO_INPUTS = b"{}"
"""`InputTexts.as_one` of an event without any; its number is 0."""


class Ids(InputTexts, gc=False, kw_only=True):
    """The few args that every event is asked for; all others stay text."""

    external_id: int = msgspec.field(name="External id", default=ABSENT)
    correlation: int = ABSENT
    event_index: int = msgspec.field(name="Ev Idx", default=ABSENT)
    sequence: int = msgspec.field(name="Sequence number", default=ABSENT)
    forward_thread: int = msgspec.field(name="Fwd thread id", default=0)
    python_id: int = msgspec.field(name="Python id", default=ABSENT)
    python_parent_id: int | None = msgspec.field(name="Python parent id", default=ABSENT)
    device: int = ABSENT
    stream: int = ABSENT
    bytes: int = ABSENT
    external_id_2021: int = msgspec.field(name="external id", default=ABSENT)


ID_FIELDS = Ids.__struct_fields__[len(INPUT_KEYS) : -1]  # without the second spelling
IdTexts = msgspec.defstruct(
    "IdTexts",
    [
        (field.name, msgspec.Raw, msgspec.field(name=field.encode_name, default=NO_ARGS))
        for field in msgspec.structs.fields(Ids)
    ],
)
"""The same, not decoded: where one of them is odd, the others still can be."""

EventList: TypeAlias = Sequence[Event]

PHASE, CATEGORY, NAME = attrgetter("ph"), attrgetter("cat"), attrgetter("name")
THREAD = attrgetter("pid", "tid")
ID_VALUES = attrgetter(*ID_FIELDS)
NO_IDS = dict.fromkeys(ID_FIELDS, np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Columns of one piece: one entry per entry of `traceEvents`, whatever its phase, in file order.

    Attributes:
        phase, category, name, thread: numbers in the decoder's string tables; thread in its list of (pid, tid).
        inputs: numbers of what operators were called with.
        start_ns, duration_ns: duration is -1 where it cannot be right.
        ids: one column per name in `ID_FIELDS`, of int64 or int32. flow: the event's `id`.
        args: text of all args; args_end: where each event's args end, they begin where the one's before end.
    """

    phase: Numbers
    category: Numbers
    name: Numbers
    thread: Numbers
    inputs: Numbers
    start_ns: Times
    duration_ns: Times
    flow: Times
    ids: dict[str, Times]
    args: bytes
    args_end: Numbers


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
        self._plain = msgspec.json.Decoder(list[Event])
        self._exact = msgspec.json.Decoder(list[ExactEvent])
        self._needs_exact = False
        self._ids = msgspec.json.Decoder(list[Ids], strict=False)

    def decode(self, text: bytes, end: int) -> list[Chunk]:
        """Columns of the events in `text[:end]`, which are separated by commas, in one piece or more.

        Raises:
            MsgspecError, UnicodeDecodeError, RecursionError: `NOT_JSON`; the text is something else.
        """
        whole = as_list(text, end)
        if not self._needs_exact:
            events: EventList = self._plain.decode(whole)
            times = np.array([event.ts for event in events], np.float64)
            if np.abs(times).max(initial=0) < EXACT_FLOAT_US:
                return [self._columns(events, _nanoseconds(times))]
            self._needs_exact = True
        events = self._exact.decode(whole)
        return [self._columns(events, _exact_nanoseconds(events))]

    def recover(self, text: bytes) -> list[Chunk]:
        """Columns of the events in damaged text; what cannot be read is counted as dropped."""
        whole = mended(text).strip(b", \t\r\n")
        try:
            return self.decode(whole, len(whole))
        except NOT_JSON:
            events = [event for piece in event_texts(whole) if (event := self._single(piece)) is not None]
        return [self._columns(events, _exact_nanoseconds(events))]

    def _single(self, text: bytes) -> Event | None:
        try:
            return msgspec.json.decode(text, type=ExactEvent)
        except NOT_JSON:
            pass
        try:
            return _tolerant(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
        except (*NOT_JSON, TypeError, ValueError, ArithmeticError):
            self.dropped[UNREADABLE] += 1
            return None

    def _columns(self, events: EventList, start_ns: Times) -> Chunk:
        count = len(events)
        texts = [bytes(event.args) for event in events]
        ids = self._ids_of(texts)
        columns = zip(*map(ID_VALUES, ids), strict=True)
        return Chunk(
            phase=self.phases.numbers(map(PHASE, events), count),
            category=self.categories.numbers(map(CATEGORY, events), count),
            name=self.names.numbers(map(NAME, events), count),
            thread=self.threads.numbers(map(THREAD, events), count),
            inputs=self.inputs.numbers(map(InputTexts.as_one, ids), count),
            start_ns=start_ns,
            duration_ns=_durations([event.dur for event in events]),
            flow=self._flows(events),
            ids=dict(zip(ID_FIELDS, map(_int_column, columns), strict=True)) if ids else NO_IDS,
            args=b"".join(texts),
            args_end=np.cumsum([len(text) for text in texts], dtype=np.int32),
        )

    def _ids_of(self, texts: list[bytes]) -> list[Ids]:
        try:
            ids = self._ids.decode(b"[" + b",".join([text or b"{}" for text in texts]) + b"]")
        except NOT_JSON:  # one odd value in millions: take the odd event's ids one by one
            ids = [_tolerant_ids(text) for text in texts]
        for entry in ids:
            if entry.external_id_2021 != ABSENT:
                entry.external_id = entry.external_id_2021
        return ids

    def _flows(self, events: EventList) -> Times:
        names = self.flow_names
        return _int_column([
            event.id if type(event.id) is int else -2 - names.number(str(event.id)) for event in events
        ])  # fmt: skip


def _nanoseconds(times_us: NDArray[np.float64]) -> Times:
    """Integer ns of times in µs, exactly as written up to the third decimal; `NO_TIME` for what is no time."""
    possible = np.abs(times_us) < LATEST_US
    times = np.where(possible, times_us, 0)
    whole = np.floor(times)
    nanoseconds: Times = whole.astype(np.int64) * 1000 + np.rint((times - whole) * 1000).astype(np.int64)
    nanoseconds[~possible] = NO_TIME
    return nanoseconds


def _exact_nanoseconds(events: EventList) -> Times:
    """The same for decimal times, which lose nothing however large they are."""
    limit = int(LATEST_US)
    return np.array([round(event.ts * 1000) if -limit < event.ts < limit else NO_TIME for event in events], np.int64)


def _durations(durations_us: Sequence[float]) -> Times:
    durations = np.array(durations_us, np.float64)
    possible = (durations >= 0) & (durations < LONGEST_US)
    nanoseconds: Times = np.rint(np.where(possible, durations, 0) * 1000).astype(np.int64)
    nanoseconds[~possible] = -1
    return nanoseconds


def _int_column(values: Iterable[int | None]) -> Times:
    values = list(values)
    try:
        return np.array(values, np.int64)
    except (TypeError, OverflowError):  # a null, or beyond int64
        return np.array([ABSENT if value is None or abs(value) > INT64_MAX else value for value in values], np.int64)


def _tolerant(fields: dict[str, msgspec.Raw]) -> Event:
    """An event whose fields have odd types; raises where its time is none."""
    plain = {key: msgspec.json.decode(raw) for key, raw in fields.items() if key != "args"}
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


def _tolerant_ids(text: bytes) -> Ids:
    ids = Ids()
    try:
        texts = msgspec.json.decode(text or b"{}", type=IdTexts)
    except NOT_JSON:
        return ids
    for name in InputTexts.__struct_fields__:
        setattr(ids, name, getattr(texts, name))
    for name in (*ID_FIELDS, "external_id_2021"):
        try:
            setattr(ids, name, msgspec.json.decode(getattr(texts, name), type=int, strict=False))
        except NOT_JSON:
            continue
    return ids
