"""Batches by place, the first of an epoch, and waits for workers."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.host.loading import batches_by_place, is_first_batch, waits_for_workers
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw

LOADING = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def first(profile: Profile) -> list[bool]:
    (rows,) = batches_by_place(profile, "MultiProcessing")
    marks: list[bool] = is_first_batch(profile, rows).tolist()
    return marks


def waits(profile: Profile, taking_over_ns: int = 0) -> list[list[tuple[int, int]]]:
    (rows,) = batches_by_place(profile, "MultiProcessing")
    return [wait.spans for wait in waits_for_workers(profile, rows, taking_over_ns)]


def test_batches_outside_of_steps_have_no_place() -> None:
    profile = draw(f"{LOADING} 0-9\nProfilerStep#1 10-99\n  {LOADING} 20-30")
    (rows,) = batches_by_place(profile, "MultiProcessing")
    assert [profile.start_ns(row) for row in rows.tolist()] == [20_000]
    assert [*batches_by_place(profile, "SingleProcess")] == []


def test_a_batch_is_the_first_where_a_seed_was_drawn_since_the_one_before() -> None:
    profile = draw(
        f"""
        ProfilerStep#1     0-999
          {LOADING}        10-20
          aten::random_    30-31  dims=,-  types=long,None
          {LOADING}        40-50
          {LOADING}        60-70
        """
    )
    assert first(profile) == [False, True, False]


def test_random_numbers_of_other_shapes_or_inside_of_other_operators_are_no_seeds() -> None:
    profile = draw(
        f"""
        ProfilerStep#1      0-999
          {LOADING}         10-20
          aten::randint     30-35
            aten::random_   31-32  dims=,-    types=long,None
          aten::random_     36-37  dims=8,-   types=long,None
          {LOADING}         40-50
        """
    )
    assert first(profile) == [False, False]


def test_signs_on_other_threads_do_not_count() -> None:
    profile = draw(
        f"""
        ProfilerStep#1     0-999
          {LOADING}        10-20
          {LOADING}        40-50
        aten::random_      30-31  dims=,-  types=long,None  thread=2
        """
    )
    assert first(profile) == [False, False]


def test_with_stacks_a_wait_is_the_poll_of_a_queue() -> None:
    profile = draw(
        f"""
        ProfilerStep#1                                            0-1000
          train.py(1): train                                      0-999
            {LOADING}                                             10-200
              multiprocessing/queues.py(98): get                  20-190
                multiprocessing/connection.py(253): poll          30-90
                multiprocessing/connection.py(208): recv_bytes    91-99
            {LOADING}                                             300-400
            multiprocessing/connection.py(253): poll              500-600
            {LOADING}                                             700-800
              queue.py(154): get                                  710-790
        """
    )
    assert waits(profile) == [[(30_000, 90_000)], [], [(710_000, 790_000)]]


def test_without_stacks_it_is_all_but_the_end() -> None:
    profile = draw(f"ProfilerStep#1 0-999\n  {LOADING} 10-200\n  {LOADING} 300-310")
    assert waits(profile, taking_over_ns=10_000) == [[(10_000, 190_000)], []]


def test_no_batches_have_no_marks_and_no_waits() -> None:
    profile, none = draw("ProfilerStep#1 0-999"), np.array([], np.int64)
    assert not len(is_first_batch(profile, none))
    assert waits_for_workers(profile, none, 0) == []
