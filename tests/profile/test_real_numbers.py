"""Where the time went, on real traces: against figures that others have published or counted by hand.

`tests/ledger/test_recordings.py` counts all recordings once more from their JSON.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.profile.kernels import collective_kernels
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared


def profile_of(name: str) -> Profile:
    (path,) = shared(f"traces/{name}").glob("*.gz")
    return Profile(read_trace(path))


def per_cent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2)


@pytest.mark.parametrize(("name", "share"), [("a100_ddp8_control", 35.15), ("mi300_ddp8_resnet_checkpoint", 82.30)])
def test_communication(name: str, share: float) -> None:
    profile = profile_of(name)
    assert per_cent(profile.covered(collective_kernels(profile.table)).total_ns, profile.wall_ns) == share


@pytest.mark.parametrize(("name", "share"), [("mi210_gpu_only", 88.69), ("mi300_sglang_prefill_decode", 49.91)])
def test_kernels(name: str, share: float) -> None:
    profile = profile_of(name)
    kernels = np.flatnonzero(profile.table.category == Category.KERNEL)
    compute = np.setdiff1d(kernels, collective_kernels(profile.table))
    assert per_cent(profile.covered(compute).total_ns, profile.wall_ns) == share


def test_steps_are_counted_once() -> None:
    steps = profile_of("mi300_ddp8_resnet_checkpoint").steps
    assert [round(step.duration_ns / 1000) for step in steps.items] == [16_799, 15_951, 15_887]
    assert steps.basis == "profiler_step"


@pytest.mark.parametrize("name", ["mi300_compile_triton", "mi210_gpu_only"])
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
