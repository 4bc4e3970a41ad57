"""Steps timed by the device where a job uses one: a host that runs ahead marks steps that are too short."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from tb_tidy_plugin.capture import device_clock
from tb_tidy_plugin.capture.device_clock import LEAST_TIMED, MOST_TIMED, DeviceClock


class Event:
    """A mark that the device reaches at a time; `query` is False if it has not yet."""

    def __init__(self, at_ms: float, *, is_done: bool = True) -> None:
        self.at_ms, self.is_done = at_ms, is_done

    def query(self) -> bool:
        return self.is_done

    def synchronize(self) -> None:
        self.is_done = True

    def elapsed_time(self, end: Event) -> float:
        return end.at_ms - self.at_ms


def found_after(
    monkeypatch: pytest.MonkeyPatch,
    before_ms: list[float],
    recorded: int,
    after_ms: list[float],
    *,
    is_done: bool = True,
) -> tuple[int, int] | None:
    """What is found after a job whose device takes so long for each step; recorded steps take 9 ms."""
    clock = DeviceClock()
    steps = (
        [(ms, False) for ms in before_ms] + [(9.0, None)] + [(9.0, True)] * recorded + [(ms, False) for ms in after_ms]
    )
    at_ms = 0.0
    for ms, is_recorded in steps:
        monkeypatch.setattr(device_clock, "_event", partial(Event, at_ms))
        if is_recorded is False:
            clock.begin()
        at_ms += ms
        monkeypatch.setattr(device_clock, "_event", partial(Event, at_ms, is_done=is_done))
        clock.end(is_recorded=is_recorded)
    return clock.found_ns()


def test_the_median_of_unrecorded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [50, 2, 3, 2.5], 2, []) == (4, 2_750_000)


def test_launches_are_slower_once_the_profiler_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [2, 2, 2], 1, [3] * 20) == (3, 2_000_000)


def test_the_first_steps_of_a_job_are_still_warming_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [70, 60, 50], 1, [3, 4, 3]) == (3, 3_000_000)


def test_too_few_steps_have_no_median(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [2] * (LEAST_TIMED - 1), 1, [2] * (LEAST_TIMED - 1)) is None


def test_a_mark_that_the_device_has_not_reached_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [2, 2, 2, 2], 1, [], is_done=False) is None


def test_at_the_end_of_the_job_all_marks_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DeviceClock()
    for at_ms in (0.0, 6.0, 12.0):
        monkeypatch.setattr(device_clock, "_event", partial(Event, at_ms, is_done=False))
        clock.begin()
        monkeypatch.setattr(device_clock, "_event", partial(Event, at_ms + 6, is_done=at_ms < 12))
        clock.end(is_recorded=False)
    assert clock.found_ns() is None
    clock.wait()
    assert clock.found_ns() == (3, 6_000_000)


def test_a_long_job_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, [2] * 3, 1, [1] * (MOST_TIMED + 50)) == (MOST_TIMED, 1_000_000)
    clock, times_ms = DeviceClock(), count()
    monkeypatch.setattr(device_clock, "_event", lambda: Event(next(times_ms)))
    for _ in range(MOST_TIMED + 50):
        clock.begin()
        clock.end(is_recorded=False)
    assert next(times_ms) == 2 * MOST_TIMED


@pytest.mark.torch
def test_a_job_without_a_gpu_has_no_such_clock() -> None:
    clock = DeviceClock()
    for _ in range(5):
        clock.begin()
        clock.end(is_recorded=False)
    assert clock.found_ns() is None
