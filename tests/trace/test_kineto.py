"""Reading traces: every era's form, exact times, and what is kept of malformed files."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.trace import document, reader
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable
from tb_tidy_plugin.trace.document import TextPiece
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.scanned import fastest_decoder
from tb_tidy_plugin.words.errors import TraceError
from tests.support.written import event, kineto_text, write


def read(tmp_path: Path, text: str | bytes, name: str = "t.pt.trace.json") -> EventTable:
    return read_trace(write(tmp_path / name, text))


def names(table: EventTable) -> list[str]:
    return [table.names[number] for number in table.name]


class TestForms:
    def test_reads_kinetos_own_layout(self, tmp_path: Path) -> None:
        table = read(tmp_path, kineto_text([event("aten::mm", 10.5, 3), event("aten::add", 20, 1.25)]))
        assert names(table) == ["aten::mm", "aten::add"]
        assert table.start_ns.tolist() == [0, 9_500]
        assert table.duration_ns.tolist() == [3_000, 1_250]
        assert table.origin_ns == 10_500

    @pytest.mark.parametrize("indent", [None, 0, 1, 4])
    def test_reads_any_layout_of_the_same_document(self, tmp_path: Path, indent: int | None) -> None:
        events = [event(f"aten::op{number}", number, 0.5, args={"a": [{"b": {}}, {"c": "},{"}]}) for number in range(9)]
        document_ = {"a": {"x": 1}, "traceEvents": events, "traceName": "a]b},{"}
        separators = (",", ":") if indent is None else None
        table = read(tmp_path, json.dumps(document_, indent=indent, separators=separators))
        assert names(table) == [f"aten::op{number}" for number in range(9)]
        assert table.partial is None

    def test_reads_a_bare_list(self, tmp_path: Path) -> None:
        table = read(tmp_path, json.dumps([event("aten::mm", 1, 1)]))
        assert names(table) == ["aten::mm"]
        assert table.metadata.rank is None

    def test_reads_metadata_after_the_events(self, tmp_path: Path) -> None:
        footer = '"distributedInfo": {"rank": 3, "world_size": 8}, "record_shapes": 1'
        metadata = read(tmp_path, kineto_text([event("a", 0, 1)], footer)).metadata
        assert (metadata.rank, metadata.world_size) == (3, 8)
        assert metadata.options == {"record_shapes"}

    def test_keeps_nothing_that_is_not_on_the_list(self, tmp_path: Path) -> None:
        table = read(tmp_path, kineto_text([event("a", 0, 1)], '"env": {"TOKEN": "hunter2"}, "host_name": "box"'))
        assert "hunter2" not in repr(table)
        assert "box" not in repr(table)

    def test_reads_gz_by_content_whatever_the_name_says(self, tmp_path: Path) -> None:
        path = tmp_path / "t.pt.trace.json"
        path.write_bytes(gzip.compress(kineto_text([event("aten::mm", 1, 1)]).encode()))
        assert names(read_trace(path)) == ["aten::mm"]

    def test_reads_all_members_of_a_gz(self, tmp_path: Path) -> None:
        text = kineto_text([event(f"aten::op{number}", number, 1) for number in range(50)]).encode()
        path = tmp_path / "t.pt.trace.json.gz"
        path.write_bytes(gzip.compress(text[:700]) + gzip.compress(text[700:1500]) + gzip.compress(text[1500:]))
        assert len(read_trace(path)) == 50

    def test_reads_a_byte_order_mark(self, tmp_path: Path) -> None:
        assert len(read(tmp_path, b"\xef\xbb\xbf" + kineto_text([event("a", 0, 1)]).encode())) == 1

    def test_reads_the_form_of_2021(self, tmp_path: Path) -> None:
        events = [
            event("ProfilerStep#1", 1_623_143_089_861_123, 50, cat="Operator", tid="25738"),
            event("aten::mm", 1_623_143_089_861_130, 20, cat="Operator", tid=25738, args={"external id": 7}),
            event("cudaLaunchKernel", 1_623_143_089_861_131, 2, cat="Runtime", tid="25738", args={"correlation": 3}),
            event("sgemm", 1_623_143_089_861_140, 9, cat="Kernel", pid=0, tid="stream 7", args={"correlation": 3}),
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 25738, "ts": 1_623_143_089_861_132},
        ]
        table = read(tmp_path, json.dumps({"traceEvents": events}))
        kinds = {name: Category(int(kind)) for name, kind in zip(names(table), table.category, strict=True)}
        assert kinds == {
            "ProfilerStep#1": Category.ANNOTATION,
            "aten::mm": Category.OPERATOR,
            "[memory]": Category.MEMORY,
            "cudaLaunchKernel": Category.RUNTIME,
            "sgemm": Category.KERNEL,
        }
        assert len(set(table.thread[:4].tolist())) == 1, "tid 25738 and '25738' are one thread"
        assert table.external_id[names(table).index("aten::mm")] == 7
        assert table.origin_ns == 1_623_143_089_861_123_000

    def test_leaves_out_the_profilers_own_span_and_markers(self, tmp_path: Path) -> None:
        events = [
            event("PyTorch Profiler (0)", 0, 500, cat="Trace", pid="Spans"),
            event("aten::mm", 100, 1),
            {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 600, "s": "g"},
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
        ]
        table = read(tmp_path, kineto_text(events))
        assert names(table) == ["aten::mm"]
        assert table.origin_ns == 100_000

    def test_reads_ids(self, tmp_path: Path) -> None:
        args = {
            "External id": 5, "Ev Idx": 9, "Sequence number": 11, "Fwd thread id": 2, "Python id": 3,
            "Python parent id": None, "correlation": 77, "device": 1, "stream": 20, "bytes": 64,
        }  # fmt: skip
        table = read(tmp_path, kineto_text([event("a", 0, 1, args=args)]))
        found = {field: int(getattr(table, field)[0]) for field in (
            "external_id", "event_index", "sequence", "forward_thread", "python_id", "python_parent_id", "correlation",
            "device", "stream", "bytes")}  # fmt: skip
        assert found == {
            "external_id": 5, "event_index": 9, "sequence": 11, "forward_thread": 2, "python_id": 3,
            "python_parent_id": ABSENT, "correlation": 77, "device": 1, "stream": 20, "bytes": 64,
        }  # fmt: skip

    def test_an_event_may_lack_everything_but_its_time(self, tmp_path: Path) -> None:
        table = read(tmp_path, '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2}, {"ph": "X", "name": "a", "ts": 3}]}')
        assert table.duration_ns.tolist() == [2_000, 0]
        assert table.category.tolist() == [Category.OTHER, Category.OTHER]


class TestTimes:
    @pytest.mark.parametrize("digits", ["4373606872218.554", "8796093022207.999", "0.001", "3743411230047.485"])
    def test_relative_times_are_exact(self, tmp_path: Path, digits: str) -> None:
        table = read(tmp_path, '{"traceEvents": [{"ph": "X", "name": "a", "ts": ' + digits + ', "dur": 1}]}')
        assert table.origin_ns == int(Decimal(digits) * 1000)

    @pytest.mark.parametrize("digits", ["1706112000000123.457", "1706112000000123.001", "1706112000000123", "1.5e15"])
    def test_absolute_times_are_exact_beyond_what_float64_holds(self, tmp_path: Path, digits: str) -> None:
        table = read(tmp_path, '{"traceEvents": [{"ph": "X", "name": "a", "ts": ' + digits + ', "dur": 1}]}')
        assert table.origin_ns == int(Decimal(digits) * 1000)

    @given(st.lists(st.integers(0, (1 << 43) * 1000 - 1), min_size=1, max_size=20))
    def test_every_time_up_to_101_days_is_exact(self, times_ns: list[int]) -> None:
        text = ",".join(f'{{"ph":"X","ts":{time // 1000}.{time % 1000:03d}}}' for time in times_ns).encode()
        with fastest_decoder() as fastest:
            for decoder in (ChunkDecoder(), fastest):
                (chunk,) = decoder.decode([TextPiece(text, 0, len(text))])
                assert chunk.start_ns.tolist() == times_ns

    def test_sorted_by_thread_start_and_the_profilers_own_order(self, tmp_path: Path) -> None:
        events = [
            event("second", 5, 1, args={"Ev Idx": 8}),
            event("first", 5, 9, args={"Ev Idx": 3}),
            event("other thread", 1, 1, tid=2, args={"Ev Idx": 1}),
            event("start", 0, 1, args={"Ev Idx": 0}),
        ]
        assert names(read(tmp_path, kineto_text(events))) == ["start", "first", "second", "other thread"]

    def test_without_that_order_longer_events_come_first(self, tmp_path: Path) -> None:
        assert names(read(tmp_path, kineto_text([event("inner", 5, 1), event("outer", 5, 9)]))) == ["outer", "inner"]


class TestBlocks:
    """Blocks of a few bytes cut everywhere; the answer must not depend on them."""

    @pytest.mark.parametrize("size", [7, 64, 333, 4096])
    @pytest.mark.parametrize("layout", ["kineto", "minified"])
    def test_block_size_does_not_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, layout: str
    ) -> None:
        make = random.Random(1)
        events = [
            event(f"aten::op{number % 7}", number, make.random(), args={"Ev Idx": number, "x": [{"y": 1}, {"z": "}]"}]})
            for number in range(120)
        ]
        footer = '"traceName": "a]},{", "record_shapes": 1'
        text = kineto_text(events, footer)
        if layout == "minified":
            text = json.dumps(json.loads(text), separators=(",", ":"))
        expected = read(tmp_path, text, "whole.json")
        monkeypatch.setattr(reader, "BLOCK_BYTES", size)
        table = read(tmp_path, text, "pieces.json")
        assert names(table) == names(expected)
        assert table.start_ns.tolist() == expected.start_ns.tolist()
        assert table.event_index.tolist() == list(range(120))
        assert table.metadata.options == {"record_shapes"}
        assert table.partial is None

    def test_an_event_that_never_ends_is_given_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document, "MAX_EVENT_BYTES", 1000)
        monkeypatch.setattr(reader, "BLOCK_BYTES", 500)
        text = (
            kineto_text([event("a", 0, 1)])[: -len('\n  ],\n  "traceName": "x.json"\n}\n')]
            + ',\n  {"name": "'
            + "x" * 9000
        )
        table = read(tmp_path, text)
        assert names(table) == ["a"]
        assert table.partial


MALFORMED: dict[str, tuple[str | bytes, str]] = {
    "lone backslash": ('"C:\\data\\site.py(3): f"', "C:\\data\\site.py(3): f"),
    "control characters": ('"a\x01b\nc"', "a b c"),
    "invalid UTF-8": (b'"caf\xe9"', "caf\ufffd"),
}


class TestMalformed:
    @pytest.mark.parametrize("case", MALFORMED)
    def test_names_are_mended(self, tmp_path: Path, case: str) -> None:
        written, expected = MALFORMED[case]
        text = kineto_text([event("first", 0, 1), event("NAME", 5, 1), event("last", 9, 1)]).encode()
        data = written.encode() if isinstance(written, str) else written
        table = read(tmp_path, text.replace(b'"NAME"', data))
        assert names(table) == ["first", expected, "last"]
        assert table.partial is None
        assert not table.dropped

    def test_unescaped_quotes_cost_one_event(self, tmp_path: Path) -> None:
        text = kineto_text([event("first", 0, 1), event("NAME", 5, 1), event("last", 9, 1)])
        table = read(tmp_path, text.replace('"NAME"', '"he said "hi""'))
        assert names(table) == ["first", "last"]
        assert table.dropped == {"unreadable": 1}

    @pytest.mark.parametrize("word", ["nan", "-inf", "Infinity", "N/A", "NaN"])
    def test_bare_words_are_missing_values(self, tmp_path: Path, word: str) -> None:
        text = kineto_text([event("first", 0, 1), event("k", 5, 1, args={"occupancy": "W", "stream": 3})])
        table = read(tmp_path, text.replace('"W"', word))
        assert names(table) == ["first", "k"]
        assert table.stream.tolist() == [ABSENT, 3]

    @pytest.mark.parametrize("duration", [-5, -1e-3, 1.8446744073709552e19, 1e300])
    def test_impossible_durations_are_left_out_and_counted(self, tmp_path: Path, duration: float) -> None:
        table = read(tmp_path, kineto_text([event("a", 0, 1), event("b", 1, duration)]))
        assert names(table) == ["a"]
        assert table.dropped == {"negative or impossible duration": 1}

    def test_device_work_at_time_zero_is_left_out_of_the_range(self, tmp_path: Path) -> None:
        table = read(tmp_path, kineto_text([event("a", 5_000, 1), event("k", 0, 1, cat="kernel")]))
        assert table.origin_ns == 5_000_000
        assert table.dropped == {"device work at time zero": 1}

    def test_ids_beyond_int64_cost_only_themselves(self, tmp_path: Path) -> None:
        table = read(tmp_path, kineto_text([event("a", 0, 1, args={"External id": 1 << 70, "Ev Idx": 4})]))
        assert (table.external_id.tolist(), table.event_index.tolist()) == ([ABSENT], [4])

    def test_ids_of_a_wrong_type_cost_only_themselves(self, tmp_path: Path) -> None:
        events = [event("a", 0, 1, args={"stream": "seven", "Ev Idx": 4}), event("b", 1, 1, args={"stream": "7"})]
        assert read(tmp_path, kineto_text(events)).stream.tolist() == [ABSENT, 7]

    def test_a_time_of_a_wrong_type_costs_one_event(self, tmp_path: Path) -> None:
        table = read(
            tmp_path, kineto_text([event("a", 0, 1), event("b", 0, 1) | {"ts": "soon"}, event("c", 2, 1, pid=1.5)])
        )
        assert names(table) == ["a", "c"]
        assert table.dropped == {"unreadable": 1}

    @pytest.mark.parametrize("damage", [{"dur": {}}, {"dur": []}, {"ts": None}, {"ts": {}}, {"ts": "1e999999999"}])
    def test_a_field_of_a_wrong_kind_costs_one_event(self, tmp_path: Path, damage: dict[str, object]) -> None:
        table = read(tmp_path, kineto_text([event("a", 1, 1), event("b", 1, 1) | damage, event("c", 2, 1)]))
        assert set(names(table)) - {"b"} == {"a", "c"}

    @pytest.mark.parametrize("digits", ["1e999999999", "-1e999999999", "1e400", "9.3e18", "1" * 30])
    def test_a_time_beyond_all_clocks_costs_one_event(self, tmp_path: Path, digits: str) -> None:
        text = kineto_text([event("a", 5, 1), event("b", 777, 1), event("c", 7, 1)]).replace("777", digits)
        table = read(tmp_path, text)
        assert names(table) == ["a", "c"]
        assert table.origin_ns == 5_000
        assert sum(table.dropped.values()) == 1

    def test_broken_metadata_costs_only_itself(self, tmp_path: Path) -> None:
        table = read(tmp_path, kineto_text([event("a", 0, 1)], '"note": "he said /"hi/""'))
        assert names(table) == ["a"]
        assert table.dropped == {"unreadable metadata": 1}


class TestCutShort:
    @pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.99])
    def test_events_before_the_end_are_kept(self, tmp_path: Path, keep: float) -> None:
        text = kineto_text([event(f"aten::op{number}", number, 1) for number in range(100)])
        cut = text[: int(len(text) * keep)]
        table = read(tmp_path, cut)
        whole_events = cut.count("\n  },\n  {")
        assert whole_events <= len(table) <= whole_events + 1
        assert names(table) == [f"aten::op{number}" for number in range(len(table))]
        assert table.partial

    def test_a_gz_cut_short_gives_what_could_be_inflated(self, tmp_path: Path) -> None:
        make = random.Random(3)
        text = kineto_text([event(f"aten::op{make.getrandbits(60)}", number, 1) for number in range(3000)])
        data = gzip.compress(text.encode())
        path = tmp_path / "t.pt.trace.json.gz"
        path.write_bytes(data[: len(data) // 2])
        table = read_trace(path)
        assert 500 < len(table) < 3000
        assert "gz" in (table.partial or "")

    def test_a_damaged_gz_gives_what_comes_before_the_damage(self, tmp_path: Path) -> None:
        make = random.Random(3)
        text = kineto_text([event(f"aten::op{make.getrandbits(60)}", number, 1) for number in range(60_000)])
        data = bytearray(gzip.compress(text.encode(), 1))
        middle = len(data) * 3 // 4
        data[middle : middle + 64] = bytes(64)
        path = tmp_path / "t.pt.trace.json.gz"
        path.write_bytes(data)
        table = read_trace(path)
        assert 0 < len(table) < 60_000
        assert table.partial


NO_TRACE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "white space": (b"  \n", "no text"),
    "not JSON": (b"MZ\x90\x00garbage", "not JSON"),
    "JSON of something else": (b'{"a": 1}', "no `traceEvents`"),
    "no events": (b'{"traceEvents": []}', "no events"),
    "only metadata events": (b'{"traceEvents": [{"ph": "M", "name": "x", "ts": 0}]}', "no events"),
    "broken before the events": (b'{"schemaVersion": 1, "tra', "broken before"),
    "an empty list": (b"[]", "no events"),
    "an unfinished empty list": (b'{"traceEvents": [', "before the first event"),
    "gz header only": (gzip.compress(b"{}")[:11], "ends early"),
    "gz of nothing": (gzip.compress(b""), "no text"),
}


class TestNoTrace:
    @pytest.mark.parametrize("case", NO_TRACE)
    def test_says_what_is_wrong_and_what_to_do(self, tmp_path: Path, case: str) -> None:
        data, reason = NO_TRACE[case]
        path = tmp_path / "t.pt.trace.json"
        path.write_bytes(data)
        with pytest.raises(TraceError) as caught:
            read_trace(path)
        assert reason in caught.value.error
        assert caught.value.advice.endswith(".")

    def test_a_vanished_file(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError, match="no longer there"):
            read_trace(tmp_path / "gone.json")

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError, match="could not be read"):
            read_trace(tmp_path)
