"""The table of PyTorch's operators, `tb_tidy_plugin/torchfacts/aten_table.py`, from the schema of the installed torch.

The schema says of each argument whether it is written to and whether a result shares its memory; tags say which
operators are pointwise, random or reductions. The lists below add what the schema lacks or has wrong; tests run these
operators in torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.aten_table import TORCH

if TYPE_CHECKING:
    from torch import FunctionSchema

    Schema: TypeAlias = FunctionSchema

TABLE = Path("tb_tidy_plugin", "torchfacts", "aten_table.py")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TAGGED_VIEWS = {
    "_unsafe_view": 0, "atleast_1d": 0, "atleast_2d": 0, "atleast_3d": 0, "broadcast_tensors": 0, "data": 0, "lift": 0,
    "meshgrid": 0, "unflatten_dense_tensors": 0, "unsafe_chunk": 0, "unsafe_split": 0, "unsafe_split_with_sizes": 0,
}  # fmt: skip
"""Views of the input at this position that the schema does not mark as views."""

SHARES = {
    "_cast_Byte": 0, "_cast_Char": 0, "_cast_Double": 0, "_cast_Float": 0, "_cast_Half": 0, "_cast_Int": 0,
    "_cast_Long": 0, "_cast_Short": 0, "_to_cpu": 0, "alpha_dropout": 0, "cartesian_prod": 0, "conj_physical": 0,
    "cumprod_backward": 0, "dequantize": 0, "dropout": 0, "einsum": 1, "feature_alpha_dropout": 0, "feature_dropout": 0,
    "flatten_dense_tensors": 0, "set": 1, "set_": 1, "shallow_copy_data_": 1, "sum_to_size": 0, "to_dense": 0,
    "to_dense_backward": 0, "to_mkldnn_backward": 0, "to_sparse": 0, "type_as": 0,
}  # fmt: skip
"""Operators that return the input at this position, or a view of it, if there is nothing to compute."""

COPIES = _names(
    """
    _autocast_to_full_precision _autocast_to_reduced_precision coalesce contiguous flatten pin_memory ravel reshape
    reshape_as resolve_conj resolve_neg to
    """
)
"""Views by their schema that copy if no view is possible, or if something else is requested."""

RUNNING_STATISTICS = {
    "_batch_norm_impl_index": (3, 4), "batch_norm": (3, 4), "batch_norm_gather_stats": (3, 4),
    "batch_norm_gather_stats_with_counts": (3, 4), "batch_norm_update_stats": (1, 2), "cudnn_batch_norm": (3, 4),
    "instance_norm": (3, 4), "miopen_batch_norm": (3, 4), "native_batch_norm": (3, 4),
}  # fmt: skip
"""Inputs that are written to without a mark in the schema: means and variances, updated in training."""

POINTWISE = _names(
    """
    __and__ __iand__ __ior__ __irshift__ __or__ absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh divide
    fix floor_divide greater greater_equal hardswish less less_equal log_sigmoid multiply negative not_equal prelu
    special_digamma special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammaln
    special_i0 special_log1p special_logit special_ndtr special_psi special_round special_sinc special_xlogy
    subtract
    """
)
"""Pointwise operators without the tag, mostly aliases of others. In-place variants need not be listed here."""

NOT_POINTWISE = _names("clone equal native_dropout_backward rrelu")
"""Operators with the tag that compare whole tensors, copy, or keep or draw random numbers."""

PRODUCTS = _names(
    """
    _addmm_activation _conv_depthwise2d _convolution _convolution_mode _cudnn_attention_backward
    _cudnn_attention_forward _cudnn_rnn _cudnn_rnn_backward _efficient_attention_backward _efficient_attention_forward
    _flash_attention_backward _flash_attention_forward _grouped_mm _int_mm _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_fused_attention_overrideable _scaled_grouped_mm _scaled_grouped_mm_v2 _scaled_mm _scaled_mm_v2
    _slow_conv2d_backward _slow_conv2d_forward addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul conv1d conv2d
    conv3d conv_depthwise3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    convolution_backward convolution_backward_overrideable convolution_overrideable cudnn_convolution
    cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose dot einsum ger gru gru_cell inner
    kron linalg_matmul linalg_matrix_power linalg_multi_dot linalg_vecdot linear linear_backward lstm lstm_cell matmul
    matmul_backward matrix_power miopen_convolution miopen_convolution_relu miopen_convolution_transpose
    miopen_depthwise_convolution miopen_rnn miopen_rnn_backward mkldnn_convolution mkldnn_linear mkldnn_rnn_layer
    mkldnn_rnn_layer_backward mm mv outer rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell scaled_dot_product_attention
    slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d
    tensordot thnn_conv2d vdot
    """
)
"""Products, which have no tag. `torch.utils.flop_counter` counts some of them, and their components."""

READS_VALUES = _names("is_nonzero nonzero_numpy")
"""Operators composed of those tagged as reads."""

REMOVED = {"cholesky": "writes=2", "qr": "writes=2,3"}
"""Facts of operators that the newest torch no longer has, but recordings of older releases do (both: up to 2.13)."""

_TAGS = re.compile(r"^  tags: \[?([\w, ]+)", re.MULTILINE)
READ_TAGS = frozenset({"data_dependent_output", "dynamic_output_shape"})
MAKES_TENSORS = frozenset({"dtype", "layout", "device"})
"""Arguments of operators that create tensors."""

FOR_THE_SHAPE_OF = re.compile(r"new_\w+|\w+_like")
"""Factories that take a tensor."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of an operator: its schema and the names of its tags."""

    schema: Schema
    tags: frozenset[str]

    @property
    def is_out(self) -> bool:
        """True if it writes its result into given tensors."""
        return any(argument.is_out for argument in self.schema.arguments)


def table_text() -> str:
    """The generated module.

    Raises:
        ImportError: torch is not installed.
    """
    lines = [f"{name} {facts}".rstrip() for name, facts in sorted({**REMOVED, **installed_facts()}.items())]
    return "\n".join(
        [
            f'"""The operators of torch {installed_version()} and what they do; see `aten.py`.',
            "",
            "Generated by `python -m tb_tidy_plugin.dev generate`.",
            '"""',
            "",
            f'TORCH = "{installed_version()}"',
            "",
            'OPERATOR_TABLE = """\\',
            *lines,
            '"""',
            "",
        ]
    )


def left_out() -> str:
    """The reason if the table cannot be made here, else empty."""
    if find_spec("torch") is None:
        return "torch is not installed"
    is_older = _numbers(installed_version()) < _numbers(TORCH)
    return f"torch {installed_version()} is older than {TORCH}, whose operators it holds" if is_older else ""


def table_complaints() -> list[str]:
    """What an older torch than the table's says otherwise: operators that the table lacks, or of which it says less."""
    if find_spec("torch") is None:
        return []
    facts = installed_facts()
    lacking = [f"{name}: not in the table" for name in facts if aten.operator(aten.PREFIX + name) is aten.UNKNOWN]
    return lacking + list(contradictions(facts))


def installed_version() -> str:
    """Version of the installed torch, without the name of the build."""
    import torch

    return torch.__version__.partition("+")[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


@cache
def installed_facts() -> Mapping[str, str]:
    """The line in the table of each operator of the installed torch, in alphabetical order."""
    return facts_by_name(_installed())


def _installed() -> Iterator[tuple[str, Overload]]:
    from torch import _C

    for full in _C._dispatch_get_all_op_names():  # noqa: SLF001 - what torchgen's own tests ask, and nobody else answers
        name, _, overload = full.partition(".")
        if name.startswith("aten::"):
            tags = _C._get_operation_overload(name, overload)[2]  # noqa: SLF001 - as above
            schema = _C._get_schema(name, overload)  # noqa: SLF001 - as above
            yield name.removeprefix("aten::"), Overload(schema, frozenset(str(tag).partition(".")[2] for tag in tags))


def overloads_in(native_functions: Path) -> Iterator[tuple[str, Overload]]:
    """The overloads of another torch by `torchgen/packaged/ATen/native/native_functions.yaml` in its wheel."""
    from torch import _C

    for entry in re.split(r"^- func: ", native_functions.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        text = entry.partition("\n")[0].replace("Dimname", "str")  # a type that torch no longer has
        schema, tags = _C.parse_schema(f"aten::{text}"), _TAGS.search(entry)
        yield schema.name.removeprefix("aten::"), Overload(schema, frozenset(tags[1].split(", ") if tags else ()))


def contradictions(facts: Mapping[str, str]) -> Iterator[str]:
    """Facts of another torch about operators in the table that contradict the table.

    The table may say more: about overloads that the other one does not have, and by tags that it does not use. Without
    the tag for reductions `max` counts as pointwise, which it is for two tensors.
    """
    for name, line in facts.items():
        ours, theirs = aten.operator(aten.PREFIX + name), aten.operator_of(line)
        if ours is aten.UNKNOWN:
            continue
        denied = sorted(theirs.kinds - ours.kinds - ({"pointwise"} if "reduction" in ours.kinds else set()))
        denied += [f"writes={at}" for at in sorted(theirs.written or ()) if not ours.may_write(at)]
        denied += [f"shares={at}" for at in sorted(theirs.shared or ()) if not ours.may_share(at)]
        if denied:
            yield f"{name}: {' '.join(denied)}"


def facts_by_name(overloads: Iterable[tuple[str, Overload]]) -> dict[str, str]:
    """The line in the table of each name, in alphabetical order: what holds for all of its overloads."""
    by_name: dict[str, list[Overload]] = {}
    for name, overload in overloads:
        by_name.setdefault(name, []).append(overload)
    pointwise = {name for name in by_name if _is_pointwise(name, by_name)}
    return {name: _facts(name, by_name[name], name in pointwise) for name in sorted(by_name)}


def _facts(name: str, overloads: list[Overload], is_pointwise: bool) -> str:
    tags = frozenset(tag for overload in overloads for tag in overload.tags)
    functional = [overload for overload in overloads if not overload.is_out]
    written = _written(overloads).union(RUNNING_STATISTICS.get(name, ()))
    unsaid = [known[name] for known in (TAGGED_VIEWS, SHARES) if name in known]
    shared = _shared(functional)
    kinds = {
        "view": name in TAGGED_VIEWS or (bool(shared) and name not in COPIES),
        "list": bool(functional) and all(_returns_list(overload.schema) for overload in functional),
        "pointwise": is_pointwise,
        "in_place": 0 in _written(functional),
        "factory": any(_makes_tensors(name, overload) for overload in functional),
        "random": "nondeterministic_seeded" in tags,
        "reduction": "reduction" in tags,
        "product": _of(name, PRODUCTS),
        "read": name in READS_VALUES or not tags.isdisjoint(READ_TAGS),
    }
    words = [kind for kind, holds in kinds.items() if holds]
    positions = {"shares": shared.union(unsaid), "writes": written}
    words += [f"{word}={','.join(map(str, sorted(those)))}" for word, those in positions.items() if those]
    return " ".join(words)


def _written(overloads: Iterable[Overload]) -> frozenset[int]:
    return frozenset(
        at
        for overload in overloads
        for at, argument in enumerate(overload.schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def _shared(overloads: Iterable[Overload]) -> frozenset[int]:
    """Inputs whose memory a result shares; those that are written to and returned do not count."""
    return frozenset(
        at
        for overload in overloads
        if any(each.alias_info is not None and not each.alias_info.is_write for each in overload.schema.returns)
        for at, argument in enumerate(overload.schema.arguments)
        if argument.alias_info is not None
    )


def _is_pointwise(name: str, by_name: Mapping[str, list[Overload]]) -> bool:
    """True by the tag of one overload, unless another one reduces; in-place variants follow the others' tags."""
    others = name.removesuffix("_") if name.removesuffix("_") in by_name else name
    tags = frozenset(tag for known in {name, others} for overload in by_name[known] for tag in overload.tags)
    if _of(name, NOT_POINTWISE) or "reduction" in tags:
        return False
    return _of(name, POINTWISE) or "pointwise" in tags


def _of(name: str, names: frozenset[str]) -> bool:
    return name in names or name.removesuffix("_") in names


def _returns_list(schema: Schema) -> bool:
    return [str(each.type) for each in schema.returns] == ["List[Tensor]"]


def _makes_tensors(name: str, overload: Overload) -> bool:
    arguments = overload.schema.arguments
    takes_tensors = any("Tensor" in str(argument.type) for argument in arguments)
    is_free = not takes_tensors or FOR_THE_SHAPE_OF.fullmatch(name) is not None
    return is_free and {argument.name for argument in arguments} >= MAKES_TENSORS and bool(overload.schema.returns)
