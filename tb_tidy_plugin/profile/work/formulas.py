"""Formulas for the floating point operations and bytes of one operator call, from its shapes, dtypes and scalars.

`flops.py` says how they differ from those of torch and of the profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT, FLOATING, Inputs, Shape

ELEMENT_BYTES: Mapping[str, int] = BYTES_PER_ELEMENT | {
    "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
_NARROW = frozenset(name for name, size in ELEMENT_BYTES.items() if size == 1)
"""Dtypes whose products have some wider dtype, which the trace does not show."""


class Tensor(msgspec.Struct, frozen=True):
    """An input: shape and the trace's C++ name of its dtype."""

    shape: Shape
    dtype: str

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size if dense."""
        return self.elements * ELEMENT_BYTES[self.dtype]


class Estimate(msgspec.Struct, frozen=True):
    """Least work of one call.

    Attributes:
        flops: floating point operations, multiplication and addition counted separately; None if unknown.
        bytes: least bytes read and written; None if unknown.
        dtype: the trace's C++ name of the inputs' dtype, empty if they have several.
    """

    flops: int | None
    bytes: int | None
    dtype: str


Formula: TypeAlias = Callable[[Inputs], Estimate | None]


def tensor(inputs: Inputs, position: int) -> Tensor | None:
    """The tensor at `position`; None if there is none, or if its dtype or shape is unknown."""
    shape, dtype = inputs.shape(position), inputs.dtype(position)
    if shape is None or dtype not in ELEMENT_BYTES or min(shape, default=0) < 0:
        return None
    return Tensor(shape, dtype)


def integers(text: str) -> tuple[int, ...] | None:
    """The numbers of a list such as `[1, 1]`, None for anything else."""
    parts = text.strip("[]").split(",")
    try:
        return tuple(int(part) for part in parts) if text.startswith("[") else None
    except ValueError:
        return None


def _common_dtype(*tensors: Tensor) -> str:
    return tensors[0].dtype if len({entry.dtype for entry in tensors}) == 1 else ""


# Matrix products


def product(left: int, dimensions: tuple[int, int] | None, bias: int | None = None) -> Formula:
    """Product of the inputs at `left` and after it, with these numbers of dimensions, or any as in `matmul`."""

    def formula(inputs: Inputs) -> Estimate | None:
        first, second = tensor(inputs, left), tensor(inputs, left + 1)
        if first is None or second is None:
            return None
        if dimensions is not None and (len(first.shape), len(second.shape)) != dimensions:
            return None
        return _multiplied(first, second, second.shape, None if bias is None else tensor(inputs, bias))

    return formula


def linear(inputs: Inputs) -> Estimate | None:
    """The first input times the second one transposed."""
    first, weight = tensor(inputs, 0), tensor(inputs, 1)
    if first is None or weight is None or len(weight.shape) not in {1, 2}:
        return None
    return _multiplied(first, weight, weight.shape[::-1], tensor(inputs, 2))


def _multiplied(first: Tensor, second: Tensor, right: Shape, bias: Tensor | None) -> Estimate | None:
    """`first` times `second` of the shape `right`, as `matmul` pairs dimensions: one of 1 dimension is a vector."""
    if not first.shape or not right:
        return None
    rows, k = (first.shape[-2] if len(first.shape) > 1 else 1), first.shape[-1]
    columns = right[-1] if len(right) > 1 else 1
    batch = _broadcast(first.shape[:-2], right[:-2])
    if batch is None or k != (right[-2] if len(right) > 1 else right[0]):
        return None
    dtype, results = _common_dtype(first, second), prod(batch) * rows * columns
    moved = first.bytes + second.bytes + (0 if bias is None else bias.bytes)
    is_known = dtype and dtype not in _NARROW
    return Estimate(2 * results * k, moved + results * ELEMENT_BYTES[dtype] if is_known else None, dtype)


def _broadcast(*shapes: Shape) -> Shape | None:
    """The shape of an elementwise result; None if the shapes do not fit together."""
    longest = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    sizes = [{size for size in column if size != 1} for column in zip(*padded, strict=True)]
    if any(len(found) > 1 for found in sizes):
        return None
    return tuple(found.pop() if found else 1 for found in sizes)


# Convolutions


class ConvolutionArguments(msgspec.Struct, frozen=True):
    """Positions of a convolution's scalars."""

    stride: int
    padding: int
    dilation: int
    transposed: int | None = None


def convolution(at: ConvolutionArguments) -> Formula:
    """Every weight is used once per image and place."""

    def formula(inputs: Inputs) -> Estimate | None:
        image, weight = tensor(inputs, 0), tensor(inputs, 1)
        if image is None or weight is None or len(weight.shape) < 3:
            return None
        if at.transposed is not None and inputs.scalar(at.transposed) != "False":
            return transposed_convolution(inputs) if inputs.scalar(at.transposed) == "True" else None
        places = _places(inputs, at, image.shape, weight.shape)
        if places is None:
            return None
        dtype, results = _common_dtype(image, weight), _batch(image, weight) * places * weight.shape[0]
        moved = image.bytes + weight.bytes + results * ELEMENT_BYTES[dtype] if dtype and dtype not in _NARROW else None
        return Estimate(2 * _batch(image, weight) * places * weight.elements, moved, dtype)

    return formula


def _places(inputs: Inputs, at: ConvolutionArguments, image: Shape, weight: Shape) -> int | None:
    """Number of places of one image at which the kernel is applied, see `torch.nn.Conv2d`."""
    spatial, kernel = image[-(len(weight) - 2) :], weight[2:]
    scalars = [integers(inputs.scalar(position)) for position in (at.stride, at.padding, at.dilation)]
    if len(image) not in {len(weight), len(weight) - 1} or any(not found for found in scalars):
        return None
    strides, paddings, dilations = (
        found * len(kernel) if len(found) == 1 else found for found in scalars if found is not None
    )
    if not len(strides) == len(paddings) == len(dilations) == len(kernel) or min(strides) < 1:
        return None
    columns = zip(spatial, kernel, strides, paddings, dilations, strict=True)
    return prod(
        max((size + 2 * padding - dilation * (width - 1) - 1) // stride + 1, 0)
        for size, width, stride, padding, dilation in columns
    )


def _batch(image: Tensor, weight: Tensor) -> int:
    return image.shape[0] if len(image.shape) == len(weight.shape) else 1


def transposed_convolution(inputs: Inputs) -> Estimate | None:
    """Every element of the input meets every weight of its group once; the result's size does not matter."""
    image, weight = tensor(inputs, 0), tensor(inputs, 1)
    if image is None or weight is None or len(weight.shape) < 3:
        return None
    places = prod(image.shape[-(len(weight.shape) - 2) :])
    return Estimate(2 * _batch(image, weight) * places * weight.elements, None, _common_dtype(image, weight))


def convolution_backward(transposed: int, mask: int) -> Formula:
    """One product for the gradient of the input, one for that of the weight; each costs as much as the forward pass."""

    def formula(inputs: Inputs) -> Estimate | None:
        gradient, image, weight = tensor(inputs, 0), tensor(inputs, 1), tensor(inputs, 2)
        wanted = _truths(inputs.scalar(mask))
        if gradient is None or image is None or weight is None or len(weight.shape) < 3 or len(wanted) != 3:
            return None
        if inputs.scalar(transposed) not in {"True", "False"}:
            return None
        walked = image if inputs.scalar(transposed) == "True" else gradient
        places = prod(walked.shape[-(len(weight.shape) - 2) :])
        once = 2 * _batch(walked, weight) * places * weight.elements
        to_image, to_weight, _ = wanted
        moved = gradient.bytes * (to_image + to_weight) + (image.bytes + weight.bytes) * (to_image + to_weight)
        return Estimate(once * (to_image + to_weight), moved, _common_dtype(gradient, image, weight))

    return formula


def _truths(text: str) -> list[bool]:
    return [part.strip() == "True" for part in text.strip("[]").split(",")] if text.startswith("[") else []


# Attention


class AttentionArguments(msgspec.Struct, frozen=True):
    """Positions of one attention operator's inputs.

    Attributes:
        query: position of the query; key and value follow. After position 0 comes a gradient: it is a backward pass.
        causal: position of the flag or mask type that says which pairs are masked.
        packed: positions of sequence lengths and windows; if any is given, the shapes do not show the work.
        heads_last: shapes are batch, sequence, heads, size; else heads come before the sequence.
    """

    query: int
    causal: int
    packed: tuple[int, ...] = ()
    heads_last: bool = False


def attention(at: AttentionArguments) -> Formula:
    """Scores, and values weighted by them.

    The backward pass repeats the scores: 3 products as long as a query, 2 as long as a value, see
    `sdpa_backward_flop_count` in https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/flop_counter.py.
    """
    sequence = -3 if at.heads_last else -2

    def formula(inputs: Inputs) -> Estimate | None:
        query, key, value = (tensor(inputs, at.query + number) for number in range(3))
        masked = CAUSAL.get(inputs.scalar(at.causal))
        if query is None or key is None or value is None or masked is None:
            return None
        if any(_is_given(inputs, position) for position in at.packed) or not _fit(query, key, value, sequence):
            return None
        length, width = query.shape[-1], value.shape[-1]
        heads = prod(query.shape[:sequence]) * (query.shape[-2] if at.heads_last else 1)
        pairs = heads * _pairs(query.shape[sequence], key.shape[sequence], masked)
        result = heads * query.shape[sequence] * width * ELEMENT_BYTES[query.dtype]
        moved, dtype = query.bytes + key.bytes + value.bytes + result, _common_dtype(query, key, value)
        if at.query:
            return Estimate(2 * pairs * (3 * length + 2 * width), 2 * moved, dtype)
        return Estimate(2 * pairs * (length + width), moved, dtype)

    return formula


CAUSAL = {"False": False, "True": True, "0": False, "1": True}
"""True if keys after a query are masked; 2, aligned to the last key, is left out."""


def _is_given(inputs: Inputs, position: int) -> bool:
    is_tensor = inputs.dtype(position) in ELEMENT_BYTES
    return is_tensor or inputs.scalar(position) not in {"", "-1", "None"}


def _fit(query: Tensor, key: Tensor, value: Tensor, sequence: int) -> bool:
    if not len(query.shape) == len(key.shape) == len(value.shape) or len(query.shape) < 1 - sequence:
        return False
    return query.shape[-1] == key.shape[-1] and key.shape[sequence] == value.shape[sequence]


def _pairs(queries: int, keys: int, masked: bool) -> int:
    """Pairs of a query and a key; with a mask query number i meets the first i keys, as many as there are."""
    if not masked:
        return queries * keys
    square = min(queries, keys)
    return square * (square + 1) // 2 + (queries - square) * keys


# Normalisation and elementwise


def normalisation(weight: int, training: int | None = None, statistics: int = 4) -> Formula:
    """`statistics` operations per element and 1 for a weight; only 1 or 2 with statistics from training.

    Mean and variance take 4 including their application, a root mean square 3. Source: `norm_flop_counter` and
    `batchnorm_flop_jit` in https://github.com/facebookresearch/fvcore/blob/main/fvcore/nn/jit_handles.py.

    Args:
        weight: position of the weight.
        training: position of the flag that says whether statistics are computed; None if they always are.
        statistics: operations per element.
    """

    def formula(inputs: Inputs) -> Estimate | None:
        values = tensor(inputs, 0)
        if values is None:
            return None
        has_weight = tensor(inputs, weight) is not None
        answers = {"True": statistics, "False": 1}
        operations = statistics if training is None else answers.get(inputs.scalar(training))
        flops = None if operations is None else values.elements * (operations + has_weight)
        return Estimate(flops, 2 * values.bytes, values.dtype)

    return formula


def normalisation_backward(inputs: Inputs) -> Estimate | None:
    """Gradient and input are read, a gradient is written; the number of operations depends on the kernel."""
    first, second = tensor(inputs, 0), tensor(inputs, 1)
    if first is None or second is None or first.shape != second.shape:
        return None
    return Estimate(None, first.bytes + 2 * second.bytes, _common_dtype(first, second))


def elementwise(inputs_read: int, *, in_place: bool = False) -> Formula:
    """One operation per element of the result."""

    def formula(inputs: Inputs) -> Estimate | None:
        read = [found for at in range(inputs_read) if (found := tensor(inputs, at)) is not None]
        if not read or tensor(inputs, 0) is None:
            return None
        shape = read[0].shape if in_place else _broadcast(*(entry.shape for entry in read))
        if shape is None:
            return None
        dtype = read[0].dtype if in_place else _result_dtype(read)
        moved = None if not dtype else sum(entry.bytes for entry in read) + prod(shape) * ELEMENT_BYTES[dtype]
        return Estimate(prod(shape), moved, dtype)

    return formula


def _result_dtype(read: list[Tensor]) -> str:
    """The dtype of the result; empty if it is not simply that of the inputs: integers may become real numbers."""
    sized = [entry for entry in read if entry.shape] or read  # a number does not change a tensor's dtype
    return _common_dtype(*sized) if all(entry.dtype in FLOATING for entry in sized) else ""


def copy(inputs: Inputs) -> Estimate | None:
    """Moves bytes, computes nothing."""
    target, source = tensor(inputs, 0), tensor(inputs, 1)
    if target is None or source is None:
        return None
    return Estimate(0, target.bytes + source.bytes, _common_dtype(target, source))


def fill(inputs: Inputs) -> Estimate | None:
    """Writes bytes, computes and reads nothing."""
    target = tensor(inputs, 0)
    return None if target is None else Estimate(0, target.bytes, target.dtype)


def passed_once(in_place: int = 0) -> Formula:
    """Each tensor that is passed is read or written once, the first `in_place` of them both.

    For operators of inference servers, which also receive their results as arguments.
    """

    def formula(inputs: Inputs) -> Estimate | None:
        tensors = [found for at in range(len(inputs.dims)) if (found := tensor(inputs, at)) is not None]
        if len(tensors) < 2 or not all(entry.shape for entry in tensors):
            return None
        moved = sum(entry.bytes for entry in (*tensors, *tensors[:in_place]))
        return Estimate(0, moved, tensors[0].dtype)

    return formula
