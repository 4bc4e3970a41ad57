"""Device work whose recorded duration runs over the next work on its stream."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tests.ledger.traces import Made
from tests.profile.test_steps import marked


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
    assert sum(entry.ns_total for entry in ledger.entries if entry.cause == "compute") == 310_000
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
