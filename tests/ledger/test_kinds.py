"""What names say of work, and what they do not: kernels and operators from real recordings."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.ledger.kinds import kind_of_copy, kind_of_kernel, kind_of_operator
from tb_tidy_plugin.ledger.owners import is_library_frame
from tb_tidy_plugin.profile.kernels import kernel_kind, uses_float32_cores
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.words.causes import Kind


@pytest.mark.parametrize(
    ("operator", "kernel", "kind"),
    [
        ("aten::convolution_backward", "volta_sgemm_64x64_nt", "convolution"),
        ("aten::cudnn_convolution", "void cudnn::ops::nchwToNhwcKernel<float, float>", "layout"),
        ("aten::miopen_convolution", "batched_transpose_16x32_half", "layout"),
        ("aten::mm", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S", "matrix"),
        ("aten::_softmax", "void cunn_SoftMaxForward<8, c10::BFloat16>", "softmax"),
        ("", "sage_fwd", "attention"),
        ("aten::_flash_attention_forward", "attn_fwd", "attention"),
        ("aiter::mha_batch_prefill", "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefill", "attention"),
        ("", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "mixture_of_experts"),
        ("vllm::moe_forward", "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256", "mixture_of_experts"),
        ("aiter::rmsnorm", "_ZN5aiter24add_rmsnorm_quant_kernelIDF16", "normalisation"),
        ("", "per_token_group_quant_8bit_kernel", "quantisation"),
        ("Torch-Compiled Region: 0/0", "triton_red_fused_add_mean_mul_pow_rsqrt_", "fused"),
        ("Torch-Compiled Region: 0/0", "triton_tem_fused_mm_3", "matrix"),
        ("", "void fbgemm_gpu::split_embedding_backward_kernel", "embedding"),
        ("vllm::rotary_embedding", "void vllm::rotary_embedding_kernel<float>", "pointwise"),
        ("aten::copy_", "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>", "memory_copy"),
        ("aten::_foreach_add_", "void multi_tensor_apply_kernel", "optimizer"),
        ("aten::add_", "void at::native::vectorized_elementwise_kernel<4>", "pointwise"),
        ("aten::max_pool2d_with_indices", "max_pool_forward_nchw<float>", "pooling"),
        ("", "an_unheard_of_thing", "other"),
    ],
)
def test_kernels(operator: str, kernel: str, kind: str) -> None:
    assert kind_of_kernel(operator, kernel).word == kind


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("aten::normal_", "random"),
        ("aten::sqrt", "pointwise"),
        ("aten::index_put_", "indexing"),
        ("aten::sum", "reduction"),
        ("aten::zero_", "fill"),
        ("aten::sort", "sort"),
        ("my::thing", None),
        ("", None),
    ],
)
def test_operators(operator: str, kind: str | None) -> None:
    found = kind_of_operator(operator)
    assert (None if found is None else found.word) == kind


def test_copies() -> None:
    assert kind_of_copy(Category.COPY, "Memcpy HtoD (Pageable -> Device)") is Kind.TO_DEVICE
    assert kind_of_copy(Category.COPY, "CopyDeviceToHost") is Kind.TO_HOST
    assert kind_of_copy(Category.COPY, "Memcpy DtoD (Device -> Device)") is Kind.ON_DEVICE
    assert kind_of_copy(Category.FILL, "Memset (Device)") is Kind.FILL


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "deep_ep::internode::dispatch",
        "nvshmemi_transfer_rma", "mscclpp::allreduce6", "void multimem_all_reduce_kernel<c10::BFloat16>",
        "void two_shot_all_reduce_kernel_inplace", "quickreduce::allreduce_prototype_twoshot",
        "cross_device_reduce_1stage",
    ],
)  # fmt: skip
def test_communication(name: str) -> None:
    assert kernel_kind(name) == "communication"


def test_float32_cores() -> None:
    for name in (
        "volta_sgemm_128x64_nn",
        "volta_scudnn_128x64_relu_medium_nn_v1",
        "void cudnn::detail::dgrad_engine<float, 512>",
    ):
        assert uses_float32_cores(name)
    for name in ("ampere_bf16_s16816gemm_bf16", "elementwise_kernel<float>", "sm80_xmma_gemm_f16f16_f16f32_f32"):
        assert not uses_float32_cores(name)


def test_functions_outside_pytorch_and_the_standard_library() -> None:
    for name in (
        "scipy/ndimage/_interpolation.py(739): zoom",
        "train.py(3): step",
        "/x/site-packages/diffusers/hooks.py(9): f",
    ):
        assert is_library_frame(name)
    for name in (
        "torch/nn/modules/module.py(9): _call_impl", "threading.py(9): wait", "<built-in method zoom of x>",
        "nn.Module: Linear_0", "/usr/lib/python3.11/json/decoder.py(3): decode", "aten::mm",
        "tb_tidy_plugin/capture/bootstrap/sitecustomize.py(98): watched_step",
    ):  # fmt: skip
        assert not is_library_frame(name)
