"""What is worked out ahead in a second thread changes nothing but the time."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from threading import Barrier, Event, Timer, current_thread, main_thread

import msgspec
import numpy as np
import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.system import threads
from tb_tidy_plugin.system.threads import cores, meanwhile, on_all_cores, use_cores
from tb_tidy_plugin.trace.columns import LONG_ROWS, of_each
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

needs_two_cores = pytest.mark.skipif(cores() < 2, reason="nothing is done ahead on one core")


@needs_two_cores
def test_tasks_are_done_in_another_thread_when_the_block_ends() -> None:
    threads = []
    with meanwhile(lambda: threads.append(current_thread()), lambda: threads.append(current_thread())):
        pass
    assert len(threads) == 2
    assert main_thread() not in threads


@needs_two_cores
def test_blocks_of_two_threads_leave_the_switch_interval_as_it_was() -> None:
    usual_s = sys.getswitchinterval()
    with meanwhile(lambda: None), ExitStack() as later:
        later.enter_context(meanwhile(lambda: None))
        outlives = later.pop_all()
    assert sys.getswitchinterval() == pytest.approx(threads.SWITCH_S)
    outlives.close()
    assert sys.getswitchinterval() == pytest.approx(usual_s)


@needs_two_cores
def test_a_task_that_fails_leaves_the_error_to_whoever_asks() -> None:
    done = []
    with meanwhile(lambda: 1 / 0, lambda: done.append(True)):
        pass
    assert done == [True]


def test_an_error_in_the_block_waits_for_the_tasks() -> None:
    begun, done = Event(), []

    def task() -> None:
        begun.wait()
        done.append(True)

    timer = Timer(0.01, begun.set)
    timer.start()
    with pytest.raises(KeyError), meanwhile(*([task] if cores() > 1 else [])):
        raise KeyError
    assert done == [True] * (cores() > 1)


def test_results_of_several_cores_have_the_order_of_the_items() -> None:
    assert on_all_cores(lambda item: item * item, range(50)) == [item * item for item in range(50)]


@needs_two_cores
def test_two_items_are_worked_on_at_the_same_time() -> None:
    both = Barrier(2, timeout=60)
    assert on_all_cores(lambda item: (both.wait(), item)[1], "ab") == ["a", "b"]


def test_an_error_of_one_item_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda item: 1 // item, [2, 0, 1])


@pytest.mark.parametrize("rows", [10, LONG_ROWS])
def test_columns_are_the_same_in_several_threads(rows: int) -> None:
    columns = [np.arange(rows) * factor for factor in range(1, 6)]
    for found, column in zip(of_each(lambda each: each[::-1], columns, rows), columns, strict=True):
        assert np.array_equal(found, column[::-1])


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process uses one core, until the test ends."""
    monkeypatch.setattr(threads.ThisProcess, "most_cores", None)  # so that it is restored
    use_cores(1)


def test_cores_are_those_that_a_process_may_use_and_wants_to(one_core: None) -> None:
    assert cores() == 1
    use_cores(1000)
    assert 1 <= cores() <= (os.cpu_count() or 1)


@pytest.mark.usefixtures("one_core")
def test_nothing_runs_ahead_on_one_core() -> None:
    done: list[object] = []
    with meanwhile(lambda: done.append(True)):
        pass
    assert done == []
    assert set(on_all_cores(lambda _: current_thread(), "ab")) == {current_thread()}


def test_the_interval_of_threads_is_as_before_also_after_an_error() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(KeyError), meanwhile(int):
        raise KeyError
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("name", ["cpu_gloo_rank34", "h100_vit_pipeline"])
def test_a_report_is_the_same_on_one_core(name: str, request: pytest.FixtureRequest) -> None:
    file = find_traces(shared(f"traces/{name}"))[0]
    on_all = msgspec.json.encode(read_file(file, Job()).report)
    request.getfixturevalue("one_core")
    assert msgspec.json.encode(read_file(file, Job()).report) == on_all
