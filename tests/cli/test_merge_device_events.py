"""`tb-tidy merge-device-events`: the user's trace, untouched, with what the device did behind it."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import tb_tidy_plugin
from tb_tidy_plugin.capture import write_device_events
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.external import with_device_events
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.merge import event_list_of
from tests.support.made_up_device import LATENCY_NS, events_in, operator, record, side_file, traced
from tests.support.recordings import ROOT, shared
from tests.support.written import write


def merge(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    code = "from tb_tidy_plugin.cli.main import script; script()"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, "merge-device-events", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        env={"PATH": "", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def merged(trace: Path, out: Path) -> str:
    done = merge(trace, f"{trace}.device_events.json", "-o", out)
    assert done.returncode == 0, done.stderr
    return done.stdout


def small(folder: Path, name: str = "w.1.pt.trace.json") -> Path:
    """A trace of two products, and its side file."""
    trace = traced(folder, [operator("aten::mm", 0, 10, 1), operator("aten::bmm", 20, 30, 2)], name)
    side_file(trace, [("aten::mm", 1, 1, 5_000), ("aten::bmm", 2, 1, 3_000)])
    return trace


def text_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def added_to(trace: Path, out: Path) -> list[dict[str, Any]]:
    """The events that the merge added, after a check that all else is as it was, byte by byte."""
    before, after = text_of(trace), text_of(out)
    count = len(after) - len(before)
    places = (at for at in range(len(before), -1, -1) if after[:at] + after[at + count :] == before)
    at = next(places, None)
    assert at is not None, "the original is not in the merged trace"
    added: list[dict[str, Any]] = json.loads(b"[" + after[at : at + count].strip(b", \n") + b"]")
    return added


@pytest.fixture(scope="module")
def device_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recorded = record(tmp_path_factory.mktemp("run") / "w.1.pt.trace.json")
    write_device_events(recorded.prof, recorded.trace, "npu", LATENCY_NS, "Acme X1")
    return recorded.trace


def without_numbers(profile: Profile) -> Ledger:
    """The ledger but for the numbers of its events, which are their places in the file."""
    ledger = account_of(profile).ledger
    return replace(ledger, entries=[replace(entry, evidence=[]) for entry in ledger.entries])


def about_the_side_file(profile: ProfileReport) -> list[str]:
    """Its notes but for those on times: how fast the host was is not the same in all recordings."""
    return [note for note in profile.quality.notes if "side file" in note]


@pytest.mark.torch
class TestMerged:
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_the_original_is_in_it_untouched(self, device_trace: Path, tmp_path: Path, suffix: str) -> None:
        out = tmp_path / f"out.json{suffix}"
        merged(device_trace, out)
        assert out.read_bytes().startswith(b"\x1f\x8b") == bool(suffix)
        added = added_to(device_trace, out)
        whole = json.loads(text_of(out))
        original = events_in(device_trace)
        assert whole["traceEvents"] == original + added
        assert {key: value for key, value in whole.items() if key != "traceEvents"} == {
            key: value for key, value in json.loads(device_trace.read_text()).items() if key != "traceEvents"
        }
        assert list(tmp_path.iterdir()) == [out], "no draft is left"

    def test_it_reads_as_the_trace_with_its_side_file(self, device_trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json.gz"
        merged(device_trace, out)
        beside = Profile(with_device_events(read_trace(device_trace), device_trace))
        inside = Profile(with_device_events(read_trace(out), out))
        assert len(beside.table) == len(inside.table)
        for name in ("start_ns", "end_ns", "category", "external_id", "correlation", "device", "stream"):
            assert (getattr(beside.table, name) == getattr(inside.table, name)).all(), name
        names = [[profile.name(row) for row in range(len(profile.table))] for profile in (beside, inside)]
        assert names[0] == names[1]
        assert (beside.launch == inside.launch).all()
        assert (beside.launched_by == inside.launched_by).all()
        assert without_numbers(beside) == without_numbers(inside)

    def test_arrows_pair_and_lead_from_operators_to_kernels(self, device_trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        merged(device_trace, out)
        added = added_to(device_trace, out)
        starts = {event["id"]: event for event in added if event["ph"] == "s"}
        ends = {event["id"]: event for event in added if event["ph"] == "f"}
        kernels = [event for event in added if event.get("cat") == "kernel"]
        assert len(kernels) == len(starts) == len(ends) > 0
        assert {event["cat"] for event in (*starts.values(), *ends.values())} == {"ac2g"}
        operators = {
            event["args"]["External id"]: event
            for event in events_in(device_trace)
            if event["ph"] == "X" and "External id" in event["args"]
        }
        for kernel in kernels:
            operator_event = operators[kernel["args"]["External id"]]
            start, end = starts[kernel["args"]["correlation"]], ends[kernel["args"]["correlation"]]
            assert kernel["name"] == operator_event["name"]
            assert [start[key] for key in ("pid", "tid", "ts")] == [operator_event[key] for key in ("pid", "tid", "ts")]
            assert [end[key] for key in ("pid", "tid", "ts")] == [kernel[key] for key in ("pid", "tid", "ts")]
            assert kernel["ts"] >= operator_event["ts"] + LATENCY_NS / 1000
        used = {event["id"] for event in events_in(device_trace) if event["ph"] in "sf"}
        assert not used & starts.keys()

    def test_the_lane_has_a_name(self, device_trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        merged(device_trace, out)
        names = {event["name"]: event["args"] for event in added_to(device_trace, out) if event["ph"] == "M"}
        assert names["process_name"] == {"name": "npu 0 Acme X1 (inferred)"}
        assert names["thread_name"] == {"name": "stream 1 (start times inferred)"}

    def test_its_report_says_that_the_device_is_inferred(self, device_trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.pt.trace.json"
        assert "Device times of npu:0 come from a side file" in merged(device_trace, out)
        (profile,) = tb_tidy_plugin.analyze(out).runs[0].profiles
        assert about_the_side_file(profile) == [
            "Device times of npu:0 come from a side file, merged into the trace; start times are inferred."
        ]
        assert [(device.kind, device.name) for device in profile.devices] == [("npu", "Acme X1 (inferred)")]

    def test_a_side_file_beside_it_counts_nothing_twice(self, device_trace: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.pt.trace.json"
        merged(device_trace, out)
        alone = tb_tidy_plugin.analyze(out).runs[0].profiles[0].ledger
        events = Path(f"{device_trace}.device_events.json").read_bytes()
        out.with_name("out.pt.trace.json.device_events.json").write_bytes(events)
        (profile,) = tb_tidy_plugin.analyze(out).runs[0].profiles
        assert profile.ledger == alone
        assert about_the_side_file(profile)[-1].endswith("is not used: it is already merged into the trace.")


class TestText:
    def test_memory_in_use_becomes_a_counter(self, tmp_path: Path) -> None:
        base = 1_790_857_026_000_000_000
        footer = f'"baseTimeNanoseconds": {base}'
        text = f'{{"traceEvents": [{json.dumps(operator("aten::mm", 100, 200, 1))}], {footer}}}'
        trace = write(tmp_path / "w.1.pt.trace.json", text)
        times = [base + 99_999, base + 150_001, base + 100_000, base + 900_000]
        memory = [{"time_ns": time, "bytes": 4096 + at} for at, time in enumerate(times)]
        memory.append({"time_ns": base + 150_000, "bytes": -1})
        side_file(trace, [("aten::mm", 1, 1, 5_000)], memory=memory)
        out = tmp_path / "out.json"
        assert "note: 3 of 5 memory samples are left out" in merged(trace, out)
        counters = [event for event in added_to(trace, out) if event["ph"] == "C"]
        assert [(event["name"], event["ts"], event["args"]) for event in counters] == [
            ("npu:0 memory in use", 100, {"bytes": 4098}),
            ("npu:0 memory in use", 150.001, {"bytes": 4097}),
        ]

    def test_absolute_times_keep_every_nanosecond(self, tmp_path: Path) -> None:
        text = json.dumps({"traceEvents": [operator("aten::mm", 0, 10, 1, ts="T")]}).replace(
            '"T"', "1712345678901234.567"
        )
        trace = write(tmp_path / "w.1.pt.trace.json", text)
        side_file(trace, [("aten::mm", 1, 1, 5_001)])
        out = tmp_path / "out.json"
        merged(trace, out)
        whole = json.loads(out.read_text(), parse_float=Decimal)
        (kernel,) = [event for event in whole["traceEvents"] if event.get("cat") == "kernel"]
        assert (kernel["ts"], kernel["dur"]) == (Decimal("1712345678901235.567"), Decimal("5.001"))

    @pytest.mark.parametrize(
        "layout",
        [
            "[{}]", "[{}]\n\n", '{{"traceEvents":[{}]}}', '\ufeff{{"traceEvents": [{}\n]\n, "a": ["}}]", 1]}}',
            '{{"traceName": "a]}}b", "traceEvents": [\n{}\n], "list": [{{"b": []}}]}}\n',
        ],
    )  # fmt: skip
    def test_any_layout(self, tmp_path: Path, layout: str) -> None:
        events = [operator("aten::mm", 0, 10, 1), operator('odd ]} " [{ name', 20, 30, 2)]
        trace = write(tmp_path / "w.1.pt.trace.json", layout.format(",".join(map(json.dumps, events))))
        side_file(trace, [("aten::mm", 1, 1, 5_000)])
        out = tmp_path / "out.json"
        merged(trace, out)
        assert [event["ph"] for event in added_to(trace, out)] == ["M"] * 5 + ["X", "s", "X", "f"]
        document = json.loads(text_of(out).removeprefix("\ufeff".encode()))
        assert len(document["traceEvents"] if isinstance(document, dict) else document) == 2 + 9

    def test_compressed_in_several_members(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        data = trace.read_bytes()
        packed = tmp_path / "v.1.pt.trace.json.gz"
        packed.write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
        done = merge(packed, f"{trace}.device_events.json", "-o", tmp_path / "out.json")
        assert done.returncode == 0, done.stderr
        assert len(added_to(trace, tmp_path / "out.json")) == 5 + 2 * 4

    def test_a_process_with_the_number_of_the_device_keeps_its_lanes(self, tmp_path: Path) -> None:
        """In a container the job is often process 1, and thread 1 of it."""
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        side_file(trace, [("aten::mm", 1, 1, 5_000)], device={"kind": "npu", "index": 1})
        out = tmp_path / "out.json"
        merged(trace, out)
        (kernel,) = [event for event in added_to(trace, out) if event.get("cat") == "kernel"]
        assert (kernel["pid"], kernel["args"]["device"]) == (5_000_001, 1)
        names = [event["pid"] for event in added_to(trace, out) if event["name"] == "process_name"]
        assert names == [5_000_001]
        beside, inside = (with_device_events(read_trace(path), path) for path in (trace, out))
        assert beside.threads == inside.threads

    def test_string_ids_of_processes_and_threads_stay_what_they_are(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1, pid="host", tid="25738")])
        side_file(trace, [("aten::mm", 1, 25738, 5_000)])
        out = tmp_path / "out.json"
        merged(trace, out)
        profile = Profile(read_trace(out))
        (kernel,) = np.flatnonzero(profile.table.category == Category.KERNEL).tolist()
        assert profile.name(int(profile.launched_by[kernel])) == "aten::mm"
        assert profile.table.threads[profile.table.thread[profile.launch[kernel]]].pid == "host"

    @pytest.mark.parametrize("name", ["a100_ddp8_control", "v100_2021_resnet50_workers0", "mi300_compile_triton"])
    def test_real_traces_end_where_the_standard_library_says(self, name: str) -> None:
        (path,) = shared(f"traces/{name}").glob("*.gz")
        text = text_of(path)
        end = event_list_of(path).end
        decoder = json.JSONDecoder(strict=False)
        characters = text.decode("latin-1")
        start = re.search(r'"traceEvents"\s*:\s*', characters)
        assert end == decoder.raw_decode(characters, start.end() if start else 0)[1] - 1
        assert text[end : end + 1] == b"]"


class TestRefusals:
    def refused(self, *arguments: str | Path) -> str:
        done = merge(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def test_a_file_that_is_there(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        out = write(tmp_path / "out.json", "precious")
        events = f"{trace}.device_events.json"
        assert "Overwrite it with `--force`" in self.refused(trace, events, "-o", out)
        assert out.read_text() == "precious"
        assert merge(trace, events, "-o", out, "--force").returncode == 0
        assert len(added_to(trace, out)) == 13

    @pytest.mark.parametrize("which", ["w.1.pt.trace.json", "w.1.pt.trace.json.device_events.json"])
    def test_its_own_input_even_by_force(self, tmp_path: Path, which: str) -> None:
        trace = small(tmp_path)
        before = (tmp_path / which).read_bytes()
        said = self.refused(trace, f"{trace}.device_events.json", "-o", tmp_path / which, "--force")
        assert "is one of the files to merge" in said
        assert (tmp_path / which).read_bytes() == before

    def test_places_that_cannot_be_written(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        events = f"{trace}.device_events.json"
        assert "does not exist" in self.refused(trace, events, "-o", tmp_path / "gone" / "out.json")
        assert "is a directory" in self.refused(trace, events, "-o", tmp_path)
        assert "could not be written" in self.refused(trace, events, "-o", tmp_path / ("o" * 300))

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        assert "does not exist" in self.refused(trace, tmp_path / "gone.json", "-o", tmp_path / "out.json")
        assert "does not exist" in self.refused(
            tmp_path / "gone.json", f"{trace}.device_events.json", "-o", tmp_path / "out.json"
        )

    def test_a_side_file_that_is_none(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        said = self.refused(trace, write(tmp_path / "bad.json", "{"), "-o", tmp_path / "out.json")
        assert f"`{tmp_path / 'bad.json'}` cannot be used. It is not JSON." in said
        assert not (tmp_path / "out.json").exists()

    def test_a_side_file_of_another_trace(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        events = side_file(trace, [("aten::mm", 7, 1, 5_000)])
        assert "matches an operator" in self.refused(trace, events, "-o", tmp_path / "out.json")

    @pytest.mark.parametrize("data", [b"", b"not json", b'{"a": 1}'])
    def test_a_trace_that_is_none(self, tmp_path: Path, data: bytes) -> None:
        events = f"{small(tmp_path)}.device_events.json"
        (tmp_path / "bad.json").write_bytes(data)
        said = self.refused(tmp_path / "bad.json", events, "-o", tmp_path / "out.json")
        assert "bad.json` cannot be used." in said

    def test_a_trace_that_ends_early(self, tmp_path: Path) -> None:
        trace = small(tmp_path)
        text = trace.read_text()
        trace.write_text(text[: text.index("aten::bmm")])
        said = self.refused(trace, f"{trace}.device_events.json", "-o", tmp_path / "out.json")
        assert "so nothing can be added to it" in said

    def test_a_trace_that_is_merged_already(self, tmp_path: Path) -> None:
        trace, out = small(tmp_path), tmp_path / "out.json"
        merged(trace, out)
        said = self.refused(out, f"{trace}.device_events.json", "-o", tmp_path / "twice.json")
        assert "is already merged" in said

    def test_names_in_a_side_file_cannot_drive_the_terminal(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1)])
        side_file(trace, [("aten::mm", 1, 1, 5_000)], device={"kind": "npu\x1b[31m"})
        assert "\x1b" not in merged(trace, tmp_path / "out.json")
