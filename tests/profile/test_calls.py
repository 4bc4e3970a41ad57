"""Who called what, and which annotation a call ran under."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Rows
from tests.support.drawn import draw, row_of

BODY = """
    train.py(1): step                                       0-100
      <built-in method arange of type object at 0x1>        1-20
        aten::arange                                        2-19
          aten::empty                                       3-9
      train.py(9): scale                                    21-50
        aten::mul                                           22-49
      aten::add                                             60-70
    aten::alone                                             101-110
    aten::theirs                                            105-115  thread=2
"""


def rows(profile: Profile, *names: str) -> Rows:
    return np.array([row_of(profile, name) for name in names])


def names(profile: Profile, bodies: list[list[int]]) -> list[list[str]]:
    return [[profile.name(row) for row in body] for body in bodies]


def test_built_ins_are_looked_through() -> None:
    profile = draw(BODY)
    step = row_of(profile, "train.py(1): step")
    assert profile.calls.caller[rows(profile, "aten::arange", "aten::empty", "aten::add")].tolist() == [step] * 3


def test_a_body_holds_what_its_function_ran_itself() -> None:
    profile = draw(BODY)
    bodies = profile.calls.bodies_with(rows(profile, "aten::arange", "aten::add"))
    assert names(profile, bodies) == [["aten::arange", "train.py(9): scale", "aten::add"]]


def test_a_call_of_a_function_has_a_body_of_its_own() -> None:
    profile = draw(BODY)
    assert names(profile, profile.calls.bodies_with(rows(profile, "aten::mul"))) == [["aten::mul"]]


def test_calls_that_nothing_called_make_one_body_per_thread() -> None:
    profile = draw(BODY)
    bodies = profile.calls.bodies_with(rows(profile, "aten::alone", "aten::theirs"))
    assert names(profile, bodies) == [["train.py(1): step", "aten::alone"], ["aten::theirs"]]


def test_what_an_operator_runs_is_no_call() -> None:
    profile = draw(BODY)
    (empty,) = rows(profile, "aten::empty")
    assert not profile.calls.outermost[empty]
    assert profile.calls.bodies_with(np.array([empty])) == []


def test_an_annotation_covers_by_time_what_the_tree_puts_beside_it() -> None:
    profile = draw(
        """
        train.py(1): step                                            0-90
          <built-in method _record_function_enter_new of x at 0x1>   1-5
            Optimizer.step#Adam.step                                 2-60
          torch/optim/adam.py(9): update                             10-50
          aten::after                                                70-80
        """
    )
    update, after = rows(profile, "torch/optim/adam.py(9): update", "aten::after")
    step = row_of(profile, "Optimizer.step#Adam.step")
    assert profile.parent(update) != step
    assert profile.covering(np.array([update, after]), np.array([step])).tolist() == [step, ABSENT]


def test_an_annotation_covers_nothing_on_other_threads() -> None:
    profile = draw("Optimizer.step#Adam.step 0-60\naten::theirs 10-20 thread=2")
    row, step = rows(profile, "aten::theirs", "Optimizer.step#Adam.step")
    assert profile.covering(np.array([row]), np.array([step])).tolist() == [ABSENT]
