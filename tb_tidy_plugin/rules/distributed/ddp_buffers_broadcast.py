"""Buffers broadcast before each forward pass of DistributedDataParallel.

## What it finds
`DistributedDataParallel` that sends the model's buffers, such as running statistics of batch normalisation, from one
rank to all others before each forward pass.

## Why it is slow
Before the model's first operator, each rank packs the buffers, waits for the broadcast and copies every buffer back,
with one launch each. All ranks start the pass together, so each step waits for the slowest.

## Example
```python
model = DistributedDataParallel(model, device_ids=[rank])
```

Use instead:
```python
model = DistributedDataParallel(model, device_ids=[rank], broadcast_buffers=False)
```

## How the saving is estimated
The broadcasts and the copies around them go.

## When it stays quiet
Less than 0.5 % of a step. Models without buffers, and `broadcast_buffers=False`. Broadcasts outside of the forward pass
of `DistributedDataParallel` and those of the model itself, which send something else.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, critical_time, per_step
from tb_tidy_plugin.profile.work.training import BROADCAST, COPY, buffer_broadcasts


class Evidence(msgspec.Struct, frozen=True):
    """The broadcasts of a profile.

    Attributes:
        buffers, broadcasts: their numbers per forward pass.
        time: of a step, in which the device works for them or idles. share: that by the step.
    """

    buffers: int
    broadcasts: int
    time: tt.Nanoseconds
    share: tt.Share


class DdpBuffersBroadcast(tt.Rule[Evidence]):
    """Buffers broadcast before each forward pass of DistributedDataParallel."""

    code = "TT1304"
    reads_operators = True
    action = "Stop sending the buffers of the model in each step"
    message = "`DistributedDataParallel` sends the model's buffers to all ranks for {time} of a step ({share})"
    why = (
        "Before a forward pass it sends {buffers} buffers; collectives per pass: {broadcasts}. Reported for "
        "{min_share} of a step or more"
    )
    fix = "Pass `broadcast_buffers=False` to `DistributedDataParallel`"
    caveat = (
        "Each rank then keeps its own buffers: running statistics of batch normalisation differ between ranks, and a "
        "checkpoint contains those of the rank that writes it."
    )

    min_share = tt.Threshold(0.005, "smaller shares are within the noise between steps")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        passes = buffer_broadcasts(profile)
        operators = [row for each in passes for row in each]
        if not operators:
            return
        time = critical_time(profile, rows_of(operators))
        time_ns = per_step(profile, clipped_to_steps(profile, time))
        share = profile.share_of_time(time_ns)
        names = [profile.name(row) for row in max(passes, key=len)]
        if share >= self.min_share:
            yield tt.Match(
                anchor=operators[0],
                events=tuple(operators),
                evidence=Evidence(
                    buffers=names.count(COPY),
                    broadcasts=names.count(BROADCAST),
                    time=tt.Nanoseconds(time_ns),
                    share=tt.Share(share),
                ),
                lost=time.spans,
            )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        wrapper = code.constructor([], tt.made.distributed("ddp_broadcast_buffers=False"))
        splices = code.with_arguments(wrapper, {"broadcast_buffers": "False"}, instead_of="True")
        how = "each rank keeps its own buffers, such as running statistics"
        return Change(tuple(splices), changes_behaviour(how), "Buffers need not be the same on all ranks.")
