"""fp32-matmul-no-tf32: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Benchmark, Match, Profile
from tb_tidy_plugin.rulekit.testing import (
    A100,
    MI300,
    V100,
    Gpu,
    draw,
    findings,
    matches_of,
    reason_not_checked,
    saving_ns,
)
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32
from tests.support.known import with_settings

# 2 × 4096³ flops: 881 µs at the A100's 156 TFLOP/s, 1762 µs at half of that.
LARGE = """
    ProfilerStep#1         0-12000
      train.py(9): step    1-11999
        aten::mm           10-90     dims=4096x4096,4096x4096  types=float,float  kernel={kernel}@100-10100
"""
SGEMM = "ampere_sgemm_128x64_nn"


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(Fp32MatmulNoTf32, profile)


def reason(profile: Profile) -> str:
    return reason_not_checked(Fp32MatmulNoTf32, profile)


class TestReports:
    def test_a_product_on_cuda_cores(self) -> None:
        profile = draw(LARGE.format(kernel=SGEMM), A100)
        (match,) = matches(profile)
        assert profile.name(match.anchor) == "aten::mm"
        assert [profile.name(row) for row in match.events] == [SGEMM]
        assert match.confidence == "high"
        (finding,) = findings(Fp32MatmulNoTf32, profile)
        assert finding.message == (
            "`aten::mm` of 4096×4096 by 4096×4096 takes 10 ms in full float32 and leaves the tensor cores of "
            "NVIDIA A100-SXM4-80GB unused"
        )
        assert finding.places[0].function == "step"

    @pytest.mark.parametrize(
        "kernel",
        [
            "ampere_sgemm_32x128_tn",
            "void_cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(Params)",
            "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_tnn_align1_bias_f32_relu",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize2x4x1_ffma_aligna4_alignc4_execute",
            "void_magma_sgemmEx_kernel<float,float,float,true,false,6,4,6,3,4>(int)",
        ],
    )
    def test_every_family_of_kernels_on_cuda_cores(self, kernel: str) -> None:
        assert len(matches(draw(LARGE.format(kernel=kernel), A100))) == 1

    @pytest.mark.parametrize(
        "inputs",
        [
            "aten::bmm      10-90  dims=8x2048x2048,8x2048x2048  types=float,float",
            "aten::addmm    10-90  dims=4096,4096x4096,4096x4096  types=float,float,float",
            "aten::baddbmm  10-90  dims=8x2048x2048,8x2048x2048,8x2048x2048  types=float,float,float",
        ],
    )
    def test_not_only_mm(self, inputs: str) -> None:
        assert len(matches(draw(f"{inputs}  kernel={SGEMM}@100-10100", A100))) == 1

    def test_every_call_keeps_its_place_and_each_function_is_one_finding(self) -> None:
        call = "dims=4096x4096,4096x4096  types=float,float"
        profile = draw(
            f"""
            train.py(9): encode   0-200
              aten::mm            10-90    {call}  kernel={SGEMM}@100-10100
              aten::mm            110-190  {call}  kernel={SGEMM}@10100-20100
            train.py(19): decode  300-400
              aten::mm            310-390  {call}  kernel={SGEMM}@20100-30100
            """,
            A100,
        )
        found = findings(Fp32MatmulNoTf32, profile)
        assert [(finding.places[0].function, finding.matches) for finding in found] == [("encode", 2), ("decode", 1)]

    def test_the_backward_pass_counts_where_the_product_is_written(self) -> None:
        call = "dims=4096x4096,4096x4096  types=float,float"
        profile = draw(
            f"""
            train.py(9): forward                                0-200
              aten::mm                                          10-90    seq=7  {call}  kernel={SGEMM}@100-10100
            train.py(19): step                                  300-600
              autograd::engine::evaluate_function: MmBackward0  310-590  seq=7  fwd=1
                MmBackward0                                     320-580  seq=7  fwd=1
                  aten::mm                                      330-400  {call}  kernel={SGEMM}@10100-20100
            """,
            A100,
        )
        (finding,) = findings(Fp32MatmulNoTf32, profile)
        assert [place.function for place in finding.places] == ["forward"]
        assert finding.matches == 2

    def test_sizes_that_tensor_cores_dislike_lower_the_confidence(self) -> None:
        text = LARGE.replace("4096x4096,4096x4096", "4095x4096,4096x4095").format(kernel=SGEMM)
        assert [match.confidence for match in matches(draw(text, A100))] == ["medium"]

    def test_where_tf32_is_known_to_be_off_such_sizes_do_not_matter(self) -> None:
        profile = draw(LARGE.replace("4096x4096,4096x4096", "4095x4096,4096x4095").format(kernel=SGEMM), A100)
        known = with_settings(profile, numerics={"tf32_matmul": False})
        assert [match.confidence for match in matches(known)] == ["high"]


RTX3060 = Gpu("NVIDIA GeForce RTX 3060", 8, 6)


class TestCards:
    """Cards of one compute capability differ: an RTX 3060 has 12.7 TFLOP/s in TF32 as in float32, an A6000 77.4."""

    def slow(self, gpu: Gpu, kernel_us: int) -> Profile:
        return draw(LARGE.replace("10100", str(100 + kernel_us)).replace("12000", "99999").format(kernel=SGEMM), gpu)

    def test_a_geforce_gains_nothing_where_its_cores_do_well(self) -> None:
        # 2 × 4096³ operations take at least 10.8 ms: 18 ms are 60 % of the float32 peak.
        assert matches(self.slow(RTX3060, 18_000)) == ()

    def test_a_geforce_never_gains_more_than_its_own_peak_allows(self) -> None:
        # 50 ms become 21.6 (0.45 in twentieths) at half of the peak, and 10.8 (0.2) at best.
        profile = self.slow(RTX3060, 50_000)
        assert saving_ns(Fp32MatmulNoTf32, profile) == (0, 27_500_000, 40_000_000)

    def test_a_card_of_the_same_capability_with_more(self) -> None:
        # 77.4 TFLOP/s: 18 ms become 3.55 (0.2) at half of the peak, and 1.78 (0.1) at best.
        profile = self.slow(Gpu("NVIDIA RTX A6000", 8, 6), 18_000)
        assert saving_ns(Fp32MatmulNoTf32, profile) == (0, 14_400_000, 16_200_000)
        assert [match.confidence for match in matches(profile)] == ["high"]

    @pytest.mark.parametrize(
        "gpu", [Gpu("NVIDIA Unheard-of", 8, 6), Gpu("NVIDIA GeForce RTX 3040 Laptop GPU", 8, 6), Gpu("", 8, 6)]
    )
    def test_an_unknown_card_may_be_the_slowest_of_its_capability(self, gpu: Gpu) -> None:
        # 16 multiprocessors × 256 operations × 1.2 GHz: 4.9 TFLOP/s, of which half take 56 ms.
        assert matches(self.slow(gpu, 60_000)) == ()
        assert saving_ns(Fp32MatmulNoTf32, self.slow(gpu, 90_000))[2] == pytest.approx(90e6 - 28e6, rel=0.06)
        assert [match.confidence for match in matches(self.slow(gpu, 90_000))] == ["medium"]

    def test_an_unknown_capability_promises_no_more_than_a_small_card(self) -> None:
        assert matches(self.slow(Gpu("NVIDIA Of Tomorrow", 13, 0), 60_000)) == ()


class TestSaves:
    def test_what_half_of_the_tensor_cores_peak_leaves(self) -> None:
        profile = draw(LARGE.format(kernel=SGEMM), A100)
        # 10 ms kernel: 1.76 ms expected is 0.2 of it in twentieths, 0.88 ms at best is 0.1 of it.
        assert saving_ns(Fp32MatmulNoTf32, profile) == (0, 8_000_000, 9_000_000)

    def test_less_where_memory_is_the_limit(self) -> None:
        # 2 × 8192² × 64 flops take 110 µs at half the peak; 272.6 MB take 178 µs at three quarters of the bandwidth.
        text = "aten::mm 10-90 dims=8192x64,64x8192 types=float,float kernel=ampere_sgemm_128x64_nn@100-600"
        profile = draw(text, A100)
        (match,) = matches(profile)
        assert str(match.evidence.expected) == "178 µs"
        _, expected_ns, _ = saving_ns(Fp32MatmulNoTf32, profile)
        assert expected_ns == round(500_000 * (1 - 0.35))  # 178 of 500 µs are 7 twentieths

    def test_a_benchmark_of_the_same_sizes(self) -> None:
        (match,) = matches(draw(LARGE.format(kernel=SGEMM), A100))
        assert Fp32MatmulNoTf32().benchmark(match.evidence) == Benchmark(
            before='torch.set_float32_matmul_precision("highest")\na @ b',
            after='torch.set_float32_matmul_precision("high")\na @ b',
            setup="import torch\na = torch.randn(1, 4096, 4096, device=device)\n"
            "b = torch.randn(1, 4096, 4096, device=device)",
            devices=("cuda",),
            of_events=True,
        )


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "kernel",
        [
            "void_cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>(Params)",
            "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize256x128x32",
            "nvjet_sm90_sss_128x128",
        ],
    )
    def test_on_tensor_cores(self, kernel: str) -> None:
        assert matches(draw(LARGE.format(kernel=kernel), A100)) == ()

    def test_where_the_job_is_known_to_allow_it(self) -> None:
        profile = draw(LARGE.format(kernel=SGEMM), A100)
        assert matches(with_settings(profile, numerics={"tf32_matmul": True})) == ()
        assert matches(with_settings(profile, numerics={"tf32_matmul": None})) != ()

    def test_where_another_float32_product_shows_that_tf32_is_allowed(self) -> None:
        text = LARGE.format(kernel=SGEMM) + (
            "        aten::mm  110-190  dims=4096x4096,4096x4096  types=float,float"
            "  kernel=cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4@10100-11100\n"
        )
        assert matches(draw(text, A100)) == ()

    def test_a_kernel_of_an_unknown_family(self) -> None:
        assert matches(draw(LARGE.format(kernel="void_gemmSN_NN_kernel<float,128,2,4,8>"), A100)) == ()

    def test_a_product_that_waits_for_memory(self) -> None:
        text = "aten::mm 10-90 dims=8192x4,4x8192 types=float,float kernel=ampere_sgemm_128x64_nn@100-300"
        assert matches(draw(text, A100)) == ()

    def test_a_product_too_small_to_gain(self) -> None:
        text = "aten::mm 10-90 dims=64x64,64x64 types=float,float kernel=ampere_sgemm_32x32_sliced1x4_nn@100-106"
        assert matches(draw(text, A100)) == ()

    @pytest.mark.parametrize("dtype", ["half", "bfloat16", "double"])
    def test_products_of_other_dtypes(self, dtype: str) -> None:
        assert matches(draw(LARGE.format(kernel=SGEMM).replace("float,float", f"{dtype},{dtype}"), A100)) == ()

    def test_a_product_without_kernels(self) -> None:
        text = LARGE.format(kernel=SGEMM).replace("aten::mm ", "aten::relu ") + (
            "        aten::mm  110-190  dims=4096x4096,4096x4096  types=float,float\n"
        )
        assert matches(draw(text, A100)) == ()

    def test_amd(self) -> None:
        assert "NVIDIA" in reason(draw(LARGE.format(kernel="Cijk_Ailk_Bljk_SB_MT64x16x16"), MI300))

    def test_a_gpu_without_tf32(self) -> None:
        assert "Ampere" in reason(draw(LARGE.format(kernel="volta_sgemm_128x64_nn"), V100))

    def test_an_unknown_gpu(self) -> None:
        assert "which GPU" in reason(draw(LARGE.format(kernel=SGEMM)))

    def test_a_cpu(self) -> None:
        assert "device activity" in reason(draw("aten::mm 0-9 dims=4096x4096,4096x4096 types=float,float"))

    def test_a_product_that_would_keep_more_of_its_time_than_the_user_wants_to_hear_of(self) -> None:
        # 1.76 ms of 10 ms are expected to be left.
        profile = draw(LARGE.format(kernel=SGEMM), A100)
        assert matches_of(Fp32MatmulNoTf32({"max_left": 0.17}), profile) == ()
        assert len(matches_of(Fp32MatmulNoTf32({"max_left": 0.18}), profile)) == 1
