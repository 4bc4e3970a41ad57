"""A trace with the device work of its side file written into it, for viewers that do not know side files.

The user's text is copied byte by byte, and the new events follow the last of its own. They have Kineto's format:
`kernel` with its launch, an `ac2g` arrow between the two, and names for the new lane
(https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp). The format itself:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO

import msgspec

from tb_tidy_plugin.system.decoders import decode, decoder_of
from tb_tidy_plugin.system.files import drafted
from tb_tidy_plugin.trace.columns import EventTable, Thread
from tb_tidy_plugin.trace.document import Ending, as_list, event_pieces
from tb_tidy_plugin.trace.external import LAUNCH, STREAM, Activity, args_of, first_free_id, lane_of
from tb_tidy_plugin.trace.reader import read_blocks
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.side_file import ExternalDevice, MemorySample
from tb_tidy_plugin.words.errors import TidyError, TraceError

LANES_LAST = 5_000_000  # Kineto's own number for lanes of devices
EMPTY_LIST = b'"traceEvents":[]'
KEPT_TAIL = 1 << 16
ARROW = "ac2g"


class _Anything(msgspec.Struct):
    """An event without any fields read."""


class _Clock(msgspec.Struct):
    base_ns: int = msgspec.field(name="baseTimeNanoseconds", default=0)


class EventList(msgspec.Struct, frozen=True):
    """End of the list of events, and origin of its clock.

    Attributes:
        end: position of the closing bracket in the text, in bytes.
        base_ns: Unix time of `ts` 0, in ns.
    """

    end: int
    base_ns: int


def event_list_of(trace: Path) -> EventList:
    """End and clock of the list of events in `trace`.

    Raises:
        TraceError: the file ends early, so that nothing can be added to it.
    """
    text = _Counted(read_blocks(trace))
    decoder = decoder_of(list[_Anything])
    pieces = event_pieces(text, lambda pieces: decoder.decode(as_list(pieces)), lambda _: [])
    ending = _last(pieces)
    if ending.cut_short is not None:
        advice = "Record again; the job may have ended while the trace was written."
        raise TraceError(f"{ending.cut_short}, so nothing can be added to it.", advice)
    footer = ending.metadata.partition(EMPTY_LIST)[2] if ending.metadata else text.after_last_bracket()
    return EventList(text.length - len(footer) - 1, _base_ns(ending.metadata))


def _last(pieces: Iterator[object]) -> Ending:
    while True:
        try:
            next(pieces)
        except StopIteration as stop:
            ending: Ending = stop.value
            return ending


def _base_ns(metadata: bytes) -> int:
    try:
        return decode(metadata, _Clock).base_ns
    except NOT_JSON:
        return 0


class _Counted(Iterator[bytes]):
    """Blocks of text, with their length so far and the last part of them."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._tail = b""
        self.length = 0

    def __next__(self) -> bytes:
        block = next(self._blocks)
        self.length += len(block)
        self._tail = (self._tail + block)[-KEPT_TAIL:]
        return block

    def after_last_bracket(self) -> bytes:
        """The text after the last closing bracket: only space, if the trace is a bare list."""
        return self._tail.rpartition(b"]")[2]


# The new events


def device_events(
    table: EventTable, activity: Activity, memory: Sequence[MemorySample], base_ns: int
) -> Iterator[dict[str, object]]:
    """The events to add: names of the lane, launches, kernels, arrows, and memory in use.

    Args:
        table: the trace as read, without the activity.
        activity: the activity inferred for it.
        memory: samples; `within` selects those in the recording.
        base_ns: see `EventList`.
    """
    lane = _place(lane_of(table, activity.device))
    yield from _lane_names(activity.device, lane | {"ts": _time(table, 0)})
    shared: dict[str, object] = {"device": activity.device.index, "stream": STREAM, **args_of(activity.device)}
    columns = (activity.operators.tolist(), activity.start_ns.tolist(), activity.end_ns.tolist())
    for number, (row, start, end) in enumerate(zip(*columns, strict=True), first_free_id(table)):
        ids = {"External id": int(table.external_id[row]), "correlation": number}
        host = _place(table.threads[table.thread[row]]) | {"ts": _time(table, int(table.start_ns[row]))}
        device = lane | {"ts": _time(table, start)}
        kernel = {"name": table.names[table.name[row]], "dur": _us(end - start), "args": ids | shared}
        arrow = {"cat": ARROW, "name": ARROW, "id": number}
        yield {"ph": "X", "cat": "privateuse1_runtime", "name": LAUNCH, **host, "dur": 0, "args": ids}
        yield {"ph": "s", **arrow, **host}
        yield {"ph": "X", "cat": "kernel", **kernel, **device}
        yield {"ph": "f", **arrow, **device, "bp": "e"}
    counter = f"{activity.device.kind}:{activity.device.index} memory in use"
    for sample in memory:
        at = lane | {"ts": _us(sample.time_ns - base_ns)}
        yield {"ph": "C", "name": counter, **at, "args": {"bytes": sample.bytes}}


def samples_during(
    table: EventTable, activity: Activity, memory: Sequence[MemorySample], base_ns: int
) -> list[MemorySample]:
    """The plausible samples taken during the recording, in order of time."""
    start = base_ns + table.origin_ns
    end = start + max(int(table.end_ns.max(initial=0)), int(activity.end_ns.max(initial=0)))
    inside = [sample for sample in memory if start <= sample.time_ns <= end and sample.bytes >= 0]
    return sorted(inside, key=lambda sample: sample.time_ns)


def _lane_names(device: ExternalDevice, place: dict[str, object]) -> Iterator[dict[str, object]]:
    lane = {"ph": "M", **place}
    label = f"{device.kind} {device.index}"
    process = " ".join(filter(None, [label, device.name, "(inferred)"]))
    yield {**lane, "name": "process_name", "args": {"name": process}}
    yield {**lane, "name": "process_labels", "args": {"labels": label}}
    yield {**lane, "name": "process_sort_index", "args": {"sort_index": LANES_LAST + device.index}}
    yield {**lane, "name": "thread_name", "args": {"name": f"stream {STREAM} (start times inferred)"}}
    yield {**lane, "name": "thread_sort_index", "args": {"sort_index": STREAM}}


def _place(thread: Thread) -> dict[str, object]:
    """`pid` and `tid` as numbers if the trace has numbers."""
    return {"pid": _number_or_text(thread.pid), "tid": _number_or_text(thread.tid)}


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else text


def _time(table: EventTable, time_ns: int) -> Decimal:
    """A time of the table as the trace's `ts`."""
    return _us(table.origin_ns + time_ns)


def _us(time_ns: int) -> Decimal:
    """Exact µs; float64 is too coarse for absolute times."""
    return Decimal(time_ns).scaleb(-3)


# The file


def write_merged(trace: Path, events: Iterable[dict[str, object]], at: int, out: Path) -> None:
    """Writes `trace` with `events` inserted at byte `at` of its text, after other events; gz if `out` is named so.

    Completely or not at all: the text is written beside `out` and renamed.

    Raises:
        TidyError: the trace changed meanwhile, or `out` cannot be written.
    """
    added = _in_lines(events)
    try:
        with drafted(out) as draft, draft.open("wb") as file:
            if out.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
                    _copy(read_blocks(trace), added, at, packed)
            else:
                _copy(read_blocks(trace), added, at, file)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{out}` could not be written: {reason}.", "Choose another path with `-o`.") from None


def _copy(blocks: Iterator[bytes], added: Iterator[bytes], at: int, sink: IO[bytes] | gzip.GzipFile) -> None:
    done = 0
    for block in blocks:
        cut = at - done
        if 0 <= cut < len(block):
            if block[cut : cut + 1] != b"]":
                raise TraceError("The trace changed while it was read.", "Try again when it is complete.")
            sink.write(block[:cut])
            for text in added:
                sink.write(text)
            sink.write(block[cut:])
        else:
            sink.write(block)
        done += len(block)
    if done <= at:
        raise TraceError("The trace changed while it was read.", "Try again when it is complete.")


def _in_lines(events: Iterable[dict[str, object]]) -> Iterator[bytes]:
    """The events in Kineto's layout, which readers, including ours, cut into pieces quickly."""
    encoder = msgspec.json.Encoder(decimal_format="number")
    for event in events:
        yield b",\n  {\n    " + encoder.encode(event)[1:-1] + b"\n  }"
    yield b"\n  "
