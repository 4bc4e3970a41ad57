"""Memory as the report shows it, counted by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write


def test_what_holds_the_peak() -> None:
    (path,) = shared("traces/v100_memory_compile_216k").glob("*.gz")
    cpu, device = figures_of(Profile(read_trace(path))).memory
    assert (cpu.device, device.device) == ("cpu", "cuda:1")
    events = [event for event in _instants(path) if event["args"]["Device Type"] == 1]
    assert device.peak_bytes == max(event["args"]["Total Allocated"] for event in events)
    alive: dict[int, int] = {}
    for each in sorted(events, key=lambda each: each["ts"]):
        if each["args"]["Bytes"] > 0:
            alive[each["args"]["Addr"]] = each["args"]["Bytes"]
        else:
            alive.pop(each["args"]["Addr"], None)
        if each["args"]["Total Allocated"] == device.peak_bytes:
            break
    assert sum(holder.bytes for holder in device.holders) == sum(alive.values())
    assert sum(holder.allocations for holder in device.holders) == len(alive)
    assert device.other_bytes == device.peak_bytes - sum(alive.values())
    sizes = [holder.bytes for holder in device.holders]
    assert sizes == sorted(sizes, reverse=True)
    assert max(device.allocated_bytes) == device.peak_bytes
    assert [step.step for step in device.steps] == [f"ProfilerStep#{n}" for n in range(2, 7)]


def _instants(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event["name"] == "[memory]"]


def test_holders_are_told_apart_by_operator_and_place(tmp_path: Path) -> None:
    def allocation(ts: float, address: int, total: int) -> dict[str, Any]:
        args = {"Device Type": 0, "Device Id": -1, "Addr": address, "Bytes": 100, "Total Allocated": total}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "s": "t",
                "args": args}  # fmt: skip

    frames = [
        event(f"train.py({line}): {name}", start, 90, cat="python_function", args={"Python id": line})
        for line, name, start in ((1, "one", 0), (2, "two", 100))
    ]
    calls = [event("aten::mm", start, 20) for start in (10, 50, 110)] + [event("aten::empty", 12, 5)]
    memory = [allocation(13, 1, 100), allocation(55, 2, 200), allocation(115, 3, 300), allocation(180, 4, 400)]
    profile = Profile(read_trace(write(tmp_path / "w.pt.trace.json", kineto_text([*frames, *calls, *memory]))))
    (device,) = figures_of(profile).memory
    assert [(held.operator, held.function, held.allocations, held.bytes) for held in device.holders] == [
        ("aten::mm", "one", 2, 200), ("aten::mm", "two", 1, 100), ("train.py(2): two", "two", 1, 100),
    ]  # fmt: skip
