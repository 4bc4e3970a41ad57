"""The report on one trace: what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import tb_tidy_plugin
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.system.decoders import decode
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write


def analyzed(tmp_path: Path, events: list[dict[str, object]], footer: str = '"a": 1', name: str = "w.7") -> Report:
    write(tmp_path / f"{name}.pt.trace.json", kineto_text(events, footer))
    return tb_tidy_plugin.analyze(tmp_path)


STEP = event("ProfilerStep#1", 1000.5, 1000, cat="user_annotation")


def test_describes_the_profile(tmp_path: Path) -> None:
    device = '{"id": 4, "name": "A100", "computeMajor": 8, "computeMinor": 6}'
    footer = f'"distributedInfo": {{"rank": 2}}, "deviceProperties": [{device}]'
    kernel = event("gemm", 1200, 50, cat="kernel", pid=0, tid=7, args={"device": 4, "stream": 7, "correlation": 3})
    launch = event("cudaLaunchKernel", 1100, 5, cat="cuda_runtime", args={"correlation": 3})
    (run,) = analyzed(tmp_path, [STEP, launch, kernel], footer).runs
    (profile,) = run.profiles
    assert (profile.worker, profile.span, profile.rank) == ("w", "7", 2)
    assert (profile.events, profile.origin_ns, profile.duration_ns) == (3, 1_000_500, 1_000_000)
    assert profile.recorded == ["device", "steps"]
    assert msgspec.to_builtins(profile.devices) == [
        {"kind": "cuda", "index": 4, "name": "A100", "compute_capability": "8.6", "limits": None}
    ]
    assert msgspec.to_builtins(profile.steps) == {
        "basis": "profiler_step", "count": 1, "median_ns": 1_000_000,
        "p10_ns": 1_000_000, "p90_ns": 1_000_000,
        "items": [{"name": "ProfilerStep#1", "start_ns": 0, "duration_ns": 1_000_000, "oddity": None}],
    }  # fmt: skip
    assert [step.device_ns for step in profile.ledger.steps] == [50_000]


@pytest.mark.parametrize(
    ("name", "rank"), [("rank-34.Jul_15", 34), ("rank3", 3), ("RANK_12", 12), ("worker0", None), ("host_123", None)]
)
def test_rank_by_the_name_of_the_file(tmp_path: Path, name: str, rank: int | None) -> None:
    assert analyzed(tmp_path, [STEP], name=name).runs[0].profiles[0].rank == rank


def test_json_reads_back_as_the_same_report(tmp_path: Path) -> None:
    report = analyzed(tmp_path, [STEP])
    assert decode(to_json(report), Report) == report
    assert json.loads(to_json(report))["schema"] == 1


def test_what_could_not_be_used_is_counted_and_said(tmp_path: Path) -> None:
    broken = event("aten::mm", 1100, -5)
    (profile,) = analyzed(tmp_path, [STEP, broken]).runs[0].profiles
    assert profile.quality.dropped_events == 1
    assert profile.quality.notes == ["1 events left out: negative or impossible duration."]


def test_a_device_only_trace_is_not_called_clean() -> None:
    report = tb_tidy_plugin.analyze(shared("traces/mi210_gpu_only"))
    (profile,) = report.runs[0].profiles
    assert {outcome.status for outcome in profile.outcomes} == {"not_checked"}
    assert profile.steps.median_ns is None


def test_secrets_in_metadata_never_reach_a_report(tmp_path: Path) -> None:
    report = analyzed(tmp_path, [STEP], '"env": {"API_TOKEN": "hunter2"}, "host_name": "alpha.example"')
    assert "hunter2" not in to_json(report)
    assert "alpha.example" not in to_json(report)


def test_odd_steps_and_percentiles_are_reported(tmp_path: Path) -> None:
    lengths = (181, 124, 127, 126, 163, 116)
    starts = [sum(lengths[:at]) for at in range(6)]
    events = [
        event(f"ProfilerStep#{at}", start, length, cat="user_annotation")
        for at, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    (profile,) = analyzed(tmp_path, events).runs[0].profiles
    assert [step.oddity for step in profile.steps.items] == ["warmup", None, None, None, "outlier", None]
    assert (profile.steps.p10_ns, profile.steps.median_ns, profile.steps.p90_ns) == (120_000, 126_500, 172_000)
