"""Device idle while the host computes.

## What it finds
Python code or CPU operators that run in the step while the device has nothing to do and no thread launches anything,
for example to resize, normalise or decode images, to walk lists, or to post-process results.

## Why it is slow
The device waits for all of it. A CPU needs milliseconds for work that a device does in microseconds, or that another
process could have prepared during the previous step.

## Example
```python
for images in batches:
    pixels = np.stack([(image / 255 - mean) / std for image in images])
    logits = model(torch.from_numpy(pixels).to("cuda"))
```

Use instead:
```python
for images in batches:
    pixels = torch.from_numpy(np.stack(images)).to("cuda", non_blocking=True)
    logits = model((pixels / 255 - mean) / std)
```

## How the saving is estimated
The work is expected to run beside the rest of the step, as in a `DataLoader` with enough workers. Handing over takes 1
ms. At best all of the idle time goes; if the work must stay in the step, nothing goes.

## When it stays quiet
Less than 5 % or 1 ms of a step. Start-up, compilation, capture, and warm-up steps. Time in a `DataLoader`, in waits for
the device, in communication, garbage collection or single long calls of the runtime. Operators that launch device work,
since the library decides what they do before the launch. Pauses below 500 µs, and work scattered over many functions:
both belong to the host's pace.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.ledger.host_work import HostWait, waits_for_host_work
from tb_tidy_plugin.profile.host.loading import HANDING_OVER_NS, workers_hiding

_NAMED = 3  # parts in the message
SPARSE_NS, DENSE_NS = 20_000, 1_000
"""Recording a Python function takes about a hundred ns. If events are farther apart than the first, that is little of
the time; if they are closer than the second, it is much of it.
"""


class Evidence(msgspec.Struct, frozen=True):
    """Host work that the device waits for.

    Attributes:
        time: of a step. share: that by the step.
        places: the host's activities in most of it, and the time of each in a step.
        apart: distance of events on the host. stretch: factor by which recording lengthens the time.
        left: the part of the work that stays in line. at_once: number of workers that do the rest beside it.
    """

    time: tt.Nanoseconds
    share: tt.Share
    places: tuple[tuple[str, tt.Nanoseconds], ...]
    apart: tt.Nanoseconds
    stretch: str
    left: tt.Share
    at_once: int

    @property
    def where(self) -> str:
        return ", ".join(f"{place} for {time}" for place, time in self.places)


class HostWorkHoldsDevice(tt.Rule[Evidence]):
    """Device idle while the host computes."""

    code = "TT902"
    needs = frozenset({"device"})
    reads_ledger = True
    # Work that creates tensors on the host is fixed where it creates them, and a loop over pieces of one goes as a
    # whole.
    yields_to = ("tensor-created-on-cpu-then-moved", "tensor-from-python-data", "python-loop-tensor-indexing")
    action = "Move host work out of the step"
    message = "The device waits for host work for {time} of a step ({share}): {where}"
    why = (
        "Meanwhile no thread launches anything for more than 500 µs, and no loader, wait, compilation or garbage "
        "collection explains it. Host events are {apart} apart, so recording stretches this time {stretch}. Reported "
        "for {min_share} and {min_ns} of a step or more, where three functions take {min_named} of it"
    )
    fix = (
        "Move the work to worker processes (`DataLoader` with `num_workers`), do it on the device, or do it once "
        "before the loop"
    )
    caveat = "Libraries for the host and for the device may round differently."

    min_share = tt.Threshold(
        0.05, "below this share, the step does not wait for the host's work; the same limit as for loading"
    )
    min_named = tt.Threshold(
        0.5, "of the time is in three functions; work scattered over many functions is launch overhead"
    )
    min_ns = tt.Threshold(1_000_000, "handing work over to another process itself costs up to 1 ms per step")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for wait in waits_for_host_work(profile):
            named_ns = sum(time_ns for _, time_ns in wait.parts[:_NAMED])
            is_long = wait.share >= self.min_share and wait.per_step_ns >= self.min_ns
            if is_long and named_ns >= self.min_named * wait.time.total_ns:
                yield self._match(profile, wait)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Overlap(match.events, match.evidence.at_once, match.evidence.left)

    def _match(self, profile: tt.Profile, wait: HostWait) -> tt.Match[Evidence]:
        share, (stretch, confidence) = wait.share, _stretch(wait.recorded_every_ns)
        return tt.Match(
            anchor=wait.anchor,
            events=wait.events,
            evidence=Evidence(
                time=tt.Nanoseconds(wait.per_step_ns),
                share=tt.Share(share),
                places=_places(profile, wait),
                apart=tt.Nanoseconds(wait.recorded_every_ns),
                stretch=stretch,
                left=tt.Share(min(HANDING_OVER_NS / wait.per_step_ns, 1.0)),
                at_once=workers_hiding(share),
            ),
            confidence=confidence,
            lost=tuple(zip(wait.time.starts.tolist(), wait.time.ends.tolist(), strict=True)),
        )


def _stretch(apart_ns: float) -> tuple[str, tt.Confidence]:
    if apart_ns >= SPARSE_NS:
        return "hardly", "high"
    return ("somewhat", "medium") if apart_ns >= DENSE_NS else ("a lot", "low")


def _places(profile: tt.Profile, wait: HostWait) -> tuple[tuple[str, tt.Nanoseconds], ...]:
    of_a_step = wait.per_step_ns / wait.time.total_ns
    parts = wait.parts[:_NAMED]
    return tuple((_named(profile.name(row)), tt.Nanoseconds(round(time_ns * of_a_step))) for row, time_ns in parts)


def _named(name: str) -> str:
    frame = tt.parse_frame(name)
    return f"`{frame.function}` ({frame.file}:{frame.line})" if frame else f"`{name}`"
