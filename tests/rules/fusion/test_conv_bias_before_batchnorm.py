"""conv-bias-before-batchnorm: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import re

import pytest

from tb_tidy_plugin.rulekit import Benchmark, Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm import ConvBiasBeforeBatchnorm


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ConvBiasBeforeBatchnorm, profile)


def why_of(profile: Profile) -> str:
    (match, *_) = matches(profile)
    rule = ConvBiasBeforeBatchnorm()
    return rule.filled_in(rule.why, match.evidence)


def norm(sizes: str, training: str = "True") -> str:
    dtypes = "float,float,float,float,float,Scalar,Scalar,Scalar,Scalar"
    return f"dims={sizes},8,8,8,8,-,-,-,-  types={dtypes}  scalars=,,,,,{training},0.1,1e-05,True"


CONV = "dims=2x3x16x16,8x3x3x3,8  types=float,float,float"

MODULES = f"""
    ProfilerStep#1                        0-1000
      train.py(9): forward                1-999
        nn.Module: Conv2d_0               10-300
          aten::conv2d                    20-290  {CONV}
        nn.Module: BatchNorm2d_0          301-600
          aten::add_                      310-320  dims=,  types=long,long
          aten::batch_norm                330-590  {norm("2x8x14x14")}
"""

# As cuDNN runs it: the bias is added by an operator of its own, and its gradient is a sum of its own.
SEPARATE = f"""
    ProfilerStep#1                                             0-2000
      train.py(9): forward                                     1-999
        aten::conv2d                                           20-290   seq=7  {CONV}
          aten::convolution                                    30-280   seq=7
            aten::cudnn_convolution                            40-200   kernel=implicit_convolve_sgemm@100-400
            aten::add_                                         210-240  kernel=vectorized_elementwise_kernel@400-430
        aten::batch_norm                                       330-590  {norm("2x8x14x14")}
      autograd::engine::evaluate_function: ConvolutionBackward0  1000-1500  seq=7  fwd=1
        ConvolutionBackward0                                   1010-1490  seq=7  fwd=1
          aten::convolution_backward                           1020-1480
            aten::cudnn_convolution_backward                   1030-1300
            aten::sum                                          1310-1370  kernel=reduce_kernel@1400-1450
"""

# Call {0} of pair {1}.
PAIR = f"""
    train.py(9): forward            {{0}}000-{{0}}999
      nn.Module: Conv2d_{{1}}       {{0}}010-{{0}}300
        aten::conv2d                {{0}}020-{{0}}290  {CONV}
      nn.Module: BatchNorm2d_{{1}}  {{0}}301-{{0}}600
        aten::batch_norm            {{0}}330-{{0}}590  {norm("2x8x14x14")}
"""


class TestReports:
    def test_modules_one_after_the_other(self) -> None:
        profile = draw(MODULES)
        (match,) = matches(profile)
        assert profile.name(match.anchor) == "aten::conv2d"
        assert match.confidence == "high"
        (finding,) = findings(ConvBiasBeforeBatchnorm, profile)
        assert finding.message == (
            "`Conv2d_0` adds a bias to 8 channels, and `BatchNorm2d_0` right after it cancels the bias"
        )
        assert finding.places[0].function == "forward"

    def test_a_subclass_and_a_call_of_a_function(self) -> None:
        profile = draw(
            f"""
            nn.Module: PaddedConvolution_0  0-300
              aten::conv2d                  20-290   {CONV}
            aten::ones                      301-305
            aten::batch_norm                330-590  {norm("2x8x14x14")}
            """
        )
        assert len(matches(profile)) == 1

    def test_functions_without_modules(self) -> None:
        profile = draw(
            f"""
            train.py(9): forward  0-999
              aten::conv2d        20-290   {CONV}
              aten::batch_norm    330-590  {norm("2x8x14x14")}
            """
        )
        (finding,) = findings(ConvBiasBeforeBatchnorm, profile)
        assert finding.message.startswith("`aten::conv2d` adds a bias to 8 channels, and `aten::batch_norm` ")

    def test_modules_in_a_sequential(self) -> None:
        profile = draw(
            f"""
            train.py(9): forward             0-999
              nn.Module: Sequential_0        1-998
                nn.Module: Conv2d_0          10-300
                  aten::conv2d               20-290   {CONV}
                nn.Module: BatchNorm2d_0     301-600
                  aten::batch_norm           330-590  {norm("2x8x14x14")}
            """
        )
        assert len(matches(profile)) == 1

    @pytest.mark.parametrize(
        ("conv", "sizes", "output"),
        [
            ("aten::conv1d", "dims=2x3x16,8x3x3,8", "2x8x14"),
            ("aten::conv3d", "dims=2x3x8x8x8,8x3x3x3x3,8", "2x8x6x6x6"),
            ("aten::conv_transpose2d", "dims=2x3x16x16,3x8x3x3,8", "2x8x18x18"),
            ("aten::convolution", "dims=2x3x16x16,8x3x3x3,8", "2x8x14x14"),
        ],
    )
    def test_every_convolution(self, conv: str, sizes: str, output: str) -> None:
        text = f"{conv} 0-290 {sizes} types=float,float,float\naten::batch_norm 330-590 {norm(output)}"
        assert len(matches(draw(text))) == 1

    def test_batch_norm_over_several_processes(self) -> None:
        text = f"aten::conv2d 0-290 {CONV}\nSyncBatchNorm 330-590 dims=2x8x14x14,8 types=float,float"
        assert [match.confidence for match in matches(draw(text))] == ["high"]

    def test_a_recording_that_does_not_name_the_mode(self) -> None:
        profile = draw(MODULES.replace("True,0.1,1e-05,True", ",,,"))
        (match,) = matches(profile)
        assert match.confidence == "medium"
        assert "a mode that was not recorded" in match.evidence.mode

    def test_a_cast_in_between(self) -> None:
        text = MODULES.replace(
            "aten::add_                      310-320  dims=,  types=long,long",
            "aten::to                        310-320  dims=2x8x14x14  types=float",
        )
        assert len(matches(draw(text))) == 1

    def test_all_pairs_of_a_function_in_all_steps_are_one_finding(self) -> None:
        """A model has many such pairs, each worth next to nothing: one line in the list is enough."""
        profile = draw("".join(PAIR.format(step, pair) for step, pair in ((1, 0), (2, 1), (3, 0))))
        (finding,) = findings(ConvBiasBeforeBatchnorm, profile)
        assert finding.matches == 3


class TestSaves:
    def test_the_kernels_of_the_addition_and_the_sum_where_they_are_operators(self) -> None:
        profile = draw(SEPARATE, A100)
        (match,) = matches(profile)
        assert [profile.name(row) for row in match.events] == ["vectorized_elementwise_kernel", "reduce_kernel"]
        # The kernels take 30 and 50 µs.
        assert saving_ns(ConvBiasBeforeBatchnorm, profile) == (0, 80_000, 80_000)

    def test_their_time_on_the_host_without_a_gpu(self) -> None:
        profile = draw(re.sub(r" +kernel=\S+", "", SEPARATE))
        # aten::add_ takes 30 µs, aten::sum 60 µs.
        assert saving_ns(ConvBiasBeforeBatchnorm, profile) == (0, 90_000, 90_000)

    def test_next_to_nothing_where_they_are_part_of_the_convolution(self) -> None:
        # 0.5 % of 270 µs, which is also all that the finding costs: the convolution itself stays.
        assert saving_ns(ConvBiasBeforeBatchnorm, draw(MODULES)) == (0, 1_350, 1_350)
        assert [finding.cost_ns for finding in findings(ConvBiasBeforeBatchnorm, draw(MODULES))] == [1_350]
        assert [finding.severity for finding in findings(ConvBiasBeforeBatchnorm, draw(MODULES))] == ["low"]

    def test_operators_of_the_bias_are_named_where_there_are_any(self) -> None:
        said = "Adding the bias and summing its gradient take "
        assert f"{said}80 µs in separate operators." in why_of(draw(SEPARATE, A100))
        assert said not in why_of(draw(MODULES))

    def test_a_benchmark_of_the_same_sizes(self) -> None:
        (match,) = matches(draw(MODULES))
        assert ConvBiasBeforeBatchnorm().benchmark(match.evidence) == Benchmark(
            before="norm(biased(x)).sum().backward()",
            after="norm(plain(x)).sum().backward()",
            setup="import torch\n"
            "x = torch.randn((2, 3, 16, 16), device=device)\n"
            "biased = torch.nn.Conv2d(3, 8, (3, 3), groups=1, device=device)\n"
            "plain = torch.nn.Conv2d(3, 8, (3, 3), groups=1, device=device, bias=False)\n"
            "norm = torch.nn.BatchNorm2d(8, device=device)",
        )


class TestStaysQuiet:
    def test_evaluation_mode(self) -> None:
        assert matches(draw(MODULES.replace("True,0.1,1e-05,True", "False,0.1,1e-05,True"))) == ()

    def test_no_bias(self) -> None:
        text = MODULES.replace(CONV, "dims=2x3x16x16,8x3x3x3,-  types=float,float,-")
        assert matches(draw(text)) == ()

    def test_an_activation_in_between(self) -> None:
        text = MODULES.replace(
            "aten::add_                      310-320  dims=,  types=long,long",
            "aten::relu                      310-320  dims=2x8x14x14  types=float",
        )
        assert matches(draw(text)) == ()

    def test_a_batch_norm_of_something_else(self) -> None:
        assert matches(draw(MODULES.replace("dims=2x8x14x14,8,8,8,8", "dims=2x16x14x14,16,16,16,16"))) == ()

    def test_no_batch_norm(self) -> None:
        assert matches(draw(MODULES.replace("aten::batch_norm", "aten::layer_norm"))) == ()

    def test_a_batch_norm_on_another_level(self) -> None:
        text = f"aten::outer 0-300\n  aten::conv2d 10-290 {CONV}\naten::batch_norm 330-590 {norm('2x8x14x14')}"
        assert matches(draw(text)) == ()

    def test_convolutions_inside_convolutions_count_once(self) -> None:
        text = f"""
            aten::conv2d         0-290    {CONV}
              aten::convolution  10-280   {CONV}
            aten::batch_norm     330-590  {norm("2x8x14x14")}
        """
        assert len(matches(draw(text))) == 1

    def test_a_batch_norm_too_far_away(self) -> None:
        others = "".join(f"\naten::ones {at}-{at + 1}" for at in range(300, 316, 2))
        profile = draw(f"aten::conv2d 0-290 {CONV}{others}\naten::batch_norm 330-590 {norm('2x8x14x14')}")
        assert matches(profile) == ()
        assert len(matches_of(ConvBiasBeforeBatchnorm({"max_operators": 9}), profile)) == 1

    def test_no_sizes(self) -> None:
        profile = draw(f"aten::conv2d 0-290\naten::batch_norm 330-590 {norm('2x8x14x14')}")
        assert matches(profile) == ()
