"""What is worked out ahead in a second thread changes nothing but the time."""

from __future__ import annotations

import sys
from threading import current_thread, main_thread

import msgspec
import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.meanwhile import meanwhile
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.scanned import cores
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
def test_a_task_that_fails_leaves_the_error_to_whoever_asks() -> None:
    done = []
    with meanwhile(lambda: 1 / 0, lambda: done.append(True)):
        pass
    assert done == [True]


def test_the_interval_of_threads_is_as_before_also_after_an_error() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(KeyError), meanwhile(int):
        raise KeyError
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("name", ["cpu_gloo_rank34", "h100_vit_pipeline"])
def test_a_report_is_the_same_with_a_second_thread_and_without(name: str) -> None:
    file = find_traces(shared(f"traces/{name}"))[0]
    alone, beside_others = (
        msgspec.json.encode(read_file(file, Job(is_alone=is_alone)).report) for is_alone in (True, False)
    )
    assert alone == beside_others
