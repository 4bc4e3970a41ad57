"""fp32-on-ordinary-cores: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Profile, Rule
from tb_tidy_plugin.rulekit.testing import A100, MI300, V100, Gpu, draw, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

CONVOLUTION = "volta_scudnn_128x64_relu_interior_nn_v1"
STEP = """
    ProfilerStep#1                    0-1000
      train.py(9): step               1-999
        aten::cudnn_convolution       10-60     kernel={}@100-500
        aten::mm                      70-120    kernel={}@500-600
        aten::relu                    130-180   kernel=vectorized_relu@600-990
"""
T4 = Gpu("Tesla T4", 7, 5)
P100 = Gpu("Tesla P100-PCIE-16GB", 6, 0)


def job(gpu: Gpu = V100, first: str = CONVOLUTION, second: str = "volta_sgemm_128x64_nt") -> Profile:
    return draw(STEP.format(first, second), gpu)


class TestReports:
    @pytest.mark.parametrize("gpu", [V100, T4], ids=lambda gpu: gpu.name)
    def test_convolutions_and_products(self, gpu: Gpu) -> None:
        profile = job(gpu)
        (evidence,) = findings_of(profile, Fp32OnOrdinaryCores(), matches_of(Fp32OnOrdinaryCores, profile))
        finding = evidence.finding
        assert finding.cost_ns == 500_000
        assert finding.message == (
            "Products and convolutions in float32 take 500 µs of a step (50 %) on the ordinary cores of "
            f"{gpu.name}, whose matrix units are idle"
        )
        assert finding.fix == (
            'Use mixed precision: `torch.autocast("cuda", dtype=torch.float16)`, with `torch.amp.GradScaler` for '
            "training"
        )
        assert [place.function for place in finding.places] == ["step"]

    def test_bfloat16_where_there_is_some(self) -> None:
        (match,) = matches_of(Fp32OnOrdinaryCores, job(A100))
        assert (match.evidence.dtype, match.evidence.scaling) == ("bfloat16", "")

    @pytest.mark.parametrize(
        "kernel",
        [
            "void_cudnn::detail::dgrad_engine<float,512,6>",
            "cutlass_80_simt_sgemm_128x128",
            "void_explicit_convolve_sgemm<float,int>",
            "void_cudnn::winograd_nonfused::winogradForwardData4x4<float,float>",
        ],
    )
    def test_names_of_kernels(self, kernel: str) -> None:
        assert matches_of(Fp32OnOrdinaryCores, job(first=kernel))

    def test_the_kernel_with_most_time_in_all(self) -> None:
        (match,) = matches_of(Fp32OnOrdinaryCores, job())
        assert match.evidence.kernel == CONVOLUTION
        assert str(match.evidence.kernels) == "2"

    def test_the_line_of_the_forward_pass(self) -> None:
        profile = draw(
            """
            ProfilerStep#1                    0-1000
              model.py(9): forward            1-99
                aten::conv2d                  10-60     seq=5  kernel=volta_scudnn@100-200
              autograd::engine::evaluate_function: ConvolutionBackward0  200-300  seq=5  fwd=1
                aten::convolution_backward    210-290   seq=5  fwd=1  kernel=volta_scudnn@300-900
            """,
            V100,
        )
        (evidence,) = findings_of(profile, Fp32OnOrdinaryCores(), matches_of(Fp32OnOrdinaryCores, profile))
        assert [place.function for place in evidence.finding.places] == ["forward"]


class TestSaves:
    def test_the_part_that_mixed_precision_leaves(self) -> None:
        # A V100 computes 15.7 TFLOP/s in float32 and 125 in float16.
        assert saving_ns(Fp32OnOrdinaryCores, job()) == (0, 300_000, 437_200)

    @pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3040 Laptop GPU"])
    def test_a_geforce_halves_its_time_at_best(self, name: str) -> None:
        """It computes twice as much in 16 bits as in float32: 12.7 and 25.4 TFLOP/s."""
        profile = job(Gpu(name, 8, 6))
        assert saving_ns(Fp32OnOrdinaryCores, profile) == (0, 200_000, 250_000)
        (match,) = matches_of(Fp32OnOrdinaryCores, profile)
        assert match.confidence == ("high" if "3060" in name else "medium")


class TestStaysQuiet:
    def test_kernels_on_matrix_units(self) -> None:
        assert matches_of(Fp32OnOrdinaryCores, job(first="volta_h884cudnn_256x64", second="volta_h884gemm")) == ()

    def test_less_than_a_quarter_of_the_step(self) -> None:
        assert matches_of(Fp32OnOrdinaryCores, job(first="volta_h884cudnn_256x64")) == ()

    def test_a_gpu_without_matrix_units(self) -> None:
        assert "not name a GPU that is known to have matrix units" in reason_not_checked(Fp32OnOrdinaryCores, job(P100))

    def test_amd(self) -> None:
        assert "kernel names of NVIDIA GPUs" in reason_not_checked(Fp32OnOrdinaryCores, job(MI300))

    def test_products_that_tf32_takes_to_the_matrix_units(self, tmp_path: Path) -> None:
        product = "aten::mm 10-60 dims=4096x4096,4096x4096 types=float,float kernel=ampere_sgemm_128x64_nn@100-9000"
        text = f"ProfilerStep#1 0-10000\n  train.py(9): step 1-9999\n    {product}"
        assert matches_of(Fp32OnOrdinaryCores, draw_into(tmp_path, text, A100))
        (file,) = find_traces(tmp_path)
        rules: list[Rule] = [Fp32OnOrdinaryCores(), Fp32MatmulNoTf32()]
        assert [each.rule for each in read_file(file, Job(rules=tuple(rules))).report.findings] == [
            "fp32-matmul-no-tf32"
        ]


class TestRecordings:
    def test_a_t4_that_trains_in_float32(self) -> None:
        """An expert's first word on this recording: 81 % of kernel time is in float32 kernels."""
        (file,) = find_traces(shared("traces/t4_resnet50_fp32"))
        analysis = read_file(file, Job(rules=(Fp32OnOrdinaryCores(),)))
        (finding,) = analysis.report.findings
        assert finding.cost_ns / analysis.profile.device_busy.total_ns == pytest.approx(0.81, abs=0.03)
        entry = analysis.report.ledger.entries[0]
        assert (entry.id, entry.finding_id) == ("compute:convolution", finding.id)
