"""Host waits for the whole device in each step.

## What it finds
`torch.cuda.synchronize()` in at least half of the recorded steps, by its frame.

## Why it is slow
The host launches nothing until the device has finished all launched work. The device then idles until the host has
caught up.

## Example
```python
start = time.perf_counter()
loss = train_step(batch)
torch.cuda.synchronize()
elapsed = time.perf_counter() - start
```

Use instead:
```python
start.record()  # torch.cuda.Event(enable_timing=True)
loss = train_step(batch)
end.record()
times.append((start, end))  # read with elapsed_time() when the loop is done
```

## How the saving is estimated
The host no longer waits there; the replay of the step shows how much of the device's idle time goes.

## When it stays quiet
Calls in fewer than half of the steps. Recordings of one step. Calls of PyTorch's profiler. Waits below 50 µs per step,
for which the device was already done. Recordings without marked steps.
"""

from collections.abc import Iterator

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of

OF_PROFILER = "torch/profiler/"


class DeviceSynchronizedInStep(tt.LibraryCallRule):
    """Host waits for the whole device in each step."""

    code = "TT851"
    needs = frozenset({"stacks", "device"})
    frames = r"^torch/(?:cuda/__init__|xpu/__init__|accelerator/__init__|cuda/streams)\.py\(\d+\): synchronize$"
    action = "Remove `synchronize()` from the step"
    message = "`synchronize()` makes the host wait for the device {times} per step, for {time}"
    why = "At least half of the steps have such a call. Reported for {min_wait_ns} per step or more"
    fix = "Remove `synchronize()` from the step, and measure times with `torch.cuda.Event`"

    min_wait_ns = tt.Threshold(50_000, "per step; a shorter wait leaves the device idle only for a few launches")

    def chosen(self, profile: tt.Profile, rows: tt.Rows) -> tt.Rows:
        return rows_of(row for row in rows.tolist() if not profile.calls.caller_name(row).startswith(OF_PROFILER))

    def is_worth(self, calls: tt.LibraryCalls) -> bool:
        return calls.time >= self.min_wait_ns

    def remedy(self, profile: tt.Profile, match: tt.Match[tt.LibraryCalls]) -> Iterator[tt.Edit]:
        yield tt.Unblock(match.anchor)

    def fixer(self, code: tt.Code, spot: Spot, evidence: tt.LibraryCalls) -> Change:
        splice = code.without_statement(spot.lines, "synchronize")
        return Change((splice,), SAME_RESULTS, "No time is measured with it, and no other library waits for it.")
