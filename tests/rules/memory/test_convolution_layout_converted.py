"""convolution-layout-converted: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, Gpu, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.memory.convolution_layout_converted import ConvolutionLayoutConverted
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.causes import Kind
from tests.support.recordings import shared

TO, BACK = "void_cudnn::ops::nchwToNhwcKernel<__half>", "void_cudnn::ops::nhwcToNchwKernel<__half>"


def job(to: str = TO, back: str = BACK, operator: str = "aten::cudnn_convolution", gpu: Gpu = A100) -> Profile:
    """Of a step of 1 ms two conversions take 50 µs each."""
    return draw(
        f"""
        ProfilerStep#1         0-1000
          model.py(9): forward 1-999
            {operator}         10-90    kernel={to}@100-150  kernel=h16816fprop@150-940  kernel={back}@940-990
        """,
        gpu,
    )


class TestReports:
    def test_both_ways(self) -> None:
        profile = job()
        (evidence,) = findings_of(
            profile, ConvolutionLayoutConverted(), matches_of(ConvolutionLayoutConverted, profile)
        )
        finding = evidence.finding
        assert finding.cost_ns == 100_000
        assert finding.message == "Convolutions convert tensors between NCHW and NHWC for 100 µs of a step (10 %)"
        assert [place.function for place in finding.places] == ["forward"]
        assert finding.fix.endswith("and the same for the input")

    def test_of_miopen(self) -> None:
        (match,) = matches_of(
            ConvolutionLayoutConverted,
            job("batched_transpose_16x32_half", "batched_transpose_32x16_half", "aten::miopen_convolution", MI300),
        )
        assert len(match.events) == 2
        assert "PYTORCH_MIOPEN_SUGGEST_NHWC" in str(match.evidence.further)

    def test_without_steps(self) -> None:
        profile = draw(
            f"aten::conv2d 0-20\n  aten::cudnn_convolution 1-19 kernel={TO}@20-70  kernel=fprop@70-100", A100
        )
        (match,) = matches_of(ConvolutionLayoutConverted, profile)
        assert str(match.evidence.share) == "50 %"


class TestSaves:
    def test_nine_tenths(self) -> None:
        assert saving_ns(ConvolutionLayoutConverted, job()) == (0, 90_000, 100_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job("scalePackedTensor", "h16816"), id="no conversion"),
            pytest.param(job(operator="aten::my_transpose"), id="no convolution"),
            pytest.param(job("transpose_kernel", "batched_transpose"), id="other transpositions"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(ConvolutionLayoutConverted, profile) == ()

    def test_less_than_a_fiftieth_of_the_step(self) -> None:
        assert matches_of(ConvolutionLayoutConverted({"min_share": 0.11}), job()) == ()


class TestRecordings:
    def test_a_resnet_in_bfloat16(self) -> None:
        """Its convolutions get strides like (200704, 3136, 56, 1), which is NCHW."""
        (file,) = find_traces(shared("traces/mi300_ddp8_resnet_checkpoint"))
        report = read_file(file, Job(rules=(ConvolutionLayoutConverted(),))).report
        (finding,) = report.findings
        assert {entry.finding_id for entry in report.ledger.entries if entry.kind is Kind.LAYOUT} == {finding.id}
