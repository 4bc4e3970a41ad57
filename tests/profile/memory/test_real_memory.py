"""Memory of real traces against a plain replay of their JSON, and of fresh ones against the live profiler."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.profile.memory.allocations import Allocations, asked_by, memory_events
from tb_tidy_plugin.profile.memory.usage import memory_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared


def instants_of(folder: str) -> tuple[Profile, list[dict[str, Any]]]:
    (path,) = shared(f"traces/{folder}").glob("*.gz")
    data = json.loads(gzip.decompress(path.read_bytes()))
    events = [
        entry for entry in (data["traceEvents"] if isinstance(data, dict) else data) if entry["name"] == "[memory]"
    ]
    return Profile(read_trace(path)), sorted(events, key=lambda entry: (entry["ts"], entry["args"].get("Ev Idx", 0)))


def _place(entry: dict[str, Any]) -> tuple[int, int]:
    return entry["args"]["Device Type"], entry["args"]["Device Id"]


def test_a_real_peak_equals_a_replay_of_its_events() -> None:
    profile, events = instants_of("v100_memory_compile_216k")
    found = memory_of(profile)
    assert found is not None
    assert len(events) == 28_010
    for device in found.by_device:
        place = (0, -1) if found.devices[device.device].kind == "cpu" else (1, 1)
        here = [entry["args"] for entry in events if _place(entry) == place]
        peak = max(args["Total Allocated"] for args in here)
        alive: dict[int, int] = {}
        for args in here:
            if args["Bytes"] > 0:
                alive[args["Addr"]] = args["Bytes"]
            else:
                del alive[args["Addr"]]
            if args["Total Allocated"] == peak:
                break
        assert device.peak.allocated_bytes == max(device.curve.allocated_bytes) == peak
        assert device.peak.alive is not None
        assert device.peak.alive.bytes.tolist() == sorted(alive.values(), reverse=True)
        assert device.peak.other_bytes == here[0]["Total Allocated"] - here[0]["Bytes"] == device.start_bytes
        assert (device.disagreements, device.frees_of_unseen) == (0, 0)
    assert [device.peak_reserved_bytes for device in found.by_device] == [None, 12_782_141_440]


def test_the_steps_of_a_real_trace_free_all_that_they_allocate() -> None:
    profile, _ = instants_of("v100_memory_compile_216k")
    found = memory_of(profile)
    assert found is not None
    assert len(found.steps) == 2 * 5
    assert {entry.kept for entry in found.steps} == {0}
    assert {entry.end_bytes - entry.start_bytes for entry in found.steps} == {0}


@pytest.mark.parametrize("folder", ["v100_2021_resnet50_workers0", "v100_2021_resnet50_workers4"])
def test_a_trace_of_2021_is_summed_up(folder: str) -> None:
    profile, events = instants_of(folder)
    found = memory_of(profile)
    assert found is not None
    for device in found.by_device:
        place = (0, -1) if found.devices[device.device].kind == "cpu" else (1, 0)
        total, sums = 0, []
        for entry in events:
            if _place(entry) == place:
                total += entry["args"]["Bytes"]
                sums.append(total)
        assert device.basis == "running_sum"
        assert device.start_bytes == max(0, -min(sums))
        # Times are whole µs, and the order within one is not recorded.
        assert device.peak.allocated_bytes == pytest.approx(max(sums) + device.start_bytes, rel=0.001)
        assert device.peak.alive is None
        assert device.curve.allocated_bytes[-1] == total + device.start_bytes


# Against the live profiler


@pytest.mark.torch
@pytest.mark.parametrize("program", ["plain", "reentrant", "not_reentrant", "penalty"])
def test_lives_are_the_live_profilers(small_models: Path, program: str) -> None:
    live = json.loads((small_models / "truth.json").read_text())[program]["memory"]["events"]
    profile = Profile(read_trace(small_models / f"{program}.pt.trace.json"))
    found = memory_of(profile)
    assert found is not None
    ends = {number: time for time, number, size in live if size < 0}
    expected = [(time, size, ends.get(number)) for time, number, size in live if size > 0]
    offset = expected[0][0] - int(found.allocations.allocated_ns[0])
    assert _lives(found.allocations, offset) == expected
    assert len(expected) > 50


def _lives(allocations: Allocations, offset: int) -> list[tuple[int, int, int | None]]:
    columns = (allocations.allocated_ns, allocations.bytes, allocations.freed_ns)
    return [
        (made + offset, size, None if freed == ABSENT else freed + offset)
        for made, size, freed in zip(*(column.tolist() for column in columns), strict=True)
    ]


@pytest.mark.torch
@pytest.mark.parametrize("program", ["plain", "penalty"])
def test_net_bytes_of_operators_are_those_of_key_averages(small_models: Path, program: str) -> None:
    live = json.loads((small_models / "truth.json").read_text())[program]["memory"]["net_bytes"]
    profile = Profile(read_trace(small_models / f"{program}.pt.trace.json"))
    events = memory_events(profile)
    ours: Counter[str] = Counter()
    for row, size in zip(events.row.tolist(), events.bytes.tolist(), strict=True):
        around = profile.parent(row)
        ours["[memory]" if around is None else profile.name(around)] += size
    assert {name: size for name, size in ours.items() if size} == {name: size for name, size in live.items() if size}


@pytest.mark.torch
def test_what_a_loop_keeps_is_seen(small_models: Path) -> None:
    profile = Profile(read_trace(small_models / "growth.pt.trace.json"))
    found = memory_of(profile)
    assert found is not None
    assert [entry.kept_bytes for entry in found.steps] == [1_500_000] * 3
    assert [entry.end_bytes - entry.start_bytes for entry in found.steps][1:] == [1_000_000] * 2
    step = profile.steps.items[2]
    made = (found.allocations.allocated_ns >= step.start_ns) & (found.allocations.allocated_ns < step.end_ns)
    kept = found.allocations.take(made & (found.allocations.freed_ns == ABSENT)).largest_first
    assert [profile.name(row) for row in asked_by(profile, kept.row).tolist()] == ["aten::ones", "aten::zeros"]
    assert kept.bytes.tolist() == [1_000_000, 500_000]
