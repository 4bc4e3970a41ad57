"""The compiled decoder against the portable one: on real traces, on made-up JSON, and on what is neither."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tb_tidy_plugin.system.compiled import DECODER, is_usable
from tb_tidy_plugin.trace import scanned
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.reader import read_blocks
from tb_tidy_plugin.trace.scanned import fastest_decoder
from tests.fuzz.mutations import KEYS, NUMBERS, STRINGS, VALUES, mutated, seeds
from tests.support.decoders import both
from tests.support.recordings import ROOT, SHARED
from tests.support.written import event, kineto_text, write

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not is_usable(DECODER), reason="the compiled decoder was not built: `tb-tidy doctor` says why"),
]

RECORDED = sorted(SHARED.glob("traces/*/*.pt.trace.json.gz")) + sorted(SHARED.glob("parity/*/*.pt.trace.json.gz"))
SAMPLES = sorted(ROOT.glob("sample_runs/*/**/*.pt.trace.json.gz"))
PLAIN = event("aten::mm", 1.5, 2, args={"Ev Idx": 3})


def one_event(**fields: bytes) -> bytes:
    """A trace of three events whose second one has these fields, as they stand."""
    fields = {"ph": b'"X"', "name": b'"a"', "ts": b"1", "dur": b"1"} | fields
    pairs = b",".join(b'"%b":%b' % (key.replace("_", " ").encode(), value) for key, value in fields.items())
    around = json.dumps(PLAIN).encode()
    return b'{"traceEvents":[' + around + b",{" + pairs + b"}," + around + b"]}"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.skipif(not RECORDED, reason="no shared traces: set TIDY_SHARED to the folder that holds them")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_a_recorded_trace_is_read_the_same_and_nothing_of_it_is_refused(path: Path) -> None:
    _, differing, refused = both(*read_blocks(path))
    assert (differing, refused) == ([], {})


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_a_sample_run_is_read_the_same_and_nothing_of_it_is_refused(path: Path) -> None:
    _, differing, refused = both(*read_blocks(path))
    assert (differing, refused) == ([], {})


def test_without_the_compiled_decoder_the_portable_one_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, DECODER, None)  # as on a machine that had no compiler
    with fastest_decoder() as decoder:
        assert type(decoder) is ChunkDecoder
    assert len(read_trace(write(tmp_path / "t.pt.trace.json", kineto_text([PLAIN])))) == 1


def test_parts_of_a_block_are_scanned_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanned, "SMALLEST_PART", 100)
    events = [event(f"aten::op{number % 7}", number, 1, cat=f"c{number % 3}", tid=number % 5) for number in range(300)]
    text = kineto_text(events).encode()
    table, differing, refused = both(text, threads=3)
    assert isinstance(table, EventTable)
    assert (len(table), differing, refused) == (300, [], {})


class TestValues:
    """Each in each place; what one decoder makes of it the other does, too."""

    @pytest.mark.parametrize("key", ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "unknown"])
    def test_of_an_event(self, key: str) -> None:
        for value in (*NUMBERS, *STRINGS, *VALUES):
            assert both(one_event(**{key: value}))[1] == [], value

    @pytest.mark.parametrize("key", ["External id", "external id", "Fwd thread id", "Python parent id", "stream", "x"])
    def test_of_args(self, key: str) -> None:
        for value in (*NUMBERS, *STRINGS, *VALUES):
            args = b'{"Ev Idx":4,"%b":%b,"bytes":"8"}' % (key.encode(), value)
            assert both(one_event(args=args))[1] == [], value

    @pytest.mark.parametrize("value", [b"0x0", b"stream 7", b"", b"7", b"-7", b"1e2", b"07", b"7.0"])
    def test_quoted_ids_are_what_the_portable_decoder_makes_of_them(self, value: bytes) -> None:
        table, differing, _ = both(one_event(args=b'{"stream":"%b"}' % value))
        assert isinstance(table, EventTable)
        assert differing == []

    def test_of_two_equal_keys_the_last_one_counts(self) -> None:
        fields = (
            b'"ph":"i","ph":"X","name":"a","name":"b","ts":5,"ts":1,"args":{"stream":1},"args":{"stream":2,"stream":3}'
        )
        table, differing, refused = both(b'{"traceEvents":[{' + fields + b"}]}")
        assert isinstance(table, EventTable)
        assert (differing, refused) == ([], {})
        assert (table.names[table.name[0]], table.origin_ns, table.stream.tolist()) == ("b", 1000, [3])

    def test_of_two_objects_of_args_nothing_of_the_first_one_counts(self) -> None:
        fields = b'"ph":"X","ts":1,"args":{"stream":1,"Input Dims":[[1]]},"args":{"Ev Idx":2}'
        table, differing, refused = both(b'{"traceEvents":[{' + fields + b"}]}")
        assert isinstance(table, EventTable)
        assert (differing, refused) == ([], {})
        assert (table.event_index.tolist(), table.stream.tolist(), table.inputs.tolist()) == ([2], [-1], [0])

    @pytest.mark.parametrize(
        "value", [b'"' + b"x" * length + end for length in range(20) for end in (b'"', b'\\n"', b'\x1f"', b'\xc3\xa9"')]
    )
    def test_strings_of_every_length_end_where_they_end(self, value: bytes) -> None:
        assert both(one_event(name=value))[1] == []


class TestInputs:
    """The compiled decoder expects each call's inputs to be those of last time; what it expects it may not invent."""

    MM = b'"Input type":["float"],"Input Dims":[[2,3]]'

    @pytest.mark.parametrize(
        "args",
        [
            b'"Ev Idx":1,%b,"stream":2',
            b'%b,"Input Strides":[[1]]',
            b'%b,"Concrete Inputs":[""],"Ev Idx":1,"Input type":["c10::Half"]',
            b'"Input Strides":[[1]],"stream":2,%b',
            b"%b ",
            b"%b,%b",
            b"%b0",
            b"%b,",
            b"%b]",
        ],
    )
    def test_the_expected_ones_may_be_followed_by_anything(self, args: bytes) -> None:
        usual = b'{"ph":"X","name":"aten::mm","ts":%d,"args":{%b}}'
        odd = args.replace(b"%b", self.MM)
        events = [usual % (time, odd if time in {5, 8} else self.MM) for time in range(10)]
        assert both(b'{"traceEvents":[' + b",".join(events) + b"]}")[1] == []

    @pytest.mark.parametrize("last", [b"1", b"12", b"1.5", b'"1"', b"[1]", b"true"])
    def test_a_number_that_begins_as_the_expected_one_is_another(self, last: bytes) -> None:
        events = [b'{"ph":"X","ts":1,"args":{"Input Dims":%b}}' % value for value in (b"1", b"1", b"1", last, b"1")]
        table, differing, _ = both(b'{"traceEvents":[' + b",".join(events) + b"]}")
        assert isinstance(table, EventTable)
        assert differing == []
        texts = [table.input_texts[number] for number in table.inputs.tolist()]
        assert texts == [f'{{"Input Dims":{value.decode()}}}' for value in (b"1", b"1", b"1", last, b"1")]

    def test_what_is_the_same_call_after_call_has_one_text_whatever_stands_between_its_keys(self) -> None:
        together = b'{"ph":"X","ts":1,"args":{"Ev Idx":%d,"Input Dims":[[4]],"Input type":["float"]}}'
        apart = b'{"ph":"X","ts":1,"args":{"Input type":["float"],"Ev Idx":%d,"Input Dims":[[4]]}}'
        events = [(together, apart)[number % 2] % number for number in range(8)]
        table, differing, refused = both(b'{"traceEvents":[' + b",".join(events) + b"]}")
        assert isinstance(table, EventTable)
        assert (differing, refused) == ([], {})
        assert table.event_index.tolist() == list(range(8))
        assert table.inputs.tolist() == [1] * 8
        assert table.input_texts == ("{}", '{"Input Dims":[[4]],"Input type":["float"]}')


class TestRefused:
    """The compiled decoder says why it leaves a piece to the other one, and the table is the same."""

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"ts": b"1e3"}, "a number written in an unusual way"),
            ({"dur": b"1.0005"}, "a number written in an unusual way"),
            ({"pid": b"null"}, "a field of an unusual type"),
            ({"ts": b"3074457345618258"}, "a time that no clock shows"),
            ({"args": b'{"x":' + b"[" * 64 + b"]" * 64 + b"}"}, "lists nested too deeply"),
            ({"\\u0074s": b"1"}, "a key with escapes"),
            ({"unknown": b"nul"}, "malformed or cut inside an event"),
        ],
    )
    def test_with_a_reason(self, fields: dict[str, bytes], reason: str) -> None:
        _, differing, refused = both(one_event(**fields))
        assert differing == []
        assert reason in refused

    def test_names_made_to_collide(self) -> None:
        names = colliding()
        table, differing, refused = both(json.dumps([event(name, 1, 1) for name in names]).encode())
        assert isinstance(table, EventTable)
        assert (len(table), differing) == (len(names), [])
        assert refused == {"strings that collide": 1}


def colliding() -> list[str]:
    """Names that have one and the same hash in the scanner's table: its mixing, solved for their last eight bytes."""
    factor = 0x9E3779B97F4A7C15
    wanted = np.uint64(3 * pow(factor, -1, 1 << 64) % (1 << 64))  # 3: for others none of them is plain text
    make = np.random.default_rng(1)
    first = make.integers(ord("a"), ord("z") + 1, (4_000_000, 8), np.uint8)
    first[:, 0] = ord('"')
    length = np.uint64(17)  # with both quotes
    mixed = (first.view(np.uint64)[:, 0] ^ length) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(32)
    last = (mixed ^ wanted).view(np.uint8).reshape(-1, 8)
    is_plain = ((last >= ord(" ")) & (last <= ord("~")) & (last != ord('"')) & (last != ord("\\"))).all(axis=1)
    return [bytes(row[1:]).decode() for row in np.hstack([first, last])[is_plain][:800]]


class TestAnything:
    """Hypothesis makes JSON of any layout and order; then the same, broken."""

    NUMBER = st.sampled_from(NUMBERS) | st.integers(0, 1 << 62).map(lambda value: str(value).encode())
    TIME = st.tuples(st.integers(0, 1 << 52), st.integers(0, 999)).map(lambda time: b"%d.%03d" % time) | NUMBER
    STRING = st.sampled_from(STRINGS) | st.text(max_size=20).map(lambda text: json.dumps(text).encode())
    SCALAR = NUMBER | STRING | st.sampled_from(VALUES)
    KEY = st.sampled_from(KEYS) | STRING
    SPACE = st.sampled_from([b"", b" ", b"\n    ", b"\t\r\n"])

    @staticmethod
    def objects(keys: st.SearchStrategy[bytes], values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
        pairs = st.tuples(keys, TestAnything.SPACE, values).map(
            lambda pair: b"%b%b:%b%b" % (pair[0], pair[1], pair[1], pair[2])
        )
        return st.tuples(st.lists(pairs, max_size=6), TestAnything.SPACE).map(
            lambda made: b"{" + made[1] + (made[1] + b"," + made[1]).join(made[0]) + made[1] + b"}"
        )

    NESTED = st.recursive(
        SCALAR, lambda inner: st.lists(inner, max_size=3).map(lambda values: b"[" + b", ".join(values) + b"]")
    )

    @given(st.data())
    def test_made_up_events(self, data: st.DataObject) -> None:
        args = self.objects(self.KEY, self.NESTED)
        fields = self.objects(self.KEY, self.TIME | self.STRING | args | self.NESTED)
        events = data.draw(st.lists(fields, max_size=5))
        space = data.draw(self.SPACE)
        text = b'{"traceEvents":' + space + b"[" + space + (space + b"," + space).join(events) + space + b"]}"
        assert both(text)[1] == []

    @given(st.integers(0, 1 << 32))
    @example(0)
    def test_broken_traces(self, seed: int) -> None:
        make = random.Random(seed)
        text = mutated(make.choice(WRITTEN), WRITTEN, make)
        size = make.choice((50, 300, len(text) + 1))
        assert both(*(text[start : start + size] for start in range(0, len(text), size)))[1] == []


WRITTEN = seeds(recorded=False)


class TestFound:
    """What fuzzing found."""

    def test_an_odd_id_beside_a_key_that_is_no_text_costs_only_itself(self) -> None:
        table, differing, _ = both(one_event(args=b'{"External id":5,"Rec\xefrd":0,"Ev Idx":"]"}'))
        assert isinstance(table, EventTable)
        assert (sorted(table.external_id.tolist()), differing) == ([-1, -1, 5], [])

    @pytest.mark.parametrize("depth", [61, 2_000, 100_000])
    def test_lists_without_end_cost_one_event(self, depth: int) -> None:
        table, differing, _ = both(one_event(args=b'{"x":' + b"[" * depth + b"]" * depth + b"}"))
        assert isinstance(table, EventTable)
        assert (len(table), differing) == (3 if depth < 1_000 else 2, [])


def pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """All of its pieces."""
    return ((start, end) for start in range(len(text) + 1) for end in range(start, len(text) + 1))


def test_no_piece_of_a_text_is_read_beyond_its_end() -> None:
    from tb_tidy_plugin.trace._scan import RefusedError, Scanner

    text = b' {"ph":"X","ts":1.5,"args":{"Ev Idx":"7","x":[true,null,"\\u0041"]}} ,{}'
    scanner, taken = Scanner(), set()
    for start, end in pieces(text):
        try:
            taken.add((text[start:end].strip(), scanner.columns([(text, start, end)])[0]))
        except RefusedError:
            continue
    whole, first = text.strip(), text[: text.rindex(b",")].strip()
    args = first[first.index(b"{", 1) : -1]  # an object as well as any, and no event
    assert taken == {(whole, 1), (first, 1), (args, 0), (b"{}", 0), (b"", 0)}


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (2, 1), (0, 4)])
def test_a_piece_that_is_not_in_the_text_is_an_error(start: int, end: int) -> None:
    from tb_tidy_plugin.trace._scan import Scanner

    with pytest.raises(ValueError, match="no such piece"):
        Scanner().columns([(b"{} ", start, end)])
