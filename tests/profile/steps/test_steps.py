"""Steps and what they are taken from."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import ProfileSteps, Step, steps_of
from tb_tidy_plugin.rulekit.testing import A100, draw
from tests.ledger.traces import OTHER, Made


def test_profiler_steps_of_the_host() -> None:
    steps = steps_of(
        draw("""
ProfilerStep#4    0-100
  aten::mm        5-20
ProfilerStep#5    101-251
  aten::mm        120-140
ProfilerStep#6    252-372
  aten::mm        260-290
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


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def marked(*marks: tuple[float, float], work: tuple[int, ...] = (), made: Made | None = None) -> Made:
    """Marks `ProfilerStep#0`, … in µs; each holds ten operators, or as many as `work` says, with a kernel of 10 µs."""
    made = made or Made()
    for number, (start, end) in enumerate(marks):
        made.mark(f"ProfilerStep#{number}", start, end)
        for at in range(work[number] if work else 10):
            begin = start + 1 + at * 20
            made.operator("aten::mm", begin, begin + 8).kernel("gemm", begin + 5, begin + 15, begin + 1)
    return made


def steps_in(profile: Profile) -> list[tuple[str, int]]:
    """Name and length in µs of each step, which the ledger has, too."""
    ledger = account_of(profile).ledger
    assert [step.name for step in ledger.steps] == [step.name for step in profile.steps.items]
    assert ledger.step_ns.n == len(profile.steps.items)
    return [(step.name, step.duration_ns // 1000) for step in profile.steps.items]


def said(profile: Profile) -> str:
    return " ".join(quality_of(profile).notes)


class TestMarksThatOverlap:
    @pytest.mark.parametrize("by", [0.001, 1, 40])
    def test_a_mark_ends_where_the_next_begins(self, by: float) -> None:
        profile = marked((0, 1000 + by), (1000, 2000 + by), (2000, 3000)).profile()
        assert steps_in(profile) == [(f"ProfilerStep#{at}", 1000) for at in range(3)]
        assert [step.end_ns - step.start_ns for step in account_of(profile).ledger.steps] == [1_000_000] * 3
        assert "2 step marks overlap the next one: a step ends where the next begins." in said(profile)

    def test_a_mark_inside_another_is_no_step_and_this_is_said(self) -> None:
        profile = marked((0, 1000), (1000, 2000)).mark("ProfilerStep#7", 300, 1000.5).profile()
        assert steps_in(profile) == [("ProfilerStep#0", 1000), ("ProfilerStep#1", 1000)]
        assert "1 step mark lies inside another one: only the outer one counts." in said(profile)

    def test_the_marks_of_two_threads_are_not_added_up(self) -> None:
        made = marked((0, 1000), (1000, 2000), (2000, 3000))
        for at in range(3):
            made.mark(f"ProfilerStep#{at}", 400 + 1000 * at, 1400 + 1000 * at, OTHER)
        profile = made.profile()
        assert steps_in(profile) == [(f"ProfilerStep#{at}", 1000) for at in range(3)]
        assert "3 marks are left out." in said(profile)

    def test_the_thread_with_most_marks_counts(self) -> None:
        made = marked((100, 1000), (1000, 2000), (2000, 3000)).mark("ProfilerStep#0", 0, 600, OTHER)
        assert steps_in(made.profile()) == [("ProfilerStep#0", 900), ("ProfilerStep#1", 1000), ("ProfilerStep#2", 1000)]

    def test_threads_that_take_turns_mark_one_after_the_other(self) -> None:
        made = marked((0, 1000)).mark("ProfilerStep#1", 1000, 2000, OTHER).operator("aten::mm", 1100, 1200, OTHER)
        assert len(steps_in(made.profile())) == 2

    def test_gaps_between_marks_belong_to_the_next_step(self) -> None:
        profile = marked((0, 1000), (1300, 2300)).profile()
        assert steps_in(profile) == [("ProfilerStep#0", 1000), ("ProfilerStep#1", 1000)]
        assert [step.end_ns - step.start_ns for step in account_of(profile).ledger.steps] == [1_000_000, 1_300_000]
        assert said(profile) == ""


class TestEmptySteps:
    def test_an_empty_last_step_counts_nowhere(self) -> None:
        made = marked((0, 1000), (1000, 1030), work=(10, 0)).call("cudaDeviceSynchronize", 1040, 1050)
        profile = made.profile()
        assert steps_in(profile) == [("ProfilerStep#0", 1000)]
        assert profile.per_step_ns(np.flatnonzero(profile.table.is_named("gemm".__eq__))) == 100_000
        assert "`ProfilerStep#1` contains little or no work: it does not count as a step." in said(profile)
        assert [left.reason for left in account_of(profile).ledger.left_out] == ["50 µs follow the last step."]

    @pytest.mark.parametrize("long_us", [30, 5000])
    def test_an_empty_step_that_waits_for_the_device(self, long_us: int) -> None:
        made = marked((0, 1000), (1000, 2000), (2000, 2000 + long_us), work=(10, 10, 0))
        made.call("cudaDeviceSynchronize", 2001, 1999 + long_us)
        assert steps_in(made.profile()) == [("ProfilerStep#0", 1000), ("ProfilerStep#1", 1000)]

    def test_empty_first_steps(self) -> None:
        profile = marked((0, 30), (30, 60), (60, 1060), (1060, 2060), work=(0, 0, 10, 10)).profile()
        assert steps_in(profile) == [("ProfilerStep#2", 1000), ("ProfilerStep#3", 1000)]
        assert account_of(profile).ledger.left_out[0].reason == "60 µs precede the first step."
        assert "`ProfilerStep#0`, `ProfilerStep#1` contain little or no work: they do not count" in said(profile)

    def test_every_second_step_is_empty(self) -> None:
        """`step()` was called twice in each turn of the loop: the time between belongs to the next turn."""
        profile = marked((0, 1000), (1000, 1020), (1020, 2020), (2020, 2040), work=(10, 0, 10, 0)).profile()
        assert steps_in(profile) == [("ProfilerStep#0", 1000), ("ProfilerStep#2", 1000)]
        assert [step.end_ns - step.start_ns for step in account_of(profile).ledger.steps] == [1_000_000, 1_020_000]

    def test_a_last_step_in_which_the_loader_has_no_more_batches(self) -> None:
        made = marked((0, 1000), (1000, 1400), work=(10, 0))
        made.mark(LOADER, 1010, 1300).operator("aten::stack", 1020, 1030)
        assert steps_in(made.profile()) == [("ProfilerStep#0", 1000)]

    def test_a_tiny_last_step_holds_what_comes_after_the_loop(self) -> None:
        profile = marked((0, 1000), (1000, 2000), (2000, 2050), work=(20, 20, 1)).profile()
        assert steps_in(profile) == [("ProfilerStep#0", 1000), ("ProfilerStep#1", 1000)]

    def test_a_short_step_with_as_much_work_is_a_step(self) -> None:
        assert len(steps_in(marked((0, 10_000), (10_000, 10_500), work=(10, 10)).profile())) == 2

    def test_a_long_step_with_little_work_is_a_step(self) -> None:
        assert len(steps_in(marked((0, 1000), (1000, 2000), work=(20, 1)).profile())) == 2

    def test_a_step_without_device_work_is_a_step(self) -> None:
        made = marked((0, 1000), (1000, 2000), work=(10, 0)).operator("aten::topk", 1100, 1900)
        assert len(steps_in(made.profile())) == 2

    def test_steps_that_all_hold_nothing_are_kept(self) -> None:
        made = Made().mark("ProfilerStep#0", 0, 100).mark("ProfilerStep#1", 100, 110)
        assert len(steps_in(made.frame("train.py(3): step", 1, 99).profile())) == 2

    def test_batches_of_a_server_are_not_asked(self) -> None:
        made = Made().mark("execute_model", 0, 100).operator("aten::mm", 1, 2).mark("execute_model", 100, 200)
        assert len(steps_in(made.profile())) == 2
