"""Steps and what they are taken from."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.profile.steps import ProfileSteps, Step, steps_of
from tests.support.drawn import A100, draw


def test_profiler_steps_of_the_host() -> None:
    steps = steps_of(
        draw("""
ProfilerStep#4    0-100
  aten::mm        5-20
ProfilerStep#5    101-251
ProfilerStep#6    252-372
""").table
    )
    assert steps.basis == "profiler_step"
    assert steps.items == (
        Step("ProfilerStep#4", 0, 0, 100_000),
        Step("ProfilerStep#5", 1, 101_000, 251_000),
        Step("ProfilerStep#6", 2, 252_000, 372_000),
    )
    assert steps.median_ns == 120_000


def test_copies_of_steps_on_the_device_are_no_steps() -> None:
    profile = draw("ProfilerStep#1  0-100\n  aten::mm  5-20  kernel=gemm@30-60", A100)
    assert len(profile.steps.items) == 1
    assert "gpu_user_annotation" not in profile.table.names


def test_without_profiler_steps_the_time_between_optimizer_steps() -> None:
    steps = steps_of(
        draw("""
Optimizer.step#Adam.step    10-20
Optimizer.step#SGD.step     50-60
Optimizer.step#Adam.step    110-130
Optimizer.step#Adam.step    210-220
""").table
    )
    assert steps.basis == "optimizer_step"
    assert [(step.start_ns, step.end_ns) for step in steps.items] == [(10_000, 120_000), (120_000, 210_000)]


def test_without_optimizer_the_time_between_batches() -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    steps = steps_of(draw(f"{name}  10-20\naten::mm  30-40\n{name}  60-70\naten::mm  80-90").table)
    assert steps.basis == "data_loader"
    assert [step.duration_ns for step in steps.items] == [50_000]


def test_a_profiler_step_goes_before_all_other_marks() -> None:
    inside = "execute_model  10-90\n    Optimizer.step#Adam.step  20-30\n    Optimizer.step#Adam.step  40-50"
    assert steps_of(draw(f"ProfilerStep#1  0-100\n  {inside}").table).basis == "profiler_step"


def test_otherwise_the_whole_trace() -> None:
    steps = steps_of(draw("aten::mm  10-20\naten::mm  50-95", A100).table)
    assert (steps.basis, steps.median_ns, len(steps.items)) == ("whole_trace", 85_000, 1)


def lasting(*durations: int) -> ProfileSteps:
    starts = np.cumsum([0, *durations]).tolist()
    return ProfileSteps("profiler_step", tuple(
        Step(f"ProfilerStep#{at}", at, start, start + length)
        for at, (start, length) in enumerate(zip(starts, durations, strict=False))
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("durations", "oddities"),
    [
        ((100, 101, 99), (None, None, None)),
        ((181, 124, 127, 126, 163, 116), ("warmup", None, None, None, "outlier", None)),
        ((300, 200, 100, 101, 99, 100, 102), ("warmup", "warmup", None, None, None, None, None)),
        ((100, 100, 100, 20), (None, None, None, "outlier")),
        ((100, 130, 70, 105, 95, 140, 60, 165), (None,) * 8),  # a noisy job
        ((100, 130, 70, 105, 95, 140, 60, 265), (*(None,) * 7, "outlier")),
        ((20, 100, 100, 100), ("outlier", None, None, None)),
        ((100,), (None,)),
        ((), ()),
    ],
)
def test_odd_steps_are_named(durations: tuple[int, ...], oddities: tuple[str | None, ...]) -> None:
    assert lasting(*durations).oddities == oddities


def test_percentiles() -> None:
    steps = lasting(*range(100, 201))
    assert (steps.percentile_ns(10), steps.median_ns, steps.percentile_ns(90)) == (110, 150, 190)
    assert lasting().percentile_ns(50) is None


def test_index_of_times() -> None:
    steps = draw("ProfilerStep#1  0-100\nProfilerStep#2  150-250").steps
    assert steps.index_of(np.array([0, 99_999, 100_000, 120_000, 150_000, 250_000])).tolist() == [0, 0, -1, -1, 1, -1]
