"""Where the time went, on real traces: against the known true figures, and against a count written differently."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.assemble import analyze_file
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import SHARED, shared

TRACES = sorted(path for path in SHARED.glob("traces/*/*.gz"))
IDS = [f"{path.parent.name}/{path.name.split('.')[0]}" for path in TRACES]
NCCL = re.compile(r"nccl|rccl", re.IGNORECASE)


def profile_of(name: str) -> Profile:
    (path,) = shared(f"traces/{name}").glob("*.gz")
    return Profile(read_trace(path))


def per_cent(part: int | None, whole: int) -> float:
    assert part is not None
    return round(100 * part / whole, 2)


@pytest.mark.parametrize(("name", "share"), [("a100_ddp8_control", 35.15), ("mi300_ddp8_resnet_checkpoint", 82.30)])
def test_communication(name: str, share: float) -> None:
    spent = profile_of(name).time_spent
    assert per_cent(spent.communication_ns, spent.wall_ns) == share


@pytest.mark.parametrize(("name", "share"), [("mi210_gpu_only", 88.69), ("mi300_sglang_prefill_decode", 49.91)])
def test_kernels(name: str, share: float) -> None:
    spent = profile_of(name).time_spent
    assert per_cent(spent.compute_ns, spent.wall_ns) == share


def test_steps_are_counted_once() -> None:
    steps = profile_of("mi300_ddp8_resnet_checkpoint").steps
    assert [round(step.duration_ns / 1000) for step in steps.items] == [16_799, 15_951, 15_887]
    assert steps.basis == "profiler_step"


@pytest.mark.parametrize("name", ["mi300_sglang_prefill_decode", "mi210_gpu_only"])
def test_traces_without_steps_have_none(name: str) -> None:
    profile = profile_of(name)
    assert profile.steps.basis in {"whole_trace", "none"}
    assert "steps" not in profile.recorded


def test_a_device_only_trace_has_no_step_figure() -> None:
    assert profile_of("mi210_gpu_only").steps.median_ns is None


@pytest.mark.parametrize(
    ("name", "share"), [("v100_2021_resnet50_workers0", 39.62), ("v100_2021_resnet50_workers4", 1.02)]
)
def test_data_loading_of_the_steps(name: str, share: float) -> None:
    profile = profile_of(name)
    loading = profile.covered(profile.matching(r"enumerate\(DataLoader\)#.*__next__", Category.ANNOTATION))
    first, last = profile.steps.items[0], profile.steps.items[-1]
    inside = loading.within(profile.steps.starts[:1], profile.steps.ends[-1:])
    assert per_cent(int(inside[0]), last.end_ns - first.start_ns) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("name", "share"), [("v100_2021_resnet50_workers0", 55.51), ("v100_2021_resnet50_workers4", 70.27)]
)
def test_utilization(name: str, share: float) -> None:
    profile = profile_of(name)
    kernels = profile.matching("", Category.KERNEL)
    start = profile.steps.items[0].start_ns
    end = int(profile.table.end_ns[kernels].max())
    assert per_cent(profile.covered(kernels).total_ns, end - start) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_every_figure_of_the_report_against_a_plain_count(path: Path) -> None:
    """Sweeps over sorted ends in plain Python, straight from the JSON."""
    (file,) = [file for file in find_traces(path.parent) if file.path.name == path.name]
    report = analyze_file(file).report
    data = json.loads(gzip.decompress(path.read_bytes()))
    events = [
        entry for entry in (data["traceEvents"] if isinstance(data, dict) else data)
        if entry["ph"] == "X" and entry.get("cat") != "Trace"
    ]  # fmt: skip
    wall = _ns(max(entry["ts"] + entry["dur"] for entry in events) - min(entry["ts"] for entry in events))
    breakdown = report.breakdown
    assert breakdown.wall_ns == pytest.approx(wall, abs=2000)
    assert report.duration_ns == breakdown.wall_ns

    def kind(entry: dict[str, Any]) -> str:
        return str(entry.get("cat", "")).lower().removeprefix("gpu_")

    work = [entry for entry in events if kind(entry) in {"kernel", "memcpy", "memset"}]
    devices = sorted({entry["args"]["device"] for entry in work})
    assert [device.index for device in report.devices] == devices
    if not devices:
        assert breakdown.compute_ns is None
        return
    kernels = [entry for entry in work if kind(entry) == "kernel"]
    compute = [entry for entry in kernels if not _is_collective(entry["name"])]
    copies = [entry for entry in work if kind(entry) == "memcpy"]
    groups = {
        "device_busy_ns": work,
        "compute_ns": compute,
        "communication_ns": [entry for entry in kernels if _is_collective(entry["name"])],
        "host_to_device_ns": [entry for entry in copies if re.search("HtoD|HostToDevice", entry["name"])],
        "device_to_host_ns": [entry for entry in copies if re.search("DtoH|DeviceToHost", entry["name"])],
    }
    for name, group in groups.items():
        expected = sum(_sweep([e for e in group if e["args"]["device"] == device]) for device in devices) / len(devices)
        assert getattr(breakdown, name) == pytest.approx(expected, rel=1e-6, abs=2000), name
    assert breakdown.device_idle_ns == breakdown.wall_ns - (breakdown.device_busy_ns or 0)
    exposed = sum(
        _sweep([e for e in kernels if e["args"]["device"] == device])
        - _sweep([e for e in compute if e["args"]["device"] == device])
        for device in devices
    ) / len(devices)  # fmt: skip
    assert breakdown.communication_exposed_ns == pytest.approx(exposed, rel=1e-6, abs=2000)


def _is_collective(name: str) -> bool:
    return bool(NCCL.search(name)) or "all_reduce" in name or "reduce_scatter" in name


def _ns(time_us: float) -> int:
    return round(time_us * 1000)


def _sweep(events: list[dict[str, Any]]) -> int:
    """Time with at least one event open: +1 at each start, -1 at each end."""
    edges = sorted(
        edge
        for e in events
        for edge in ((round(e["ts"] * 1000), 1), (round(e["ts"] * 1000) + round(e["dur"] * 1000), -1))
    )
    total = depth = last = 0
    for time, change in edges:
        if depth > 0:
            total += time - last
        depth += change
        last = time
    return total
