"""Memory: hand counts, and a simulation of any allocations."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.profile.memory.allocations import MemoryDevice, asked_by, memory_events
from tb_tidy_plugin.profile.memory.usage import DeviceMemory, Memory, memory_of, thinned
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.trace.columns import ABSENT, Times
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import event, kineto_text, write

CPU, CUDA = (0, -1), (1, 0)
BEFORE = 1000  # bytes allocated before a made-up recording


def instant(
    ts: float,
    size: int,
    args: dict[str, int] | None = None,
    address: int | None = 0x10,
    place: tuple[int, int] = CUDA,
    name: str = "[memory]",
) -> dict[str, Any]:
    known = {"Device Type": place[0], "Device Id": place[1], "Bytes": size} | (args or {})
    if address is not None:
        known["Addr"] = address
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": ts, "args": known,
    }  # fmt: skip


def totals(allocated: int, reserved: int = 4096) -> dict[str, int]:
    return {"Total Allocated": allocated, "Total Reserved": reserved}


def profile_of(events: list[dict[str, Any]]) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        return Profile(read_trace(write(Path(folder, "t.json"), kineto_text(events))))


def memory(events: list[dict[str, Any]], points: int = 2000) -> Memory:
    found = memory_of(profile_of(events), points)
    assert found is not None
    return found


def test_nothing_recorded_is_none() -> None:
    assert memory_of(draw("aten::mm  0-10")) is None


def step(number: int, start: int, end: int) -> dict[str, Any]:
    return event(f"ProfilerStep#{number}", start, end - start, cat="user_annotation")


TWO_STEPS = [
    step(0, 0, 100),
    event("aten::linear", 10, 20),
    event("aten::empty", 11, 5),
    instant(12, 512, totals(1512), 1),
    event("aten::addmm", 20, 5),
    instant(21, 1024, totals(2536), 2),
    instant(40, -512, totals(2024), 1),
    instant(50, -300, totals(1724), 9),
    step(1, 100, 200),
    event("aten::relu", 110, 5),
    instant(111, 256, totals(1980), 1),
    instant(120, -1024, totals(956), 2),
    instant(130, -256, totals(700), 1),
]
"""1000 bytes are there from before; address 1 is used twice; what is freed at 9 was allocated before."""


def test_a_peak_and_what_holds_it() -> None:
    profile = profile_of(TWO_STEPS)
    found = memory_of(profile)
    assert found is not None
    (device,) = found.by_device
    assert found.devices[device.device] == MemoryDevice("cuda", 0)
    assert (device.basis, device.start_bytes, device.disagreements) == ("total_allocated", 1000, 0)
    assert (device.allocations, device.frees, device.allocated_bytes) == (3, 4, 1792)
    assert (device.frees_of_unseen, device.bytes_of_unseen) == (1, 300)
    peak = device.peak
    assert (peak.time_ns, peak.allocated_bytes, peak.reserved_bytes, peak.other_bytes) == (21_000, 2536, 4096, 1000)
    assert peak.alive is not None
    assert peak.alive.bytes.tolist() == [1024, 512]
    assert peak.alive.freed_ns.tolist() == [120_000, 40_000]
    holders = [profile.name(row) for row in asked_by(profile, peak.alive.row).tolist()]
    assert holders == ["aten::addmm", "aten::linear"], "who asked, not `aten::empty`"


def test_what_a_step_keeps() -> None:
    profile = profile_of(TWO_STEPS)
    found = memory_of(profile)
    assert found is not None
    figures = [
        (entry.start_bytes, entry.end_bytes, entry.peak_bytes, entry.kept, entry.kept_bytes) for entry in found.steps
    ]
    assert figures == [(1000, 1724, 2536, 1, 1024), (1724, 700, 1980, 0, 0)]


def test_who_asks_where_no_operator_does() -> None:
    profile = profile_of(
        [
            event("train.py(1): step", 0, 100, cat="python_function", args={"Python id": 1}),
            instant(10, 8, address=1),
            event("aten::empty", 20, 5),
            event("aten::empty.memory_format", 21, 2),
            instant(22, 8, address=2),
            instant(200, 8, address=3),
        ]
    )
    causes = asked_by(profile, memory_events(profile).row)
    assert [profile.name(row) if row != ABSENT else None for row in causes.tolist()] == [
        "train.py(1): step", "aten::empty", None,
    ]  # fmt: skip


def test_a_free_that_was_not_recorded_ends_with_the_next_use_of_the_address() -> None:
    found = memory([instant(1, 100, totals(100)), instant(2, 200, totals(200)), instant(3, -200, totals(0))])
    (device,) = found.by_device
    assert device.disagreements == 1, "100 bytes went without an event"
    assert device.peak.alive is not None
    assert device.peak.alive.bytes.tolist() == [200]
    assert device.peak.other_bytes == 0
    assert found.allocations.freed_ns.tolist() == [1000, 2000], "relative to the first event"


def test_a_recording_that_begins_with_its_peak() -> None:
    found = memory([instant(5, -400, totals(600), 7), instant(6, 100, totals(700))])
    (device,) = found.by_device
    assert (device.peak.allocated_bytes, device.peak.row, device.peak.time_ns) == (1000, ABSENT, 0)
    assert (device.peak.reserved_bytes, device.peak.other_bytes) == (None, 1000)
    assert device.peak.alive is not None
    assert len(device.peak.alive) == 0
    assert device.curve.allocated_bytes == (1000, 600, 700)


def test_without_addresses_and_totals_only_the_sum_is_known() -> None:
    found = memory([instant(1, 100, address=None), instant(2, -300, address=None), instant(3, 50, address=None)])
    (device,) = found.by_device
    assert (device.basis, device.start_bytes, device.curve.allocated_bytes) == ("running_sum", 200, (200, 300, 0, 50))
    assert (device.peak.allocated_bytes, device.peak.alive, device.peak.other_bytes) == (300, None, None)
    assert (device.frees_of_unseen, device.peak_reserved_bytes) == (None, None)
    assert [entry.kept for entry in found.steps] == [None] * len(found.steps)
    assert len(found.allocations) == 0


def test_main_memory_has_no_reserved_bytes() -> None:
    found = memory([instant(1, 8, totals(8, 0), place=CPU), instant(2, 16, totals(16, 32), place=CUDA)])
    assert [(found.devices[entry.device].kind, entry.peak_reserved_bytes) for entry in found.by_device] == [
        ("cpu", None), ("cuda", 32),
    ]  # fmt: skip


def test_running_out_of_memory_allocates_nothing() -> None:
    failed = instant(3, 1 << 40, totals(100, 200), None, name="[OutOfMemory]")
    found = memory([instant(1, 100, totals(100)), failed])
    (device,) = found.by_device
    assert device.peak.allocated_bytes == 100
    (failure,) = found.out_of_memory
    assert (failure.time_ns, failure.wanted_bytes, failure.allocated_bytes, failure.reserved_bytes) == (
        2000, 1 << 40, 100, 200,
    )  # fmt: skip
    assert memory([failed]).by_device == ()


@pytest.mark.parametrize(
    "args",
    [{"Bytes": "many"}, {"Bytes": 1 << 80}, {"Bytes": 64, "Device Id": 1 << 70}, {}, {"Addr": 1 << 90, "Bytes": -8}],
)
def test_impossible_events_change_nothing_else(args: dict[str, Any]) -> None:
    broken = instant(2, 0) | {"args": args}
    found = memory([instant(1, 100, totals(100)), broken, instant(3, -100, totals(0))])
    (device,) = (entry for entry in found.by_device if found.devices[entry.device].kind == "cuda")
    assert (device.allocations, device.frees, device.disagreements) == (1, 1, 0)


# Made-up allocations against a simulation of an allocator


@dataclass(frozen=True)
class Made:
    events: list[dict[str, Any]]
    after: list[dict[tuple[tuple[int, int], int], tuple[int, int]]]
    totals: dict[tuple[int, int], list[int]]
    steps: list[tuple[int, int]]


@st.composite
def made_up(draw_: st.DrawFn) -> Made:
    """Events one µs apart on two devices, and after each what is alive: (device, address) -> (index, bytes)."""
    wanted = draw_(
        st.lists(
            st.tuples(st.sampled_from([CPU, CUDA]), st.integers(1, 6), st.integers(1, 50)), min_size=1, max_size=60
        )
    )
    alive: dict[tuple[tuple[int, int], int], tuple[int, int]] = {
        (place, address): (-1, 7 * address) for place in (CPU, CUDA) for address in (5, 6)
    }
    total = {CPU: BEFORE, CUDA: BEFORE}
    events, after, history = [], [], defaultdict(list)
    for index, (place, address, size) in enumerate(wanted):
        change = size
        if (place, address) in alive:
            change = -alive.pop((place, address))[1]
        else:
            alive[place, address] = (index, size)
        total[place] += change
        events.append(instant(index, change, totals(total[place]), address, place))
        after.append(dict(alive))
        history[place].append(total[place])
    cuts = sorted(draw_(st.sets(st.integers(0, len(wanted)), max_size=4)))
    steps = list(pairwise(cuts))
    return Made(events, after, history, steps)


@given(made_up(), st.booleans())
def test_any_allocations_equal_a_simulation(made: Made, with_totals: bool) -> None:
    steps = [step(number, start, end) for number, (start, end) in enumerate(made.steps)]
    events = made.events
    if not with_totals:
        events = [
            entry | {"args": {key: value for key, value in entry["args"].items() if "Total" not in key}}
            for entry in events
        ]
    profile = profile_of([*steps, *events])
    found = memory_of(profile)
    assert found is not None
    places = [{"cpu": CPU, "cuda": CUDA}[device.kind] for device in found.devices]
    for device in found.by_device:
        place = places[device.device]
        indices = [index for index, entry in enumerate(events) if _place(entry) == place]
        history = [BEFORE, *made.totals[place]] if made.totals[place] else [BEFORE]
        if device.basis == "total_allocated":
            _equals_simulation(device, history, indices, made, place)
        else:
            unseen = sum(7 * address for address in (5, 6) if _freed_first(events, place, address))
            assert device.bytes_of_unseen == unseen
            shift = device.curve.allocated_bytes[0] - BEFORE
            assert device.start_bytes == unseen
            assert list(device.curve.allocated_bytes) == [value + shift for value in history]
        assert device.disagreements == 0
    for entry in found.steps if made.steps else ():
        start, end = made.steps[entry.step]
        place = places[entry.device]
        survivors = made.after[end - 1]
        kept = [size for (where, _), (index, size) in survivors.items() if where == place and start <= index < end]
        assert (entry.kept, entry.kept_bytes) == (len(kept), sum(kept))


def _equals_simulation(
    device: DeviceMemory, history: list[int], indices: list[int], made: Made, place: tuple[int, int]
) -> None:
    assert list(device.curve.allocated_bytes) == history
    peak = max(history)
    assert device.peak.allocated_bytes == peak
    at = history.index(peak, 1) if peak in history[1:] else 0  # of what was alive at the start nothing is known
    expected = []
    if at:
        survivors = made.after[indices[at - 1]]
        expected = [size for (where, _), (index, size) in survivors.items() if where == place and index >= 0]
    assert device.peak.alive is not None
    assert sorted(device.peak.alive.bytes.tolist()) == sorted(expected)
    assert device.peak.other_bytes == peak - sum(expected)


def _place(entry: dict[str, Any]) -> tuple[int, int]:
    return entry["args"]["Device Type"], entry["args"]["Device Id"]


def _freed_first(events: list[dict[str, Any]], place: tuple[int, int], address: int) -> bool:
    here = [entry["args"]["Bytes"] for entry in events if _place(entry) == place and entry["args"]["Addr"] == address]
    return bool(here) and here[0] < 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=120), st.integers(10, 40))
def test_a_thinned_curve_keeps_its_peaks(entries: list[tuple[int, int]], points: int) -> None:
    time_ns: Times = np.cumsum([gap for gap, _ in entries])
    first = np.array([value for _, value in entries], np.int64)
    second = first[::-1].copy()
    kept = thinned(time_ns, [first, second], points)
    assert len(kept) <= points
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert {kept[0], kept[-1]} == {0, len(entries) - 1}
    for value in (first, second):
        assert (value[kept].max(), value[kept].min()) == (value.max(), value.min())
        assert int(value[kept].argmax()) == kept.tolist().index(int(value.argmax())), "the first time it is reached"
