"""Recording of start-up, compilation or capture.

## What it finds
A recording that mostly contains one-time work: first launches, allocations and single long calls of the runtime,
compilation, or the capture of a graph.

## Why it is slow
The job itself may be fast, but this recording cannot show it. One-time work takes most of the time here and hides the
parts that take most of a steady step.

## Example
```python
with profile(activities=activities) as recording:
    train_step(batch)
```

Use instead:
```python
with profile(activities=activities, schedule=schedule(wait=5, warmup=2, active=5)) as recording:
    for _ in range(10):
        train_step(batch)
        recording.step()
```

## How the saving is estimated
The one-time work goes: recorded steps should become shorter by this time. The job itself does not become faster.

## When it stays quiet
Steady recordings, in which one-time work takes at most 30 %, or repeats in most of three or more steps.
"""

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.model import RecordingKind
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.host.critical import per_step
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.words.causes import Cause

_WARM_UP = "Record steady steps: run some steps first, or use `schedule(wait=5, warmup=2, active=5)`"


class _Kind(msgspec.Struct, frozen=True):
    """Content of a recording without steady steps.

    Attributes:
        causes: of the ledger. what: the same in words. fix: what to record instead.
    """

    causes: tuple[Cause, ...]
    what: str
    fix: str


_KINDS: Mapping[RecordingKind, _Kind] = {
    "start-up": _Kind(
        tuple(each for each in Cause if each.one_time == "start-up"),
        "start-up: first launches, allocations and single long calls of the runtime",
        _WARM_UP,
    ),
    "compilation": _Kind(
        tuple(each for each in Cause if each.one_time == "compilation"),
        "compilation",
        f"{_WARM_UP}, so that everything is compiled before",
    ),
    "capture": _Kind(
        (Cause.GRAPH_CAPTURE,),
        "the capture of a graph, in which the device runs nothing",
        "Record replays: capture the graph before the recording begins",
    ),
}


class Evidence(msgspec.Struct, frozen=True):
    """The largest part of a recording.

    Attributes:
        kind: of recording. time: of a step. share: that by the step.
    """

    kind: RecordingKind
    time: tt.Nanoseconds
    share: tt.Share

    @property
    def what(self) -> str:
        """The content of the recording, in words."""
        return _KINDS[self.kind].what

    @property
    def fix(self) -> str:
        """What to record instead."""
        return _KINDS[self.kind].fix


class RecordingNotSteady(tt.Rule[Evidence]):
    """Recording of start-up, compilation or capture."""

    code = "TT1402"
    reads_ledger = True
    action = "Record steady steps instead"
    message = "{share} of this recording is {what}"
    why = "A job does this only once, but here it takes {time} of a step. This recording does not show steady steps"
    fix = "{fix}"
    caveat = "Only the recording changes: the job itself does not become faster."

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        account = account_of(profile)
        kind = _KINDS.get(account.ledger.recording)
        if kind is None:
            return
        segments = account.segments
        here = among(segments.cause, [cause.number for cause in kind.causes])
        called = here & (account.calls != ABSENT)
        if not called.any():
            return
        time, window = Intervals.union(segments.starts[here], segments.ends[here]), account.ledger.window
        length_ns, calls = (segments.ends - segments.starts)[called], account.calls[called]
        yield tt.Match(
            anchor=int(calls[np.argmax(length_ns)]),
            events=tuple(distinct(calls).tolist()),
            evidence=Evidence(
                kind=account.ledger.recording,
                time=tt.Nanoseconds(per_step(profile, time)),
                share=tt.Share(time.total_ns / (window.end_ns - window.start_ns)),
            ),
            lost=time.spans,
        )
