"""Kinds of memory: a step drawn by hand, and sums against the allocator's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tidy_plugin.profile.memory.kinds import MEMORY_KINDS, MemoryByKind, kinds_of_allocations, kinds_of_memory
from tb_tidy_plugin.profile.memory.usage import memory_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

BEFORE = 10_000
BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


class Job:
    """A step with an allocation of each kind; sizes say which is which."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.total = BEFORE
        self.changes: list[tuple[float, int, int]] = []

    def lives(self, address: int, size: int, since: float, until: float | None = None) -> None:
        self.changes.append((since, size, address))
        if until is not None:
            self.changes.append((until, -size, address))

    def profile(self, folder: Path, *, totals: bool = True) -> Profile:
        made = []
        for ts, size, address in sorted(self.changes):
            self.total += size
            args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size}
            args |= {"Total Allocated": self.total, "Total Reserved": 1 << 20} if totals else {}
            made.append(
                {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "s": "t",
                 "args": args}
            )  # fmt: skip
        return Profile(read_trace(write(folder / "t.json", kineto_text([*self.events, *made]))))


def step() -> Job:
    job = Job()
    job.events = [
        event("aten::to", 0, 20),
        event("aten::mm", 100, 50),
        event("aten::relu", 200, 50),
        event(BACKWARD, 1000, 200),
        event(BACKWARD, 1300, 200),
        event("Optimizer.step#Adam.step", 2000, 500, cat="user_annotation"),
    ]
    job.lives(1, 100, 110, 1250)  # used by the backward pass
    job.lives(2, 7, 120, 140)
    job.lives(3, 400, 1100, 3000)
    job.lives(4, 9, 1110, 1190)
    job.lives(5, 900, 2100)
    job.lives(6, 11, 2110, 2200)
    job.lives(7, 55, 300)  # outlives the optimizer's step
    job.changes.append((2600, -4000, 99))  # from before the recording
    return job


def at(found: MemoryByKind, time_us: float) -> dict[str, int]:
    column = found.bytes[:, np.searchsorted(found.time_ns, time_us * 1000, side="right") - 1].tolist()
    return {kind: size for kind, size in zip(MEMORY_KINDS, column, strict=True) if size}


@pytest.mark.parametrize("totals", [True, False])
def test_kinds_by_phase_and_life(tmp_path: Path, totals: bool) -> None:
    profile = step().profile(tmp_path, totals=totals)
    memory = memory_of(profile)
    assert memory is not None
    (found,) = kinds_of_memory(profile, memory).values()
    earlier = BEFORE if totals else 4000
    assert at(found, 130) == {"earlier": earlier, "activation": 100, "temporary": 7}
    assert at(found, 1150) == {"earlier": earlier, "activation": 100, "gradient": 400, "temporary": 9, "unknown": 55}
    assert at(found, 2150) == {
        "earlier": earlier, "gradient": 400, "optimizer_state": 900, "temporary": 11, "unknown": 55
    }  # fmt: skip
    kept = {"earlier": earlier - 4000} if totals else {}
    assert at(found, 3001) == kept | {"optimizer_state": 900, "unknown": 55}
    assert found.bytes[:, found.peak].sum() == memory.by_device[0].peak.allocated_bytes
    assert len(kinds_of_allocations(profile)) == 7


def test_a_copy_to_the_device_allocates_an_input(tmp_path: Path) -> None:
    job = step()
    job.lives(8, 64, 5)
    shared_args = {"correlation": 7, "External id": 1}
    job.events[0] = event("aten::to", 0, 20, args={"External id": 1, "Ev Idx": 1})
    job.events += [
        event("cudaMemcpyAsync", 8, 3, cat="cuda_runtime", args=shared_args),
        event("Memcpy HtoD (Pinned -> Device)", 30, 5, cat="gpu_memcpy", args=shared_args | {"device": 0, "stream": 7}),
    ]
    profile = job.profile(tmp_path)
    memory = memory_of(profile)
    assert memory is not None
    (found,) = kinds_of_memory(profile, memory).values()
    assert at(found, 50)["input"] == 64


def test_inference_keeps_nothing_for_a_backward_pass(tmp_path: Path) -> None:
    job = Job()
    job.events = [event("aten::mm", 0, 50)]
    job.lives(1, 100, 10, 60)
    job.lives(2, 30, 20)
    profile = job.profile(tmp_path)
    assert sorted(kinds_of_allocations(profile).values()) == ["temporary", "unknown"]


def test_kinds_add_up_to_the_allocators_own_figure() -> None:
    (path,) = shared("traces/v100_memory_compile_216k").glob("*.gz")
    profile = Profile(read_trace(path))
    memory = memory_of(profile)
    assert memory is not None
    for device in memory.by_device:
        found = kinds_of_memory(profile, memory)[device.device]
        points = dict(zip(device.curve.time_ns, device.curve.allocated_bytes, strict=True))
        both = [
            (sum_, points[time])
            for time, sum_ in zip(found.time_ns.tolist(), found.bytes.sum(axis=0).tolist(), strict=True)
            if time in points
        ]
        assert len(both) > 20
        assert found.bytes.sum(axis=0).max() == device.peak.allocated_bytes
        assert np.mean([one == other for one, other in both]) > 0.9, "only points of one instant may differ"
