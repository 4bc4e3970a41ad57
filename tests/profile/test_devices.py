"""Devices of a recording: its platform, and the order of work on a stream."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.analysis.checker import NotChecked, check_rule, without_device
from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules.autograd.gradients_thrown_away import GradientsThrownAway
from tb_tidy_plugin.rules.fusion.elementwise_op_flood import ElementwiseOpFlood
from tb_tidy_plugin.rules.launch.host_work_holds_device import HostWorkHoldsDevice
from tb_tidy_plugin.rules.precision.float32_beside_bfloat16_units import Float32BesideBfloat16Units
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tb_tidy_plugin.words.causes import Cause
from tests.ledger.traces import Made
from tests.profile.steps.test_steps import marked

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
            (Cause.UNRECORDED_HOST, "Time without events of a known category", 27_300_000),
            (Cause.CPU, "CPU: pointwise operators", 2_700_000),
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


def kernels(*spans: tuple[float, float], stream: int = 7, made: Made | None = None) -> Made:
    made = made or Made().mark("ProfilerStep#1", 0, 10_000)
    for start, end in spans:
        made.kernel("gemm", start, end, start - 5, stream=stream)
    return made


def busy_us(made: Made) -> float:
    return made.profile().device_busy.total_ns / 1000


def notes(profile: Profile) -> str:
    return " ".join(quality_of(profile).notes)


def long_kernel(length_us: float) -> Made:
    """Three steps of 1,000 µs with ten kernels of 10 µs each; the third one of the first step lasts `length_us`."""
    made = marked((0, 1000), (1000, 2000), (2000, 3000))
    third = [event for event in made.events if event["cat"] == "kernel"][2]
    third["dur"] = length_us
    return made


@pytest.mark.parametrize("length_us", [40, 500, 2000, 100_000])
def test_a_kernel_that_runs_over_the_next_ones_ends_where_they_begin(length_us: float) -> None:
    """By hand: 29 kernels of 10 µs, and one that begins 20 µs before the next one."""
    profile = long_kernel(length_us).profile()
    assert [(step.name, step.duration_ns) for step in profile.steps.items] == [
        (f"ProfilerStep#{at}", 1_000_000) for at in range(3)
    ]
    ledger = account_of(profile).ledger
    assert [step.end_ns - step.start_ns for step in ledger.steps] == [1_000_000] * 3
    assert profile.device_busy.total_ns == 29 * 10_000 + 20_000
    assert sum(entry.ns_total for entry in ledger.entries if entry.cause is Cause.COMPUTE) == 310_000
    assert "1 piece of device work overlaps the next one on its stream by" in notes(profile)


def test_the_last_kernel_of_a_stream_may_be_long() -> None:
    assert busy_us(kernels((10, 20), (30, 9000))) == 10 + 8970


@pytest.mark.parametrize("overlap_us", [0, 3.7, 10])
def test_short_overlaps_are_real(overlap_us: float) -> None:
    profile = kernels((100, 200 + overlap_us), (200, 300), (300, 400)).profile()
    lengths = profile.table.durations_of(np.flatnonzero(profile.table.is_named("gemm".__eq__)))
    assert lengths.max() == 100_000 + round(overlap_us * 1000)
    assert notes(profile) == ""


def test_other_streams_run_at_the_same_time() -> None:
    made = kernels((100, 2000))
    assert busy_us(kernels((200, 300), stream=8, made=made)) == 1900
    assert notes(made.profile()) == ""


def test_kernels_of_one_replayed_graph_run_side_by_side() -> None:
    made = Made().mark("ProfilerStep#1", 0, 1000).graph(10, [(100, 400), (150, 250), (300, 390)])
    profile = made.profile()
    assert profile.device_busy.total_ns == 300_000
    assert notes(profile) == ""


def test_a_stream_with_many_overlaps_is_not_one_of_a_gpu() -> None:
    made = kernels(*((100 * at, 100 * at + 150) for at in range(1, 21)))
    assert busy_us(made) == 1950 + 100
    assert notes(made.profile()) == ""


@pytest.mark.parametrize("wrong", [{2, 3, 15}, {0, 1, 2, 10, 11, 20, 25, 28}, {3, 5}])
def test_many_wrong_durations_are_cut_in_each_step(wrong: set[int]) -> None:
    """By hand: thirty kernels, one each millisecond; those that are wrong end where the next begins, after 1 ms."""
    made = Made()
    for step in range(3):
        made.mark(f"ProfilerStep#{step}", 10_000 * step, 10_000 * (step + 1))
    for at in range(30):
        made.kernel("gemm", 1000 * at + 50, 1000 * at + 50 + (5000 if at in wrong else 900), 1000 * at + 5)
    profile = made.profile()
    assert [step.end_ns - step.start_ns for step in account_of(profile).ledger.steps] == [10_000_000] * 3
    assert profile.device_busy.total_ns == (30 - len(wrong)) * 900_000 + len(wrong) * 1_000_000
    assert f"{len(wrong)} pieces of device work overlap the next ones" in notes(profile)


def test_communication_runs_beside_other_work_of_its_queue() -> None:
    made = kernels(*((100 * at, 100 * at + 90) for at in range(1, 21)))
    made.kernel("ncclDevKernel_AllReduce_Sum_f32", 255, 900, 250)
    profile = made.profile()
    assert notes(profile) == ""
    communication = np.flatnonzero(profile.table.is_named("ncclDevKernel_AllReduce_Sum_f32".__eq__))
    assert profile.table.durations_of(communication).tolist() == [645_000]


def test_several_are_counted() -> None:
    spans = [(100.0 * at, 100.0 * at + (180 if at in {3, 9} else 50)) for at in range(1, 31)]
    assert "2 pieces of device work overlap the next ones on their streams by up to 80 µs" in notes(
        kernels(*spans).profile()
    )
