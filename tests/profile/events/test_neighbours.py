"""Operators before and after an operator, and its counterpart in the other direction of autograd."""

from __future__ import annotations

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw, row_of


def names(profile: Profile, rows: list[int]) -> list[str]:
    return [profile.name(row) for row in rows]


def test_python_frames_and_annotations_do_not_part_neighbours() -> None:
    profile = draw(
        """
        train.py(1): step                                0-100
          <built-in method ones of type object at 0x1>   1-20
            aten::ones                                   2-19
              aten::fill_                                5-18
          ## load ##                                     30-90
            <built-in method to of Tensor object at 0x2> 31-60
              aten::to                                   32-59
          aten::mm                                       91-99
        """
    )
    to = row_of(profile, "aten::to")
    assert names(profile, profile.operators_before(to, 5)) == ["aten::ones"]
    assert names(profile, profile.operators_after(to, 5)) == ["aten::mm"]


def test_the_nearest_neighbour_comes_first() -> None:
    profile = draw("a 0-1\nb 2-3\nc 4-5\nd 6-7\ne 8-9")
    middle = row_of(profile, "c")
    assert names(profile, profile.operators_before(middle, 2)) == ["b", "a"]
    assert names(profile, profile.operators_after(middle, 2)) == ["d", "e"]
    assert names(profile, profile.operators_before(middle, 1)) == ["b"]


def test_an_operator_has_no_neighbours_outside_the_operator_around_it() -> None:
    profile = draw(
        """
        aten::before   0-9
        aten::outer    10-50
          aten::first  11-20
          aten::second 21-30
        aten::after    60-70
        """
    )
    assert names(profile, profile.operators_before(row_of(profile, "aten::first"), 5)) == []
    assert names(profile, profile.operators_after(row_of(profile, "aten::first"), 5)) == ["aten::second"]
    assert names(profile, profile.operators_after(row_of(profile, "aten::second"), 5)) == []


def test_an_operator_has_no_neighbours_on_other_threads() -> None:
    profile = draw("aten::mine 0-9\naten::theirs 20-29 thread=2\naten::mine2 30-39")
    assert names(profile, profile.operators_after(row_of(profile, "aten::mine"), 5)) == ["aten::mine2"]


BACKWARD = """
    aten::mm                                          0-9     seq=7
    aten::relu                                        10-19   seq=8
    autograd::engine::evaluate_function: MmBackward0  50-90   seq=7  fwd=1  thread=2
      MmBackward0                                     51-89   seq=7  fwd=1  thread=2
        aten::mm                                      52-70   thread=2
"""


def test_the_backward_pass_of_an_operator() -> None:
    profile = draw(BACKWARD)
    assert names(profile, profile.backward_of(row_of(profile, "aten::mm"))) == [
        "autograd::engine::evaluate_function: MmBackward0",
        "MmBackward0",
    ]
    assert profile.backward_of(row_of(profile, "aten::relu")) == []


def test_the_forward_operator_behind_an_operator_of_the_backward_pass() -> None:
    profile = draw(BACKWARD)
    assert profile.forward_of(row_of(profile, "aten::mm", 1)) == row_of(profile, "aten::mm")
    assert profile.forward_of(row_of(profile, "aten::mm")) is None


def test_what_a_checkpoint_computes_anew_is_forward() -> None:
    profile = draw(
        """
        train.py(5): block                                       0-40
          CheckpointFunction                                     1-39    seq=7
        autograd::engine::evaluate_function: CheckpointBackward  50-90   seq=7  fwd=1
          train.py(5): block                                     51-89
            aten::mm                                             52-70
        """
    )
    assert profile.forward_of(row_of(profile, "aten::mm")) is None


def test_without_sequence_numbers_no_direction_is_known() -> None:
    profile = draw("aten::mm 0-9")
    assert profile.backward_of(0) == []
    assert profile.forward_of(0) is None
