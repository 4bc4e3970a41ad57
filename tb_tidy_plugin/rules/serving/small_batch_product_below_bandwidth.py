"""Small-batch product below the memory's bandwidth.

## What it finds
Matrix products with few rows, as in a server's decode step, that read their weight at less than 0.7 of the device's
memory bandwidth. The finding names the function that calls the library, since servers have tuned kernels and a
fallback.

## Why it is slow
With few rows, a product only reads its weight once. A kernel that was chosen for many rows, or by default, leaves most
of the bandwidth unused.

## Example
```python
y = torch.nn.functional.linear(x, weight)  # x has 32 rows; the library's default kernel reads at 2.6 of 5.3 TB/s
```

Use instead:
```python
torch.cuda.tunable.enable()  # once; servers have a table of tuned sizes of their own, such as aiter's
y = torch.nn.functional.linear(x, weight)
```

## How the saving is estimated
At best the products read at 0.8 of the bandwidth, which good kernels reach. Most likely they reach the rate of the
fastest of them in this recording. At worst nothing is gained.

## When it stays quiet
Products with more than 64 rows, products that take less than 10 µs, which are as short as a launch, and products that
read less than 8 MiB. Devices with an unknown bandwidth.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.work.flops import device_of
from tb_tidy_plugin.profile.work.matrix_products import RatedProduct, rated_products
from tb_tidy_plugin.words.units import PerSecond, plural

TRAINS = "The recording has a backward pass: a training step has larger batches to choose."
_GOOD = 0.8
"""Part of the manufacturers' stated bandwidth that the fastest kernels reach when they read a large matrix once."""


class Evidence(msgspec.Struct, frozen=True):
    """Products that one function computes.

    Attributes:
        rows: of the left factor, at most. calls: their number. time: of all of them.
        rate: bytes per second. share: that by the device's bandwidth.
        caller: the function that calls the library, empty if no stacks were recorded.
        kept, least: part of the time that remains, most likely and at best.
    """

    rows: int
    calls: int
    time: tt.Nanoseconds
    rate: PerSecond
    share: tt.Share
    caller: str
    kept: tt.Share
    least: tt.Share

    @property
    def products(self) -> str:
        reads = "reads its weight" if self.calls == 1 else "read their weights"
        return f"{plural(self.calls, 'product')} of up to {plural(self.rows, 'row')}{self.where} {reads}"

    @property
    def where(self) -> str:
        return f" in {self.caller}" if self.caller else ""


class SmallBatchProductBelowBandwidth(tt.Rule[Evidence]):
    """Products of few rows that read their weights slowly."""

    code = "TT1502"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Tune products for small batches"
    message = "{products} at {rate}B/s, {share} of the bandwidth"
    why = (
        "They take {time} and do nothing else. Reported below {max_rate} of the bandwidth; good kernels reach 80 % of "
        "it"
    )
    fix = "Tune these sizes for the batch sizes that you serve, or store the weights in FP8 or INT8"

    max_rate = tt.Threshold(0.7, "of the device's memory bandwidth; the fastest kernels reach 0.8 of it")
    max_rows = tt.Threshold(
        64, "of the one factor, and at least as many columns; with more rows, computing begins to matter"
    )
    min_kernel_ns = tt.Threshold(
        10_000, "for one product; shorter products take as long as a launch, whatever they read"
    )

    min_bytes = tt.Threshold(
        8 << 20, "read for one product; a smaller matrix may stay in caches, which are read in no time"
    )

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if device_of(profile) is None:
            return "The peak rates of this device are not known."
        return TRAINS if (profile.table.forward_thread > 0).any() else None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        device = device_of(profile)
        bandwidth = device.bytes_per_second if device is not None else float("inf")
        small = [each for each in rated_products(profile) if self._is_small(each)]
        groups: dict[str, list[RatedProduct]] = {}
        for each in small:
            if each.bytes_per_second < self.max_rate * bandwidth:
                groups.setdefault(_caller(profile, each.product.row), []).append(each)
        best = max((each.bytes_per_second for each in small), default=0)
        for caller, group in groups.items():
            time_ns = sum(each.time_ns for each in group)
            moved = sum(each.product.bytes * len(each.rows) for each in group)
            rate = moved / time_ns * 1e9
            evidence = Evidence(
                rows=max(min(each.product.m, each.product.n) for each in group),
                calls=sum(len(each.rows) for each in group),
                time=tt.Nanoseconds(time_ns),
                rate=PerSecond(rate),
                share=tt.Share(rate / bandwidth),
                caller=caller,
                kept=tt.Share(max(min(rate / best, 1.0), rate / bandwidth / _GOOD)),
                least=tt.Share(rate / bandwidth / _GOOD),
            )
            for row in sorted(row for each in group for row in each.rows):
                work = tuple(profile.device_activity_of(row).tolist())
                yield tt.Match(row, work, evidence, subject=caller, confidence="medium")

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, match.evidence.kept, match.evidence.least, 1.0)

    def _is_small(self, each: RatedProduct) -> bool:
        product = each.product
        few = min(product.m, product.n) <= self.max_rows < product.k and product.batch == 1
        return few and product.bytes >= self.min_bytes and each.time_ns >= self.min_kernel_ns * len(each.rows)


def _caller(profile: tt.Profile, row: int) -> str:
    """The nearest function around an operator that is not PyTorch's own."""
    for above in profile.ancestors(row):
        frame = tt.parse_frame(profile.name(above))
        if frame is not None and not frame.file.startswith(("torch/", "<")):
            return f"`{frame.function}` ({frame.file}:{frame.line})"
    return ""
