"""The work of a kernel by its name: CUDA, ROCm, Triton, cuBLAS, cuDNN, CUTLASS, MIOpen, NCCL, RCCL.

The first matching pattern decides, so special ones come first. Names were collected from real traces of V100, A100,
B200, MI210, MI250 and MI300. Gaps between two words have a maximum length: without one, a name that repeats the first
word would take quadratic time (`tests/growth/test_patterns.py`).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import get_args

import numpy as np

from tb_tidy_plugin.trace.columns import Category, EventTable, Rows
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.vocabulary import KernelKind

KERNEL_KINDS: tuple[KernelKind, ...] = get_args(KernelKind)

PATTERNS: tuple[tuple[KernelKind, str], ...] = (
    ("communication", r"nccl|rccl|cross_device_reduce|all_?(reduce|gather|to_?all)|reduce_?scatter|quickreduce"),
    (
        "communication",
        r"deep_?ep::|::ep::|nvshmem|mscclpp|symm_mem|multimem|custom_ar::|(one|two)_shot_(reduce|push|pull)",
    ),
    ("elementwise", r"quantize_with_block"),
    ("attention", r"fmha|(?<!cache_)flash(?!infer_kv)|attention|attn|(?<![a-z])mha_"),
    (
        "optimizer",
        r"(adam|sgd|lamb|adagrad|rmsprop|adadelta)(_|w|functor|math|kernel)|multi_?tensor_?apply|fused_?optim",
    ),
    ("normalisation", r"(batch|layer|group|instance|rms|l2)_?norm|\bbn_(fw|bw)|rowwisemoments|gammabeta"),
    ("convolution", r"conv(?!ert)(olve|olution|_|\d|fwd|bwd|depthwise|\b)|wgrad|dgrad|winograd|scudnn"),
    ("convolution", r"fprop|igemm_(fwd|bwd|wrw)|im2col|col2im|nchwtonhwc|nhwctonchw|cask_cudnn"),
    ("convolution", r"miopen(?!.{0,200}(pool|norm|activ))"),
    ("matrix", r"(?<!fb)gemm|gemv|nvjet|cutlass|cijk_|splitkreduce|cublas|magma_|matmul|xmma"),
    ("matrix", r"triton_(mm|bmm|tem)|\bmma_|^bmm_|_bmm_"),
    ("reduction", r"reduce_kernel|softmax|triton_(red|per)_|devicereduce|arg(max|min)|logsumexp|cumsum|devicescan"),
    ("reduction", r"norm_kernel"),
    (
        "elementwise",
        r"elementwise|triton_poi_|functor|pointwise|fill_kernel|copy_kernel|memcpy|memset|optensor|dropout",
    ),
    ("elementwise", r"activation|act_and_mul|rotary|catarray|batched_transpose|scalepackedtensor|quantize"),
    ("elementwise", r"_to_float|float_to"),
)


@cache
def compiled_patterns() -> tuple[tuple[KernelKind, re.Pattern[str]], ...]:
    """The patterns; profiles without a device do not need them, and they take 5 ms to compile."""
    return tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in PATTERNS)


@lru_cache(maxsize=1 << 14)
def kernel_kind(name: str) -> KernelKind:
    """The kind of the kernel called `name`; `other` if the name does not show it."""
    return next((kind for kind, pattern in compiled_patterns() if pattern.search(name)), "other")


def collective_kernels(table: EventTable) -> Rows:
    """Rows of kernels with the name of a communication kernel (NCCL, RCCL, vendor all-reduce), in row order."""
    kernels = np.flatnonzero(table.category == Category.KERNEL)
    collective = np.zeros(len(table.names), np.bool_)
    for name in distinct(table.name[kernels]).tolist():
        collective[name] = kernel_kind(table.names[name]) == "communication"
    return kernels[collective[table.name[kernels]]]


TENSOR_CORE = re.compile(
    r"tensorop_|s(?:1688|16816|884|161616|8832)|h(?:1688|16816|884)|[hiq]mma|xmma|wgmma|nvjet|tst_\d|fmhaSm\d|fmha_v2"
    r"|flash_fwd|flash_bwd|_MI\d+x\d+x\d+|xdlops|xdl_|mfma|gtcx|ck_tile.{0,200}Fmha",
    re.IGNORECASE,
)
"""Names of libraries' kernels that use matrix units (NVIDIA's mma families, AMD's MFMA and XDL)."""

NO_TENSOR_CORE = re.compile(
    r"(?:volta|ampere|maxwell|sm\d\d)_(?:s|d|fp16_s)gemm|xmma_gemm_f32f32_f32f32|_ffma\b|simt_[sd]gemm"
    r"|(?:volta|ampere|maxwell)_scudnn|cutlass_\d+_simt|magma_[sd]gemm"
    r"|gemv|elementwise|at::native::reduce_kernel|triton_(?:poi|red|per)_",
    re.IGNORECASE,
)
"""Names of kernels that run on the ordinary cores."""


FLOAT32_CORES = re.compile(
    r"(?:volta|turing|ampere|maxwell|sm\d\d)_(?:sgemm|scudnn)|xmma_(?:gemm|[fdw]prop|wgrad|dgrad)\w*_f32f32_f32f32_f32"
    r"|_ffma\b|simt_sgemm|plicit_convolve_sgemm|convolve_common_engine_float|_engine<float\b|magma_sgemm"
    r"|winograd_nonfused::\w{1,60}<float\b"
    r"|gemv2[NT]_kernel<\w+, \w+, float\b|gemmk1_kernel<float\b|conv_depthwise2d\w*<float\b",
    re.IGNORECASE,
)
"""Names of products and convolutions in float32 on ordinary cores."""


OF_NARROW_TYPE = re.compile(
    r"bf16|f16|bfloat|_half|__half|fp16|[^a-z]h(?:16816|1688|884)|hgemm|Alik_B[jl][jkl]*_(?:H|B|F8)|DF16|fp8|mxfp|e[45]m[23]",
    re.IGNORECASE,
)
"""Names of products and convolutions of 16 bits or fewer."""

QUANTISED = re.compile(r"fp8|e4m3|e5m2|_F8|(?<!u)int8|i8i8|fp4|e2m1|w[48]a(?:8|16)|awq|gptq|marlin", re.IGNORECASE)
"""Names of products whose weights have 8 bits or fewer."""


def uses_float32_cores(name: str) -> bool:
    """True if the kernel's name shows that it multiplies in float32 without matrix units."""
    return FLOAT32_CORES.search(name) is not None


@lru_cache(maxsize=1 << 14)
def uses_tensor_cores(name: str) -> bool | None:
    """True if the kernel runs on matrix units, None if its name does not show it: never guessed."""
    if NO_TENSOR_CORE.search(name):
        return False
    return True if TENSOR_CORE.search(name) else None
