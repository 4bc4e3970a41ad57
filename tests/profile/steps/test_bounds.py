"""Start and end of steps: work from before the recording, repeating units, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import matches_of
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tb_tidy_plugin.trace.columns import ABSENT
from tests.ledger.traces import Made

SGEMM = "ampere_sgemm_128x64_nn"


def with_backlog(earlier: int, steps: int = 2, *, each_us: int = 900, others: int = 0) -> Profile:
    """Steps of ten launches each; the device runs `earlier` kernels of a warm-up before them, one every 905 µs.

    `others` more kernels of the warm-up run on a stream on which nothing is launched.
    """
    made = Made()
    for step in range(steps):
        begin = step * 9050
        made.mark(f"ProfilerStep#{step}", begin, begin + 9050)
        for at in range(10):
            made.operator("aten::mm", begin + 5 + at * 50, begin + 45 + at * 50)
            start = 40 + 905 * (earlier + 10 * step + at)
            made.kernel(SGEMM, start, start + each_us, begin + 20 + at * 50)
    for at in range(earlier):
        made.kernel(SGEMM, 40 + 905 * at, 40 + 905 * at + each_us)
    for at in range(others):
        made.kernel(SGEMM, 50 + 905 * at, 50 + 905 * at + each_us, stream=9)
    return made.profile()


class TestWorkOfAWarmUp:
    @pytest.mark.parametrize("earlier", [0, 3, 10, 24])
    def test_counts_in_no_step(self, earlier: int) -> None:
        """By hand: each step launches ten kernels of 900 µs, one every 905 µs, however late they run."""
        profile = with_backlog(earlier)
        kernels = np.flatnonzero(profile.table.is_named(SGEMM.__eq__))
        assert np.bincount(profile.step_of(kernels) + 1, minlength=3).tolist() == [earlier, 10, 10]
        assert profile.per_step_count(kernels) == 10
        assert profile.per_step_ns(kernels) == 9_000_000
        (match,) = matches_of(Fp32OnOrdinaryCores, profile)
        assert match.evidence.kernels_per_step == 10
        assert match.evidence.share == pytest.approx(9000 / (profile.pace.mean_ns or 0) * 1000)
        assert match.evidence.share <= 1

    def test_is_stated(self) -> None:
        notes = quality_of(with_backlog(10)).notes
        assert "10 of 30 device events have no launch in the file." in notes
        assert "10 device events come before all launched work of the stream: they belong to no step." in notes
        left = account_of(with_backlog(10)).ledger.left_out
        assert [each.reason for each in left] == ["9.09 ms at the start belong to work launched before the first step."]

    def test_on_a_stream_without_launches(self) -> None:
        profile = with_backlog(10, others=10)
        other = np.flatnonzero(profile.table.stream == 9)
        assert (profile.step_of(other) == ABSENT).all()
        assert account_of(profile).ledger.step_ns.n == 2

    def test_a_stream_whose_launches_are_not_recorded_counts_when_it_runs(self) -> None:
        """Else its last kernel would end the backlog, and no step would be left."""
        profile = with_backlog(0, others=20)
        other = np.flatnonzero(profile.table.stream == 9)
        assert np.bincount(profile.step_of(other), minlength=2).tolist() == [10, 10]
        assert account_of(profile).ledger.step_ns.n == 2


def layers(count: int, *, start_up_us: int = 0, length: int = 10) -> Profile:
    """A recording without marks: `count` times the same kernels of 10 µs, after a time in which the host starts up."""
    made = Made().operator("aten::start", 0, max(start_up_us, 1))
    for at in range(count * length):
        begin = start_up_us + 20 + at * 12
        made.operator("aten::mm", begin - 15, begin - 5)
        made.kernel(f"kernel_{at % length}", begin, begin + 10, begin - 12)
    return made.profile()


class TestRepeatingUnits:
    def test_are_the_steps_of_a_recording_that_they_fill(self) -> None:
        profile = layers(12)
        ledger = account_of(profile).ledger
        assert (ledger.step_source, ledger.step_ns.median) == ("repeating_unit", 120_000)
        assert any("precede the first repeating unit" in left.reason for left in ledger.left_out)
        assert sum(left.ns for left in ledger.left_out) + ledger.window.end_ns - ledger.window.start_ns == (
            profile.table.end_ns.max()
        )

    def test_do_not_hide_a_start_up(self) -> None:
        """By hand: 12 units of 120 µs after 20 ms of start-up; all of the 21.45 ms are accounted for."""
        profile = layers(12, start_up_us=20_000)
        ledger = account_of(profile).ledger
        assert (ledger.step_source, ledger.left_out) == ("whole_trace", [])
        assert ledger.window.end_ns - ledger.window.start_ns == 20_020_000 + 119 * 12_000 + 10_000

    def test_costs_and_savings_refer_to_the_recording(self) -> None:
        profile = layers(12)
        assert profile.pace.recorded_ns == profile.table.end_ns.max()
        kernels = np.flatnonzero(profile.table.stream == 7)
        assert profile.per_step_ns(kernels) == 1_200_000
        assert profile.share_of_step(1_200_000) == pytest.approx(1_200_000 / profile.table.end_ns.max())


class TestLead:
    def lead(self, first_launch_us: float, *, sync: bool = False, before: bool = False) -> list[str]:
        """What is left out of a recording whose device begins 40 ms after the first launch there, one of many."""
        made = Made().operator("aten::empty", 0, 5)
        if before:
            made.operator("aten::empty", 6, first_launch_us - 10)
        if sync:
            made.call("cudaDeviceSynchronize", 6, 8)
        for at in range(20):
            launch = first_launch_us + 10 * at
            made.operator("aten::mm", launch - 2, launch + 5)
            made.kernel("gemm", 40_000 + 110 * at, 40_100 + 110 * at, launch)
        return [left.reason for left in account_of(made.profile()).ledger.left_out]

    def test_behind_a_host_that_ran_ahead_is_left_out(self) -> None:
        assert self.lead(50) == ["40 ms at the start wait for work from before the recording."]

    @pytest.mark.parametrize("first_launch_us", [6_000, 18_000])
    def test_behind_a_host_that_launched_nothing_for_long_is_its_time(self, first_launch_us: float) -> None:
        assert self.lead(first_launch_us, before=True) == []

    def test_behind_a_host_that_had_waited_for_the_device_is_not_left_out(self) -> None:
        assert self.lead(50, sync=True) == []

    def test_the_first_work_waits_for_no_other_stream(self) -> None:
        made = Made().operator("aten::empty", 0, 9_000).call("cudaStreamWaitEvent", 8_990, 8_991)
        made.kernel("gemm", 20_000, 20_100, 9_000)
        times = made.times_us()
        assert "stream_wait" not in times
        assert times["queued_unknown"] == 20_000 - 9_002

    def test_device_work_after_the_host_waited_for_it_is_by_another_clock(self) -> None:
        made = Made().operator("aten::mm", 0, 10).kernel("gemm", 20_000, 20_100, 2)
        assert "another time" not in str(made.account().ledger.left_out)
        assert "another time" in str(made.call("cudaDeviceSynchronize", 20, 40).account().ledger.left_out)


def test_a_share_of_a_step_is_at_most_all_of_it() -> None:
    """The host is 40 ms ahead: most of its step lies before the time in which the device does the step's work."""
    made = Made().mark("ProfilerStep#1", 0, 40_000).operator("aten::sort", 10, 39_000)
    made.kernel("gemm", 30, 39_900).kernel("gemm", 39_910, 44_000, 39_500)
    profile = made.profile()
    (sort,) = profile.named("aten::sort").tolist()
    assert (profile.pace.mean_ns or 0) < profile.duration_ns(sort)
    assert profile.per_step_ns(np.array([sort])) == profile.pace.mean_ns
    assert profile.share_of_step(profile.duration_ns(sort)) == 1.0
    assert profile.share_of_time(10**12) == 1.0
