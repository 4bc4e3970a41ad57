"""Changes of the work per step, by the shapes and calls of matrix products, convolutions and attention.

A longer step is not slower if it does more. A fix must not count as other work, though: it may remove products that
were not needed, join small ones, or use attention that skips masked pairs. So other work is only what a change of the
job explains: all products have more rows, or wider weights, or run more often together with the gradients that they
accumulate; or the products have nothing in common.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.compare.model import SettingChange, WorkChange
from tb_tidy_plugin.compare.recording import Chosen

InputShapes: TypeAlias = tuple[tuple[int, ...], ...]
_Key: TypeAlias = tuple[str, InputShapes]

SAME_WORK = 0.03
"""Operations per step that differ by less are the same work: the last batch of an epoch is smaller."""

_SPREADS = 3.0
"""So are those that differ by less than this many standard errors, where batches differ in size."""

_MOSTLY = 0.8
"""Least part of the operations that one explanation must cover, on both sides."""

_NOTHING_IN_COMMON = 0.3
"""Most operations with equal shapes, as a part of all, for products that belong to another model or other inputs."""

_GRADIENTS = "torch::autograd::AccumulateGrad"
_ATTENTION = "scaled_dot_product"
_NUMBERS = re.compile(r"\d+(?:×\d+)*")
_MOST_KEYS = 400  # by operations; a model has fewer
_BATCH_SIZE = re.compile(r"(?:^| )batch_size$")


class _Work(msgspec.Struct, frozen=True):
    """One side, per step.

    Attributes:
        calls, flops: of products by name and shapes; `flops` of all calls.
        flops_of_steps: operations of each step. gradients: number of gradients that are accumulated.
        parameters: their sizes.
    """

    calls: Mapping[_Key, float]
    flops: Mapping[_Key, float]
    flops_of_steps: Sequence[float]
    gradients: float
    parameters: frozenset[InputShapes]

    @property
    def total(self) -> float:
        return sum(self.flops.values())


def work_change(
    base: Sequence[Chosen], candidate: Sequence[Chosen], settings: Iterable[SettingChange]
) -> WorkChange | None:
    """The change of the work per step; None if it is the same, or if the recordings do not show it.

    Without shapes, only another batch size of the loader shows that the work changed.
    """
    before, after = _work_of(base), _work_of(candidate)
    if not before.flops or not after.flops:
        return _by_settings(settings)
    ratio = after.total / before.total
    if abs(np.log(ratio)) <= SAME_WORK or abs(after.total - before.total) <= _SPREADS * _error(before, after):
        return None
    kinds = (_scaled, _other_parameters, _repeated, _other)
    return next((found for kind in kinds if (found := kind(before, after, ratio)) is not None), None)


def _work_of(side: Sequence[Chosen]) -> _Work:
    calls, flops = defaultdict[_Key, float](float), defaultdict[_Key, float](float)
    of_steps: list[float] = []
    gradients, parameters = 0.0, set[InputShapes]()
    steps = sum(len(each.steps) for each in side)
    for each in side:
        position = {step: at for at, step in enumerate(each.steps)}
        here = [0.0] * len(position)
        for row in each.recording.costs.operators:
            calls_in = zip(row.step, row.calls, strict=True)
            counted = [(position[step], number) for step, number in calls_in if step in position]
            number = sum(number for _, number in counted)
            if row.name == _GRADIENTS:
                gradients += number / steps
                parameters.add(_shapes(row.shapes))
            if row.flops and number:
                key = row.name, _shapes(row.shapes)
                calls[key] += number / steps
                flops[key] += row.flops * number / steps
                for at, times in counted:
                    here[at] += row.flops * times
        of_steps += here
    kept = dict(sorted(flops.items(), key=lambda each: -each[1])[:_MOST_KEYS])
    return _Work({key: calls[key] for key in kept}, kept, of_steps, gradients, frozenset(parameters) - {()})


def _shapes(text: str) -> InputShapes:
    """`64×256, 256 · float32` as sizes."""
    sizes, _, _ = text.partition(" · ")
    return tuple(tuple(map(int, each.split("×"))) for each in _NUMBERS.findall(sizes))


def _error(*sides: _Work) -> float:
    """Standard error of the difference of the mean operations of a step."""
    return float(np.sqrt(sum(np.var(side.flops_of_steps) / max(len(side.flops_of_steps) - 1, 1) for side in sides)))


def _by_settings(settings: Iterable[SettingChange]) -> WorkChange | None:
    sizes = [each for each in settings if _BATCH_SIZE.search(each.name)]
    if len(sizes) != 1 or not (sizes[0].base.isdigit() and sizes[0].candidate.isdigit()):
        return None
    before, after = int(sizes[0].base), int(sizes[0].candidate)
    if not before or not after:
        return None
    return WorkChange(
        kind="rows",
        text=f"the loader's batches have {after} samples instead of {before}",
        unit="sample",
        units=after / before,
    )


def _scaled(before: _Work, after: _Work, ratio: float) -> WorkChange | None:
    """The same products with sizes that all differ by one factor: another batch, longer sequences, a wider model."""
    votes = defaultdict[float, float](float)
    likely: dict[_Key, list[tuple[_Key, float]]] = {}
    for key, flops in before.flops.items():
        for other in after.flops:
            if (factor := _factor(key, other)) is not None:
                likely.setdefault(key, []).append((other, factor))
                votes[factor] += 0.0 if factor == 1.0 else flops
    if not votes or not any(votes.values()):
        return None
    factor = max(votes, key=lambda each: votes[each])
    pairs = [
        (key, other)
        for key, found in likely.items()
        for other, by in found
        if by in {1.0, factor} and np.isclose(before.calls[key], after.calls[other], rtol=0.1)
    ]
    explained = min(
        sum(before.flops[key] for key in {key for key, _ in pairs}) / before.total,
        sum(after.flops[key] for key in {key for _, key in pairs}) / after.total,
    )
    changed = [(key, other) for key, other in pairs if key != other]
    of_changed = {key for key, _ in changed}
    if explained < _MOSTLY or len(of_changed) < _MOSTLY * len({key for key, _ in pairs}):
        return None  # a fix may cut the rows of one product, but not of all
    largest = max(changed, key=lambda pair: before.flops[pair[0]])
    shown = f"`{largest[0][0]}` of {_text(largest[0][1])} became {_text(largest[1][1])}"
    if _keeps_weights(before, after, changed):
        if any(_grows_images(*pair) for pair in changed):
            return WorkChange(kind="inputs", text=f"images have another size: {shown}", operations=ratio)
        return WorkChange(
            kind="rows",
            text=f"the rows of products (samples or tokens) ×{factor:.4g}: {shown}",
            operations=ratio,
            unit="row",
            units=factor,
        )
    return WorkChange(kind="model", text=f"other sizes of the model ×{factor:.4g}: {shown}", operations=ratio)


def _factor(key: _Key, other: _Key) -> float | None:
    """The factor by which some sizes differ, 1 if none does; None for other operators, or for several factors."""
    if key[0] != other[0] or [len(shape) for shape in key[1]] != [len(shape) for shape in other[1]]:
        return None
    ratios = {
        round(after / before, 6)
        for one, two in zip(key[1], other[1], strict=True)
        for before, after in zip(one, two, strict=True)
        if before and before != after
    }
    return ratios.pop() if len(ratios) == 1 else 1.0 if key == other else None


def _keeps_weights(before: _Work, after: _Work, changed: Sequence[tuple[_Key, _Key]]) -> bool:
    """True if the model's weights have the same sizes on both sides.

    Gradients have the sizes of parameters. A job without any has forward products only, whose last operand, or second
    of a convolution, is the weight.
    """
    if before.parameters and after.parameters:
        return before.parameters == after.parameters
    of_weights = [(key, other) for key, other in changed if _ATTENTION not in key[0] and "bmm" not in key[0]]
    kept = [key for key, other in of_weights if _weight(key) == _weight(other)]
    return sum(before.flops[key] for key in kept) >= _MOSTLY * sum(before.flops[key] for key, _ in of_weights)


def _weight(key: _Key) -> tuple[int, ...]:
    name, shapes = key
    return shapes[1 if name.startswith("aten::convolution") else -1] if len(shapes) > 1 else ()


def _grows_images(key: _Key, other: _Key) -> bool:
    """True if a convolution's images differ in more than their number."""
    return key[0].startswith("aten::convolution") and any(
        before[1:] != after[1:] for before, after in zip(key[1], other[1], strict=True)
    )


def _other_parameters(before: _Work, after: _Work, ratio: float) -> WorkChange | None:
    """Gradients of other sizes, or of one side only: another model, or another part of it that is trained."""
    if bool(before.gradients) != bool(after.gradients):
        side = "baseline" if before.gradients else "candidate"
        return WorkChange(kind="model", text=f"only the {side} computes gradients of parameters", operations=ratio)
    if before.parameters == after.parameters or not before.parameters or not after.parameters:
        return None
    return WorkChange(kind="model", text="the trained parameters have other sizes", operations=ratio)


def _repeated(before: _Work, after: _Work, ratio: float) -> WorkChange | None:
    """The same shapes more or less often: gradients accumulated over more batches, more layers, more passes."""
    shared = before.flops.keys() & after.flops.keys()
    if sum(before.flops[key] for key in shared) < _MOSTLY * before.total:
        return None
    if sum(after.flops[key] for key in shared) < _MOSTLY * after.total:
        return None
    factors: dict[tuple[int, ...], set[float]] = {}
    for key in shared:
        factors.setdefault(_sizes(key), set()).add(after.calls[key] / before.calls[key])
    of_gradients = after.gradients / before.gradients if before.gradients and after.gradients else None
    if of_gradients is not None and abs(np.log(of_gradients)) <= SAME_WORK:
        return None  # the same parameters: a pass that nobody needed is gone or new
    if any(max(found) > 1.1 * min(found) for found in factors.values()):
        return None  # forward and backward products differ: a part of the backward pass is gone or new
    each = [after.calls[key] / before.calls[key] for key in shared]
    if max(each) <= 1.02 * min(each):
        times = float(np.mean(each))
        return WorkChange(
            kind="passes",
            text=f"all products run ×{times:.4g} as often (accumulated batches, or equal layers)",
            operations=ratio,
            unit="pass",
            units=times,
        )
    return WorkChange(
        kind="model", text="some products run more or less often, with their gradients (other layers)", operations=ratio
    )


def _sizes(key: _Key) -> tuple[int, ...]:
    """The sizes of a product in order: equal for the forward product and those of its gradients."""
    name, shapes = key
    if name.startswith("aten::convolution"):
        return max(shapes, key=len, default=())[1:2]
    return tuple(sorted({size for shape in shapes[-2:] for size in shape}))


def _other(before: _Work, after: _Work, ratio: float) -> WorkChange | None:
    """Products with hardly a shape in common, of the same operators."""
    names = {name for name, _ in before.flops} & {name for name, _ in after.flops}
    names = {name for name in names if _ATTENTION not in name and "bmm" not in name}
    if not names:
        return None  # another implementation of the same work, as far as anybody can tell
    one, two = ({key: flops for key, flops in side.flops.items() if key[0] in names} for side in (before, after))
    shared = one.keys() & two.keys()
    parts = [sum(side[key] for key in shared) / sum(side.values()) for side in (one, two)]
    of_names = sum(two.values()) / sum(one.values())
    if max(parts) > _NOTHING_IN_COMMON or abs(np.log(of_names)) <= SAME_WORK:
        return None
    return WorkChange(
        kind="model",
        text="the products have other shapes (another model, or other inputs)",
        operations=ratio,
    )


def _text(shapes: InputShapes) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)
