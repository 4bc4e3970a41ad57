"""Where others parse, the compiled decoder compares with what it expects: what is nearly that is read as it is."""

from __future__ import annotations

import json

import pytest

from tb_tidy_plugin.system.compiled import DECODER, is_usable
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.columns import ABSENT, EventTable
from tb_tidy_plugin.trace.document import TextPiece
from tb_tidy_plugin.trace.scanned import ScanningDecoder, fastest_decoder
from tests.support.decoders import both
from tests.support.written import event, kineto_text

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not is_usable(DECODER), reason="the compiled decoder was not built: `tb-tidy doctor` says why"),
]

USUAL = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":%d,"dur":3,"args":{"Ev Idx":%d,"x":0}}'


def with_odd(odd: bytes, times: int = 12, at: tuple[int, ...] = (5, 8)) -> bytes:
    """A trace that repeats one event, but for those in the places `at`."""
    events = [odd if time in at else USUAL % (time, time) for time in range(times)]
    return b'{"traceEvents":[' + b",".join(events) + b"]}"


def read(text: bytes) -> EventTable:
    """What both decoders make of it, which is the same; nothing of it is refused."""
    table, differing, refused = both(text)
    assert isinstance(table, EventTable)
    assert (differing, refused) == ([], {})
    return table


class TestNearlyAsExpected:
    """Each of these begins as the usual event does."""

    @pytest.mark.parametrize(
        "odd",
        [
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":22,"ts":5,"dur":3}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":5,"dur":3,"pid":7}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":5,"dur":3,"tid":"7"}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":5,"name":"later","dur":3}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":5,"cat":"kernel","ph":"i"}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"ts":5,"tid":2}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm2","pid":1,"tid":2,"ts":5}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"dur":5,"ts":3}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2}',
            b'{"ts":5,"ph":"X"}',
            b'{"ph":"X","ts":5,"args":{}}',
            b'{"ph":"X","ts":5,"args":{"Ev Idx":7}}',
            b'{"ph":"X","ts":5,"args":{"x":0,"Ev Idx":7,"y":[1, {"Ev Idx":2}],"x":1}}',
            b'{"ph":"X","ts":5,"args":{"x":0},"args":{"Ev Idx":7,"y":1}}',
        ],
    )
    def test_another_event_is_read_as_it_is_and_so_are_those_around_it(self, odd: bytes) -> None:
        table = read(with_odd(odd))
        usual = [row for row, place in enumerate(table.file_order.tolist()) if place not in {5, 8}]
        assert [table.event_index[row] for row in usual] == [table.file_order[row] for row in usual]
        assert {(table.names[table.name[row]], table.threads[table.thread[row]].tid) for row in usual} == {
            ("aten::mm", "2")
        }

    @pytest.mark.parametrize(
        "none", [b"{}", b'{"ph":"","ts":7}', b'{"id":9,"ts":5,"args":{"Ev Idx":70,"device":1,"x":1}}']
    )
    def test_what_has_no_phase_is_no_event_and_leaves_nothing(self, none: bytes) -> None:
        table = read(with_odd(none))
        assert table.event_index.tolist() == [0, 1, 2, 3, 4, 6, 7, 9, 10, 11]
        assert table.file_order.tolist() == list(range(10))
        assert set(table.device.tolist()) == {ABSENT}
        assert not any(table.dropped.values())

    @pytest.mark.parametrize(
        "broken",
        [
            b'{"ph":"X","ts":5,"args":{"Ev Idx":5{"x":0}}',
            b'{"ph":"X","ts":5,"args":{"Ev Idx":5,"x":0,}}',
            b'{"ph":"X","ts":5,"args":{,"Ev Idx":5,"x":0}}',
            b'{"ph":"X","ts":5,"args":{"Ev Idx":5,"x":0},}',
            b'{"ph":"X","ts":5{"dur":3}}',
            b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":,"dur":3}',
        ],
    )
    def test_malformed_text_is_never_taken_for_what_it_nearly_is(self, broken: bytes) -> None:
        table, differing, refused = both(with_odd(broken))
        assert isinstance(table, EventTable)
        assert (differing, len(table), refused != {}) == ([], 10, True)
        assert table.dropped == {"unreadable": 2}


class TestTexts:
    """Texts that a scanner knows are told once, whatever becomes of the blocks between."""

    def test_numbers_hold_from_block_to_block(self) -> None:
        events = [event(f"op{number % 5}", number, 1, tid=number % 3, args={"Ev Idx": number}) for number in range(60)]
        text = kineto_text(events).encode()
        table, differing, refused = both(*(text[start : start + 700] for start in range(0, len(text), 700)))
        assert isinstance(table, EventTable)
        assert (differing, refused, len(table)) == ([], {}, 60)
        assert {table.names[name] for name in table.name.tolist()} == {f"op{number}" for number in range(5)}

    def test_and_after_a_piece_that_was_refused(self) -> None:
        usual = [event("a", 1, 1), event("b", 2, 1)]
        pieces = [
            ", ".join(map(json.dumps, events)).encode()
            for events in (usual, [event("c", 3, 1), event("refused", 4e20, 1)], [event("d", 5, 1), *usual])
        ]
        with fastest_decoder(1) as decoder:
            assert isinstance(decoder, ScanningDecoder)
            portable = ChunkDecoder()
            for piece in pieces:
                (ours,), (theirs,) = (each.decode([TextPiece(piece, 0, len(piece))]) for each in (decoder, portable))
                assert ours.name.tolist() == theirs.name.tolist()
            assert decoder.names.values() == portable.names.values() == ("a", "b", "c", "refused", "d")
            assert sum(decoder.refused.values()) == 1

    def test_a_text_of_args_is_kept_once_and_without_what_is_in_columns(self) -> None:
        events = [
            event("a", number, 1, args={"Ev Idx": number, "Input Dims": [[number]], "Record function id": 0})
            for number in range(50)
        ]
        text = ", ".join(map(json.dumps, events)).encode()
        with fastest_decoder(1) as decoder:
            (chunk,) = decoder.decode([TextPiece(text, 0, len(text))])
        assert chunk.args == b',{"Record function id": 0}'
        assert chunk.args_number.tolist() == [1] * 50
        assert chunk.ids["event_index"].tolist() == list(range(50))
