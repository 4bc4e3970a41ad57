"""Attention written out: scores from a batched matrix product, a softmax, and a product of the weights with values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import prod

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import Shape
from tb_tidy_plugin.profile.events.products import FACTORS, Product, product_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import device_of
from tb_tidy_plugin.profile.work.pointwise import is_passing
from tb_tidy_plugin.torchfacts import aten

SOFTMAX = aten.names("known", "_softmax softmax")
_BATCHED = aten.names("product", "baddbmm bmm")
"""Operators of `matmul`, `@` and `einsum` if both factors have a batch; a layer's product is not among them."""

_MASKS = aten.names("pointwise", "add masked_fill where")
ON_SCORES = _MASKS | aten.names("known", "clone div mul rsub sub to")
"""Operators on scores that a fused operator also replaces: scale, mask or bias, and casts to more bits."""

ON_WEIGHTS = aten.names("known", "alpha_dropout clone dropout native_dropout to")
AVERAGES = aten.names("reduction", "mean sum")
_CAST = "aten::to"
ADDS_SCORES = "aten::baddbmm"
LEAST_DIMS = 3  # of scores: a batch, queries and keys
WEIGHTS_DIMS = 4  # of `nn.MultiheadAttention`, which have a batch and heads
_REACH = 12  # operators: before the softmax scale, bias and mask, which may also be created there
_AFTER = 24  # operators after the last product that are searched for the weights
REACHED, REACHED_AT_BEST = 0.2, 0.4
"""Parts of their peak in half precision that devices reach in fused attention: an MI300X 0.21 with heads of 64, by its
flash kernels; newer kernels and larger heads reach more.
"""

WITH_GRADIENTS = 3.5
"""Multiplications of forward and backward pass together, as a multiple of the forward pass: 2 products and 5."""

MULTIHEAD = "multi_head_attention_forward"


class AttentionCall(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        softmax: its row.
        between: rows of the operators between the two products that process the whole matrix of scores.
        products: rows of the operators that multiply.
        scores: the product that computes the scores.
        sizes: of the scores, the last two being the numbers of queries and of keys.
        is_masked: True if something is added to or filled into the scores.
        averages: the row in which `nn.MultiheadAttention` averages the weights over the heads to return them; None
            if it does not.
    """

    softmax: int
    between: tuple[int, ...]
    products: tuple[int, int]
    scores: Product
    sizes: Shape
    is_masked: bool
    averages: int | None


def attentions(profile: Profile) -> Iterator[AttentionCall]:
    """Written-out attention that a fused operator can replace, since nothing else needs its scores or its weights."""
    for softmax in profile.calls.among(profile.named(*SOFTMAX)).tolist():
        given = profile.inputs(softmax)
        sizes = given.shape(0)
        if sizes and len(sizes) >= LEAST_DIMS and given.scalar(1) in {"", "-1", str(len(sizes) - 1)}:
            yield from _around(profile, softmax, sizes)


def left_of_products(
    profile: Profile, found: AttentionCall, events: Sequence[int], *, with_gradients: bool
) -> tuple[float, float] | None:
    """Parts of their time that the products take inside a fused operator: most likely, and at least.

    Written out, they mostly write and read scores; fused, they wait only for the matrix units. None if the products do
    not run on a device of known peak in half precision.

    Args:
        profile: the profile they are of.
        found: the attention.
        events: device work, or operators, of the products and their gradients.
        with_gradients: True if there are gradients.
    """
    rows, scores = np.array(events, np.int64), found.scores
    device = device_of(profile) if len(rows) and int(rows.min()) >= profile.tree.size else None
    peak = device.peaks.get(scores.dtype) if device is not None else None
    time_ns = profile.covered(rows).total_ns
    if peak is None or peak.matrix is None or peak.cores is not None or not time_ns:
        return None
    flops = 4 * scores.batch * scores.m * scores.n * scores.k * (WITH_GRADIENTS if with_gradients else 1)
    of_peak = flops / peak.matrix * 1e9 / time_ns
    return min(of_peak / REACHED, 1.0), min(of_peak / REACHED_AT_BEST, 1.0)


def _around(profile: Profile, softmax: int, sizes: Shape) -> Iterator[AttentionCall]:
    before = _until_product(profile, profile.operators_before(softmax, _REACH), sizes, ON_SCORES)
    after = _until_product(profile, profile.operators_after(softmax, _REACH), sizes, ON_WEIGHTS)
    if before is None or after is None:
        return
    (scores_at, scores, on_scores), (output_at, output, on_weights) = before, after
    uses = [row for row in _before_next(profile, output_at) if _goes_over(profile, row, sizes)]
    multihead = [row for row in uses[:1] if _is_multihead(profile, row)]
    if not _fit(scores, output, sizes) or (uses and not multihead) or scores_at == output_at:
        return
    names = {aten.without_writing(profile.name(row)) for row in (*on_scores, scores_at)}
    is_masked = not names.isdisjoint(_MASKS | {ADDS_SCORES})
    between = (*sorted(on_scores), softmax, *on_weights)
    yield AttentionCall(softmax, between, (scores_at, output_at), scores, sizes, is_masked, next(iter(multihead), None))


def _before_next(profile: Profile, output: int) -> Iterator[int]:
    """The following operators, up to the next batched product: the scores of the next layer are equally large."""
    near = profile.operators_after(output, _AFTER)
    return takewhile(lambda row: _batched_product(profile, row) is None, near)


def _until_product(
    profile: Profile, near: list[int], sizes: Shape, known: frozenset[str]
) -> tuple[int, Product, list[int]] | None:
    """The first operator with a batched product, that product, and the operators before it that process the matrix.

    None if any operator outside `known` does, or if another softmax comes first.
    """
    on_the_way: list[int] = []
    for row in near:
        product = _batched_product(profile, row)
        if product is not None:
            return row, product, on_the_way
        if _goes_over(profile, row, sizes):
            if aten.without_writing(profile.name(row)) not in known:
                return None
            on_the_way.append(row)
    return None


def _batched_product(profile: Profile, row: int) -> Product | None:
    """The only batched product that an operator consists of."""
    rows = [inner for inner in profile.subtree(row) if profile.name(inner) in FACTORS]
    if len(rows) != 1 or profile.name(rows[0]) not in _BATCHED:
        return None
    return product_of(rows[0], profile.name(rows[0]), profile.inputs(rows[0]))


def _goes_over(profile: Profile, row: int, sizes: Shape) -> bool:
    """True if an operator that is more than a view gets the matrix of scores or weights."""
    name = profile.name(row)
    if is_passing(name) and name != _CAST:
        return False
    given = profile.inputs(row)
    shapes = [given.shape(at) for at in range(len(given.dtypes))]
    return any(shape and shape[-1] == sizes[-1] and prod(shape) == prod(sizes) for shape in shapes)


def _fit(scores: Product, output: Product, sizes: Shape) -> bool:
    """True if the first product computes the softmax's input, and the second one sums over its keys."""
    queries, keys = sizes[-2:]
    makes = scores.batch * queries * keys == prod(sizes) and {scores.m, scores.n} == {queries, keys}
    return makes and output.batch == scores.batch and output.k == keys and queries in (output.m, output.n)


def _is_multihead(profile: Profile, row: int) -> bool:
    """True if `nn.MultiheadAttention` averages the weights here, and no later operator gets the average."""
    averaged = profile.inputs(row).shape(0) or ()
    is_mean = profile.name(row) in AVERAGES and len(averaged) == WEIGHTS_DIMS
    if not is_mean or not any(profile.name(above).endswith(MULTIHEAD) for above in profile.ancestors(row)):
        return False
    sizes = (averaged[0], *averaged[2:])
    return not any(_goes_over(profile, later, sizes) for later in profile.operators_after(row, _AFTER))
