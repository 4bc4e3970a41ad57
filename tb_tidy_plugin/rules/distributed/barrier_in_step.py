"""Barrier in each step.

## What it finds
`torch.distributed.barrier()` or `monitored_barrier()` in at least half of the recorded steps, by its frame.

## Why it is slow
All ranks wait for the slowest one, and on a GPU the host also waits until the device has done what was launched. The
collectives of a step make ranks wait for one another where they exchange something; a barrier adds a wait without one.

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
The barrier goes. The wait for the slowest rank moves to the next collective, so that half of the time is expected to be
saved, at least nothing and at most all of it.

## When it stays quiet
Barriers in fewer than half of the steps, such as those around a checkpoint, and recordings of one step. Barriers that
take less than 50 µs per step. Steps that are not marked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot
from tb_tidy_plugin.profile.library_calls import usual_calls
from tb_tidy_plugin.rulekit import Edit, Match, Nanoseconds, Profile, Rule, Scale, Threshold

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Code

BARRIERS = r"^torch/distributed/distributed_c10d\.py\(\d+\): (?:monitored_)?barrier$"
LEFT = (0.5, 0.0, 1.0)


@dataclass(frozen=True)
class Evidence:
    """The barriers of a profile.

    Attributes:
        per_step: how many. held: how long the host waits in them per step. least: from what on that is reported.
    """

    per_step: float
    held: Nanoseconds
    least: Nanoseconds

    @property
    def times(self) -> str:
        """How often."""
        return "once" if self.per_step == 1 else f"{self.per_step:.3g} times"


class BarrierInStep(Rule[Evidence]):
    """Barrier in each step."""

    code = "TT1350"
    needs = frozenset({"stacks"})
    action = "Remove `barrier()` from the step"
    message = "All ranks wait for one another in `barrier()` {times} per step, for {held} on this rank"
    why = "Half of the steps or more have a barrier. Reported for {least} per step or more"
    fix = "Remove `barrier()` from the step: collectives wait for what they exchange"
    caveat = "A rank that reads what another one writes to a disk needs a barrier there."

    min_wait_ns = Threshold(50_000, "per step: a barrier of ranks that are there takes 20 to 50 µs")

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        rows = usual_calls(profile, BARRIERS)
        held_ns = profile.per_step_ns(rows)
        if held_ns >= self.min_wait_ns:
            least = Nanoseconds(int(self.min_wait_ns))
            evidence = Evidence(profile.per_step_count(rows), Nanoseconds(held_ns), least)
            yield from (Match(row, (row,), evidence) for row in rows.tolist())

    def remedy(self, profile: Profile, match: Match[Evidence]) -> Iterator[Edit]:
        yield Scale(match.events, *LEFT)

    def fixer(self, code: "Code", spot: Spot, evidence: Evidence) -> Change:
        splice = code.without_statement(spot.lines, "barrier", "monitored_barrier")
        return Change(
            (splice,), SAME_RESULTS, "No rank reads what another one writes, and no time is measured with it."
        )
