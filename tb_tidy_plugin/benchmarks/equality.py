"""Check that two statements compute the same; otherwise their times cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RESULT = "result"
_ROUNDINGS = 16
"""Largest difference between two orders of the same additions, in roundings of the largest value: measured up to 9 for
attention and optimizers in float32 and bfloat16.
"""

_LONGEST = 400


def kept_results(names: Mapping[str, object], compare: Sequence[str]) -> dict[str, object]:
    """Copies of the values to compare, on the host: the statement's later work must not change them."""
    wanted = (*compare, *([RESULT] if RESULT in names else []))
    return {name: _copied(names[name]) for name in wanted}


def difference_of(before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    """The first difference in one sentence, None if there is none."""
    if before.keys() != after.keys():
        return "Only one of the statements produces a `result`."
    for name in before:
        found = _difference(before[name], after[name])
        if found is not None:
            return f"The statements produce different values of `{name}`: {found}"[:_LONGEST]
    return None


def _copied(value: object) -> object:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone().cpu()
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value


def _difference(before: object, after: object) -> str | None:
    import torch

    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return next((found for each in pairs if (found := _difference(*each)) is not None), None)
    rtol, atol = _tolerance(before)
    try:
        torch.testing.assert_close(after, before, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as difference:
        return " ".join(str(difference).split())
    return None


def _tolerance(value: object) -> tuple[float | None, float | None]:
    """Relative and absolute tolerance; torch's defaults for everything except floating-point tensors."""
    import torch

    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return None, None
    finite = value[value.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return 0.0, _ROUNDINGS * torch.finfo(value.dtype).eps * largest
