"""The side file: where it lies, what its page says, and that a bad one never costs the trace."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

import tb_tidy_plugin
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.side_file import DeviceEvents, ExternalDevice, MemorySample, OperatorTime, side_file_of
from tests.support.made_up_device import kernels_of, operator, read, report_on, side_file, traced
from tests.support.recordings import ROOT


class TestWhereItLies:
    def entries(self) -> list[tuple[str, int, int, int]]:
        return [("aten::mm", 1, 1, 5_000)]

    @pytest.mark.parametrize("beside", ["w.1.pt.trace.json.gz", "w.1.pt.trace.json"])
    def test_beside_a_compressed_trace(self, tmp_path: Path, beside: str) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)], "w.1.pt.trace.json.gz")
        side_file(tmp_path / beside, self.entries())
        assert len(kernels_of(Profile(read(trace)))) == 1

    def test_its_own_name_comes_first(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)], "w.1.pt.trace.json.gz")
        side_file(tmp_path / "w.1.pt.trace.json", [("aten::mm", 1, 1, 1)])
        side_file(trace, self.entries())
        assert kernels_of(Profile(read(trace))) == [("aten::mm", 1_000, 5_000)]

    def test_it_is_no_trace_of_its_own(self, tmp_path: Path) -> None:
        side_file(traced(tmp_path, [operator("aten::mm", 0, 10, 1)]), self.entries())
        report = tb_tidy_plugin.analyze(tmp_path)
        assert [len(run.profiles) for run in report.runs] == [1]
        assert report.problems == []

    def test_each_rank_has_its_own(self, tmp_path: Path) -> None:
        for rank in range(3):
            trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)], f"rank{rank}.1.pt.trace.json")
            side_file(trace, [("aten::mm", 1, 1, 1_000 + rank)], device={"kind": "npu", "index": rank})
        (run,) = tb_tidy_plugin.analyze(tmp_path).runs
        assert [sum(step.device_ns for step in profile.ledger.steps) for profile in run.profiles] == [
            1_000,
            1_001,
            1_002,
        ]
        assert [profile.devices[0].index for profile in run.profiles] == [0, 1, 2]

    def test_a_name_too_long_for_a_side_file_has_none(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)], "w" * 230 + ".pt.trace.json")
        assert side_file_of(trace) is None


HEAD = b'{"version": 1, "device": {"kind": "npu"}, "launch_latency_ns": 1, "operators": '
BAD = {
    "empty": (b"", "It is not JSON. Write it again"),
    "not JSON": (b"{", "It is not JSON."),
    "compressed": (gzip.compress(b"{}"), "It is not JSON."),
    "deeply nested": (b'{"version": 1, "x": ' + b"[" * 100_000, "It is not JSON."),
    "a list": (b"[]", "It does not match the format: Expected `object`, got `array`."),
    "no version": (b"{}", "missing required field `version`"),
    "a later version": (b'{"version": 2}', "It has version 2; this reader knows version 1. Write it again, or use"),
    "no operators": (
        b'{"version": 1, "device": {"kind": "npu"}, "launch_latency_ns": 1}',
        "missing required field `operators`",
    ),
    "text for a number": (
        HEAD + b'[{"name": "aten::mm", "external_id": 1, "thread": 1, "device_time_ns": "5"}]}',
        "Expected `int`, got `str` - at `$.operators[0].device_time_ns`",
    ),
    "a negative latency": (
        b'{"version": 1, "device": {"kind": "npu"}, "launch_latency_ns": -1, "operators": []}',
        "Expected `int` >= 0 - at `$.launch_latency_ns`",
    ),
    "times in another unit": (
        HEAD + b'[{"name": "aten::mm", "external_id": 1, "thread": 1, "device_time_ns": 1' + b"0" * 30 + b"}]}",
        "The device times add up to more than 101 days. Give them in nanoseconds.",
    ),
}


class TestBadSideFiles:
    @pytest.mark.parametrize("what", BAD)
    def test_the_trace_loads_and_the_reason_is_said(self, tmp_path: Path, what: str) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        text, reason = BAD[what]
        trace.with_name("w.1.pt.trace.json.device_events.json").write_bytes(text)
        report = report_on(trace)
        assert (report.events, report.devices) == (1, [])
        (note,) = report.quality.notes
        assert note.startswith("The side file `w.1.pt.trace.json.device_events.json` is not used. ")
        assert reason in note

    def test_one_that_may_not_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        side_file(trace, [])

        def refuse(self: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", refuse)
            assert "It cannot be read: Permission denied." in read(trace).metadata.notes[0]

    def test_a_folder_of_that_name_is_none(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        trace.with_name("w.1.pt.trace.json.device_events.json").mkdir()
        assert report_on(trace).quality.notes == []

    def test_entries_that_fit_nothing_are_counted_by_reason(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1), operator("aten::bmm", 20, 30, 2, tid=2)])
        good = [("aten::mm", 1, 1, 5_000), ("aten::bmm", 2, 2, 3_000)]
        wrong_name, wrong_id, wrong_thread = ("aten::relu", 1, 1, 5), ("aten::mm", 99, 1, 5), ("aten::bmm", 2, 1, 5)
        odd_ids = [("aten::mm", 0, 1, 5), ("aten::mm", -1, 1, 5), ("aten::mm", 1 << 70, 1 << 70, 5)]
        negative, again = ("aten::mm", 1, 1, -5), ("aten::mm", 1, 1, 7_000)
        side_file(trace, [*good, wrong_name, wrong_id, wrong_thread, *odd_ids, negative, again])
        table = read(trace)
        assert kernels_of(Profile(table)) == [("aten::mm", 1_000, 5_000), ("aten::bmm", 21_000, 3_000)]
        name = "`w.1.pt.trace.json.device_events.json`"
        assert table.metadata.notes[1:] == (
            f"1 of 10 entries in {name} are left out: their device time is negative.",
            f"6 of 10 entries in {name} are left out: no operator of the trace has their name, External id and thread.",
            f"1 of 10 entries in {name} are left out: an operator is given more than once, and the first is used.",
        )

    def test_a_side_file_of_another_trace_gives_nothing_and_says_so(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        side_file(trace, [("aten::bmm", 5, 1, 5_000)])
        report = report_on(trace)
        assert report.devices == []
        assert "1 of 1 entries" in report.quality.notes[1]

    def test_a_trace_without_operators(self, tmp_path: Path) -> None:
        ids = {"correlation": 9, "device": 0, "stream": 7}
        trace = traced(tmp_path, [operator("gemm", 5, 9, 1, cat="kernel", pid=0, tid=7, args=ids)])
        side_file(trace, [("aten::mm", 1, 1, 5_000)])
        assert len(kernels_of(Profile(read(trace)))) == 1

    def test_ids_at_the_limit_of_their_type_do_not_overflow(self, tmp_path: Path) -> None:
        odd = operator("launch", 1, 2, 2, cat="cuda_runtime", args={"correlation": (1 << 63) - 1})
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1), odd])
        side_file(trace, [("aten::mm", 1, 1, 5_000)])
        assert len(kernels_of(Profile(read(trace)))) == 1


class TestPage:
    """`docs/out-of-tree-devices.md` says what the code does."""

    PAGE = (ROOT / "docs/out-of-tree-devices.md").read_text()

    def block(self, kind: str) -> str:
        (found,) = re.findall(rf"```json {kind}\n(.*?)```", self.PAGE, re.DOTALL)
        return str(found)

    def test_the_schema(self) -> None:
        schema = msgspec.json.schema(DeviceEvents)  # noqa: TID251 - as readers of the page do it
        for described in schema["$defs"].values():
            del described["description"]
        assert json.loads(self.block("schema")) == schema

    def test_the_example(self, tmp_path: Path) -> None:
        jsonschema.validate(json.loads(self.block("example")), json.loads(self.block("schema")))
        trace = traced(
            tmp_path, [operator("aten::linear", 0, 90, 6, tid=29025), operator("aten::addmm", 10, 80, 10, tid=29025)]
        )
        trace.with_name(f"{trace.name}.device_events.json").write_text(self.block("example"))
        assert kernels_of(Profile(read(trace))) == [("aten::addmm", 16_000, 120_500)]

    def test_every_field_has_its_row(self) -> None:
        rows = set(re.findall(r"^\| `([\w.\[\]]+)` \|", self.PAGE, re.MULTILINE))
        fields = {
            f"{prefix}{field}"
            for prefix, kind in (
                ("", DeviceEvents),
                ("device.", ExternalDevice),
                ("operators[].", OperatorTime),
                ("memory[].", MemorySample),
            )
            for field in kind.__struct_fields__
        } - {"device", "operators", "memory"}
        assert rows == fields | {"rank0.17.pt.trace.json", "rank0.17.pt.trace.json.gz"}
