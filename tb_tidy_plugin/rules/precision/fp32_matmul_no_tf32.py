"""Float32 matrix product without TF32.

## What it finds
A matrix product of float32 tensors that runs on the CUDA cores of an NVIDIA GPU whose tensor cores could do it in TF32.

## Why it is slow
By default PyTorch computes float32 matrix products in full precision. On GPUs with compute capability 8.0 or higher,
tensor cores can multiply float32 matrices in TF32, up to eight times as fast. TF32 keeps 10 of the 23 fraction bits of
each factor. A product that is limited by memory gains nothing.

## Example
```python
model = build_model().cuda()
```

Use instead:
```python
torch.set_float32_matmul_precision("high")  # once, at start-up
model = build_model().cuda()
```

## How the saving is estimated
The kernel is scaled to the longest of three times: its arithmetic at half of the card's TF32 peak, its factors and
result at 3/4 of its memory bandwidth, and 5 µs. The bounds are the full peaks and no gain. On a GeForce the TF32 peak
is that of float32, so products that the cores do well gain nothing. If the card is not known by name, the peaks are
those of the slowest one with its compute capability and size, and the confidence is medium at most.

## When it stays quiet
AMD GPUs, and NVIDIA GPUs without TF32. Kernels whose names the rule does not know. Jobs that allow TF32, shown by
captured settings or by a float32 product on tensor cores. Products that TF32 would speed up by less than a fifth,
because memory limits them. Convolutions, for which TF32 is on by default.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.device_models import slowest_device
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.products import Product

FULL_FP32 = re.compile(r"\b\w{0,200}(?<![A-Za-z0-9])sgemm(?:_|Ex)\w*|\b\w{0,200}f32f32_f32f32_f32_\w{0,200}ffma\w*")
"""Kernels on CUDA cores: `ampere_sgemm_128x64_nn`, `cutlass_80_simt_sgemm_…`, `magma_sgemmEx_kernel`, `sm80_xmma_…`."""

_TENSOR_CORES = re.compile(r"tf32|tensorop|1688|16816|wgmma|nvjet")
"""Kernels on tensor cores: `cutlass_80_tensorop_s1688gemm_…`, `sm90_xmma_gemm_f32f32_tf32f32_…`, `nvjet_…`."""

FIRST_WITH_TF32 = 8  # major compute capability: Ampere

REACHED_COMPUTE, REACHED_MEMORY = 0.5, 0.75  # parts of the peaks that cuBLAS reaches with ordinary sizes
SHORTEST_NS = 5_000  # a product on tensor cores takes about this long however small it is
GRID = 20  # factors in twentieths: the model is not finer, and edits with equal factors are estimated together


class Evidence(msgspec.Struct, frozen=True):
    """A product, and its time on tensor cores.

    Attributes:
        op: the operator. kernel: its kernel. device_name: the GPU's name, empty if unknown.
        batch, m, k, n: sizes of the product. sizes: the same in words.
        products: number of float32 products in the profile.
        time: of this one. expected, best: with TF32, most likely and at best.
    """

    op: str
    kernel: str
    device_name: str
    batch: int
    m: int
    k: int
    n: int
    sizes: str
    products: int
    time: tt.Nanoseconds
    expected: tt.Nanoseconds
    best: tt.Nanoseconds

    @property
    def device(self) -> str:
        return self.device_name or "this GPU"


class Fp32MatmulNoTf32(tt.Rule[Evidence]):
    """Float32 matrix products on CUDA cores."""

    code = "TT401"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Allow TF32 for products in float32"
    message = "`{op}` of {sizes} takes {time} in full float32 and leaves the tensor cores of {device} unused"
    why = (
        "`{kernel}` runs on CUDA cores, and none of the profile's {products} float32 products uses tensor cores. TF32 "
        "should reduce this product to about {expected}, at best to {best}. Reported if at most {max_left} of its "
        "time is expected to remain"
    )
    fix = 'Call `torch.set_float32_matmul_precision("high")` once at start-up'
    caveat = (
        "TF32 keeps 10 of the 23 fraction bits of each factor, so results change from about the third decimal digit. "
        "Keep full precision if the numbers themselves are the result."
    )

    max_left = tt.Threshold(0.8, "estimates are accurate to a fifth at best; a product limited by memory gains nothing")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.platform != "cuda":
            return "TF32 needs an NVIDIA GPU, and the profile has none."
        majors = [device.computeMajor for device in profile.metadata.devices if device.computeMajor is not None]
        if not majors:
            return "The profile does not say which GPU it was recorded on, and not every GPU has TF32."
        if max(majors) < FIRST_WITH_TF32:
            return "TF32 needs compute capability 8.0 (Ampere); the GPUs of this profile are older."
        return None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        products = profile.products("float")
        launched = profile.device_activity_of_all(rows_of(product.row for product in products))
        names = {profile.table.names[number] for number in set(profile.table.name[launched].tolist())}
        is_allowed = profile.settings.numerics.tf32_matmul or any(map(_TENSOR_CORES.search, names))
        if is_allowed or not any(map(FULL_FP32.search, names)):
            return  # TF32 is allowed, or nothing runs without it
        for product in products:
            kernels = profile.device_activity_of(product.row).tolist()
            events = tuple(row for row in kernels if FULL_FP32.search(profile.name(row)))
            if events and (match := self._match(profile, product, events, len(products))):
                yield match

    def trainer_options(self, evidence: Evidence) -> Mapping[str, str]:
        return {"transformers": "tf32=True"}

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        expected, best = (each / match.evidence.time for each in (match.evidence.expected, match.evidence.best))
        yield tt.Scale(match.events, _in_twentieths(expected), _in_twentieths(best), 1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        m, k, n = evidence.m, evidence.k, evidence.n
        batch = tt.fitting(evidence.batch, 4 * (m * k + k * n + m * n))
        a, b = (f"torch.randn({batch}, {rows}, {columns}, device=device)" for rows, columns in ((m, k), (k, n)))
        before, after = (f'torch.set_float32_matmul_precision("{each}")\na @ b' for each in ("highest", "high"))
        pair = tt.Benchmark(before, after, f"import torch\na = {a}\nb = {b}", devices=("cuda",), of_events=True)
        return pair if batch else None

    def _match(
        self, profile: tt.Profile, product: Product, events: tuple[int, ...], products: int
    ) -> tt.Match[Evidence] | None:
        device = profile.device_properties(int(profile.table.device[events[0]]))
        if device is None or (device.computeMajor or 0) < FIRST_WITH_TF32:
            return None
        card = profile.stated_model(device)
        model = card or slowest_device(device)
        rate = model.peaks["float"].matrix if model is not None else None
        if model is None or rate is None:
            return None
        compute_ns, memory_ns = product.flops / rate * 1e9, product.bytes / model.bytes_per_second * 1e9
        expected_ns = max(compute_ns / REACHED_COMPUTE, memory_ns / REACHED_MEMORY, SHORTEST_NS)
        time_ns = sum(profile.duration_ns(row) for row in events)
        if expected_ns > self.max_left * time_ns:
            return None
        kernel = FULL_FP32.search(profile.name(events[0]))
        is_off = profile.settings.numerics.tf32_matmul is False
        forward = profile.forward_of(product.row)  # the line that multiplies, not the one that calls `backward`
        return tt.Match(
            anchor=product.row if forward is None else forward,
            events=events,
            evidence=Evidence(
                op=profile.name(product.row),
                kernel=kernel[0] if kernel else "",
                device_name=device.name or "",
                batch=product.batch,
                m=product.m,
                k=product.k,
                n=product.n,
                sizes=str(product),
                products=products,
                time=tt.Nanoseconds(time_ns),
                expected=tt.Nanoseconds(expected_ns),
                best=tt.Nanoseconds(max(compute_ns, memory_ns, SHORTEST_NS)),
            ),
            # Even if TF32 is allowed, as it may be if this is unknown, cuBLAS does not use it for odd sizes.
            confidence="high" if card and (is_off or (product.m | product.k | product.n) % 4 == 0) else "medium",
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        function = "set_float32_matmul_precision"
        if any(code.callee(call).endswith(f".{function}") for call in code.calls):
            raise Unfixable(f"The file calls `{function}` already.")
        line = f'{code.module_called("torch")}.{function}("high")'
        how = "products keep 10 of the 23 fraction bits of their factors"
        return Change((code.after_imports(line),), changes_behaviour(how))


def _in_twentieths(factor: float) -> float:
    return max(round(factor * GRID), 1) / GRID
