"""Communication that nothing hides.

## What it finds
Collectives (NCCL, RCCL, gloo) during which the device computes nothing, or
during which the training thread only waits where there is no device. A
recording of one rank cannot tell for sure sending from waiting for a rank
that comes late, so the confidence is never high, and low where waiting seems
to be the larger part.

## Why it is slow
A collective uses the network, not the cores. Run beside the backward pass it
costs next to nothing; run in line with it, every byte makes the step longer.

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
Each collective is taken to send for as long as the fastest equal one takes.
The time before counts as waiting, which no overlap takes away and which is
no cost of this finding. What is sent could run beside the rest of the step,
so it can hide for as long as the rest takes at most.

## When it stays quiet
Exposed collectives of one kind that send for less than 5 % of the step;
collectives behind kernels or, on the CPU, behind operators and Python's own
work. What is recorded of several ranks is looked at by collective-straggler.
"""

from collections.abc import Iterator

import msgspec

from tb_tidy_plugin.profile.collectives import ExposedKind, exposed_collectives
from tb_tidy_plugin.rulekit import Bytes, Edit, Match, Nanoseconds, Overlap, Profile, Rule, Share, Threshold

_GRADIENTS = (
    "Let `DistributedDataParallel` send gradients in buckets while the backward pass runs (`bucket_cap_mb` sets their "
    "size), or send fewer bytes: a `bf16_compress_hook`, `no_sync()` between accumulation steps"
)
PREFETCH = (
    "Gather the next layer's parameters while this one computes (FSDP: `forward_prefetch`, `backward_prefetch`); where "
    "results are gathered, reduce them on each rank first"
)
ASYNC = "Start it with `async_op=True` as soon as its input is ready, and `wait()` where its result is first used"
_ADVICE = {"all_reduce": _GRADIENTS, "all_gather": PREFETCH, "reduce_scatter": PREFETCH}


class Evidence(msgspec.Struct, frozen=True):
    """The collectives of one kind that nothing runs beside.

    Attributes:
        kind: of the collectives. per_step, bytes_per_step: how many, and what they send, where that was recorded.
        exposed: what nothing runs beside, per step. share: that by the step.
        on_device: whether the device was recorded, which else is the training thread.
        total: what they take in all, per step. waiting: what of it looks like waiting for another rank.
    """

    kind: str
    per_step: float
    bytes_per_step: Bytes | None
    exposed: Nanoseconds
    share: Share
    on_device: bool
    total: Nanoseconds
    waiting: Nanoseconds

    @property
    def lane(self) -> str:
        """Who does nothing meanwhile."""
        return "device" if self.on_device else "training thread"

    @property
    def state(self) -> str:
        """What that is."""
        return "computes nothing" if self.on_device else "waits"

    @property
    def count(self) -> str:
        """How many there are per step."""
        return f"{self.per_step:.3g}"

    @property
    def take(self) -> str:
        """What they do, in the number that fits."""
        return "takes" if self.count == "1" else "take"

    @property
    def sent(self) -> str:
        """What they send per step."""
        return "" if self.bytes_per_step is None else f" with {self.bytes_per_step}"

    @property
    def beyond(self) -> str:
        """What they take besides, of which one rank cannot tell more."""
        if not self.waiting:
            return ""
        return (
            f"; another {self.waiting} per step look like waiting for a late rank, which the recording of one rank "
            "cannot prove"
        )

    @property
    def advice(self) -> str:
        """What helps against this kind."""
        return _ADVICE.get(self.kind, ASYNC)


class ExposedCommunication(Rule[Evidence]):
    """Collectives that run in line with the step."""

    code = "TT1301"
    action = "Overlap `{kind}` with compute"
    message = "`{kind}` is exposed for {exposed} of a step ({share}): the {lane} {state} meanwhile"
    why = (
        "{count} `{kind}` per step{sent} {take} {total}. Of equal collectives, the time of the fastest counts as "
        "transfer{beyond}. Reported for {min_share} of a step or more"
    )
    fix = "{advice}"
    caveat = "A compressed gradient is less precise."

    min_share = Threshold(0.05, "below it, communication is not what the step waits for; TraceLens has the same limit")
    min_sent_share = Threshold(0.5, "where less of the exposed time is spent on sending, confidence is low")

    def not_applicable(self, profile: Profile) -> str | None:
        return "The job has one rank." if profile.metadata.world_size == 1 else None

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        for found in exposed_collectives(profile):
            evidence = self._evidence(profile, found)
            sent_share = found.sending_ns / (found.sending_ns + found.waiting_ns)
            for rows, spans in found.steps:
                yield Match(
                    anchor=found.issue,
                    events=tuple(rows.tolist()),
                    evidence=evidence,
                    subject=found.kind,
                    confidence="medium" if sent_share >= self.min_sent_share else "low",
                    lost=spans,
                )

    def remedy(self, profile: Profile, match: Match[Evidence]) -> Iterator[Edit]:
        yield Overlap(match.events)

    def _evidence(self, profile: Profile, found: ExposedKind) -> Evidence:
        return Evidence(
            kind=found.kind,
            per_step=found.per_step,
            bytes_per_step=None if found.bytes_per_step is None else Bytes(found.bytes_per_step),
            exposed=Nanoseconds(found.sending_ns),
            share=Share(profile.share_of_step(found.sending_ns) or 0.0),
            on_device="device" in profile.recorded,
            total=Nanoseconds(found.total_ns),
            waiting=Nanoseconds(found.waiting_ns),
        )
