"""What comes again in another step, and what happens once."""

from __future__ import annotations

from tb_tidy_plugin.profile.host.callers import recurring
from tb_tidy_plugin.rulekit.testing import draw


def comes_again(text: str) -> list[int]:
    """The starts, in µs, of the `aten::copy_` that come again."""
    profile = draw(text)
    return [profile.start_ns(row) // 1000 for row in recurring(profile, profile.named("aten::copy_")).tolist()]


def test_the_same_function_in_two_steps() -> None:
    assert comes_again(
        """
        ProfilerStep#1         0-99
          train.py(1): batch   1-90
            aten::copy_        2-9
        ProfilerStep#2         100-199
          train.py(1): batch   101-190
            aten::copy_        102-109
        """
    ) == [2, 102]


def test_another_function_in_each_step_does_not() -> None:
    assert not comes_again(
        """
        ProfilerStep#1         0-99
          train.py(1): first   1-90
            aten::copy_        2-9
            aten::copy_        12-19
        ProfilerStep#2         100-199
          train.py(2): second  101-190
            aten::copy_        102-109
        """
    )


def test_steps_are_no_callers_and_neither_are_annotations_that_count() -> None:
    assert comes_again(
        """
        ProfilerStep#1     0-99
          aten::copy_      2-9
        ProfilerStep#2     100-199
          aten::copy_      102-109
        """
    ) == [2, 102]


def test_outside_of_steps_nothing_does() -> None:
    assert comes_again(
        """
        aten::copy_        0-1
        ProfilerStep#1     2-99
          aten::copy_      3-9
        ProfilerStep#2     100-199
          aten::copy_      102-109
        """
    ) == [3, 102]


def test_in_a_single_step_all_does() -> None:
    assert comes_again("ProfilerStep#1 0-99\n  aten::copy_ 2-9") == [2]


def test_without_steps_what_a_function_calls_twice() -> None:
    once = """
        train.py(1): first   0-90
          aten::copy_        2-9
        train.py(2): second  100-190
          aten::copy_        102-109"""
    assert not comes_again(once)
    assert comes_again(f"{once}\n          aten::copy_        112-119") == [102, 112]


def test_nothing_of_nothing() -> None:
    assert not comes_again("ProfilerStep#1 0-99")
