"""What kernels do, by their names."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.kernels import kernel_kind, uses_tensor_cores

KERNELS = {
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": ("communication", None),
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": ("communication", None),
    "void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>()": ("communication", None),
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()": ("communication", None),
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext": ("attention", True),
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>": ("attention", True),
    "attn_fwd": ("attention", None),
    "volta_sgemm_128x32_nt": ("matrix", False),
    "ampere_sgemm_128x64_nn": ("matrix", False),
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn": ("matrix", True),
    "ampere_s1688gemm_128x64": ("matrix", True),
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>": ("matrix", True),
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>": ("matrix", False),
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4": ("matrix", False),
    "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32": ("matrix", False),
    "ampere_fp16_sgemm_fp16_32x128_tn": ("matrix", False),
    "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT": ("matrix", True),
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN": ("matrix", True),
    "void gemv2N_kernel<int, int, float, float>": ("matrix", False),
    "triton_tem_fused_mm_3": ("matrix", None),
    "volta_scudnn_128x128_stridedB_splitK_small_nn_v1": ("convolution", False),
    "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>": ("convolution", None),
    "void implicit_convolve_sgemm<float, float, 1024, 6>": ("convolution", None),
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32": ("convolution", True),
    "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>": ("convolution", None),
    "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>": ("normalisation", None),
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>": ("normalisation", None),
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64E": ("normalisation", None),
    "MIOpenBatchNormFwdTrainSpatial": ("normalisation", None),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>": ("reduction", False),
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>": ("reduction", None),
    "triton_red_fused_add_mean_1": ("reduction", False),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>": ("elementwise", False),
    "triton_poi_fused__to_copy_1": ("elementwise", False),
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>": ("optimizer", None),
    "void split_embedding_codegen_forward_unweighted_kernel<float>(fbgemm_gpu::x)": ("other", None),
    "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>": ("other", None),
    "my_own_kernel": ("other", None),
}


@pytest.mark.parametrize("name", KERNELS)
def test_names(name: str) -> None:
    assert (kernel_kind(name), uses_tensor_cores(name)) == KERNELS[name]
