"""Exposed communication.

## What it finds
Collectives (NCCL, RCCL, gloo) during which the device computes nothing or,
without a device, the training thread only waits. A recording of one rank cannot
clearly distinguish sending from waiting for a late rank. So the confidence is
never high, and it is low if waiting seems to be the larger part.

## Why it is slow
A collective uses the network, not the cores. If it overlaps with the backward pass, it costs next to nothing; otherwise
every byte makes the step longer.

## Example
```python
loss.backward()
for parameter in model.parameters():
    dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
```

Use instead:
```python
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
loss.backward()
```

## How the saving is estimated
The estimate assumes that each collective sends for as long as the fastest equal
one takes. The time before that counts as waiting, which overlap does not remove
and which is not a cost of this finding. The transfer could overlap with the
rest of the step, so at most as much time as the rest takes can be hidden.

## When it stays quiet
Exposed collectives of one kind that send for less than 5 % of the step;
collectives hidden behind kernels or, on the CPU, behind operators and Python's
own work. Waiting between several recorded ranks, which collective-straggler
reports.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.ranks.collectives import ExposedKind, exposed_collectives

_GRADIENTS = (
    "Let `DistributedDataParallel` send gradients in buckets while the backward pass runs (`bucket_cap_mb` sets their "
    "size), or send fewer bytes with a `bf16_compress_hook` or `no_sync()` between accumulation steps"
)
PREFETCH = (
    "Gather the next layer's parameters while this one computes (FSDP: `forward_prefetch`, `backward_prefetch`); if "
    "you gather results, reduce them on each rank first"
)
ASYNC = "Start it with `async_op=True` as soon as its input is ready, and call `wait()` where its result is first used"
_ADVICE = {"all_reduce": _GRADIENTS, "all_gather": PREFETCH, "reduce_scatter": PREFETCH}


class Evidence(msgspec.Struct, frozen=True):
    """The exposed collectives of one kind.

    Attributes:
        kind: of the collectives. per_step, bytes_per_step: their number, and the bytes that they send, if recorded.
        exposed: exposed time, per step. share: that by the step.
        on_device: True if the device was recorded; otherwise times are those of the training thread.
        total: of all of them, per step. waiting: the part of it that looks like waiting for another rank.
    """

    kind: str
    per_step: float
    bytes_per_step: tt.Bytes | None
    exposed: tt.Nanoseconds
    share: tt.Share
    on_device: bool
    total: tt.Nanoseconds
    waiting: tt.Nanoseconds

    @property
    def lane(self) -> str:
        """The device or thread that is idle meanwhile."""
        return "device" if self.on_device else "training thread"

    @property
    def state(self) -> str:
        return "computes nothing" if self.on_device else "waits"

    @property
    def count(self) -> str:
        """Number of them per step."""
        return f"{self.per_step:.3g}"

    @property
    def take(self) -> str:
        """The verb for them, in the number that agrees."""
        return "takes" if self.count == "1" else "take"

    @property
    def sent(self) -> str:
        """The bytes that they send per step."""
        return "" if self.bytes_per_step is None else f" with {self.bytes_per_step}"

    @property
    def beyond(self) -> str:
        """The rest of their time, on which one rank shows no more."""
        if not self.waiting:
            return ""
        return (
            f"; another {self.waiting} per step looks like waiting for a late rank, which the recording of one rank "
            "cannot prove"
        )

    @property
    def advice(self) -> str:
        return _ADVICE.get(self.kind, ASYNC)


class ExposedCommunication(tt.Rule[Evidence]):
    """Collectives that run in line with the step."""

    code = "TT1301"
    action = "Overlap `{kind}` with compute"
    message = "`{kind}` is exposed for {exposed} of a step ({share}): meanwhile the {lane} {state}"
    why = (
        "{count} `{kind}` per step{sent} {take} {total}. The time of the fastest of equal collectives counts as "
        "transfer{beyond}. Reported for {min_share} of a step or more"
    )
    fix = "{advice}"
    caveat = "A compressed gradient is less precise."

    min_share = tt.Threshold(
        0.05, "below this share, the step does not wait for communication; TraceLens has the same limit"
    )
    min_sent_share = tt.Threshold(0.5, "if less of the exposed time is spent on sending, confidence is low")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        return "The job has one rank." if profile.metadata.world_size == 1 else None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for found in exposed_collectives(profile):
            evidence = self._evidence(profile, found)
            sent_share = found.sending_ns / (found.sending_ns + found.waiting_ns)
            for rows, spans in found.steps:
                yield tt.Match(
                    anchor=found.issue,
                    events=tuple(rows.tolist()),
                    evidence=evidence,
                    subject=found.kind,
                    confidence="medium" if sent_share >= self.min_sent_share else "low",
                    lost=spans,
                )

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Overlap(match.events)

    def _evidence(self, profile: tt.Profile, found: ExposedKind) -> Evidence:
        return Evidence(
            kind=found.kind,
            per_step=found.per_step,
            bytes_per_step=None if found.bytes_per_step is None else tt.Bytes(found.bytes_per_step),
            exposed=tt.Nanoseconds(found.sending_ns),
            share=tt.Share(profile.share_of_step(found.sending_ns) or 0.0),
            on_device="device" in profile.recorded,
            total=tt.Nanoseconds(found.total_ns),
            waiting=tt.Nanoseconds(found.waiting_ns),
        )
