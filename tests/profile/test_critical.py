"""Time that the step waits for: all of the host without a device, only its idle time with one."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.critical import clipped_to_steps, critical_time, device_idle, per_step
from tb_tidy_plugin.profile.intervals import Intervals
from tests.support.drawn import A100, draw, row_of

HOST = "ProfilerStep#1  0-1000\n  aten::mm  100-400\n  aten::add  500-600"
DEVICE = """
ProfilerStep#1  0-1000
  aten::mm      100-400  kernel=gemm@150-800
  aten::add     500-900  kernel=add@850-870
"""


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
