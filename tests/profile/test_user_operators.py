"""Operators of the user's own code, also where Python runs below an operator, and without what operators run."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.user_operators import spans_of, user_operators
from tests.support.compiled import compiled_step
from tests.support.drawn import draw, row_of

FUNCTION = """
train.py(20): step                              0-990
  Cube                                          10-300
    train.py(5): forward                        20-290
      aten::mul                                 30-60
        aten::resolve_conj                      40-45
      torch/nn/functional.py(9): silu           70-200
        aten::silu                              80-190
  torch/_tensor.py(5): backward                 400-900
    CubeBackward                                410-890 fwd=1
      train.py(9): backward                     420-880
        aten::mul                               430-600
    MulBackward0                                892-899 fwd=1
      aten::mul                                 893-898
"""


def listed(profile: Profile) -> list[str]:
    rows = user_operators(profile, lambda name: name.startswith("train.py"))
    return [profile.name(row) for row in rows.tolist()]


def test_in_both_passes_of_an_autograd_function() -> None:
    assert listed(draw(FUNCTION)) == ["Cube", "aten::mul", "aten::silu", "CubeBackward", "aten::mul", "MulBackward0"]


def test_below_spans_that_are_recorded_as_operators() -> None:
    profile = draw("""
train.py(20): step                              0-990
  my span                                       10-300
    aten::mul                                   20-60
    inner span                                  70-200
      aten::add                                 80-190
        aten::resolve_conj                      90-95
  empty span                                    310-320
""")
    assert [name for name in listed(profile) if "::" in name] == ["aten::mul", "aten::add"]
    spans = [profile.name(row) for row in range(profile.tree.size) if spans_of(profile)[row]]
    assert spans == ["my span", "inner span"]


@pytest.mark.parametrize("name", ["aten::linear", "MulBackward0", "mylib::fused"])
def test_an_operator_that_runs_others_is_no_span(name: str) -> None:
    profile = draw(f"train.py(20): step 0-990\n  {name} 10-300\n    aten::mul 20-60")
    assert listed(profile) == [name]
    assert not spans_of(profile).any()


def test_a_library_s_python_below_an_operator_is_not_the_user_s() -> None:
    profile = draw(
        "train.py(20): step 0-990\n  aten::linear 10-300\n    torch/_dtensor.py(3): f 15-90\n      aten::mul 20-60"
    )
    assert listed(profile) == ["aten::linear"]


def test_of_compiled_code_its_kernels() -> None:
    names = [name for name in listed(compiled_step()) if "::" in name or "cpp" in name]
    assert names == ["aten::mm", "graph_3_cpp_fused_sin_0", "aten::addmm"]


def test_in_row_order() -> None:
    profile = draw(FUNCTION)
    rows = user_operators(profile, lambda name: name.startswith("train.py"))
    assert rows.tolist() == sorted(rows.tolist())
    assert rows[0] == row_of(profile, "Cube")
