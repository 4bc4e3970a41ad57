"""Cached device memory freed in each step.

## What it finds
`torch.cuda.empty_cache()` in at least half of the recorded steps, by its frame.

## Why it is slow
The call waits for the device and frees each cached block with `cudaFree`. The next operators then allocate the same
memory again: each `cudaMalloc` takes 0.1 to 1 ms and blocks the host.

## Example
```python
for batch in loader:
    train_step(batch)
    torch.cuda.empty_cache()
```

Use instead:
```python
for batch in loader:
    train_step(batch)
```

## How the saving is estimated
The calls go, and with them the allocations of the same steps (`cudaMalloc`, `hipMalloc`).

## When it stays quiet
Calls in fewer than half of the steps, such as between training and evaluation. Recordings of one step, or without
marked steps.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot

_ALLOCATES = r"^(?:cuda|hip)Malloc(?:Async)?$"


class Evidence(msgspec.Struct, frozen=True):
    """The calls of a profile.

    Attributes:
        count: their number. time: per step.
        allocations: number of driver allocations per step. allocating: their time per step.
    """

    count: int
    time: tt.Nanoseconds
    allocations: float
    allocating: tt.Nanoseconds

    @property
    def again(self) -> str:
        """A sentence on the cost of the allocations."""
        return f"; `cudaMalloc` then takes {self.allocating} per step" if self.allocations else ""


class CacheEmptiedInStep(tt.CallRule[Evidence]):
    """Cached device memory freed in each step."""

    code = "TT1250"
    frames = r"^torch/(?:cuda|xpu|mps)/(?:memory|__init__)\.py\(\d+\): empty_cache$"
    action = "Remove `empty_cache()` from the step"
    message = "`empty_cache()` runs in the steps and takes {time} per step{again}"
    why = "The profile contains {count} calls. Reported if half of the steps have one"
    fix = (
        "Remove `empty_cache()` from the step. To reduce fragmentation, set "
        "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
    )
    caveat = "Other processes on the device have less memory."

    def matches(self, profile: tt.Profile, rows: tt.Rows) -> Iterator[tt.Match[Evidence]]:
        allocations = _allocations(profile)
        evidence = Evidence(
            count=len(rows),
            time=tt.Nanoseconds(profile.per_step_ns(rows)),
            allocations=profile.per_step_count(allocations),
            allocating=tt.Nanoseconds(profile.per_step_ns(allocations)),
        )
        steps = profile.step_of(allocations)
        seen: set[int] = set()
        for row, step in zip(rows.tolist(), profile.step_of(rows).tolist(), strict=True):
            its = allocations[steps == step] if step not in seen else allocations[:0]
            seen.add(step)
            yield tt.Match(row, (row, *its.tolist()), evidence)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        splice = code.without_statement(spot.lines, "empty_cache")
        return Change((splice,), SAME_RESULTS, "No other process needs the device's memory.")


def _allocations(profile: tt.Profile) -> tt.Rows:
    rows = profile.matching(_ALLOCATES, tt.Category.RUNTIME)
    found: tt.Rows = rows[np.asarray(profile.step_of(rows)) >= 0]
    return found
