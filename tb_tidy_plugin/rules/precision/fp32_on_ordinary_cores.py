"""Float32 products and convolutions while matrix units idle.

## What it finds
Float32 matrix products and convolutions that run on the ordinary cores of a GPU with matrix units (tensor cores), and
take a good part of the step. The rule knows their kernels by name (`volta_sgemm_…`, `…_scudnn_…`, `wgrad_alg0_engine`
with `float`, Winograd's, CUTLASS' `simt`), so it needs neither shapes nor stacks.

## Why it is slow
Matrix units multiply half precision faster than ordinary cores multiply float32: 125 instead of 15.7 TFLOP/s on a V100,
65 instead of 8.1 on a T4, and 25.4 instead of 12.7 on a GeForce RTX 3060. Half precision also halves the bytes that
must be moved.

## Example
```python
loss = loss_fn(model(x), y)
loss.backward()
optimizer.step()
```

Use instead:
```python
with torch.autocast("cuda", dtype=torch.float16):
    loss = loss_fn(model(x), y)
scaler.scale(loss).backward()  # scaler = torch.amp.GradScaler(); bfloat16 needs none
scaler.step(optimizer)
scaler.update()
```

## How the saving is estimated
The kernels are expected to take 0.4 of their time. NVIDIA's ResNet-50 trains 2.1 times as fast on V100s with mixed
precision, and runs 3.8 times as fast with TensorRT in half precision, which means 0.4 and 0.26 of the time of such
kernels. At best they take an eighth. Neither is less than the ratio of the card's peaks allows, which is a half on a
GeForce since Ampere; there 0.6 is expected, because no kernel reaches its peak. The peaks of a card that is not known
by name are those of the slowest one with its compute capability, and the confidence is medium at most. At worst nothing
is gained, if memory or the host limits the kernels.

## When it stays quiet
Less than a quarter of the step. GPUs without matrix units. AMD's and compiled kernels, whose names do not show which
units they use. Products that `fp32-matmul-no-tf32` reports: TF32 takes one line and keeps the dtype.
"""

from collections.abc import Iterator, Mapping

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.work.matrix_products import float32_kernels, half_of_single, has_matrix_units
from tb_tidy_plugin.rulekit.made import mixed_precision

FIRST_WITH_BFLOAT16 = 8  # major compute capability: Ampere
SHOWN_NAME = 60  # characters of a kernel's name
EXPECTED, BEST = 0.4, 0.125  # measured parts of float32 kernels' time: see the page
REACHED_PART = 1.2  # of the least part that the peaks allow, because kernels in half precision do not reach them


class Evidence(msgspec.Struct, frozen=True):
    """The float32 work of a profile.

    Attributes:
        time: of a step. share: that by the step.
        device_name: the GPU, empty if unknown. has_bfloat16: True if it computes in that.
        kernels_per_step: their number. kernel: the one with most time.
        expected, best: part of their time that half precision leaves, most likely and at best.
    """

    time: tt.Nanoseconds
    share: tt.Share
    device_name: str
    has_bfloat16: bool
    kernels_per_step: float
    kernel: str
    expected: tt.Share = tt.Share(EXPECTED)
    best: tt.Share = tt.Share(BEST)

    @property
    def device(self) -> str:
        return self.device_name or "this GPU"

    @property
    def kernels(self) -> str:
        """Number of them per step."""
        return f"{self.kernels_per_step:.3g}"

    @property
    def dtype(self) -> str:
        return "bfloat16" if self.has_bfloat16 else "float16"

    @property
    def scaling(self) -> str:
        """A remark on further requirements of this type."""
        return "" if self.has_bfloat16 else ", with `torch.amp.GradScaler` for training"


class Fp32OnOrdinaryCores(tt.Rule[Evidence]):
    """Float32 products and convolutions while matrix units idle."""

    code = "TT403"
    needs = frozenset({"device"})
    yields_to = ("fp32-matmul-no-tf32",)  # TF32 also moves products to the matrix units, with one line
    action = "Use mixed precision for products and convolutions"
    message = (
        "Products and convolutions in float32 take {time} of a step ({share}) on the ordinary cores of {device}, "
        "whose matrix units are idle"
    )
    why = (
        "The names of {kernels} kernels per step show float32 without matrix units; most of the time is in "
        "`{kernel}`. Reported for {min_share} of a step or more"
    )
    fix = 'Use mixed precision: `torch.autocast("cuda", dtype=torch.{dtype})`{scaling}'
    caveat = (
        "Results in half precision have 10 bits of fraction (bfloat16: 7) instead of 23. Check that training converges "
        "to the same result."
    )
    min_share = tt.Threshold(
        0.25, "mixed precision changes the whole program, which is not worth it for less of the step"
    )

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.platform != "cuda":
            return "Only kernel names of NVIDIA GPUs show this, and the profile has no NVIDIA GPU."
        return (
            None
            if has_matrix_units(profile)
            else ("The profile does not name a GPU that is known to have matrix units.")
        )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        kernels = float32_kernels(profile)
        time_ns = profile.per_step_ns(kernels)
        if len(kernels) and profile.share_of_time(time_ns) >= self.min_share:
            yield self._match(profile, kernels, time_ns)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, match.evidence.expected, match.evidence.best, 1.0)

    def trainer_options(self, evidence: Evidence) -> Mapping[str, str]:
        return mixed_precision(evidence.dtype)

    def _match(self, profile: tt.Profile, kernels: tt.Rows, time_ns: int) -> tt.Match[Evidence]:
        longest = max(kernels.tolist(), key=profile.duration_ns)
        operator = int(profile.launched_by[longest])
        forward = profile.forward_of(operator) if 0 <= operator < profile.tree.size else None
        device = profile.device_properties(int(profile.table.device[longest]))
        least = half_of_single(profile, device)
        is_known = device is not None and profile.stated_model(device) is not None
        has_bfloat16 = device is not None and (device.computeMajor or 0) >= FIRST_WITH_BFLOAT16
        return tt.Match(
            anchor=forward if forward is not None else operator if operator >= 0 else longest,
            events=tuple(kernels.tolist()),
            evidence=Evidence(
                time=tt.Nanoseconds(time_ns),
                share=tt.Share(profile.share_of_time(time_ns)),
                device_name=(device.name if device else None) or "",
                has_bfloat16=has_bfloat16,
                kernels_per_step=profile.per_step_count(kernels),
                kernel=_shown(_costliest(profile, kernels)),
                expected=tt.Share(max(EXPECTED, min(REACHED_PART * least, 1.0))),
                best=tt.Share(max(BEST, least)),
            ),
            confidence="high" if is_known else "medium",
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        if not evidence.has_bfloat16:
            raise Unfixable("float16 needs a gradient scaler around several statements.")
        statements = code.statements_on(spot.lines)
        if len(statements) != 1 or code.methods_on(spot.lines, "backward"):
            raise Unfixable("The lines do not contain exactly one statement of the forward pass.")
        torch = code.module_called("torch")
        splices = code.wrapped(statements[0], f'with {torch}.autocast("cuda", dtype={torch}.bfloat16):')
        how = "products keep 7 of the 23 fraction bits of their factors"
        return Change(tuple(splices), changes_behaviour(how), "Training converges to the same result.")


def _costliest(profile: tt.Profile, kernels: tt.Rows) -> str:
    """The kernel name with most time."""
    times: dict[str, int] = {}
    for row in kernels.tolist():
        times[profile.name(row)] = times.get(profile.name(row), 0) + profile.duration_ns(row)
    return max(times, key=lambda name: (times[name], name))


def _shown(name: str) -> str:
    """The kernel's name without its return type and arguments, shortened to fit into a sentence."""
    short = name.removeprefix("void ").partition("(")[0]
    return short if len(short) <= SHOWN_NAME else f"{short[:SHOWN_NAME]}…"
