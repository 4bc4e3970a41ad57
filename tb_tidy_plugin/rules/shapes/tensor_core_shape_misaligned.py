"""Matrix product with sizes that do not suit tensor cores.

## What it finds
A half-precision matrix product with a size that is not a multiple of 8, if the chosen kernel or the speed shows that
this costs time.

## Why it is slow
Tensor cores load 16 bytes at a time: 8 values of float16 or bfloat16. A matrix whose rows do not begin on such a
boundary is loaded in pieces of 2 or 4 bytes, or multiplied without tensor cores.

## Example
```python
head = nn.Linear(width, 50257)
```

Use instead:
```python
head = nn.Linear(width, 50304)  # for 50257 words; the last 47 outputs are cut off
```

## How the saving is estimated
If the profile has aligned products of comparable size, the padded product is expected to reach their median speed, and
at best the speed of the fastest. Otherwise the kernel is scaled to 0.6 of its time (0.4 to 1) if it loads 1 or 2 values
at a time, and to 0.35 (0.25 to 1) if it does not use tensor cores.

## When it stays quiet
CPUs, and GPUs without tensor cores. Sizes below 8, which are small rather than odd. Products that are about as fast as
aligned ones. Products without aligned ones to compare with whose kernel name gives no hint: newer libraries handle many
odd sizes well. Products without a kernel in the profile, or with one below 5 µs.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.device_models import FIRST_WITH_TENSOR_CORES
from tb_tidy_plugin.profile.events.products import Product

_HALF = {"c10::Half": "float16", "c10::BFloat16": "bfloat16"}
MULTIPLE = 8  # values of 2 bytes in one load of 16 bytes

SIGNS = {
    r"align[A-Za-z]{0,2}[12](?!\d)": ("loads 1 or 2 values at a time", 0.6, 0.4),
    r"(?<![A-Za-z0-9])[hs]gemm_|_(simt|ffma)_": ("does not use tensor cores", 0.35, 0.25),
}
"""Signs in names (`…_s16816gemm_bf16_64x64_…_align2`; `volta_hgemm_…`, `ampere_fp16_sgemm_…`, `cutlass_80_simt_…`), and
the expected and the least part of the time that padding leaves. On ordinary cores a 16-bit product has a quarter of the
tensor cores' peak (A100: 78 and 312 TFLOP/s).
"""

_MOST_BYTES = 1 << 30  # in the benchmark
_COMPARABLE = 2  # times as much or as little arithmetic and traffic: the speed of a kernel depends on both


class Evidence(msgspec.Struct, frozen=True):
    """A product, and the cause of its slowness.

    Attributes:
        op: the operator. kernel: its kernel. dtype: of its factors.
        batch, m, k, n: sizes of the product. sizes: the same in words.
        time: of this one. sign: the sign that it is slow.
        factor, least: parts of its time that padding leaves, most likely and at least.
    """

    op: str
    kernel: str
    dtype: str
    batch: int
    m: int
    k: int
    n: int
    sizes: str
    time: tt.Nanoseconds
    sign: str
    factor: tt.Share
    least: tt.Share

    @property
    def odd_sizes(self) -> tuple[int, ...]:
        """Sizes that are not multiples of 8, each once."""
        return tuple(size for size in dict.fromkeys((self.m, self.k, self.n)) if size % MULTIPLE)

    @property
    def odd(self) -> str:
        return " and ".join(map(str, self.odd_sizes))

    @property
    def padded(self) -> str:
        return " and ".join(str(size + -size % MULTIPLE) for size in self.odd_sizes)


class TensorCoreShapeMisaligned(tt.Rule[Evidence]):
    """Half-precision matrix products with a slow odd size."""

    code = "TT501"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Pad {odd} to {padded}"
    message = "`{op}` of {sizes} in {dtype} takes {time}, and {odd} is not a multiple of 8"
    why = (
        "`{kernel}` {sign}. Reported if the kernel's name shows this, or if it reaches less than {max_speed} of the "
        "speed of aligned products of half to twice the size"
    )
    fix = "Pad {odd} to {padded}; a multiple of 64 is better still"
    caveat = "The device also computes the added rows or columns: mask them or cut them off."

    max_speed = tt.Threshold(0.6, "of the speed of aligned products; above this, something else may be the cause")
    max_speed_named = tt.Threshold(0.9, "of the speed of aligned products, if the kernel's name shows the cause")
    min_aligned_calls = tt.Threshold(3, "fewer calls of aligned products give no reliable median")
    min_kernel_ns = tt.Threshold(5_000, "every kernel takes about this long, however small its product")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.platform not in {"cuda", "rocm"}:
            return "Odd sizes cost time only on the tensor cores of a GPU, and the profile has no GPU."
        majors = [device.computeMajor for device in profile.metadata.devices if device.computeMajor is not None]
        if majors and max(majors) < FIRST_WITH_TENSOR_CORES:
            return "The GPUs of this profile have no tensor cores."
        return None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        timed = [(product, _time_ns(profile, product)) for product in profile.products(*_HALF)]
        calls = [(product, time_ns) for product, time_ns in timed if time_ns >= self.min_kernel_ns]
        aligned: dict[Product, list[float]] = {}
        for product, time_ns in calls:
            if product == product.padded(MULTIPLE):
                aligned.setdefault(product, []).append(product.flops / time_ns)
        for product, time_ns in calls:
            if product != product.padded(MULTIPLE) and (judged := self._judged(profile, product, time_ns, aligned)):
                yield self._match(profile, product, time_ns, *judged)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, match.evidence.factor, match.evidence.least, 1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        batch, m, k, n, dtype = evidence.batch, evidence.m, evidence.k, evidence.n, tt.known_dtype(evidence.dtype)
        wide = Product(0, batch, m, k, n, "c10::Half").padded(MULTIPLE)
        batch = min(
            batch, _MOST_BYTES * batch // (2 * wide.bytes - 2 * batch * wide.m * wide.n)
        )  # one result at a time
        shapes = {"a": (batch, m, k), "b": (batch, k, n), "c": (batch, wide.m, wide.k), "d": (batch, wide.k, wide.n)}
        made = [f"{name} = torch.randn({shape}, dtype=torch.{dtype}, device=device)" for name, shape in shapes.items()]
        setup = "\n".join(["import torch", *made])
        return tt.Benchmark("a @ b", "c @ d", setup, devices=("cuda",), of_events=True) if batch and dtype else None

    def _judged(
        self, profile: tt.Profile, product: Product, time_ns: int, aligned: Mapping[Product, list[float]]
    ) -> tuple[str, float, float] | None:
        """The sign that a product is slow, and the part of its time that padding leaves: expected and least."""
        peers = [speed for other, speeds in aligned.items() if _is_comparable(product, other) for speed in speeds]
        if len(peers) < self.min_aligned_calls:
            return _sign(profile, product)
        usual = float(np.median(peers))
        share = product.flops / time_ns / usual
        if share >= (self.max_speed_named if _sign(profile, product) else self.max_speed):
            return None
        left = share * product.padded(MULTIPLE).flops / product.flops
        return f"reaches {tt.Share(share)} of the speed of aligned products", left, left * usual / max(peers)

    def _match(
        self, profile: tt.Profile, product: Product, time_ns: int, sign: str, factor: float, least: float
    ) -> tt.Match[Evidence]:
        events = tuple(profile.device_activity_of(product.row).tolist())
        forward = profile.forward_of(product.row)  # the line that multiplies, not the one that calls `backward`
        return tt.Match(
            anchor=product.row if forward is None else forward,
            events=events,
            evidence=Evidence(
                op=profile.name(product.row),
                kernel=max(re.findall(r"\w+", " ".join(map(profile.name, events))), key=len),
                dtype=_HALF[product.dtype],
                batch=product.batch,
                m=product.m,
                k=product.k,
                n=product.n,
                sizes=str(product),
                time=tt.Nanoseconds(time_ns),
                sign=sign,
                factor=tt.Share(min(factor, 1)),
                least=tt.Share(min(least, 1)),
            ),
            confidence="high" if _sign(profile, product) else "medium",
        )


def _time_ns(profile: tt.Profile, product: Product) -> int:
    """Time on the device; 0 for a product with a size below 8."""
    is_small = min(product.m, product.k, product.n) < MULTIPLE
    return 0 if is_small else sum(map(profile.duration_ns, profile.device_activity_of(product.row).tolist()))


def _sign(profile: tt.Profile, product: Product) -> tuple[str, float, float] | None:
    names = " ".join(map(profile.name, profile.device_activity_of(product.row).tolist()))
    return next((meaning for pattern, meaning in SIGNS.items() if re.search(pattern, names)), None)


def _is_comparable(one: Product, other: Product) -> bool:
    ratios = (one.flops / other.flops, one.bytes / other.bytes)
    is_near = all(1 / _COMPARABLE <= ratio <= _COMPARABLE for ratio in ratios)
    return is_near and one.dtype == other.dtype and (one.batch > 1) == (other.batch > 1)
