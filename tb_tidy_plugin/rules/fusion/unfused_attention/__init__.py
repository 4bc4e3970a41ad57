"""Attention written out as products and a softmax.

## What it finds
Scores from a batched matrix product (`@`, `matmul`, `bmm`, `baddbmm`, `einsum`), optionally scaled and masked, a
softmax over the keys, and a product of its result with the values. The sizes must show that each takes the previous
result.

## Why it is slow
Scores and weights have a row per query and a column per key: far more elements than queries, keys and values together.
Each step writes this matrix to memory and reads it again, forward and backward, and autograd keeps several copies. A
fused operator works on blocks of it that never leave the chip.

## Example
```python
weights = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(-1)
mixed = weights @ value
```

Use instead:
```python
mixed = F.scaled_dot_product_attention(query, key, value)
```

## How the saving is estimated
The operators between the two products go, in the forward and the backward pass, and the products are scaled. On a
device with a known peak in half precision, the products are expected to reach a fifth of that peak, at best two fifths;
written out, they are limited by writing the scores to memory. Otherwise 0.85 of their time remains. On a CPU with torch
2.13 the fused operator took 0.7 to 1.05 times as long as the products alone (64 to 512 queries, with and without a
mask), which was 0.35 to 0.7 of the whole with gradients and 0.28 to 0.55 without.

## When it stays quiet
Fewer than 64 queries or keys. Weights or scores that are also used elsewhere, such as in the loss. Operators between
the products other than scaling, addition, masking, and dropout after the softmax, such as a `tanh` that caps scores, or
mixed heads. Weights that do not come from a batched product, such as those of a layer. `nn.MultiheadAttention` whose
weights are used; if nothing seems to use them, the finding has medium confidence.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.rules.fusion.unfused_attention.attention import AttentionCall, attentions, left_of_products

_FUSED = "Call `F.scaled_dot_product_attention`"
LEFT_OF_PRODUCTS = (0.85, 0.7)  # most likely, at least, if the device does not show it
WITHOUT_WEIGHTS = "Pass `need_weights=False` to `nn.MultiheadAttention`"


class Evidence(msgspec.Struct, frozen=True):
    """One attention.

    Attributes:
        queries, keys: their numbers. width: of a head. batch: number of heads in all.
        sizes, dtype: of the scores.
        is_masked: True if a mask is added to them. averages_weights: True if only their average needs the weights.
        operators, gradients: number of those that process the scores, in the forward and the backward pass.
        time: of all of them.
        products_left, products_best: parts of the products' time that fusing leaves, most likely and at least.
    """

    queries: int
    keys: int
    width: int
    batch: int
    sizes: tt.Sizes
    dtype: str
    is_masked: bool
    averages_weights: bool
    operators: int
    gradients: int
    time: tt.Nanoseconds
    products_left: tt.Share
    products_best: tt.Share

    @property
    def ratio(self) -> str:
        """The size of the scores by that of the queries."""
        return f"{self.keys / self.width:.3g}"

    @property
    def backward(self) -> str:
        return f", and {self.gradients} more in the backward pass," if self.gradients else ""

    @property
    def fix(self) -> str:
        return WITHOUT_WEIGHTS if self.averages_weights else _FUSED


class UnfusedAttention(tt.Rule[Evidence]):
    """Attention written out."""

    code = "TT703"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Call `scaled_dot_product_attention` instead of writing attention out"
    message = (
        "Attention of {queries} queries over {keys} keys is written out: up to {time} per call between its products"
    )
    why = (
        "{operators} operators{backward} read and write scores of {sizes} in {dtype}, {ratio} times the size of the "
        "queries. Reported for {min_length} queries and keys or more"
    )
    fix = "{fix}"
    caveat = (
        "Results differ in their last bits, and dropout draws different random numbers. The attention weights are no "
        "longer available."
    )

    min_length = tt.Threshold(64, "for fewer queries or keys the matrix of scores is small, and so is the saving")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for attention in attentions(profile):
            if min(attention.sizes[-2:]) >= self.min_length:
                yield self._match(profile, attention)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Remove(match.events)
        yield tt.Scale(match.related, match.evidence.products_left, match.evidence.products_best, 1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        dtype, queries, keys, width = tt.known_dtype(evidence.dtype), evidence.queries, evidence.keys, evidence.width
        batch = tt.fitting(evidence.batch, 8 * (3 * queries * keys + (queries + 2 * keys) * width))
        options = f"dtype=torch.{dtype}, device=device"
        added, given = (" + mask", ", attn_mask=mask") if evidence.is_masked else ("", "")
        return tt.Benchmark(
            before=f"result = (query @ key.transpose(-2, -1) / {width} ** 0.5{added}).softmax(-1) @ value",
            after=f"result = F.scaled_dot_product_attention(query, key, value{given})",
            setup="import torch\nimport torch.nn.functional as F\n"
            f"query = torch.randn({batch}, 1, {queries}, {width}, {options})\n"
            f"key, value = (torch.randn({batch}, 1, {keys}, {width}, {options}) for _ in range(2))"
            + (f"\nmask = torch.zeros({queries}, {keys}, {options})" if evidence.is_masked else ""),
        ) if dtype and batch else None  # fmt: skip

    def _match(self, profile: tt.Profile, attention: AttentionCall) -> tt.Match[Evidence]:
        gradients = gradients_of(profile, attention.between)
        events = slower_side(profile, (*attention.between, *gradients))
        of_products = gradients_of(profile, attention.products)
        products = slower_side(profile, (*attention.products, *of_products))
        left = left_of_products(profile, attention, products, with_gradients=bool(of_products)) or LEFT_OF_PRODUCTS
        *_, queries, keys = attention.sizes
        scores = attention.scores
        return tt.Match(
            anchor=attention.softmax,
            events=events,
            evidence=Evidence(
                queries=queries,
                keys=keys,
                width=scores.k,
                batch=scores.batch,
                sizes=tt.Sizes(attention.sizes),
                dtype=tt.TORCH_DTYPES.get(scores.dtype, scores.dtype),
                is_masked=attention.is_masked,
                averages_weights=attention.averages is not None,
                operators=len(attention.between),
                gradients=len(gradients),
                time=tt.Nanoseconds(profile.covered(rows_of(events)).total_ns),
                products_left=tt.Share(left[0]),
                products_best=tt.Share(left[1]),
            ),
            confidence="high" if attention.averages is None else "medium",
            related=products,
        )
