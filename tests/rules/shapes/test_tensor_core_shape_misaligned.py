"""tensor-core-shape-misaligned: what it reports, what that saves, and when it stays quiet."""

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
from tb_tidy_plugin.rules.shapes.tensor_core_shape_misaligned import TensorCoreShapeMisaligned

HEAD = """
    ProfilerStep#1          0-12000
      train.py(9): step     1-11999
        aten::addmm         10-90  dims=50257,4096x768,768x50257  types={0},{0},{0}  kernel={1}@100-10100
"""
ALIGN1 = "void_cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align1>(Params)"
ALIGN8 = ALIGN1.replace("align1", "align8")
# 4096×768 by 768×50304 on an aligned kernel: half the time of HEAD.
PEERS = "\n".join(
    f"        aten::addmm  {at}00-{at}90  dims=50304,4096x768,768x50304  types=bfloat16,bfloat16,bfloat16"
    f"  kernel=ampere_bf16_s16816gemm_bf16_128x128_ldg8_tn@{at}0000-{at}5000"
    for at in (2, 3, 4)
)


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(TensorCoreShapeMisaligned, profile)


class TestReports:
    def test_a_kernel_that_loads_one_value_at_a_time(self) -> None:
        profile = draw(HEAD.format("bfloat16", ALIGN1), A100)
        (match,) = matches(profile)
        assert match.confidence == "high"
        (finding,) = findings(TensorCoreShapeMisaligned, profile)
        assert finding.message == (
            "`aten::addmm` of 4096×768 by 768×50257 in bfloat16 takes 10 ms, and 50257 is not a multiple of 8"
        )
        assert finding.fix == "Pad 50257 to 50264; a multiple of 64 is better still"
        assert finding.places[0].function == "step"

    @pytest.mark.parametrize(
        "kernel",
        [
            "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align2",
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpsize2x2x1_tensor16x8x16_aligna2_alignc2_execute",
            "ampere_hgemm_128x64_tn",
            "ampere_fp16_sgemm_fp16_128x64_tn",
            "cutlass_80_simt_hgemm_128x64_8x5_tn_align8",
        ],
    )
    def test_names_that_tell(self, kernel: str) -> None:
        assert len(matches(draw(HEAD.format("half", kernel), A100))) == 1

    def test_half_the_speed_of_aligned_products(self) -> None:
        profile = draw(HEAD.format("bfloat16", ALIGN8) + PEERS, A100)
        (match,) = matches(profile)
        assert match.evidence.sign == "reaches 50 % of the speed of aligned products"
        assert match.confidence == "medium"

    def test_amd_by_speed(self) -> None:
        head = HEAD.format("bfloat16", "Cijk_Alik_Bljk_BBS_BH_MT256x192x64_MI16x16x1")
        assert len(matches(draw(head + PEERS, MI300))) == 1

    @pytest.mark.parametrize(
        "call",
        [
            "aten::mm      10-90  dims=4096x768,768x50257         types=half,half",
            "aten::bmm     10-90  dims=8x1024x1001,8x1001x1024    types=half,half",
            "aten::baddbmm 10-90  dims=-,8x1024x1001,8x1001x1024  types=half,half,half",
            "aten::linear  10-90  dims=2x2048x768,50257x768       types=half,half",
        ],
    )
    def test_every_operator_that_multiplies(self, call: str) -> None:
        assert len(matches(draw(f"{call}  kernel={ALIGN1}@100-10100", A100))) == 1

    def test_each_odd_size_is_named_once(self) -> None:
        profile = draw(f"aten::mm 10-90 dims=201x201,201x999 types=half,half kernel={ALIGN1}@100-10100", A100)
        (finding,) = findings(TensorCoreShapeMisaligned, profile)
        assert "201 and 999 is not a multiple" in finding.message
        assert finding.fix.startswith("Pad 201 and 999 to 208 and 1000;")

    def test_the_backward_pass_counts_where_the_product_is_written(self) -> None:
        call = f"dims=768x768,768x50257  types=half,half  kernel={ALIGN1}"
        profile = draw(
            f"""
            train.py(9): forward                                0-200
              aten::mm                                          10-90    {call}@100-10100  seq=7
            train.py(19): step                                  300-600
              autograd::engine::evaluate_function: MmBackward0  310-590  seq=7  fwd=1
                MmBackward0                                     320-580  seq=7  fwd=1
                  aten::mm                                      330-400  {call}@10100-20100
            """,
            A100,
        )
        (finding,) = findings(TensorCoreShapeMisaligned, profile)
        assert ([place.function for place in finding.places], finding.matches) == (["forward"], 2)


class TestSaves:
    def test_a_share_of_the_kernel_by_its_name(self) -> None:
        profile = draw(HEAD.format("half", ALIGN1), A100)
        # 10 ms: 0.6 of it expected to be left, 0.4 at best.
        assert saving_ns(TensorCoreShapeMisaligned, profile) == (0, 4_000_000, 6_000_000)

    def test_more_without_tensor_cores(self) -> None:
        profile = draw(HEAD.format("half", "ampere_hgemm_128x64_tn"), A100)
        assert saving_ns(TensorCoreShapeMisaligned, profile) == (0, 6_500_000, 7_500_000)

    def test_what_the_padded_product_takes_at_the_speed_of_aligned_ones(self) -> None:
        profile = draw(HEAD.format("bfloat16", ALIGN8) + PEERS, A100)
        # Aligned: 50304 columns in 5 ms. Padded to 50264 columns: 5 ms × 50264 / 50304 = 4.996 ms instead of 10.
        (_, expected_ns, high_ns) = saving_ns(TensorCoreShapeMisaligned, profile)
        assert expected_ns == pytest.approx(10_000_000 - 5_000_000 * 50264 / 50304)
        assert high_ns == expected_ns  # all peers are equally fast

    def test_a_benchmark_of_both_sizes(self) -> None:
        (match,) = matches(draw(HEAD.format("bfloat16", ALIGN1), A100))
        assert TensorCoreShapeMisaligned().benchmark(match.evidence) == Benchmark(
            before="a @ b",
            after="c @ d",
            setup="import torch\n"
            "a = torch.randn((1, 4096, 768), dtype=torch.bfloat16, device=device)\n"
            "b = torch.randn((1, 768, 50257), dtype=torch.bfloat16, device=device)\n"
            "c = torch.randn((1, 4096, 768), dtype=torch.bfloat16, device=device)\n"
            "d = torch.randn((1, 768, 50264), dtype=torch.bfloat16, device=device)",
            devices=("cuda",),
            of_events=True,
        )


class TestStaysQuiet:
    def test_a_kernel_whose_name_tells_nothing_with_nothing_to_compare(self) -> None:
        assert matches(draw(HEAD.format("bfloat16", "nvjet_tst_192x8_64x8_4x1_v_bz_TNT"), A100)) == ()

    def test_most_of_the_speed_of_aligned_products(self) -> None:
        text = HEAD.format("bfloat16", ALIGN8).replace("100-10100", "100-7100") + PEERS
        assert matches(draw(text, A100)) == ()

    def test_a_name_that_tells_but_the_speed_of_aligned_products(self) -> None:
        text = HEAD.format("bfloat16", ALIGN1).replace("100-10100", "100-5200") + PEERS
        assert matches(draw(text, A100)) == ()

    def test_aligned_products_of_another_size_are_no_measure(self) -> None:
        peers = PEERS.replace("4096x768,768x50304", "4096x4096,4096x50304")
        assert matches(draw(HEAD.format("bfloat16", ALIGN8) + peers, A100)) == ()

    def test_two_aligned_products_are_no_measure(self) -> None:
        peers = "\n".join(PEERS.splitlines()[:2])
        assert matches(draw(HEAD.format("bfloat16", ALIGN8) + peers, A100)) == ()

    def test_multiples_of_eight(self) -> None:
        assert matches(draw(HEAD.replace("50257", "50304").format("bfloat16", ALIGN1), A100)) == ()

    def test_float32(self) -> None:
        assert matches(draw(HEAD.format("float", ALIGN1), A100)) == ()

    def test_a_single_row_is_small_not_odd(self) -> None:
        text = "aten::mm 10-90 dims=1x768,768x50257 types=half,half kernel=gemv_align1@100-10100"
        assert matches(draw(text, A100)) == ()

    def test_a_kernel_that_is_as_short_as_kernels_get(self) -> None:
        text = HEAD.format("bfloat16", ALIGN1).replace("100-10100", "100-104")
        assert matches(draw(text, A100)) == ()

    def test_a_product_without_kernels(self) -> None:
        text = "aten::mm 10-90 dims=201x201,201x201 types=half,half\naten::relu 100-190 kernel=relu@110-180"
        assert matches(draw(text, A100)) == ()

    def test_a_cpu(self) -> None:
        profile = draw("aten::mm 10-90 dims=201x201,201x201 types=bfloat16,bfloat16")
        assert "only on the tensor cores" in reason_not_checked(TensorCoreShapeMisaligned, profile)

    def test_a_gpu_without_tensor_cores(self) -> None:
        profile = draw(HEAD.format("half", "maxwell_hgemm_128x64_tn"), Gpu("Tesla P100-PCIE-16GB", 6, 0))
        assert "no tensor cores" in reason_not_checked(TensorCoreShapeMisaligned, profile)

    def test_volta_has_them(self) -> None:
        assert len(matches(draw(HEAD.format("half", "volta_hgemm_128x64_tn"), V100))) == 1

    def test_a_speed_that_the_user_puts_up_with(self) -> None:
        # Half the speed of its aligned peers, with a kernel whose name tells nothing, and with one that tells.
        unnamed, named = (draw(HEAD.format("bfloat16", kernel) + PEERS, A100) for kernel in (ALIGN8, ALIGN1))
        assert matches_of(TensorCoreShapeMisaligned({"max_speed": 0.49}), unnamed) == ()
        assert matches_of(TensorCoreShapeMisaligned({"max_speed_named": 0.49}), named) == ()
        assert len(matches_of(TensorCoreShapeMisaligned({"max_speed": 0.49}), named)) == 1

    def test_fewer_peers_than_the_user_wants(self) -> None:
        profile = draw(HEAD.format("bfloat16", ALIGN8) + PEERS, A100)
        assert matches_of(TensorCoreShapeMisaligned({"min_aligned_calls": 4}), profile) == ()

    def test_a_kernel_shorter_than_the_user_looks_at(self) -> None:
        profile = draw(HEAD.format("bfloat16", ALIGN1), A100)
        assert matches_of(TensorCoreShapeMisaligned({"min_kernel_ns": 10_000_001}), profile) == ()
