"""Loading of kernels at their first launch, which costs no operator anything."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.profile.critical import critical_time
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.sides import slower_side
from tb_tidy_plugin.profile.start_up import loading_calls, loading_time
from tb_tidy_plugin.rulekit import Remove
from tb_tidy_plugin.rulekit.testing import row_of
from tests.ledger.traces import Made

GEMM, NORM = "ampere_sgemm_128x64_nn", "layer_norm_kernel"


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
