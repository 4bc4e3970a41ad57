"""The time that a step waits for: critical time, loading of kernels, the slower side."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.host.critical import (
    clipped_to_steps,
    critical_time,
    device_idle,
    loading_calls,
    loading_time,
    per_step,
    slower_side,
)
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Remove
from tb_tidy_plugin.rulekit.testing.drawn import A100, draw, row_of
from tests.ledger.traces import Made

GEMM, NORM = "ampere_sgemm_128x64_nn", "layer_norm_kernel"

HOST = "ProfilerStep#1  0-1000\n  aten::mm  100-400\n  aten::add  500-600"
DEVICE = """
ProfilerStep#1  0-1000
  aten::mm      100-400  kernel=gemm@150-800
  aten::add     500-900  kernel=add@850-870
"""


def step() -> Made:
    """A step of 20 ms."""
    return Made().mark("ProfilerStep#1", 0, 20_000)


def names(profile: Profile) -> list[str]:
    return [profile.name(row) for row in loading_calls(profile).tolist()]


class TestLoadingCalls:
    def test_a_long_first_launch_loads_and_a_later_one_of_the_same_kernel_does_not(self) -> None:
        made = (
            step().kernel(GEMM, 6001, 6050, launch=1000, took=5000).kernel(GEMM, 12_001, 12_050, launch=7000, took=5000)
        )
        profile = made.profile()
        assert [profile.start_ns(row) for row in loading_calls(profile).tolist()] == [1_000_000]
        assert loading_time(profile).spans == [(1_000_000, 6_000_000)]

    def test_under_a_busy_device_it_loads_all_the_same(self) -> None:
        made = step().kernel("ncclDevKernel_AllGather", 10, 15_000, launch=2, stream=9)
        assert names(made.kernel(GEMM, 6001, 6050, launch=1000, took=5000).profile()) == ["cudaLaunchKernel"]

    @pytest.mark.parametrize(
        "name",
        [
            "cuModuleLoadData",
            "cuLibraryLoadData",
            "cudaFuncGetAttributes",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        ],
    )
    def test_calls_that_launch_nothing_load_too(self, name: str) -> None:
        assert names(step().call(name, 1000, 3000).kernel(GEMM, 3010, 3020, launch=3002).profile()) == [name]

    def test_a_launch_that_blocks_until_its_kernel_is_done_loads_nothing(self) -> None:
        assert names(step().kernel(GEMM, 1010, 5990, launch=1000, took=5000).profile()) == []

    def test_a_launch_that_waits_for_a_place_in_the_queue_loads_nothing(self) -> None:
        made = step()
        for at in range(300):
            made.kernel(NORM, 1000 + 30 * at, 1030 + 30 * at, launch=1 + 2 * at, took=1)
        assert names(made.kernel(GEMM, 10_000, 10_100, launch=700, took=5000).profile()) == []

    @pytest.mark.parametrize("name", ["cudaMalloc", "cudaStreamSynchronize", "cudaMemcpyAsync"])
    def test_other_long_calls_load_nothing(self, name: str) -> None:
        assert names(step().call(name, 1000, 3000).kernel(GEMM, 3010, 3020, launch=3002).profile()) == []

    @pytest.mark.parametrize("name", ["Lazy Function Loading", "Runtime Triggered Module Loading", "Driver Compiler"])
    def test_the_recording_names_loads_itself(self, name: str) -> None:
        made = step().add("overhead", name, 100, 350, -1, -1).kernel(GEMM, 6001, 6050, launch=1000)
        assert loading_time(made.profile()).spans == [(100_000, 350_000)]


class TestCosts:
    """Of 9.5 ms, `aten::layer_norm` loads a kernel for 6 ms; warm, it takes the host 3.5 ms and the device 2."""

    def made(self) -> Made:
        made = step().kernel(GEMM, 10, 100, launch=2)
        made.operator("aten::layer_norm", 1000, 10_500, **{"External id": 7})
        return made.kernel(NORM, 7501, 9501, launch=1500, took=6000)

    def test_an_operator_does_not_cost_what_it_loads(self) -> None:
        profile = self.made().profile()
        rows = np.array([row_of(profile, "aten::layer_norm")])
        # 500 µs before the load, 3 ms after it, of which the kernel takes 2.
        assert critical_time(profile, rows).total_ns == (500 + 3000) * 1000

    def test_a_fix_does_not_save_what_it_loads(self) -> None:
        profile = self.made().operator("aten::add", 11_000, 20_000).profile()
        saving = SavingEstimates(profile).saving(Fix([Remove((row_of(profile, "aten::layer_norm"),))]))
        assert saving.expected_ns == 3_500_000  # of the host's, which ends last

    def test_the_device_is_the_side_of_operators_that_load(self) -> None:
        profile = self.made().profile()
        (row,) = slower_side(profile, [row_of(profile, "aten::layer_norm")])
        assert profile.name(row) == NORM

    def test_without_device_work_it_is_the_operators_that_load_nothing(self) -> None:
        made = (
            step()
            .operator("aten::cold", 0, 5000)
            .call("cuModuleLoadData", 100, 4900)
            .operator("aten::warm", 6000, 6010)
        )
        profile = made.kernel(GEMM, 9000, 9001, launch=8000).profile()
        cold, warm = (row_of(profile, name) for name in ("aten::cold", "aten::warm"))
        assert slower_side(profile, [cold, warm]) == (warm,)
        assert slower_side(profile, [cold]) == (cold,)


def spans(time: Intervals) -> list[tuple[int, int]]:
    return [(start // 1000, end // 1000) for start, end in zip(time.starts.tolist(), time.ends.tolist(), strict=True)]


def test_without_a_device_the_step_waits_for_its_host() -> None:
    profile = draw(HOST)
    rows = np.array([row_of(profile, "aten::mm"), row_of(profile, "aten::add")])
    assert spans(critical_time(profile, rows)) == [(100, 400), (500, 600)]


def test_the_host_counts_while_no_device_runs() -> None:
    """From 500 to 800 `aten::add` only runs ahead of the device; its own kernel runs from 850 to 870."""
    profile = draw(DEVICE, A100)
    assert spans(critical_time(profile, np.array([row_of(profile, "aten::add")]))) == [(800, 900)]


def test_device_work_counts_with_the_host_event_that_launched_it() -> None:
    profile = draw(DEVICE, A100)
    assert spans(critical_time(profile, np.array([row_of(profile, "aten::mm")]))) == [(100, 800)]


def test_device_work_by_itself_counts_as_it_is() -> None:
    profile = draw(DEVICE, A100)
    assert spans(critical_time(profile, np.array([row_of(profile, "gemm")]))) == [(150, 800)]


def test_a_device_idles_before_between_and_after_its_work() -> None:
    profile = draw("aten::mm 0-9 kernel=gemm@10-20\naten::mm 11-12 kernel=gemm@30-40", A100)
    idle = device_idle(profile)
    around = Intervals(np.array([0]), np.array([50_000])).intersection(idle)
    assert around.spans == [(0, 10_000), (20_000, 30_000), (40_000, 50_000)]


def test_a_device_that_was_not_recorded_never_works() -> None:
    always = device_idle(draw("aten::mm 0-9"))
    assert Intervals(np.array([0]), np.array([9_000])).intersection(always).spans == [(0, 9_000)]


def test_rows_and_time_outside_all_steps_do_not_count() -> None:
    text = "aten::mm  0-50\nProfilerStep#1  100-200\n  aten::mm  110-120\nProfilerStep#2  201-301\n  aten::add  210-220"
    profile = draw(text)
    assert profile.in_steps(profile.named("aten::mm")).tolist() == [row_of(profile, "aten::mm", 1)]
    time = Intervals(np.array([0, 150_000]), np.array([50_000, 450_000]))
    inside = clipped_to_steps(profile, time)
    assert spans(inside) == [(150, 200), (201, 301)]
    assert per_step(profile, inside) == 75_000


@pytest.mark.parametrize(("kernel_us", "expected"), [(50, "aten::mul"), (51, "kernel"), (500, "kernel")])
def test_the_side_that_takes_longer(kernel_us: int, expected: str) -> None:
    profile = draw(f"aten::mul 0-50 kernel=kernel@100-{100 + kernel_us}", A100)
    (row,) = slower_side(profile, [row_of(profile, "aten::mul")])
    assert profile.name(row) == expected


def test_the_host_where_nothing_is_launched() -> None:
    profile = draw("aten::mul 0-50\naten::add 60-70")
    assert len(slower_side(profile, [0, 1])) == 2
