"""What a parameter takes of the handing over of its gradient, and of optimizers."""

from __future__ import annotations

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing.drawn import draw, row_of
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm.parameter_costs import costs_of_parameters, handed_over_by

EVALUATE = "autograd::engine::evaluate_function: "
BACKWARD = f"""
  {EVALUATE}ConvolutionBackward0                       100-200  seq=3 fwd=1
    ConvolutionBackward0                               110-190  seq=3 fwd=1
  {EVALUATE}torch::autograd::AccumulateGrad            201-205
    torch::autograd::AccumulateGrad                    202-204  dims=8x3  types=float
  {EVALUATE}torch::autograd::AccumulateGrad            206-208
    torch::autograd::AccumulateGrad                    206-207  dims=8    types=float
  {EVALUATE}ReluBackward0                              210-290
  {EVALUATE}torch::autograd::AccumulateGrad            291-299
    torch::autograd::AccumulateGrad                    292-298  dims=2    types=float
"""
STEP = f"ProfilerStep#1  0-1000{BACKWARD}"


def spans_us(profile: Profile) -> list[list[tuple[float, float]]]:
    found = costs_of_parameters(profile).values()
    return [[(start / 1_000, end / 1_000) for start, end in spans] for spans in found]


def test_all_parameters_share_the_optimizers_time_equally() -> None:
    """60 µs of zero_grad and 240 of the step without one long operator, in thirds."""
    profile = draw(
        f"{STEP}  Optimizer.zero_grad#Adam.zero_grad  10-70\n"
        "  Optimizer.step#Adam.step  400-700\n    aten::_fused_adam_  500-512\n    aten::mul_  600-660\n"
    )
    assert spans_us(profile) == [
        [(201, 205), (10, 70), (400, 440)],
        [(206, 208), (440, 540)],
        [(291, 299), (540, 600), (660, 700)],
    ]


def test_without_optimizers_there_is_the_handing_over() -> None:
    assert spans_us(draw(STEP)) == [[(201, 205)], [(206, 208)], [(291, 299)]]
    assert spans_us(draw("ProfilerStep#1  0-10")) == []


def test_gradients_are_handed_over_right_after_the_node_that_computes_them() -> None:
    profile = draw(STEP)
    handed = handed_over_by(profile, row_of(profile, "ConvolutionBackward0"))
    assert [profile.inputs(row).shape(0) for row in handed] == [(8, 3), (8,)]
    assert handed_over_by(profile, row_of(profile, "torch::autograd::AccumulateGrad", 2)) == []
