"""Default device intercepts each call.

## What it finds
Steps that run under `torch.set_default_device` or `with torch.device(...)`, by the frames
`torch/utils/_device.py: __torch_function__` around each function of `torch` that the step calls.

## Why it is slow
The mode runs Python code around all calls, even those that create no tensor, which takes about 2 µs each. A step of a
thousand small operators becomes a third longer.

## Example
```python
torch.set_default_device("cuda")
model = Model()
train(model)
```

Use instead:
```python
with torch.device("cuda"):
    model = Model()
train(model)  # tensors that the step makes get device=...
```

## How the saving is estimated
The estimate is the time of the frames without the calls inside them. Recording makes frames longer, so half of that
time is expected to go, at best all of it, at worst nothing.

## When it stays quiet
Fewer than 100 intercepted calls per step. A mode that is on only while the model is created. Recordings without marked
steps.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of


class Evidence(msgspec.Struct, frozen=True):
    """The calls that the mode intercepts.

    Attributes:
        calls: per step. own: the time of their frames per step, without what runs inside.
    """

    calls: int
    own: tt.Nanoseconds


class DeviceModeInterceptsCalls(tt.CallRule[Evidence]):
    """Default device intercepts each call."""

    code = "TT1452"
    frames = r"^torch/utils/_device\.py\(\d+\): __torch_function__$"
    in_most_steps = False
    action = "Set the default device only while the model is created"
    message = "A default device intercepts {calls} calls per step, which takes {own}"
    why = (
        "`torch.set_default_device` or `with torch.device(...)` runs `__torch_function__` around each call. Reported "
        "for {min_calls} calls per step or more"
    )
    fix = "Set the default device only while the model is created, and pass `device=` where a step creates a tensor"
    left = (0.5, 0.0, 1.0)  # of the frames' own time

    min_calls = tt.Threshold(100, "per step; fewer take about 0.2 ms")

    def matches(self, profile: tt.Profile, rows: tt.Rows) -> Iterator[tt.Match[Evidence]]:
        calls = profile.per_step_count(rows)
        if calls < self.min_calls:
            return
        inner = profile.covered(rows_of(child for row in rows.tolist() for child in profile.children(row)))
        lost = profile.covered(rows).minus(inner)
        evidence = Evidence(
            calls=round(calls),
            own=tt.Nanoseconds(lost.total_ns // len(profile.steps.items)),
        )
        spans = tuple(zip(lost.starts.tolist(), lost.ends.tolist(), strict=True))
        yield tt.Match(int(rows[0]), tuple(rows.tolist()), evidence, lost=spans)
