"""Kinds of device, and one story about them in rules, ledger and header."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.checker import NotChecked, check_rule, without_device
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules.autograd.gradients_thrown_away import GradientsThrownAway
from tb_tidy_plugin.rules.fusion.elementwise_op_flood import ElementwiseOpFlood
from tb_tidy_plugin.rules.launch.host_work_holds_device import HostWorkHoldsDevice
from tb_tidy_plugin.rules.precision.float32_beside_bfloat16_units import Float32BesideBfloat16Units
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tests.ledger.traces import Made

LAUNCHES = {
    "xpu_runtime": ("zeCommandListAppendLaunchKernel", "XPU"),
    "xpu_driver": ("urEnqueueKernelLaunch", "XPU"),
    "cuda_runtime": ("cudaLaunchKernel", "CUDA"),
    "hip_runtime": ("hipLaunchKernel", "CUDA"),
}


def launched(category: str, name: str) -> Profile:
    """Three steps of 10 ms whose host launches additions; the file has none of their kernels."""
    made = Made()
    made.keys, made.device = {}, {}
    for begin in range(0, 30_000, 10_000):
        made.mark(f"ProfilerStep#{begin}", begin, begin + 10_000)
        for at in range(begin + 10, begin + 9_000, 1_000):
            dims: dict[str, object] = {
                "Input Dims": [[1024, 1024]] * 2,
                "Input type": ["float", "float"],
                "External id": at,
            }
            made.operator("aten::add", at, at + 900, **dims)  # type: ignore[arg-type]
            made.add(category, name, at + 100, at + 150)
    return made.profile()


@pytest.mark.parametrize("category", LAUNCHES)
class TestLaunchesOnly:
    def test_the_ledger_gives_no_advice_about_the_host(self, category: str) -> None:
        name, activity = LAUNCHES[category]
        ledger = account_of(launched(category, name)).ledger
        assert ledger.recording == "no-device"
        assert f"ProfilerActivity.{activity}]" in (ledger.banner or "")
        assert {entry.advice for entry in ledger.entries} == {None}
        assert all("device's work was not recorded" in (entry.nothing_to_fix or "") for entry in ledger.entries)

    def test_no_rule_judges_operators_by_their_time_on_the_host(self, category: str) -> None:
        name, activity = LAUNCHES[category]
        profile = launched(category, name)
        for rule in (ElementwiseOpFlood(), HostWorkHoldsDevice()):
            outcome = check_rule(profile, rule)
            assert isinstance(outcome, NotChecked)
            assert outcome.reason == (
                "The host launched device work, which was not recorded; record it with "
                f"`activities=[ProfilerActivity.CPU, ProfilerActivity.{activity}]`."
            )
        beside = check_rule(profile, Float32BesideBfloat16Units())
        assert isinstance(beside, NotChecked)
        assert "CPU" not in beside.reason


def of_unknown_device(category: str, works: int = 30, operators: int = 30) -> Profile:
    """Three steps of 10 ms whose operators give work to a device; all of its events have a category nobody knows."""
    made = Made()
    made.keys, made.device = {}, {}
    for begin in range(0, 30_000, 10_000):
        made.mark(f"ProfilerStep#{begin}", begin, begin + 10_000)
    for at in range(operators):
        begin = at * 30_000 // operators
        given: dict[str, object] = {"Input Dims": [[1024, 1024]] * 2, "Input type": ["float", "float"]}
        made.operator("aten::add", begin, begin + 90, **given)  # type: ignore[arg-type]
    for at in range(works):
        made.add(category, "MatMulV2", 50 + at * 1_000, 950 + at * 1_000, 3, pid=9002)
        if not category:
            del made.events[-1]["cat"]
    return made.profile()


@pytest.mark.parametrize("category", ["", "hpu_kernel", "mlu_kernel"])
class TestUnknownDevice:
    def test_the_ledger_blames_no_host_for_it(self, category: str) -> None:
        ledger = account_of(of_unknown_device(category)).ledger
        assert ledger.recording == "unknown-device"
        assert "30 events" in (ledger.banner or "")
        assert {entry.advice for entry in ledger.entries} == {None}
        assert all("may be a device's work" in (entry.nothing_to_fix or "") for entry in ledger.entries)
        # 30 operators of 90 µs; the rest of the 30 ms has no event that is understood.
        assert {(entry.cause, entry.title, entry.ns_total) for entry in ledger.entries} == {
            ("unrecorded_host", "Time without events of a known category", 27_300_000),
            ("cpu", "CPU: pointwise operators", 2_700_000),
        }

    def test_no_rule_judges_the_host_or_asks_for_cuda(self, category: str) -> None:
        profile = of_unknown_device(category)
        for rule in (ElementwiseOpFlood(), HostWorkHoldsDevice(), Float32BesideBfloat16Units()):
            outcome = check_rule(profile, rule)
            assert isinstance(outcome, NotChecked)
            assert "CUDA" not in outcome.reason
            assert "CPU" not in outcome.reason
        assert "30 events of the recording have no known category" in without_device(profile)

    def test_a_few_strays_are_not_a_device(self, category: str) -> None:
        profile = of_unknown_device(category, works=3)
        assert profile.metadata.unknown_events == 3
        assert account_of(profile).ledger.recording == "steady"
        assert not isinstance(check_rule(profile, ElementwiseOpFlood()), NotChecked)


def test_without_launches_a_job_on_a_cpu_is_judged() -> None:
    profile = Made().mark("ProfilerStep#1", 0, 1_000).operator("aten::add", 10, 900).profile()
    assert not profile.launches_only
    assert account_of(profile).ledger.entries[0].advice is not None
    outcome = check_rule(profile, HostWorkHoldsDevice())
    assert isinstance(outcome, NotChecked)
    assert "record on a GPU" in outcome.reason


@pytest.mark.parametrize(
    ("name", "platform"),
    [("NVIDIA A100-SXM4-80GB", "cuda"), ("Tesla T4", "cuda"), ("AMD Instinct MI300X", "rocm"), ("Acme X1", "other")],
)
def test_the_device_that_the_trace_names_counts_where_no_launch_shows_its_kind(name: str, platform: str) -> None:
    made = Made(name=name)
    made.mark("ProfilerStep#1", 0, 1_000).operator("aten::mm", 10, 900).kernel("volta_sgemm_128x64_nn", 100, 900)
    made.keys = {}
    profile = made.profile()
    assert profile.platform == platform
    outcome = check_rule(profile, Fp32OnOrdinaryCores())
    if platform == "cuda":
        assert not isinstance(outcome, NotChecked) or "no NVIDIA GPU" not in outcome.reason


def test_steps_of_an_engine_are_not_called_missing() -> None:
    made = Made().mark("execute_context_1(8)_generation_0(0)", 0, 1_000)
    given = {"Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}
    made.operator("aten::mm", 10, 900, **given)  # type: ignore[arg-type]
    outcome = check_rule(made.profile(), GradientsThrownAway())
    assert isinstance(outcome, NotChecked)
    assert "has no steps" not in outcome.reason
    assert "not the profiler's own" in outcome.reason
