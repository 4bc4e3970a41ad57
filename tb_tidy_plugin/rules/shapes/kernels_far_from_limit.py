"""Kernels far below the device's peak rate.

## What it finds
Operators that take a good part of the step and reach less than half of their limit. The limit is the least time in
which the device can compute the operations, or move the bytes, that the shapes require.

## Why it is slow
The library chose a kernel that does not suit the shapes, the sizes leave compute units without work, or strided inputs
make the device read more bytes than it uses.

## Example
```python
out = model(x)
```

Use instead:
```python
model = torch.compile(model, mode="max-autotune")  # measures several kernels for each shape, and keeps the fastest
out = model(x)
```

## How the saving is estimated
The kernels are expected to reach half of their limit. At best they reach 70 % of it, as kernels that suit their shapes
do. At worst nothing changes, since the peak rate of a datasheet assumes boost clocks.

## When it stays quiet
Less than a tenth of the step. Calls below 20 µs, a good part of which is starting and ending a kernel. Devices with
unknown peak rates, operators without a formula, replayed graphs. Work for which another rule reports its own fix:
float32 on ordinary cores, misaligned sizes, attention or decoder pieces written out, layout conversions.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.advice import NEAR_LIMIT
from tb_tidy_plugin.ledger.kinds import kind_of_operator
from tb_tidy_plugin.ledger.limits import CallLimits
from tb_tidy_plugin.profile.events.intervals import positions_of_each
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.words.causes import Kind

TUNED = 'Measure several kernels and keep the fastest: `torch.compile(mode="max-autotune")`'
_ON_ROCM = "; on ROCm, `PYTORCH_TUNABLEOP_ENABLED=1` does so for products"
LARGER = "Multiply more in one call (a larger batch), so that the device reads the factors less often"
_FIXES = {
    Kind.CONVOLUTION: (
        "Set `torch.backends.cudnn.benchmark = True`, which measures several kernels and keeps the fastest, and keep "
        "model and input in channels_last"
    ),
    Kind.ATTENTION: (
        "Measure the other backends of `scaled_dot_product_attention` (`torch.nn.attention.sdpa_kernel`), and use the "
        "newest version of the library that the kernel comes from"
    ),
}
BY_BYTES = "Make its inputs contiguous, and fuse it with the operators around it: `torch.compile`"
SHOWN_INPUTS = 2


class Evidence(msgspec.Struct, frozen=True):
    """The slow calls of one operator.

    Attributes:
        op: the operator. sizes: the inputs of the longest call.
        time: of a step. share: that by the step. ideal: the least time that the device needs.
        reached: `ideal` by `time`. moves: True if that limit is the memory's.
        calls_per_step: their number.
        on_rocm: True if they were recorded on ROCm.
    """

    op: str
    sizes: str
    time: tt.Nanoseconds
    share: tt.Share
    ideal: tt.Nanoseconds
    reached: tt.Share
    moves: bool
    calls_per_step: float
    on_rocm: bool

    @property
    def limit(self) -> str:
        return "memory bandwidth" if self.moves else "peak rate"

    @property
    def calls(self) -> str:
        """Number of them per step."""
        return f"{self.calls_per_step:.3g}"

    @property
    def advice(self) -> str:
        kind = kind_of_operator(self.op)
        if kind in _FIXES:
            return _FIXES[kind]
        if self.moves:
            return LARGER if kind is Kind.MATRIX else BY_BYTES
        return f"{TUNED}{_ON_ROCM if self.on_rocm else ''}"


class KernelsFarFromLimit(tt.Rule[Evidence]):
    """Kernels far below the device's peak rate."""

    code = "TT502"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    reads_ledger = True
    yields_to = (
        "fp32-matmul-no-tf32", "fp32-on-ordinary-cores", "tensor-core-shape-misaligned", "unfused-attention",
        "decoder-pieces-written-out", "elementwise-op-flood", "convolution-layout-converted", "hidden-contiguous-copy",
        "dtype-ping-pong", "optimizer-single-tensor", "product-slower-than-sibling",
        "small-batch-product-below-bandwidth",
    )  # fmt: skip
    action = "Speed up the kernels of `{op}`"
    message = "`{op}` takes {time} of a step ({share}) and reaches {reached} of the device's {limit}"
    why = (
        "For the shapes of its inputs ({sizes} in the longest call), the device needs at least {ideal} of a step; "
        "calls per step: {calls}. Reported for {min_share} of a step or more, below {max_reached} of the limit, in "
        "calls of {min_call_ns} or more"
    )
    fix = "{advice}"
    caveat = "Another kernel may add in a different order, so results may differ in their last bits."

    min_share = tt.Threshold(
        0.1, "trying other kernels takes time, and the limit comes from a datasheet; less is not worth it"
    )
    max_reached = tt.Threshold(
        0.5, "of the limit; kernels that suit their shapes reach 50 to 80 % of a datasheet's rate"
    )
    min_call_ns = tt.Threshold(20_000, "starting and ending a kernel takes a few µs, a good part of a shorter call")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        return "The peak rates of this device are not known." if _roofline(profile) is None else None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        roofline = _roofline(profile)
        if roofline is None:
            return
        work, calls = self._slow_work(profile, roofline)
        name = profile.plain_number(profile.nested.rows[calls])
        for at in positions_of_each(name):
            time_ns = profile.per_step_ns(work[at])
            if profile.share_of_time(time_ns) >= self.min_share:
                yield self._match(profile, roofline, work[at], distinct(calls[at]), time_ns)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        reached = match.evidence.reached
        yield tt.Scale(match.events, reached / self.max_reached, reached / max(NEAR_LIMIT, self.max_reached), 1.0)

    def _slow_work(self, profile: tt.Profile, roofline: CallLimits) -> tuple[tt.Rows, tt.Rows]:
        """Kernels of calls that are far from their limit, and the call of each."""
        work = profile.operators.work
        call = roofline.call[work]
        work, call = work[call != ABSENT], call[call != ABSENT]
        is_kernel = profile.table.category[work] == tt.Category.KERNEL
        is_slow = roofline.time_ns[call] >= self.min_call_ns
        is_slow &= roofline.ideal_ns[call] < self.max_reached * roofline.time_ns[call]
        is_slow &= ~among(call, call[~is_kernel])  # copies from and to the host have other limits
        return work[is_slow], call[is_slow]

    def _match(
        self, profile: tt.Profile, roofline: CallLimits, work: tt.Rows, calls: tt.Rows, time_ns: int
    ) -> tt.Match[Evidence]:  # fmt: skip
        longest = int(profile.nested.rows[calls[np.argmax(roofline.time_ns[calls])]])
        forward = profile.forward_of(longest)
        reached = float(roofline.ideal_ns[calls].sum() / roofline.time_ns[calls].sum())
        return tt.Match(
            anchor=longest if forward is None else forward,
            events=tuple(work.tolist()),
            evidence=Evidence(
                op=profile.name(longest),
                sizes=_sizes(profile, longest),
                time=tt.Nanoseconds(time_ns),
                share=tt.Share(profile.share_of_time(time_ns)),
                ideal=tt.Nanoseconds(round(reached * time_ns)),
                reached=tt.Share(reached),
                moves=bool(2 * roofline.ideal_ns[calls[roofline.moves[calls]]].sum() > roofline.ideal_ns[calls].sum()),
                calls_per_step=profile.per_step_count(profile.nested.rows[calls]),
                on_rocm=profile.platform == "rocm",
            ),
            subject=profile.name(longest),
            confidence="medium",  # the limit is a datasheet's
        )


def _roofline(profile: tt.Profile) -> CallLimits | None:
    return account_of(profile).limits.roofline


def _sizes(profile: tt.Profile, row: int) -> str:
    inputs = profile.inputs(row)
    shapes = [inputs.shape(position) for position in range(len(inputs.dims))]
    return " and ".join([str(tt.Sizes(shape)) for shape in shapes if shape][:SHOWN_INPUTS])
