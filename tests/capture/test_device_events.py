"""The side file as the training job writes it; and nothing that goes wrong with it reaches the job."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.capture import write_device_events
from tb_tidy_plugin.trace.side_file import read_device_events
from tests.support.full_disk import filling_disk
from tests.support.made_up_device import KERNELS_US, Recorded, events_in, record, record_markers

if TYPE_CHECKING:
    import torch


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("run") / "w.1.pt.trace.json")


@pytest.mark.torch
class TestWritten:
    def test_every_operator_with_device_time(self, recorded: Recorded) -> None:
        path = write_device_events(recorded.prof, recorded.trace, "npu:3", 6_000, "Acme X1")
        assert path == recorded.trace.with_name("w.1.pt.trace.json.device_events.json")
        written = read_device_events(path)
        device = written.device
        assert (device.kind, device.index, device.name, written.launch_latency_ns) == ("npu", 3, "Acme X1", 6_000)
        names = {entry.name for entry in written.operators}
        assert set(KERNELS_US) < names
        assert {"aten::linear", "ProfilerStep#1"} < names, "steps by the names they have in the trace"
        assert "aten::t" not in names, "an operator without device time"

    def test_names_ids_and_threads_are_those_of_the_trace(self, recorded: Recorded) -> None:
        path = write_device_events(recorded.prof, recorded.trace)
        assert path is not None
        events = [event for event in events_in(recorded.trace) if "External id" in event.get("args", {})]
        in_trace = {(event["name"], event["args"]["External id"], event["tid"]) for event in events}
        written = read_device_events(path)
        assert {(entry.name, entry.external_id, entry.thread) for entry in written.operators} <= in_trace

    def test_times_are_nanoseconds(self, recorded: Recorded) -> None:
        path = write_device_events(recorded.prof, recorded.trace)
        assert path is not None
        times = {entry.name: entry.device_time_ns for entry in read_device_events(path).operators}
        assert {name: times[name] for name in KERNELS_US} == {name: us * 1000 for name, us in KERNELS_US.items()}
        calls = [event for event in events_in(recorded.trace) if event["name"] in KERNELS_US]
        kernels = [entry for entry in read_device_events(path).operators if entry.name in KERNELS_US]
        assert len(kernels) == len(calls)

    def test_memory_in_use(self, recorded: Recorded) -> None:
        path = write_device_events(recorded.prof, recorded.trace, memory=[(17, 4096), (18, 0)])
        assert path is not None
        assert [(sample.time_ns, sample.bytes) for sample in read_device_events(path).memory] == [(17, 4096), (18, 0)]

    def test_one_per_rank_and_nothing_else_is_left(self, recorded: Recorded, tmp_path: Path) -> None:
        for rank in range(3):
            (tmp_path / f"rank{rank}.pt.trace.json.gz").touch()
            write_device_events(recorded.prof, tmp_path / f"rank{rank}.pt.trace.json.gz", f"npu:{rank}")
        traces = [f"rank{rank}.pt.trace.json.gz" for rank in range(3)]
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == sorted([*traces, *(f"{name}.device_events.json" for name in traces)])

    def test_the_profiler_that_times_operators_only(self, tmp_path: Path) -> None:
        trace = tmp_path / "w.1.pt.trace.json"
        assert write_device_events(record_markers(trace), trace, "acme") is not None
        (run,) = tb_tidy_plugin.analyze(trace).runs
        (profile,) = run.profiles
        assert sum(step.device_ns for step in profile.ledger.steps) == 2 * 80_250
        assert (profile.steps.basis, profile.steps.count) == ("profiler_step", 2)

    def test_a_path_as_text(self, recorded: Recorded) -> None:
        assert write_device_events(recorded.prof, str(recorded.trace)) is not None


class Broken:
    """A profiler that fails where it is asked."""

    @property
    def profiler(self) -> object:
        raise RuntimeError("events() is not available when trace_only=True")


class Unused:
    """A profiler that was never started."""

    profiler = None


@pytest.mark.parametrize("prof", [Broken(), Unused(), None])
def test_a_profiler_without_events_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, prof: object) -> None:
    assert write_device_events(cast("torch.profiler.profile", prof), tmp_path / "t.pt.trace.json") is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "the device time of" in record.getMessage()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
class TestFailures:
    def test_a_folder_that_is_not_there(
        self, recorded: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert write_device_events(recorded.prof, tmp_path / "gone" / "t.pt.trace.json") is None
        assert "could not be captured" in caplog.text

    def test_a_disk_that_is_full_leaves_no_half_file(
        self, recorded: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with filling_disk():
            assert write_device_events(recorded.prof, tmp_path / "t.pt.trace.json") is None
        assert list(tmp_path.iterdir()) == []
        assert "No space left" in caplog.text

    @pytest.mark.parametrize(("kind", "latency"), [("npu", -1), ("npu", 10**10), ("npu:x", 0)])
    def test_values_that_cannot_be(
        self, recorded: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, latency: int
    ) -> None:
        assert write_device_events(recorded.prof, tmp_path / "t.pt.trace.json", kind, latency) is None
        assert "could not be captured" in caplog.text

    def test_a_trace_of_another_name_is_said(
        self, recorded: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert write_device_events(recorded.prof, tmp_path / "t.pt.trace.json") is not None
        assert "t.pt.trace.json does not exist" in caplog.text

    def test_a_recording_without_device_times_gives_no_file(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]) as prof:
            torch.ones(4).add(1)
        assert write_device_events(prof, tmp_path / "t.pt.trace.json") is None
        assert "no operator has device time" in caplog.text
        assert list(tmp_path.iterdir()) == []
