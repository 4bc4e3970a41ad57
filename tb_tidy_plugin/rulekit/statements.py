"""Helpers for the statements of benchmarks: size limits, and chains of operators as Python."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tidy_plugin.torchfacts import aten

_MOST_BYTES = 1 << 30
"""Most bytes of the tensors of a pair of statements together, without copies for their comparison."""

OF_ONE = aten.names(
    "pointwise",
    """
    abs asin atan ceil cos erf erfc exp expm1 floor frac log log1p log2 neg reciprocal relu round rsqrt selu sigmoid
    sign sin sinh sqrt square tan tanh trunc
    """,
)
"""Operators of one tensor that `torch` has under this name."""

OF_TWO = aten.names(
    "pointwise", "add atan2 copysign div fmax fmin fmod hypot logaddexp maximum minimum mul remainder sub"
)
"""Operators of two tensors, or of a tensor and a number, which hardly matters to a chain's time."""

OTHERS = aten.by_name(
    "pointwise",
    {
        "clamp": "torch.clamp(y, -1, 1)", "clamp_max": "torch.clamp(y, max=1)", "clamp_min": "torch.clamp(y, min=0)",
        "elu": "F.elu(y)", "eq": "torch.eq(y, x).to(y.dtype)", "ge": "torch.ge(y, x).to(y.dtype)",
        "gelu": "F.gelu(y)", "gt": "torch.gt(y, x).to(y.dtype)", "hardsigmoid": "F.hardsigmoid(y)",
        "hardswish": "F.hardswish(y)", "hardtanh": "F.hardtanh(y)", "le": "torch.le(y, x).to(y.dtype)",
        "leaky_relu": "F.leaky_relu(y)", "lerp": "torch.lerp(y, x, 0.5)", "lt": "torch.lt(y, x).to(y.dtype)",
        "masked_fill": "y.masked_fill(x > 0.5, 0.5)", "mish": "F.mish(y)", "ne": "torch.ne(y, x).to(y.dtype)",
        "pow": "torch.pow(y, 2)", "rsub": "1 - y", "silu": "F.silu(y)", "softplus": "F.softplus(y)",
        "where": "torch.where(x > 0.5, y, x)",
    },
)  # fmt: skip


def fitting(count: int, bytes_each: int) -> int:
    """`count`, or fewer if that exceeds the memory of a pair of statements; 0 if not even one fits."""
    return min(count, _MOST_BYTES // max(bytes_each, 1))


def chain_of(operators: Sequence[str]) -> str | None:
    """A function `chain(x)` that runs these operators of a trace one after the other; None if one is unknown.

    Each works on the result of the one before, and on `x` if it takes two.
    """
    lines = [_line(aten.without_writing(operator)) for operator in operators]
    if None in lines:
        return None
    return "\n    ".join(["def chain(x):", "y = x", *(line for line in lines if line), "return y"])


def _line(name: str) -> str | None:
    if name in OF_ONE:
        return f"y = torch.{aten.short_name(name)}(y)"
    if name in OF_TWO:
        return f"y = torch.{aten.short_name(name)}(y, x)"
    return f"y = {OTHERS[name]}" if name in OTHERS else None
