"""Each way in which recorded traces were found to be malformed: what is recovered of it, or how it is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.columns import ABSENT, EventTable
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import decoded, read_trace
from tb_tidy_plugin.trace.reader import read_blocks
from tb_tidy_plugin.words.errors import TraceError
from tests.support.written import event, kineto_text

FIRST, LAST = event("first", 0, 1), event("last", 9, 1)


@dataclass(frozen=True)
class Malformed:
    """One file and what is to be read of it.

    Attributes:
        reports: where it was seen.
        data: of the file.
        names: of the events that are left, in order.
        dropped: how many events are counted as left out, by reason.
    """

    reports: Sequence[str]
    data: bytes
    names: Sequence[str] = ("first", "last")
    dropped: dict[str, int] = field(default_factory=dict)
    partial: bool = False


def named(literal: bytes) -> bytes:
    """A trace whose second event has this for a name, as it stands."""
    return kineto_text([FIRST, event("NAME", 5, 1), LAST]).encode().replace(b'"NAME"', literal)


def timed(ts: str = "5", dur: str = "1", category: str = "cpu_op") -> bytes:
    """A trace whose second event has these times, as they stand."""
    text = kineto_text([FIRST | {"ts": 1}, event("odd", 777, 888, cat=category), LAST])
    return text.replace(": 777", f": {ts}").replace(": 888", f": {dur}").encode()


def with_args(literal: str) -> bytes:
    """A trace whose second event has these args, as they stand."""
    return kineto_text([FIRST, event("odd", 5, 1, args={"x": "ARGS"}), LAST]).replace('"ARGS"', literal).encode()


WHOLE = kineto_text([FIRST, LAST]).encode()
KINETO, TORCH = "pytorch/kineto", "pytorch/pytorch"
IMPOSSIBLE = "negative or impossible duration"

ROWS = {
    "lone backslashes": Malformed(
        [f"{KINETO}#336", f"{KINETO}#617", f"{TORCH}#60187", f"{TORCH}#98432"],
        named(rb'"C:\data\site.py(3): f"'),
        ("first", r"C:\data\site.py(3): f", "last"),
    ),
    "lone backslashes in metadata": Malformed([f"{KINETO}#750"], WHOLE.replace(b'"x.json"', rb'"C:\Users\x.json"')),
    "invalid UTF-8": Malformed(
        [f"{KINETO}#80", f"{TORCH}#64345"], named(b'"caf\xe9"'), ("first", "caf\ufffd", "last")
    ),
    "control characters": Malformed([f"{TORCH}#121219"], named(b'"a\x00b\x1bc"'), ("first", "a b c", "last")),
    "unescaped quotes in a name": Malformed(
        [f"{TORCH}#146900"], named(b'"he said "hi""'), dropped={"unreadable": 1}
    ),
    "unescaped quotes in metadata": Malformed(
        [f"{KINETO}!1459", f"{KINETO}!1508"],
        WHOLE.replace(b'"x.json"', b'"he said /"hi/""'),
        dropped={"unreadable metadata": 1},
    ),
    "inf": Malformed([f"{KINETO}#105"], with_args("inf"), ("first", "odd", "last")),
    "nan": Malformed([f"{KINETO}#105"], with_args("-nan"), ("first", "odd", "last")),
    "bare N/A": Malformed([f"{KINETO}#105"], with_args("N/A"), ("first", "odd", "last")),
    "a list at the top": Malformed([f"{TORCH}#95460"], json.dumps([FIRST, LAST]).encode()),
    "a process id that is not an integer": Malformed(
        [f"{KINETO}#728"], json.dumps([FIRST | {"pid": "python 7"}, LAST | {"pid": "python 7"}]).encode()
    ),
    "a kernel at time zero": Malformed(
        [f"{KINETO}#109"], timed("0", category="kernel"), dropped={"device work at time zero": 1}
    ),
    "a kernel without length": Malformed(
        [f"{KINETO}#109"], timed(dur="0", category="kernel"), ("first", "odd", "last")
    ),
    "a negative duration": Malformed([f"{KINETO}#646", f"{TORCH}#124080"], timed(dur="-3"), dropped={IMPOSSIBLE: 1}),
    "an overflowed duration": Malformed(
        [f"{TORCH}#150131", f"{TORCH}#101861"], timed(dur="18446744073709551.615"), dropped={IMPOSSIBLE: 1}
    ),
    "slices that overlap": Malformed(
        [f"{TORCH}#193440", f"{TORCH}#174555"], timed("9.5", "1000"), ("first", "last", "odd")
    ),
    "a bracket in traceName": Malformed([f"{KINETO}#888"], WHOLE.replace(b'"x.json"', b'"job/a]}],b]"')),
    "integers beyond int64": Malformed(
        ["HolisticTraceAnalysis!324"],
        with_args("18446744073709551616, \"correlation\": 99999999999999999999"),
        ("first", "odd", "last"),
    ),
    "metadata after the events": Malformed(
        ["HolisticTraceAnalysis!226"], WHOLE.replace(b'"traceName"', b'"distributedInfo": {"rank": 3}, "traceName"')
    ),
    "no rank": Malformed(
        ["HolisticTraceAnalysis#17", f"{KINETO}#885"], WHOLE.replace(b'"traceName"', b'"distributedInfo": {}, "x"')
    ),
    "several members of gz": Malformed(["catapult#4633"], gzip.compress(WHOLE[:99]) + gzip.compress(WHOLE[99:])),
    "no category": Malformed(
        ["recordings"], json.dumps([{key: FIRST[key] for key in FIRST if key != "cat"}, LAST]).encode()
    ),
    "devices without names": Malformed(
        ["recordings"], WHOLE.replace(b'"traceName"', b'"deviceProperties": [{"id": 0, "name": ""}, {}], "traceName"')
    ),
    "a thread named twice": Malformed(
        ["recordings"],
        json.dumps(
            [FIRST, *[{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "t"}}] * 2, LAST]
        ).encode(),
    ),
    "ended while it was written": Malformed(
        [f"{KINETO}#700"], WHOLE[: WHOLE.index(b'"last"') + 20], ("first",), {"unreadable": 1}, partial=True
    ),
    "gz ended while it was written": Malformed([f"{KINETO}#700"], gzip.compress(WHOLE)[:-9], partial=True),
}  # fmt: skip
"""By what is wrong; the rows of the table in which the format's traps were collected."""

REFUSED = {
    "nothing at all": (b"", "The file is empty."),
    "gz of nothing": (gzip.compress(b""), "The file contains no text."),
    "only damaged events": (b'{"traceEvents": [{"name": "a "b" c"}, {"name": "a "b""}]}', "(2 are damaged)"),
    "nested without end": (b'{"traceEvents": [{"ph": "X", "args": ' + b"[" * 10**6 + b"]" * 10**6 + b"}]}", "damaged"),
}


def names(table: EventTable) -> list[str]:
    return [table.names[number] for number in table.name]


def portably(path: Path) -> EventTable:
    """Read by the decoder that is there without a compiler."""
    return decoded(read_blocks(path), ChunkDecoder())


@pytest.mark.parametrize("read", [read_trace, portably])
@pytest.mark.parametrize("row", ROWS)
def test_is_read_as_far_as_it_can_be(tmp_path: Path, row: str, read: Callable[[Path], EventTable]) -> None:
    wanted = ROWS[row]
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(wanted.data)
    table = read(path)
    assert names(table) == list(wanted.names)
    assert {reason: count for reason, count in table.dropped.items() if count} == wanted.dropped
    assert (table.partial is not None) is wanted.partial
    assert table.metadata.rank == (3 if row == "metadata after the events" else None)


@pytest.mark.parametrize("read", [read_trace, portably])
@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_with_what_is_wrong(tmp_path: Path, case: str, read: Callable[[Path], EventTable]) -> None:
    data, words = REFUSED[case]
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert words in caught.value.error
    assert caught.value.advice


def test_an_integer_beyond_int64_costs_that_id_only(tmp_path: Path) -> None:
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(ROWS["integers beyond int64"].data)
    assert read_trace(path).correlation.tolist() == [ABSENT] * 3


def test_what_a_plain_export_leaves_half_written_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").write_bytes(WHOLE)
    (tmp_path / "w.2.pt.trace.json.tmp").write_bytes(WHOLE[:50])
    assert [file.span for file in find_traces(tmp_path)] == ["1"]


@pytest.mark.parametrize("time", ["1e300", "-1e300"])
def test_an_instant_at_a_time_that_no_clock_shows_is_dropped(tmp_path: Path, time: str) -> None:
    """Its time would be taken for the start of the recording, and the time since then would leave int64."""
    instant = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 777}
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(kineto_text([FIRST, instant, LAST]).replace(": 777", f": {time}").encode())
    table = read_trace(path)
    assert dict(table.dropped) == {"impossible time": 1}
    assert table.end_ns.max() == 10_000


TEXTS = ("NaN", "nan", "+nan", "-NaN", "NaN123", "sNaN", "-sNaN", "sNaN5", "Infinity", "-inf", "1e999999999", "x", "")


@pytest.mark.parametrize("read", [read_trace, portably])
@pytest.mark.parametrize("key", ["ts", "dur"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_time_in_a_text_that_is_not_a_number_costs_its_event_only(
    tmp_path: Path, text: str, key: str, read: Callable[[Path], EventTable]
) -> None:
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(timed(**{key: json.dumps(text)}))
    table = read(path)
    is_read = (key, text) == ("dur", "")  # empty, as null: without length
    assert names(table) == (["first", "odd", "last"] if is_read else ["first", "last"])
    assert sum(table.dropped.values()) == (not is_read)


@pytest.mark.parametrize("read", [read_trace, portably])
def test_a_time_in_a_text_is_read_as_the_number(tmp_path: Path, read: Callable[[Path], EventTable]) -> None:
    path = tmp_path / "w.pt.trace.json"
    path.write_bytes(timed('"5.125"', '"1.5"'))
    table = read(path)
    assert names(table) == ["first", "odd", "last"]
    assert (table.start_ns + table.origin_ns).tolist() == [1_000, 5_125, 9_000]
