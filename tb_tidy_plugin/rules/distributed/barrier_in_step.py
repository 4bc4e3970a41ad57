"""Barrier in each step.

## What it finds
`torch.distributed.barrier()` or `monitored_barrier()` in at least half of the recorded steps, by its frame.

## Why it is slow
All ranks wait for the slowest one, and on a GPU the host also waits until the device has finished all launched work.
The collectives of a step already make ranks wait where they exchange data; a barrier adds a wait without an exchange.

## Example
```python
for batch in loader:
    loss = train_step(batch)
    torch.distributed.barrier()
```

Use instead:
```python
for batch in loader:
    loss = train_step(batch)
```

## How the saving is estimated
The barrier goes. The wait for the slowest rank moves to the next collective, so half of the time is expected to be
saved, at least nothing and at most all of it.

## When it stays quiet
Barriers in fewer than half of the steps, such as those around a checkpoint, and recordings of one step. Barriers that
take less than 50 µs per step. Recordings without marked steps.
"""

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot


class BarrierInStep(tt.LibraryCallRule):
    """Barrier in each step."""

    code = "TT1350"
    frames = r"^torch/distributed/distributed_c10d\.py\(\d+\): (?:monitored_)?barrier$"
    action = "Remove `barrier()` from the step"
    message = "All ranks wait for one another in `barrier()` {times} per step, for {time} on this rank"
    why = "At least half of the steps have a barrier. Reported for {min_wait_ns} per step or more"
    fix = "Remove `barrier()` from the step: collectives already wait for the data that they exchange"
    caveat = "A rank that reads a file written by another rank still needs a barrier."
    left = (0.5, 0.0, 1.0)

    min_wait_ns = tt.Threshold(50_000, "per step; a barrier takes 20 to 50 µs even if all ranks arrive together")

    def is_worth(self, calls: tt.LibraryCalls) -> bool:
        return calls.time >= self.min_wait_ns

    def fixer(self, code: tt.Code, spot: Spot, evidence: tt.LibraryCalls) -> Change:
        splice = code.without_statement(spot.lines, "barrier", "monitored_barrier")
        return Change(
            (splice,),
            SAME_RESULTS,
            "No rank reads a file that another one writes, and no time is measured with the barrier.",
        )
