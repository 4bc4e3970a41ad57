"""Steps cut into parts that add up, against painting every nanosecond."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.lanes import LaneParts, step_parts
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import DEVICE_WORK, HOST_TREE, Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.drawn import A100, draw
from tests.support.recordings import SHARED
from tests.support.written import event, kineto_text, write

TRACES = sorted(SHARED.glob("traces/*/*.gz"))
DEVICE_TRACES = [path for path in TRACES if not path.parent.name.startswith("cpu_")]


def parts_of(profile: Profile) -> list[dict[str, list[int]]]:
    return [
        {part: (times // 1000).tolist() for part, times in lane.parts.items()}
        for lane in step_parts(profile.table, profile.steps)
    ]


def test_a_step_on_a_device() -> None:
    profile = draw(
        """
ProfilerStep#1                    0-1000
  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__   10-200
  aten::to                        210-250  copy=HtoD@220-270:4096
  aten::mm                        260-400  kernel=ampere_sgemm@300-500
  aten::add                       410-450  kernel=vectorized_elementwise_kernel@450-600
  c10d::allreduce_                460-480  kernel=ncclDevKernel_AllReduce@550-700
""",
        A100,
    )
    assert parts_of(profile) == [
        {
            "matrix": [200],
            "elementwise": [100],
            "communication_exposed": [100],
            "host_to_device": [50],
            "idle_data_loading": [190],
            "idle_launch_bound": [360],
        }
    ]
    (lane,) = step_parts(profile.table, profile.steps)
    assert lane.communication_overlapped_ns.tolist() == [50_000]


def test_a_gap_that_begins_in_a_wait_is_the_waits(tmp_path: Path) -> None:
    def kernel(start: int, end: int) -> dict[str, object]:
        return event("gemm", start, end - start, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7})

    events = [
        event("ProfilerStep#1", 10, 1000, cat="user_annotation"),
        kernel(10, 410),
        event("cudaStreamSynchronize", 110, 320, cat="cuda_runtime"),
        kernel(510, 810),
        kernel(860, 1010),
    ]
    profile = Profile(read_trace(write(tmp_path / "t.json", kineto_text(events))))
    assert parts_of(profile) == [{"matrix": [850], "idle_synchronisation": [100], "idle_launch_bound": [50]}]


def read(copy_end: int, call_end: int) -> Profile:
    """A value is read: the call that copies it to pageable memory returns after the copy, then the host goes on."""
    kernel = {"cat": "kernel", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    copy = {"cat": "gpu_memcpy", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 9}}
    events = [
        event("ProfilerStep#1", 10, 1000, cat="user_annotation"),
        event("gemm", 10, 390, **kernel),
        event("Memcpy DtoH (Device -> Pageable)", 400, copy_end - 400, **copy),
        event("cudaMemcpyAsync", 350, call_end - 350, cat="cuda_runtime", args={"correlation": 9}),
        event("cudaStreamSynchronize", call_end + 5, 1, cat="cuda_runtime"),
        event("gemm", 700, 310, **kernel),
    ]
    with tempfile.TemporaryDirectory() as folder:
        return Profile(read_trace(write(Path(folder) / "t.json", kineto_text(events))))


@pytest.mark.parametrize(("call_end", "waited"), [(420, 70), (800, 290)])
def test_a_gap_after_a_read_is_the_reads_as_long_as_that_held_the_host(call_end: int, waited: int) -> None:
    """The device idles from 410 to 700; the call to copy took 70 µs, or longer than that gap."""
    (parts,) = parts_of(read(copy_end=410, call_end=call_end))
    assert parts["idle_synchronisation"] == [waited]
    assert sum(times[0] for times in parts.values()) == 1000


def test_a_wait_in_a_gap_that_began_before_it_is_no_launch() -> None:
    """A runtime may hold the host although the device has nothing to do, as a first copy on ROCm did for 0.5 s."""
    profile = draw(
        """
ProfilerStep#1  0-1000
  aten::mm      10-20  kernel=gemm@20-100
  aten::mm      900-910  kernel=gemm@920-1000
""",
        A100,
    )
    assert parts_of(profile) == [{"matrix": [160], "idle_launch_bound": [840]}]
    waits = draw(
        """
ProfilerStep#1  0-1000
  aten::mm      10-20  kernel=gemm@20-100
  aten::copy_   200-600  wait=210-590
  aten::mm      900-910  kernel=gemm@920-1000
""",
        A100,
    )
    assert parts_of(waits) == [{"matrix": [160], "idle_synchronisation": [380], "idle_launch_bound": [460]}]


def test_the_host_alone() -> None:
    profile = draw("""
ProfilerStep#1                                                  0-1000
  train.py(3): step                                             1-999
    enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 10-110
    aten::mm                                                    200-300
    autograd::engine::evaluate_function: MmBackward0            400-600
      aten::mm                                                  410-590
    Optimizer.step#SGD.step                                     700-800
      aten::add_                                                710-720
""")
    assert parts_of(profile) == [
        {"data_loading": [100], "forward": [100], "backward": [200], "optimizer": [100], "python": [498], "other": [2]}
    ]


def test_parts_per_device_and_step() -> None:
    profile = draw(
        """
ProfilerStep#1  0-100
  aten::mm      10-20  kernel=gemm@30-80
ProfilerStep#2  200-400
  aten::mm      210-220  kernel=gemm@230-300
""",
        A100,
    )
    assert parts_of(profile) == [{"matrix": [50, 70], "idle_launch_bound": [50, 130]}]


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRACES, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_parts_add_up_on_real_traces(path: Path) -> None:
    profile = Profile(read_trace(path))
    spans = [step.duration_ns for step in profile.steps.items] or [profile.time_spent.wall_ns]
    for lane in step_parts(profile.table, profile.steps):
        assert np.sum(list(lane.parts.values()), axis=0).tolist() == spans
        assert all((times >= 0).all() for times in lane.parts.values())
        assert (lane.communication_overlapped_ns >= 0).all()


@pytest.mark.sampled
@pytest.mark.parametrize("path", DEVICE_TRACES, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_device_parts_against_painting_in_order(path: Path) -> None:
    """Every µs of each step is painted by the first layer that claims it; a reference that knows no intervals."""
    profile = Profile(read_trace(path))
    table = profile.table
    ends = profile.steps.ends if profile.steps.items else table.end_ns.max()[None]
    starts = profile.steps.starts if profile.steps.items else table.start_ns.min()[None]
    for lane in step_parts(table, profile.steps):
        for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            painted = _painted(profile, lane, start, end)
            for part in (
                "matrix",
                "attention",
                "convolution",
                "elementwise",
                "communication_exposed",
                "host_to_device",
            ):
                found = int(lane.parts[part][at]) if part in lane.parts else 0
                assert found == painted.get(part, 0), part
            idle = sum(int(times[at]) for part, times in lane.parts.items() if part.startswith("idle_"))
            assert idle == painted.get("idle", 0)


def _painted(profile: Profile, lane: LaneParts, start: int, end: int) -> dict[str, int]:
    """Sweep over the edges of device work; between two edges the state does not change."""
    table = profile.table
    rows = np.flatnonzero(table.is_category(DEVICE_WORK) & (table.device == lane.device))
    order = ["matrix", "attention", "convolution", "normalisation", "reduction", "elementwise", "optimizer", "other",
             "communication_exposed", "host_to_device", "device_to_host", "device_copy"]  # fmt: skip
    edges: list[tuple[int, int, str]] = []
    for row in rows.tolist():
        low, high = max(int(table.start_ns[row]), start), min(int(table.end_ns[row]), end)
        if low < high:
            kind = _kind(profile, row)
            edges += [(low, 1, kind), (high, -1, kind)]
    edges.sort()
    painted: dict[str, int] = {}
    running = dict.fromkeys(order, 0)
    last = start
    for time, change, kind in [*edges, (end, 0, "matrix")]:
        owner = next((name for name in order if running[name]), "idle")
        painted[owner] = painted.get(owner, 0) + time - last
        running[kind] += change
        last = time
    return painted


def _kind(profile: Profile, row: int) -> str:
    name = profile.name(row)
    if profile.category(row) is Category.KERNEL:
        kind = kernel_kind(name)
        return "communication_exposed" if kind == "communication" else kind
    if re.search("HtoD|HostToDevice", name):
        return "host_to_device"
    return "device_to_host" if re.search("DtoH|DeviceToHost", name) else "device_copy"


def test_host_parts_of_a_profile_cover_only_its_own_events() -> None:
    profile = draw("ProfilerStep#1  0-1000\n  aten::mm  100-300")
    assert profile.table.is_category(HOST_TREE).all()
    assert json.dumps(parts_of(profile)) == '[{"forward": [200], "python": [800]}]'
