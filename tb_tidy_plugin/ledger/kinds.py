"""Kind of a piece of work, from distinctive names, else from its operator, else from its kernel's name.

`profile/kernels.py` classifies kernels by their names alone; this module adds the distinctions of the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TypeAlias

from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import TO_DEVICE, TO_HOST
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.words.causes import Kind
from tb_tidy_plugin.words.vocabulary import KernelKind

Patterns: TypeAlias = tuple[tuple[Kind, re.Pattern[str]], ...]


def _patterns(texts: Mapping[Kind, str]) -> Patterns:
    return tuple((kind, re.compile(text, re.IGNORECASE)) for kind, text in texts.items())


SPECIAL = _patterns(
    {
        Kind.MIXTURE_OF_EXPERTS: (
            r"moe_|_moe|fused_experts|routing_compute|bitmatrix|matmul_ogs|topk_?gating"
            r"|grouped_?gemm.*expert|expert_"
        ),
        Kind.ATTENTION: r"fmha|flash_(?:fwd|bwd|attn)|attention|attn_|_attn|sage_|mla_(?:fwd|dec)",
        Kind.NORMALISATION: r"rms_?norm|layer_?norm",
        Kind.QUANTISATION: r"(?:^|[_:<])(?:\w*_)?quant(?:ize)?(?:_|d?\b)|dequant|scaled_fp8",
        Kind.LAYOUT: r"nchwtonhwc|nhwctonchw|batched_transpose|transpose_(?:readwrite|kernel)|convertTensor_kernel",
        Kind.FUSED: r"^triton_(?!mm|bmm|tem|flash)\w|^(?:cpp_)?fused_\d|^cpp_fused",
    }
)
"""Names of kernels that say more than the operator that they run for."""

COMPILED_CODE = re.compile(r"^(?:CompiledFunction|## Call CompiledFxGraph )")
"""Operators that run a graph made by `torch.compile`."""

_OPERATORS = _patterns(
    {
        Kind.MIXTURE_OF_EXPERTS: r"moe|fused_experts|grouped_mm",
        Kind.ATTENTION: r"attention|attn|\bfmha|\bmha_",
        Kind.CONVOLUTION: r"conv(?:olution)?(?:\d?d?\b|_|olution)(?!ert)|^conv_",
        Kind.NORMALISATION: r"(?:batch|layer|group|instance|rms)_?norm",
        Kind.SOFTMAX: r"softmax",
        Kind.EMBEDDING: (
            r"^_?embedding|embedding_(?:bag|dense|backward)|lookupfunction|split_embedding|pooled_embs"
            r"|permute_\w*sparse|bounds_check_indices"
        ),
        Kind.POOLING: r"pool(?:ing)?\d?d?(?:_|\b)",
        Kind.OPTIMIZER: r"^_(?:foreach|fused_(?:adam|adamw|sgd|adagrad))|amp_(?:update|foreach)",
        Kind.MATRIX: (
            r"^(?:mm|bmm|addmm|baddbmm|matmul|linear|mv|addmv|dot|einsum|_scaled_mm(?:_v2)?|_int_mm"
            r"|_addmm_activation|linear_backward|gemm\w*|mkldnn_linear)_?$"
        ),
        Kind.SORT: r"^(?:sort|topk|argsort|unique\w*|_unique2|kthvalue|msort)_?$",
        Kind.INDEXING: r"^_?(?:index\w*|gather\w*|scatter\w*|masked_\w+|take\w*|nonzero\w*|unsafe_index\w*)_?$",
        Kind.MEMORY_COPY: (
            r"^(?:copy|_to_copy|to|clone|contiguous|cat|stack|_reshape_alias|repeat\w*|roll|constant_pad_nd|pad"
            r"|slice_backward|select_backward|split_with_sizes_copy|_foreach_copy|_local_scalar_dense|item)_?$"
        ),
        Kind.FILL: r"^(?:fill|zero|zeros|ones|full|empty|new_\w+|zeros_like|ones_like|full_like|arange)_?$",
        Kind.REDUCTION: (
            r"^(?:sum|mean|max|min|amax|amin|argmax|argmin|any|all|norm|linalg_vector_norm|var\w*|std\w*|cumsum"
            r"|cumprod|prod|logsumexp|\w*loss\w*|aminmax|count_nonzero)_?$"
        ),
        Kind.RANDOM: r"^(?:bernoulli|uniform|normal|random|exponential|rand\w*|multinomial)_?$",
        Kind.POINTWISE: r"^(?:rotary\w*|silu_and_mul|gelu\w*|dropout\w*|native_dropout\w*|where|\w*_backward)_?$",
    }
)
"""Names of operators without their namespace; PyTorch's own table adds pointwise operators and products."""

KERNELS = _patterns(
    {
        Kind.SOFTMAX: r"softmax",
        Kind.EMBEDDING: (
            r"split_embedding|embedding_(?:bag|backward|dense)|embeddingbag|batched_unary_embedding|fbgemm"
            r"|bounds_check_indices"
        ),
        Kind.POOLING: r"pool(?:ing)?(?:_|\d|fwd|bwd|forward|backward)",
        Kind.SORT: r"radixsort|bitonicsort|sort_?(?:pairs|kernel)|topk",
        Kind.MEMORY_COPY: (
            r"direct_copy|copy_kernel|catarray|memcpy|reshape_and_cache|kv_?cache|split_with_sizes|^dma_"
            r"|recat_"
        ),
        Kind.INDEXING: r"index(?:ing)?_?(?:select|put|elementwise|kernel|func)|gather_kernel|scatter_",
        Kind.FILL: r"fillfunctor|memset",
        Kind.POINTWISE: r"subtensorop|bce_with_logits",
    }
)

BY_KERNEL: Mapping[KernelKind, Kind] = {
    "attention": Kind.ATTENTION, "optimizer": Kind.OPTIMIZER, "normalisation": Kind.NORMALISATION,
    "convolution": Kind.CONVOLUTION, "matrix": Kind.MATRIX, "reduction": Kind.REDUCTION,
    "elementwise": Kind.POINTWISE,
}  # fmt: skip


@lru_cache(maxsize=1 << 14)
def kind_of_kernel(operator: str, kernel: str) -> Kind:
    """The kind of a kernel that the operator `operator` (empty for none) launched."""
    return (
        _first(SPECIAL, kernel)
        or kind_of_operator(operator)
        or _first(KERNELS, kernel)
        or BY_KERNEL.get(kernel_kind(kernel), Kind.OTHER)
    )


@lru_cache(maxsize=1 << 14)
def kind_of_operator(operator: str) -> Kind | None:
    """The kind of an operator; None if its name does not show it."""
    if not operator:
        return None
    name = aten.without_overload(operator)
    plain = name.rpartition("::")[2] if "<" not in name else name
    found = _first(_OPERATORS, plain)
    if found is not None:
        return found
    plain_name = aten.without_writing(name)
    if plain_name in _all("pointwise"):
        return Kind.POINTWISE
    if plain_name in _all("product"):
        return Kind.MATRIX
    return Kind.REDUCTION if plain_name in _all("reduction") else None


def kind_on_cpu(operator: str) -> Kind | None:
    """The kind of an operator's own work on a CPU, where kernels of compiled code have no events."""
    return Kind.FUSED if COMPILED_CODE.search(operator) else kind_of_operator(operator)


def kind_of_copy(category: int, name: str) -> Kind:
    """The direction of a copy, or `fill`."""
    if category == Category.FILL:
        return Kind.FILL
    return Kind.TO_DEVICE if TO_DEVICE.search(name) else Kind.TO_HOST if TO_HOST.search(name) else Kind.ON_DEVICE


def _first(patterns: Patterns, name: str) -> Kind | None:
    return next((kind for kind, pattern in patterns if pattern.search(name)), None)


@cache
def _all(kind: aten.Trait) -> frozenset[str]:
    return aten.all_of(kind)
