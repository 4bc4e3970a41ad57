"""Loader workers restarted for each epoch.

## What it finds
A `DataLoader` with workers that starts its processes more than once within the recorded steps: frames `_get_iterator`
that start processes.

## Why it is slow
Each start forks or spawns processes, imports modules and copies the dataset into them. This takes tens of milliseconds
with `fork` and seconds with `spawn`. The first batches arrive only after that.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4)
```

Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
```

## How the saving is estimated
The time to start and stop the processes goes, except for the first start. The wait for the first batch of an epoch is
not counted, because persistent workers also begin to prefetch with the epoch.

## When it stays quiet
A single start in the recording. `persistent_workers=True`. Recordings without marked steps or without stacks.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.callers import calls_in_steps
from tb_tidy_plugin.trace.sets import among

STOPS = r"^torch/utils/data/dataloader\.py\(\d+\): _shutdown_workers$"
STARTS_PROCESS = r"^multiprocessing/process\.py\(\d+\): start$"


class Evidence(msgspec.Struct, frozen=True):
    """The starts of a profile.

    Attributes:
        starts: their number. processes: number started each time. time: of starting and stopping, per step.
    """

    starts: int
    processes: int
    time: tt.Nanoseconds


class WorkersStartedEveryEpoch(tt.CallRule[Evidence]):
    """Loader workers restarted for each epoch."""

    code = "TT150"
    frames = r"^torch/utils/data/dataloader\.py\(\d+\): _get_iterator$"
    in_most_steps = False
    action = "Keep the workers of the `DataLoader` between epochs"
    message = "A `DataLoader` starts its workers again for each epoch, which takes {time} per step"
    why = "It starts {processes} processes {starts} times in the profile. Reported for {min_starts} starts or more"
    fix = "Pass `persistent_workers=True` to the `DataLoader`"
    caveat = (
        "Workers keep their memory between epochs, and do not see changes that the training process makes to the "
        "dataset."
    )

    min_starts = tt.Threshold(2, "within the recorded steps: every job starts its workers once")

    def matches(self, profile: tt.Profile, rows: tt.Rows) -> Iterator[tt.Match[Evidence]]:
        each = profile.covering(profile.matching(STARTS_PROCESS, tt.Category.PYTHON), rows)
        starts = rows[among(rows, each)]
        if len(starts) < self.min_starts:
            return
        restarts = [*starts[1:].tolist(), *calls_in_steps(profile, STOPS).tolist()]
        evidence = Evidence(
            starts=len(starts),
            processes=round(int(among(each, starts).sum()) / len(starts)),
            time=tt.Nanoseconds(profile.per_step_ns(rows_of(restarts))),
        )
        yield tt.Match(int(starts[1]), tuple(sorted(restarts)), evidence)

    def made_by(self, evidence: Evidence) -> tt.Made:
        return tt.made.loader("dataloader_persistent_workers=True")

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        loader = code.constructor(code.iterated_on(spot.lines), self.made_by(evidence))
        splices = code.with_arguments(loader, {"persistent_workers": "True"}, instead_of="False")
        how = "later random numbers differ, because workers are seeded only once"
        return Change(tuple(splices), changes_behaviour(how), "The dataset does not change between epochs.")
