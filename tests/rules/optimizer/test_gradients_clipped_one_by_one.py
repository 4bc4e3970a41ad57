"""gradients-clipped-one-by-one: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.optimizer.gradients_clipped_one_by_one import GradientsClippedOneByOne

CLIP = "torch/nn/utils/clip_grad.py(185): clip_grad_norm_"


def job(parameters: int = 12, function: str = CLIP, together: str = "", on_gpu: bool = True) -> Profile:
    """A step of 1 ms whose gradients take 10 µs each on host and device."""
    lines = ["ProfilerStep#1 0-999", "  train.py(4): train 1-998", f"    {function} 10-{40 + 20 * parameters}"]
    lines += [f"      {together} 11-19"] if together else []
    for at in range(20, 20 + 20 * parameters, 20):
        for name, start in (("aten::linalg_vector_norm", at), ("aten::mul_", at + 10)):
            lines.append(f"      {name} {start}-{start + 8}" + f" kernel=k@{start + 2}-{start + 9}" * on_gpu)
    return draw("\n".join(lines), A100 if on_gpu else None)


class TestReports:
    @pytest.mark.parametrize("function", [CLIP, CLIP.replace("norm", "value")])
    def test_an_operator_for_each_parameter(self, function: str) -> None:
        (finding,) = findings(GradientsClippedOneByOne, job(function=function))
        assert finding.message.startswith("Gradients of 12 parameters are clipped one at a time: 24 operators")
        assert [place.function for place in finding.places] == ["train"]


class TestSaves:
    def test_most_of_the_call(self) -> None:
        low, expected, high = saving_ns(GradientsClippedOneByOne, job())
        assert low < expected < high
        assert expected == pytest.approx(0.7 * 270_000, rel=0.01)


class TestStaysQuiet:
    def test_for_few_parameters(self) -> None:
        assert matches_of(GradientsClippedOneByOne, job(parameters=9)) == ()

    def test_for_one_call_for_all(self) -> None:
        assert matches_of(GradientsClippedOneByOne, job(together="aten::_foreach_norm")) == ()

    def test_on_a_cpu(self) -> None:
        rule = GradientsClippedOneByOne()
        assert list(rule.detect(job(on_gpu=False))) == []

    def test_for_a_function_of_the_users_own(self) -> None:
        assert matches_of(GradientsClippedOneByOne, job(function="clip.py(3): clip_grad_norm_")) == ()
