"""Communication that nothing hides.

## What it finds
Collectives (NCCL, RCCL, gloo) during which the device computes nothing, or
during which the training thread only waits where there is no device. A
recording of one rank cannot tell sending from waiting for a rank that comes
late, so the confidence is never high; it is low where equal collectives take
very different times, which hints at waiting.

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
What is exposed could run beside the rest of the step, so no more of it can
hide than the rest is long. Where equal collectives differ much, each is
taken to need as long as the fastest of them; the rest of their time is
waiting, which no overlap takes away.

## When it stays quiet
Exposed collectives of one kind that take less than 5 % of the step;
collectives behind kernels or, on the CPU, behind operators and Python's own
work. What is recorded of several ranks is looked at by collective-straggler.
"""

from collections.abc import Iterator, Mapping

from tb_tidy_plugin.rulekit import (
    Bytes,
    Edit,
    ExposedKind,
    Fact,
    Match,
    Nanoseconds,
    Overlap,
    Profile,
    Rule,
    Scale,
    Share,
    Threshold,
    exposed_collectives,
)

GRADIENTS = (
    "Let `DistributedDataParallel` send gradients in buckets while the backward pass runs (`bucket_cap_mb` sets their "
    "size), or send fewer bytes: a `bf16_compress_hook`, `no_sync()` between accumulation steps"
)
PREFETCH = "Gather the next layer's parameters while this one computes (FSDP: `forward_prefetch`, `backward_prefetch`)"
ASYNC = "Start it with `async_op=True` as soon as its input is ready, and `wait()` where its result is first used"
ADVICE = {"all_reduce": GRADIENTS, "all_gather": PREFETCH, "reduce_scatter": PREFETCH}


class ExposedCommunication(Rule):
    """Collectives that run in line with the step."""

    code = "TT1301"
    message = "Nothing runs beside `{kind}` for {exposed} of a step ({share}): the {lane} {state}"
    why = (
        "{count} `{kind}` per step{sent} take {total}. With equal ones all as fast as the fastest of them it would be "
        "{wire} of that, so {hint}. Reported from {least} of a step on"
    )
    fix = "{advice}"
    caveat = "A compressed gradient is less precise."

    min_share = Threshold(0.05, "below it, communication is not what the step waits for; TraceLens has the same limit")
    min_wire_share = Threshold(
        0.5, "where equal collectives, at their fastest, need less than this part of their time, most of it is waiting"
    )

    def not_applicable(self, profile: Profile) -> str | None:
        return "The job has one rank." if profile.metadata.world_size == 1 else None

    def detect(self, profile: Profile) -> Iterator[Match]:
        for found in exposed_collectives(profile):
            facts = self._facts(profile, found)
            for rows, spans in found.steps:
                yield Match(
                    anchor=found.issue,
                    events=tuple(rows.tolist()),
                    facts=facts,
                    subject=found.kind,
                    confidence="low" if self._waits(found) else "medium",
                    lost=spans,
                )

    def remedy(self, profile: Profile, match: Match) -> Iterator[Edit]:
        """Work beside the rest of the step; of what is mostly waiting only the part that is sent can hide."""
        found = next(each for each in exposed_collectives(profile) if each.kind == match.subject)
        if self._waits(found):
            rest_ns = max((profile.steps.median_ns or 0) - found.exposed_ns, 0)
            hidden = min(found.wire_share, rest_ns / found.exposed_ns)
            yield Scale(match.events, factor=1 - hidden, low=0.0, high=1.0)
        else:
            yield Overlap(match.events)

    def _waits(self, found: ExposedKind) -> bool:
        return found.wire_share < self.min_wire_share

    def _facts(self, profile: Profile, found: ExposedKind) -> Mapping[str, Fact]:
        on_device = "device" in profile.recorded
        hint = (
            "it may mostly wait for a rank that comes late" if self._waits(found) else "it seems to send, not to wait"
        )
        return {
            "kind": found.kind,
            "exposed": Nanoseconds(found.exposed_ns),
            "share": Share(profile.share_of_step(found.exposed_ns) or 0.0),
            "lane": "device" if on_device else "training thread",
            "state": "computes nothing" if on_device else "waits",
            "count": f"{found.per_step:.3g}",
            "sent": "" if found.bytes_per_step is None else f" with {Bytes(found.bytes_per_step)}",
            "total": Nanoseconds(found.total_ns),
            "wire": Share(found.wire_share),
            "hint": f"{hint}; a recording of one rank cannot tell for sure",
            "least": Share(self.min_share),
            "advice": ADVICE.get(found.kind, ASYNC),
        }
