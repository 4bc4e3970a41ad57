"""Gradients copied out of the buckets of DistributedDataParallel.

## What it finds
`DistributedDataParallel` that copies each gradient from its bucket into `.grad` after the bucket's `all_reduce`
(`copy_bucket_to_grad`).

## Why it is slow
Every parameter costs a launch and a copy on the device in each step, and all gradients are in memory twice.

## Example
```python
model = DistributedDataParallel(model, device_ids=[rank])
```

Use instead:
```python
model = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
```

## How the saving is estimated
The copies go. If they run beside other work on the device, little is gained.

## When it stays quiet
Less than 0.5 % of a step. Gradients that are views of their buckets, which need no copy.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, critical_time, per_step
from tb_tidy_plugin.profile.work.training import gradient_copies


class Evidence(msgspec.Struct, frozen=True):
    """The copies of a profile.

    Attributes:
        per_step: their number.
        time: of a step, in which the device works for them or idles. share: that by the step.
    """

    per_step: float
    time: tt.Nanoseconds
    share: tt.Share

    @property
    def copies(self) -> str:
        """Number of them per step."""
        return f"{self.per_step:.3g}"


class DdpGradientsCopied(tt.Rule[Evidence]):
    """Gradients copied out of the buckets of DistributedDataParallel."""

    code = "TT1303"
    reads_operators = True
    action = "Keep gradients in the buckets of `DistributedDataParallel`"
    message = "`DistributedDataParallel` copies gradients out of its buckets for {time} of a step ({share})"
    why = (
        "Copies of a single gradient (`copy_bucket_to_grad`) per step: {copies}. Gradients that are views of the "
        "buckets need no copy. Reported for {min_share} of a step or more"
    )
    fix = (
        "Pass `gradient_as_bucket_view=True` to `DistributedDataParallel`; this also saves the memory of one copy of "
        "all gradients"
    )
    caveat = (
        "Gradients are then views, on which `grad.detach_()` fails; older versions call it in "
        "`zero_grad(set_to_none=False)`."
    )

    min_share = tt.Threshold(0.005, "smaller shares are within the noise between steps")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        operators = gradient_copies(profile).tolist()
        if not operators:
            return
        time = critical_time(profile, rows_of(operators))
        time_ns = per_step(profile, clipped_to_steps(profile, time))
        share = profile.share_of_time(time_ns)
        if share >= self.min_share:
            yield tt.Match(
                anchor=operators[0],
                events=tuple(operators),
                evidence=Evidence(
                    per_step=profile.per_step_count(rows_of(operators)),
                    time=tt.Nanoseconds(time_ns),
                    share=tt.Share(share),
                ),
                lost=time.spans,
            )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        wrapper = code.constructor([], tt.made.distributed())
        splices = code.with_arguments(wrapper, {"gradient_as_bucket_view": "True"}, instead_of="False")
        return Change(tuple(splices), SAME_RESULTS, "No code calls `detach_()` on gradients.")
