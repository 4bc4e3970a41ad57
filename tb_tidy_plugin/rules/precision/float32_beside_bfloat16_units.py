"""Float32 products and convolutions on a CPU with faster bfloat16.

## What it finds
Float32 matrix products and convolutions on a CPU that are large enough to gain from bfloat16 and take a good part of
the step. Only recordings with `tb_tidy_plugin.capture` say whether the CPU has AVX512-BF16 or AMX instructions.

## Why it is slow
AVX512-BF16 multiplies twice as many numbers per instruction as AVX512 does in float32, and AMX about eight times as
many. bfloat16 also halves the bytes that must be moved.

## Example
```python
loss = loss_fn(model(x), y)
```

Use instead:
```python
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = loss_fn(model(x), y)
```

## How the saving is estimated
The factor was measured on a CPU with AVX512-BF16, torch 2.13, one and two threads, forward and backward pass. Under
autocast, linear layers and convolutions of 30 MFLOP or more take 0.34 to 0.88 of their time including all casts, most
of them 0.5.

## When it stays quiet
CPUs without AVX512-BF16 and AMX, or for which this is unknown. Products below 30 MFLOP and products with fewer than 128
rows or columns, where the casts cost as much as the product gains (32 × 512 by 512 × 512 took 1 to 2.2 times as long).
Less than a third of the step. Programs that already compute in bfloat16 or float16 somewhere. GPUs.
"""

from collections.abc import Iterator, Mapping
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.work.flops import estimate
from tb_tidy_plugin.rulekit.made import mixed_precision
from tb_tidy_plugin.torchfacts import aten

_PRODUCTS = aten.by_name("product", {"linear": (0, 1), "mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2)})
_CONVOLUTIONS = aten.names("product", "convolution mkldnn_convolution convolution_backward _convolution")
_HALF = frozenset({"c10::BFloat16", "c10::Half"})
SMALLEST_SIZE = 128  # rows and columns of a product
MOST_SIZE = 4096


class Evidence(msgspec.Struct, frozen=True):
    """The float32 work that would gain.

    Attributes:
        calls: per step. time: of the calls per step. share: that by the step.
        size: rows and columns of the most expensive call, as a square.
        smallest: least MFLOP of a call.
    """

    calls: int
    time: tt.Nanoseconds
    share: tt.Share
    size: int
    smallest: int


class Float32BesideBfloat16Units(tt.Rule[Evidence]):
    """Float32 products and convolutions on a CPU with faster bfloat16."""

    code = "TT450"
    needs = frozenset({"shapes"})
    action = "Compute products in bfloat16"
    message = (
        "Products and convolutions in float32 take {time} of a step ({share}), and this CPU multiplies bfloat16 faster"
    )
    why = (
        "The step has {calls} calls of {smallest} MFLOP or more in float32, and none in half precision. Reported for "
        "{min_share} of a step or more"
    )
    fix = 'Use mixed precision: `torch.autocast("cpu", dtype=torch.bfloat16)` around the forward pass'
    caveat = "bfloat16 has 7 bits of fraction instead of 23. Check that training converges to the same result."
    left = (0.5, 0.34, 0.9)

    min_share = tt.Threshold(
        0.33, "mixed precision changes the whole program, which is not worth it for less of the step"
    )
    min_flops = tt.Threshold(30_000_000, "per call; smaller products gain less than their casts cost")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.platform != "cpu" or profile.hides_device:
            return "The profile has a device, whose precision other rules check."
        known = profile.settings.processor.bfloat16
        if known is None:
            return (
                "Whether the CPU multiplies bfloat16 faster was not recorded: record with `tb_tidy_plugin.capture`, or "
                'try `torch.autocast("cpu", dtype=torch.bfloat16)` if `lscpu` shows `avx512_bf16` or `amx_bf16`.'
            )
        return None if known else "The CPU does not multiply bfloat16 faster than float32."

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        candidates = profile.named(*_PRODUCTS, *_CONVOLUTIONS)
        inputs = profile.inputs_of(candidates)
        if any(not _HALF.isdisjoint(given.dtypes) for given in inputs):
            return
        gains = [
            row
            for row, given in zip(candidates.tolist(), inputs, strict=True)
            if given.dtypes and "float" in given.dtypes and self._gains(profile.name(row), given)
        ]
        rows = rows_of(gains)
        rows = rows[~profile.inside(rows)[rows]]
        time_ns = profile.per_step_ns(rows)
        share = profile.share_of_step(time_ns)
        if share is None or share < self.min_share:
            return
        longest = max(rows.tolist(), key=profile.duration_ns)
        found = estimate(profile.name(longest), profile.inputs(longest))
        evidence = Evidence(
            calls=round(profile.per_step_count(rows)),
            time=tt.Nanoseconds(time_ns),
            share=tt.Share(share),
            size=round((((found.flops if found else None) or 0) / 2) ** (1 / 3)),
            smallest=round(self.min_flops / 1e6),
        )
        yield tt.Match(longest, tuple(rows.tolist()), evidence)

    def trainer_options(self, evidence: Evidence) -> Mapping[str, str]:
        return mixed_precision("bfloat16")

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        size = min(evidence.size, MOST_SIZE)
        if size < SMALLEST_SIZE:
            return None
        setup = (
            f"import torch\nx = torch.randn({size}, {size}, device=device)\nweight = torch.randn_like(x)\n"
            "half = weight.to(torch.bfloat16)"
        )
        return tt.Benchmark("product = x @ weight", "product = x.to(torch.bfloat16) @ half", setup, devices=("cpu",))

    def _gains(self, name: str, given: tt.Inputs) -> bool:
        """True if a call is large enough, in all of its sizes."""
        found = estimate(name, given)
        if found is None or found.dtype != "float" or (found.flops or 0) < self.min_flops:
            return False
        if name not in _PRODUCTS:
            return True
        shapes = [given.shape(position) or () for position in _PRODUCTS[name]]
        return all(len(shape) > 1 and min(prod(shape[:-1]), shape[-1]) >= SMALLEST_SIZE for shape in shapes)
