"""Side files of captures, as untrusted as traces: what is wrong with one is said, and never costs the trace."""

from __future__ import annotations

import gzip
import json
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace import capture_file
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import EventTable, TensorIds
from tb_tidy_plugin.trace.compiled_code import CompiledCode
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.settings import Settings

BASE_NS = 1_790_000_000_000_000_000
FRAME, CALL = "train.py(3): step", "<built-in method relu of type object at 0x1>"


def event(
    name: str, start: float, dur: float, cat: str = "python_function", tid: int = 1, **args: object
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": dur, "args": args}


EVENTS = [
    event(FRAME, 10.5, 90) | {"args": {"Python id": 1, "Python parent id": None}},
    event(CALL, 20.125, 10) | {"args": {"Python id": 2, "Python parent id": 1}},
    event("aten::relu", 21, 5, "cpu_op"),
]


def trace_in(folder: Path, events: list[dict[str, Any]] = EVENTS, name: str = "w.1.pt.trace.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": events}))
    return path


def key(name: str) -> int:
    return zlib.crc32(name.encode())


def calls(*entries: tuple[int, str, int]) -> dict[str, Any]:
    starts = [0, *(BASE_NS + start for start, _, _ in entries)]
    return {
        "start_ns": [after - before for before, after in pairwise(starts)],
        "name": [key(name) for _, name, _ in entries],
        "line": [line for _, _, line in entries],
    }


def beside(trace: Path, content: object) -> Path:
    path = trace.with_name(trace.name + ".tidy.json.gz")
    text = content if isinstance(content, bytes) else json.dumps({"version": 1, **content}).encode()  # type: ignore[dict-item]
    path.write_bytes(text if isinstance(content, bytes) else gzip.compress(text))
    return path


def line_of(table: EventTable, name: str) -> int:
    (row,) = (row for row in range(len(table)) if table.names[table.name[row]] == name)
    return int(table.called_from[row])


class TestCalls:
    def test_they_join_by_start_and_name(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        beside(trace, {"calls": calls((20_125, CALL, 7))})
        table = read_with_side_files(trace)
        assert (line_of(table, CALL), line_of(table, FRAME)) == (7, -1)
        assert table.metadata.notes == ()

    @pytest.mark.parametrize("entry", [(20_126, CALL, 7), (20_125, "<built-in method add>", 7)])
    def test_one_of_another_recording_is_said(self, tmp_path: Path, entry: tuple[int, str, int]) -> None:
        trace = trace_in(tmp_path)
        beside(trace, {"calls": calls(entry)})
        table = read_with_side_files(trace)
        assert line_of(table, CALL) == -1
        assert "match no event: it belongs to another recording" in table.metadata.notes[0]

    def test_what_fits_two_events_fits_none(self, tmp_path: Path) -> None:
        twin = event(CALL, 20.125, 10, tid=2)
        trace = trace_in(tmp_path, [*EVENTS, twin])
        beside(trace, {"calls": calls((20_125, CALL, 7))})
        assert (read_with_side_files(trace).called_from == -1).all()

    def test_what_is_given_twice_is_not_used(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        beside(trace, {"calls": calls((20_125, CALL, 7), (20_125, CALL, 8))})
        assert (read_with_side_files(trace).called_from == -1).all()

    def test_the_rows_of_the_tree_keep_theirs(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        beside(trace, {"calls": calls((20_125, CALL, 7))})
        assert line_of(Profile(read_with_side_files(trace)).table, CALL) == 7

    def test_newer_traces_hold_them(self, tmp_path: Path) -> None:
        called = event(CALL, 20.125, 10, CallFrom="train.py:9")
        table = read_with_side_files(trace_in(tmp_path, [EVENTS[0], called]))
        assert (line_of(table, CALL), line_of(table, FRAME)) == (9, -1)

    def test_the_side_file_goes_before_the_trace(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path, [EVENTS[0], event(CALL, 20.125, 10, CallFrom="train.py:9")])
        beside(trace, {"calls": calls((20_125, CALL, 7))})
        assert line_of(read_with_side_files(trace), CALL) == 7

    @pytest.mark.parametrize(
        "place", ["train.py", "train.py:", "train.py:x", "train.py:-4", ":0", "C:/a.py:99999999999"]
    )
    def test_places_that_are_none(self, tmp_path: Path, place: str) -> None:
        assert line_of(read_with_side_files(trace_in(tmp_path, [event(CALL, 1, 1, CallFrom=place)])), CALL) == -1

    def test_windows_paths(self, tmp_path: Path) -> None:
        assert (
            line_of(read_with_side_files(trace_in(tmp_path, [event(CALL, 1, 1, CallFrom="C:/a/b.py:12")])), CALL) == 12
        )


class TestTheRest:
    def test_settings_sources_and_steps(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        beside(
            trace,
            {
                "settings": {"threads": {"available_cores": 8}, "later": {"unknown": 1}},
                "sources": [{"file": "train.py", "sha256": "…", "text": "x = 1\n"}],
                "steps": {"count": 3, "median_ns": 12},
                "unknown": [1],
            },
        )
        analysis = read_file(find_traces(trace)[0], Job())
        assert analysis.report.true_step_ns == 12
        assert analysis.report.settings == analysis.profile.settings
        assert analysis.profile.settings.threads.available_cores == 8
        assert [source.file for source in analysis.profile.metadata.captured.sources] == ["train.py"]

    def test_compiled_code(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        launches = [["extern_kernels.mm", [0]], ["cpp_fused_mul_0", []]]
        graphs = [{"key": "fa", "backward": True, "launches": launches}, {"key": "fb", "backward": False}]
        where = {"file": "train.py", "line": 4, "function": "step", "reason": "a print"}
        content = {
            "stacks": [[["train.py", 4, "step"], ["torch/nn/f.py", 9, "relu"]]],
            "regions": [{"id": "0/0", "function": "step", "graphs": graphs}],
            "breaks": [where],
            "recompiles": [{"id": "0/1", **where}],
            "skips": [{"id": "0/1", **where}],
            "cached": [
                {
                    "key": "fc",
                    "backward": False,
                    "lines": [["train.py", 4, "step", "x = x @ w"], ["torch/nn/f.py", 9, "relu", ""]],
                    "kernels": [["extern_kernels.mm", [0]], ["cpp_fused_mul_0", []]],
                    "stacks": [[0, 1]],
                }
            ],
        }
        beside(trace, {"compiled": content})
        code = read_with_side_files(trace).metadata.captured.compiled
        assert code is not None
        read = [{"launches": None, "from_cache": False} | each for each in graphs]
        assert msgspec.to_builtins(code) == content | {"regions": [{"id": "0/0", "function": "step", "graphs": read}]}
        assert decode(msgspec.json.encode(code), CompiledCode) == code, "as the cache keeps it"

    def test_without_one_nothing_is_known(self, tmp_path: Path) -> None:
        analysis = read_file(find_traces(trace_in(tmp_path))[0], Job())
        assert (analysis.report.settings, analysis.report.true_step_ns) == (None, None)
        assert analysis.profile.settings == Settings()

    def test_it_is_no_trace_of_its_own(self, tmp_path: Path) -> None:
        beside(trace_in(tmp_path), {})
        assert [file.path.name for file in find_traces(tmp_path)] == ["w.1.pt.trace.json"]

    def test_each_trace_has_its_own(self, tmp_path: Path) -> None:
        for rank in range(2):
            beside(trace_in(tmp_path, name=f"rank{rank}.pt.trace.json"), {"settings": {"process": {"rank": rank}}})
        tables = [read_with_side_files(file.path) for file in find_traces(tmp_path)]
        assert [
            table.metadata.captured.settings.process.rank for table in tables if table.metadata.captured.settings
        ] == [0, 1]

    def test_a_link_away_from_its_trace_is_not_read(self, tmp_path: Path) -> None:
        """Somebody who can write beside the trace would else show the sources of others to who looks at it."""
        (tmp_path / "theirs").mkdir()
        theirs = beside(trace_in(tmp_path / "theirs"), {"sources": [{"file": "train.py", "sha256": "…", "text": "x"}]})
        trace = trace_in(tmp_path)
        side_file = tmp_path / theirs.name
        side_file.symlink_to(theirs)
        metadata = read_with_side_files(trace).metadata
        assert not metadata.captured.sources
        [note] = metadata.notes
        assert note.endswith("is a link to a folder other than the trace's. Put the file itself beside the trace.")

    def test_a_link_beside_a_trace_that_is_one_leads_where_that_does(self, tmp_path: Path) -> None:
        (tmp_path / "pool").mkdir()
        pooled = trace_in(tmp_path / "pool")
        for path in (pooled, beside(pooled, {"steps": {"count": 3, "median_ns": 12}})):
            (tmp_path / path.name).symlink_to(path)
        assert read_file(find_traces(tmp_path / pooled.name)[0], Job()).report.true_step_ns == 12

    def test_tensors(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        column = calls((21_000, "aten::relu", 1))
        beside(trace, {"tensors": {**column, "tensors": [[4, 0]], "storages": [[2, 0]]}})
        profile = Profile(read_with_side_files(trace))
        (relu,) = profile.named("aten::relu").tolist()
        assert profile.metadata.captured.tensors == {int(profile.table.file_order[relu]): TensorIds((4, 0), (2, 0))}

    def test_one_that_was_ended_early_is_said(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        beside(trace, {"complete": False, "calls": calls((20_125, CALL, 7))})
        assert "ended early" in read_with_side_files(trace).metadata.notes[0]


HUGE = b"1" + b"0" * 40
NOT_HELD = "It refers to stacks or lines of compiled code that it does not contain."
BAD = {
    "empty": (b"", "The file is empty."),
    "no gz and no JSON": (b"\x00\x01", "It is not JSON."),
    "gz that ends early": (gzip.compress(b'{"version": 1}' * 1000)[:20], "The gz file ends early."),
    "a list": (gzip.compress(b"[]"), "It does not match the format: Expected `object`, got `array`."),
    "no version": (gzip.compress(b"{}"), "missing required field `version`"),
    "a later version": (gzip.compress(b'{"version": 2}'), "It has version 2; this reader knows version 1."),
    "deeply nested": (gzip.compress(b'{"version": 1, "x": ' + b"[" * 100_000), "It is not JSON."),
    "a text for a number": (
        gzip.compress(b'{"version": 1, "steps": {"count": "3", "median_ns": 1}}'),
        "Expected `int`",
    ),
    "a number beyond int64": (
        gzip.compress(b'{"version": 1, "calls": {"start_ns": [' + HUGE + b"]}}"),
        "does not match",
    ),
    "a negative line": (gzip.compress(b'{"version": 1, "calls": {"line": [-1]}}'), "Expected `int` >= 0"),
    "uneven columns": (
        gzip.compress(b'{"version": 1, "calls": {"line": [1]}}'),
        "Its columns are of different lengths.",
    ),
    "stacks that are not there": (
        gzip.compress(
            b'{"version": 1, "compiled": {"stacks": [], "regions": [{"id": "0/0", "function": "f", "graphs": '
            b'[{"key": "fa", "backward": false, "launches": [["extern_kernels.mm", [0]]]}]}]}}'
        ),
        NOT_HELD,
    ),
    **{
        f"{what} of a cached graph that are not there": (
            gzip.compress(b'{"version": 1, "compiled": {"cached": [{"key": "fa", "backward": false, ' + rest + b"}]}}"),
            NOT_HELD,
        )
        for what, rest in {
            "lines of a kernel": b'"lines": [], "kernels": [["extern_kernels.mm", [0]]], "stacks": []',
            "lines of a stack": b'"lines": [], "kernels": [], "stacks": [[0]]',
            "frames": b'"lines": [], "kernels": [], "stacks": [[]]',
        }.items()
    },
    "a long text": (
        gzip.compress(json.dumps({"version": 1, "settings": {"versions": {"torch": "x" * 300}}}).encode()),
        "256",
    ),
}


class TestBad:
    @pytest.mark.parametrize("what", BAD)
    def test_the_trace_loads_and_the_reason_is_said(self, tmp_path: Path, what: str) -> None:
        trace = trace_in(tmp_path)
        content, reason = BAD[what]
        beside(trace, content)
        report = read_file(find_traces(trace)[0], Job()).report
        (note,) = (note for note in report.quality.notes if "side file" in note)
        assert note.startswith("The side file `w.1.pt.trace.json.tidy.json.gz` is not used. ")
        assert reason in note
        assert (report.events, report.settings) == (3, None)

    def test_more_than_fits_in_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        trace = trace_in(tmp_path)
        beside(trace, gzip.compress(b" " * ((1 << 20) + 1)))
        with monkeypatch.context() as patch:
            patch.setattr(capture_file, "MAX_TEXT_BYTES", 1 << 20)
            assert "It is larger than 1 MiB." in read_with_side_files(trace).metadata.notes[0]

    def test_a_folder_of_that_name_is_none(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        trace.with_name(f"{trace.name}.tidy.json.gz").mkdir()
        assert read_with_side_files(trace).metadata.notes == ()

    def test_a_name_too_long_for_a_side_file_has_none(self, tmp_path: Path) -> None:
        assert read_with_side_files(trace_in(tmp_path, name="w" * 236 + ".pt.trace.json")).metadata.notes == ()


NUMBERS = st.integers(-(1 << 62), 1 << 62)
COLUMN = st.lists(NUMBERS, max_size=4)
ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "settings": ANY
        | st.dictionaries(st.sampled_from(["versions", "threads", "optimizers", "loaders"]), ANY, max_size=3),
        "complete": ANY,
        "calls": st.fixed_dictionaries(
            {"start_ns": COLUMN, "name": COLUMN, "line": st.lists(st.integers(0, 99), max_size=4)}
        ),
        "tensors": ANY
        | st.fixed_dictionaries(
            {"start_ns": COLUMN, "name": COLUMN, "tensors": st.lists(COLUMN), "storages": st.lists(COLUMN)}
        ),
        "sources": ANY | st.lists(st.fixed_dictionaries({"file": st.text(), "text": st.text()}), max_size=2),
        "steps": ANY,
        "faults": ANY | st.fixed_dictionaries({"recorded": st.lists(NUMBERS), "usual": NUMBERS, "each_ns": NUMBERS}),
        "workers": ANY | st.fixed_dictionaries(dict.fromkeys(("count", "processor_ns", "elapsed_ns"), NUMBERS)),
        "compiled": ANY | st.dictionaries(st.sampled_from([*CompiledCode.__struct_fields__]), ANY),
    },
)


class TestHostile:
    @given(DOCUMENT)
    def test_any_document_costs_a_note_at_most(
        self, tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
    ) -> None:
        trace = trace_in(tmp_path_factory.mktemp("hostile"))
        beside(trace, document)
        report = read_file(find_traces(trace)[0], Job()).report
        assert report.events == 3
        assert msgspec.json.encode(report)

    @given(st.binary(max_size=200))
    def test_any_bytes(self, tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
        trace = trace_in(tmp_path_factory.mktemp("bytes"))
        beside(trace, content)
        assert len(read_with_side_files(trace)) == 3
