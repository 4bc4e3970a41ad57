"""Calls of operators by Python code, and loops of them."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.profile.events.calls import Loop, LoopLimits, Movement, loops_in, movement_of, rows_of
from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.host.overhead import host_work
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.trace.columns import ABSENT, Rows

STILL = Movement(places=0, stride=0, width=1)

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


def loops(body: str, start: str = "a", most: int = 5) -> list[Loop]:
    """Loops in a body of calls with one letter each."""
    starts = {row for row, name in enumerate(body) if name == start}
    return list(loops_in(range(len(body)), starts, lambda begin, end: end - begin <= most, body.__getitem__))


def kinds(loop: Loop) -> dict[str, int]:
    return {"".join(kind): count for kind, count in loop.kinds}


def select(index: int, size: int = 64) -> tuple[str, Inputs]:
    return "aten::select", Inputs(dims=((size, 8),), concrete=("", "0", str(index)))


def movement(*indices: int, least: int = 1) -> Movement | None:
    return movement_of([select(index) for index in indices], least)


class TestGroups:
    def test_each_start_begins_one(self) -> None:
        (loop,) = loops("ababab")
        assert loop.groups == ((0, 1), (2, 3), (4, 5))
        assert kinds(loop) == {"ab": 3}

    def test_what_comes_before_the_first_start_is_in_none(self) -> None:
        (loop,) = loops("xyabab")
        assert loop.calls == (2, 3, 4, 5)

    def test_the_last_one_ends_where_it_stops_being_like_the_one_before(self) -> None:
        (loop,) = loops("abcabcabxyz")
        assert loop.groups[-1] == (6, 7)
        assert kinds(loop) == {"abc": 3}, "cut short, it still counts"

    def test_the_last_one_may_be_like_any_other(self) -> None:
        (loop,) = loops("abacabxyz")
        assert loop.groups[-1] == (4, 5)
        assert kinds(loop) == {"ab": 2, "ac": 1}

    def test_of_a_last_one_that_is_unlike_all_others_only_the_start_belongs(self) -> None:
        (loop,) = loops("abcabcaxyz")
        assert loop.groups[-1] == (6,)
        assert kinds(loop) == {"abc": 2, "a": 1}

    def test_a_large_one_ends_the_loop(self) -> None:
        first, second = loops("abab" + "axxxxxxx" + "acac")
        assert (kinds(first), kinds(second)) == ({"ab": 2, "a": 1}, {"ac": 2})

    def test_a_start_that_is_too_large_by_itself_is_in_none(self) -> None:
        (loop,) = loops_in(range(6), {0, 2, 4}, lambda begin, end: begin < 4, "ababab".__getitem__)
        assert loop.calls == (0, 1, 2, 3)

    def test_an_odd_one_before_the_loop_is_not_part_of_it(self) -> None:
        body = "bz" + "ay" * 3
        (loop,) = loops_in(range(8), {0, 2, 4, 6}, lambda begin, end: True, body.__getitem__)
        assert loop.calls == (2, 3, 4, 5, 6, 7)

    def test_alike_are_those_that_occur_twice(self) -> None:
        (loop,) = loops("abacadab")
        assert loop.alike == 0.5

    def test_a_body_without_starts_has_none(self) -> None:
        assert loops("xyz") == []


class TestMovement:
    def test_by_one(self) -> None:
        assert movement(0, 1, 2, 3) == Movement(places=4, stride=1, width=1)

    def test_an_index_used_again_stays(self) -> None:
        assert movement(0, 0, 1, 1, 2, 2, 3, 3) == Movement(places=4, stride=1, width=1)

    def test_backwards(self) -> None:
        assert movement(9, 6, 3, 0) == Movement(places=4, stride=-3, width=1)

    def test_one_way_with_unequal_steps(self) -> None:
        assert movement(0, 1, 5, 7, 8, 12) == Movement(places=6, stride=0, width=1)

    def test_inner_loops_begin_again(self) -> None:
        assert movement(*[0, 1, 2, 3, 4] * 3) == Movement(places=15, stride=1, width=1)

    def test_two_indices_in_turns(self) -> None:
        assert movement(0, 9, 1, 8, 2, 7, 3, 6) == Movement(places=4, stride=1, width=1)

    def test_none(self) -> None:
        assert movement(3, 3, 3, 3) == STILL

    def test_to_and_fro(self) -> None:
        assert movement(3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8) == STILL

    def test_columns_of_a_table_picked_again_and_again(self) -> None:
        assert movement(*[0, 1, 2, 3, 4] * 3, least=6) == STILL

    def test_tensors_of_different_sizes_are_looked_at_one_by_one(self) -> None:
        picks = [pick for index in range(4) for pick in (select(index), select(7, size=32))]
        assert movement_of(picks, least=4) == Movement(places=4, stride=1, width=1)

    def test_slices_have_a_width(self) -> None:
        slices = [
            ("aten::slice", Inputs(dims=((64, 8),), concrete=("", "0", str(at), str(at + 16), "1")))
            for at in range(0, 64, 16)
        ]
        assert movement_of(slices, least=4) == Movement(places=4, stride=16, width=16)

    def test_not_recorded(self) -> None:
        assert movement_of([("aten::select", Inputs()), ("aten::index", Inputs(dims=((4,),)))], least=1) is None


class TestInProfiles:
    BODY = """
        train.py(1): main               0-100
          aten::select                  1-2
          aten::add                     3-4
          aten::select                  11-12
          train.py(9): helper           13-19
            {inner}                     14-15
          aten::select                  21-22
          aten::add                     23-24
    """

    @pytest.mark.parametrize(("inner", "groups"), [("aten::add", 3), ("aten::never", 2)])
    def test_what_a_group_never_holds_ends_the_loop_even_inside_a_function(self, inner: str, groups: int) -> None:
        profile = draw(self.BODY.format(inner=inner))
        limits = LoopLimits(never=profile.named("aten::never"), largest=5, shortest=2)
        (loop,) = profile.calls.loops(profile.named("aten::select"), rows_of([]), limits, lambda name: True)
        assert len(loop.groups) == groups

    def test_a_function_that_holds_a_loop_is_not_part_of_another(self) -> None:
        calls = "\n".join(
            f"          train.py(9): helper {at}-{at + 9}\n            aten::select {at + 1}-{at + 2}\n"
            f"            aten::select {at + 3}-{at + 4}"
            for at in (10, 20, 30)
        )
        profile = draw(f"        train.py(1): main 0-100\n{calls}")
        limits = LoopLimits(never=rows_of([]), largest=5, shortest=2)
        found = profile.calls.loops(profile.named("aten::select"), rows_of([]), limits, lambda name: True)
        assert {profile.calls.caller_name(loop.calls[0]) for loop in found} == {"train.py(9): helper"}

    def test_bodies_of_other_code_hold_none(self) -> None:
        profile = draw(self.BODY.format(inner="aten::add"))
        limits = LoopLimits(never=rows_of([]), largest=5, shortest=1)
        assert not [*profile.calls.loops(profile.named("aten::select"), rows_of([]), limits, lambda name: False)]


class TestHostWork:
    def test_is_what_takes_longer_than_a_call_costs(self) -> None:
        # A view takes 2 µs. 4 of them are the price of mul; add runs another operator, which costs one more.
        profile = draw(
            """
            aten::select  0-2
            aten::mul     10-30
            aten::mul     40-60
            aten::add     70-90
              aten::to    71-72
            aten::add     100-120
              aten::to    101-102
            """
        )
        work = host_work(profile)
        assert work.share(profile.named("aten::mul").tolist()) == 12 / 20
        assert work.share(profile.named("aten::add").tolist()) == 10 / 20

    def test_is_none_while_waiting_or_launching(self) -> None:
        launch = "kernel=k@{0}-{1}"
        profile = draw(
            f"aten::select 0-2\naten::item 10-90\naten::item 100-190\n"
            f"aten::mul 200-290 {launch.format(201, 300)}\naten::mul 300-390 {launch.format(301, 400)}",
            A100,
        )
        assert host_work(profile).share(profile.named("aten::item", "aten::mul").tolist()) == 0

    def test_leaves_out_first_calls(self) -> None:
        first = "aten::select 0-2\naten::mul 10-9000\naten::div 9010-9990"
        profile = draw(f"{first}\naten::mul 10000-10006\naten::mul 10010-10016")
        assert host_work(profile).share(profile.named("aten::mul", "aten::div").tolist()) == 0


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
