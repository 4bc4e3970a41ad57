"""Operators of the backward pass that belong to those of the forward pass."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.rulekit.testing.drawn import draw, row_of

EVALUATE = "autograd::engine::evaluate_function: "


def names_of(profile: Profile, name: str) -> list[str]:
    return [profile.name(row) for row in gradients_of(profile, [row_of(profile, name)])]


class TestGradientsOf:
    @pytest.mark.parametrize(
        ("operator", "node"),
        [
            ("aten::mul", "MulBackward0"), ("aten::mul_", "MulBackward0"), ("aten::log1p", "Log1PBackward0"),
            ("aten::masked_fill", "MaskedFillBackward1"), ("aten::_softmax", "SoftmaxBackward0"),
        ],
    )  # fmt: skip
    def test_the_node_named_after_the_operator(self, operator: str, node: str) -> None:
        profile = draw(f"{operator} 0-9 seq=3\n{EVALUATE}{node} 100-190 seq=3 fwd=1\n  {node} 110-180 seq=3 fwd=1")
        assert names_of(profile, operator) == [EVALUATE + node]

    def test_nodes_without_the_engine_as_in_2021(self) -> None:
        profile = draw("aten::mul 0-9 seq=3\nMulBackward0 110-180 seq=3 fwd=1")
        assert names_of(profile, "aten::mul") == ["MulBackward0"]

    def test_those_of_what_an_operator_runs(self) -> None:
        text = "aten::softmax 0-9\n  aten::_softmax 1-8 seq=3\n" + f"{EVALUATE}SoftmaxBackward0 100-190 seq=3 fwd=1"
        assert names_of(draw(text), "aten::softmax") == [EVALUATE + "SoftmaxBackward0"]

    def test_not_the_node_of_the_next_operator_with_the_number(self) -> None:
        profile = draw(f"aten::eq 0-9 seq=3\naten::mul 10-19 seq=3\n{EVALUATE}MulBackward0 100-190 seq=3 fwd=1")
        assert names_of(profile, "aten::eq") == []
