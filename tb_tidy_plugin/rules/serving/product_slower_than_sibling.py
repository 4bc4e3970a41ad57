"""Matrix product far slower than others like it.

## What it finds
Matrix products that take a large part of a step and reach at most 0.8 of the rate of another product in the same
recording, of the same dtype and with as many operations per byte.

## Why it is slow
Libraries choose a kernel for each size by a heuristic. For sizes that nobody tuned, the choice is often poor. Similar
products show what the device can do.

## Example
```python
hidden = torch.nn.functional.linear(x, gate_up_weight)  # 457 TFLOP/s, the products beside it 629
```

Use instead:
```python
torch.cuda.tunable.enable()  # once, before the first product: measures all kernels for each size
hidden = torch.nn.functional.linear(x, gate_up_weight)
```

## How the saving is estimated
At best the product reaches the rate of its fastest sibling; most likely half of that is gained. At worst no kernel is
faster.

## When it stays quiet
Products below 5 % of the device's time. Products of other dtypes, or with more than twice or less than half as many
operations per byte. Siblings below 1 % of the device's time, whose rate is noise. Products below 20 µs, which do not
fill a device.
"""

from collections.abc import Iterator, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.work.matrix_products import RatedProduct, rated_products
from tb_tidy_plugin.words.units import PerSecond

_COMPARABLE = 2  # most ratio of operations per byte at which the same limit applies


class Evidence(msgspec.Struct, frozen=True):
    """A product, and its fastest sibling.

    Attributes:
        sizes, dtype: of the product. calls: their number. time: of all of them.
        rate: operations per second. sibling: sizes of the other one. sibling_rate: its rate.
        share: the product's rate by the sibling's.
    """

    sizes: str
    dtype: str
    calls: int
    time: tt.Nanoseconds
    rate: PerSecond
    sibling: str
    sibling_rate: PerSecond
    share: tt.Share


class ProductSlowerThanSibling(tt.Rule[Evidence]):
    """Matrix products far slower than others like them."""

    code = "TT1501"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    yields_to = ("tensor-core-shape-misaligned", "small-batch-product-below-bandwidth", "unfused-attention")
    action = "Tune the product of {sizes}"
    message = "{sizes} in {dtype} reaches {rate}FLOP/s, {share} of the rate of {sibling}"
    why = (
        "{calls} calls take {time}; the sibling reaches {sibling_rate}FLOP/s with as many operations per byte. "
        "Reported for {max_rate} of the sibling's rate or less"
    )
    fix = "Tune this size (TunableOp, hipBLASLt or aiter tuning), or pad or split it to the size of the faster product"

    max_rate = tt.Threshold(0.8, "of the sibling's rate; kernels chosen by heuristics normally differ by about 10 %")
    min_part = tt.Threshold(0.05, "of all device time; a product that takes less is not worth tuning")
    min_sibling_part = tt.Threshold(0.01, "of all device time; rates of products that take less are noise")

    min_call_ns = tt.Threshold(
        20_000, "for one product; a smaller product does not fill a device, whichever kernel runs"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        whole_ns = max(int(profile.operators.device_self_ns.sum()), 1)
        found = [
            each
            for each in rated_products(profile)
            if each.time_ns >= max(self.min_sibling_part * whole_ns, self.min_call_ns * len(each.rows))
        ]
        for each in found:
            sibling = _fastest_sibling(each, found)
            if each.time_ns >= self.min_part * whole_ns and _share(each, sibling) <= self.max_rate:
                yield from self._matches(profile, each, sibling)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        share = match.evidence.share
        yield tt.Scale(match.events, (1 + share) / 2, share, 1.0)

    def _matches(self, profile: tt.Profile, each: RatedProduct, sibling: RatedProduct) -> Iterator[tt.Match[Evidence]]:
        evidence = Evidence(
            sizes=str(each.product),
            dtype=tt.TORCH_DTYPES.get(each.product.dtype, each.product.dtype),
            calls=len(each.rows),
            time=tt.Nanoseconds(each.time_ns),
            rate=PerSecond(each.flops_per_second),
            sibling=str(sibling.product),
            sibling_rate=PerSecond(sibling.flops_per_second),
            share=tt.Share(_share(each, sibling)),
        )
        for row in each.rows:
            work = tuple(profile.device_activity_of(row).tolist())
            yield tt.Match(row, work, evidence, subject=evidence.sizes, confidence="medium")


def _share(each: RatedProduct, other: RatedProduct) -> float:
    """The larger of the two ratios: neither operations nor bytes may excuse the slower one."""
    return max(each.flops_per_second / other.flops_per_second, each.bytes_per_second / other.bytes_per_second)


def _fastest_sibling(each: RatedProduct, among: Sequence[RatedProduct]) -> RatedProduct:
    """The one beside which `each` is slowest; itself if there is no similar one."""
    alike = [
        other
        for other in among
        if other.product.dtype == each.product.dtype
        and each.intensity / _COMPARABLE <= other.intensity <= each.intensity * _COMPARABLE
    ]
    return min(alike, key=lambda other: _share(each, other), default=each)
