"""A device that does not exist: programs recorded on the CPU whose operators are given device times.

The times go where PyTorch puts those of a PrivateUse1 back end (`_parse_kineto_results` in
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/autograd/profiler.py), so all that follows is the real code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tb_tidy_plugin
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.trace.columns import Category, EventTable
from tb_tidy_plugin.trace.external import with_device_events
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import kineto_text, write

if TYPE_CHECKING:
    import torch
    from torch.autograd.profiler_util import FunctionEvent

KERNELS_US = {"aten::addmm": 120.5, "aten::mm": 80.25, "aten::clamp_min": 9.0, "aten::threshold_backward": 11.0}
"""Device time in µs of each call of the operators that have kernels."""

GAP_US = 0.05
"""Time in µs that an operator adds to that of the operators inside it."""

LATENCY_NS = 7_000


@dataclass(frozen=True)
class Recorded:
    """A recording, and the profiler that knows the times."""

    trace: Path
    prof: torch.profiler.profile


def record(trace: Path, steps: int = 2) -> Recorded:
    """Trains a small network for some steps and exports the trace, without a side file."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    network = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    profilers: list[torch.profiler.profile] = []

    def ready(prof: torch.profiler.profile) -> None:
        prof.export_chrome_trace(str(trace))
        give_times(prof)
        profilers.append(prof)

    plan = schedule(wait=0, warmup=1, active=steps, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready, record_shapes=True) as prof:
        for _ in range(steps + 1):
            optimizer.zero_grad()
            network(torch.ones(16, 32)).sum().backward()
            optimizer.step()
            prof.step()
    return Recorded(trace, profilers[0])


def record_markers(trace: Path) -> torch.autograd.profiler.profile:
    """Records without `torch.profiler`: torch 2.13 times operators of a PrivateUse1 device in this mode only."""
    import torch

    prof = torch.autograd.profiler.profile()
    with prof:
        for step in range(2):
            with torch.autograd.profiler.record_function(f"ProfilerStep#{step}"):
                torch.mm(torch.ones(8, 8), torch.ones(8, 8))
    prof.export_chrome_trace(str(trace))  # type: ignore[no-untyped-call]
    give_times(prof)
    return prof


def give_times(prof: torch.profiler.profile | torch.autograd.profiler.profile) -> None:
    """Gives each operator a time on the made-up device, a little above the sum of those inside it."""
    recorder: Any = getattr(prof, "profiler", prof)
    events: list[FunctionEvent] = recorder.function_events
    for event in events:
        event.use_device = "privateuseone"
        event.is_legacy = True
    for event in events:
        if event.cpu_parent is None:
            give_time(event)


def give_time(event: FunctionEvent) -> float:
    """Gives `event` and the events inside it their times in µs; returns that of `event`."""
    inside_us = sum(give_time(child) for child in event.cpu_children)
    time_us = KERNELS_US.get(event.name) or (inside_us and inside_us + GAP_US)
    event.kernels.clear()
    if time_us:
        event.append_kernel(event.name, 0, time_us)  # type: ignore[no-untyped-call]
    return time_us


def events_in(trace: Path) -> list[dict[str, Any]]:
    """The events of an uncompressed trace, read by the standard library."""
    document = json.loads(trace.read_text())
    events: list[dict[str, Any]] = document["traceEvents"] if isinstance(document, dict) else document
    return events


def side_file(trace: Path, entries: list[tuple[str, int, int, int]], **fields: object) -> Path:
    """Writes a side file beside `trace`: name, External id, thread and device time in ns of each entry."""
    operators = [
        dict(zip(("name", "external_id", "thread", "device_time_ns"), entry, strict=True)) for entry in entries
    ]
    document = {
        "version": 1, "device": {"kind": "npu", "name": "Acme X1"}, "launch_latency_ns": 1000, "operators": operators,
    } | fields  # fmt: skip
    path = trace.with_name(f"{trace.name}.device_events.json")
    path.write_text(json.dumps(document))
    return path


def operator(name: str, start_us: float, end_us: float, external_id: int, **fields: object) -> dict[str, Any]:
    """One operator on thread 1 of process 1, as Kineto writes it."""
    args: Mapping[str, object] = {"External id": external_id, "Ev Idx": external_id}
    return {
        "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": end_us - start_us,
        "args": args,
    } | fields  # fmt: skip


def traced(folder: Path, events: list[dict[str, Any]], name: str = "w.1.pt.trace.json") -> Path:
    """Writes a trace of `events`."""
    return write(folder / name, kineto_text(events))


def read(trace: Path) -> EventTable:
    return with_device_events(read_trace(trace), trace)


def kernels_of(profile: Profile) -> list[tuple[str, int, int]]:
    """Name, start and duration of each kernel in order of start."""
    rows = np.flatnonzero(profile.table.category == Category.KERNEL).tolist()
    rows.sort(key=profile.start_ns)
    return [(profile.name(row), profile.start_ns(row), profile.duration_ns(row)) for row in rows]


def report_on(trace: Path) -> ProfileReport:
    (run,) = tb_tidy_plugin.analyze(trace).runs
    return run.profiles[0]
