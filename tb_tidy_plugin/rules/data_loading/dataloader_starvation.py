"""Data loader workers slower than the step.

## What it finds
A `DataLoader` with workers whose batches the training thread repeatedly waits for.

## Why it is slow
Workers prepare batches while the step runs. If all of them together take longer for a batch than the step takes, the
queue runs empty: the training thread waits for the next batch, and a GPU idles once its own queue is empty, too.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=1)
```

Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
```

## How the saving is estimated
Twice as many workers load twice as fast, as long as there are cores for them. Waits that are no longer than the rest of
the step then go; for longer waits, half of the step remains. If the cores were captured, the estimate uses no more
workers than cores: with as many workers as cores, more workers are expected to save nothing. If the capture also saw
how long the workers compute, the rest of their time is waiting for a disk or a network, which needs no core. Then the
estimate uses up to four times as many workers, as long as cores suffice for what they compute. At most all waits go. At
least nothing goes, if cores, disk or network limit the workers.

## When it stays quiet
Batches that arrive within 1 ms; fewer than two waits; waits of less than 5 % of the step. The first batch of an epoch,
for which workers start again, and a single wait that is more than twice as long as all others. Waits during which a
device still runs earlier work. Time in which the training process itself unpacks a batch: stacks show it; without them
it is assumed to be 1 ms, at medium confidence.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.host.critical import device_idle
from tb_tidy_plugin.profile.host.loading import (
    WITH_WORKERS,
    batches_by_place,
    is_first_batch,
    loader_with_workers,
    waits_for_workers,
)

MOST_FASTER, MOST_FASTER_WAITING = 2.0, 4.0  # of loading by more workers; the second if it is known how long they wait
LEAST_BUSY = 0.05  # of a worker: it takes some time for each batch
MOSTLY = 0.5  # of the time
OUTLIER = 2  # times the second longest wait: waits for too few workers recur
SHORTEST_RHYTHM = 3  # waits: the distance between two is not a rhythm


class Evidence(msgspec.Struct, frozen=True):
    """The waits for one loader's workers.

    Attributes:
        waiting: of a step. share: that by the step.
        waited, batches: number of late batches, and of all. longest: the longest wait.
        apart: number of batches between two waits; 0 if they follow no rhythm.
        given: the loader's options; empty if they were not captured.
        busy: the part of the time in which a worker computes; None if unknown.
        faster: speed-up of loading by more workers, as far as cores are known, at most 2, or 4 with `busy`.
    """

    waiting: tt.Nanoseconds
    share: tt.Share
    waited: int
    batches: int
    longest: tt.Nanoseconds
    apart: int
    given: str
    busy: tt.Share | None
    faster: float

    @property
    def rhythm(self) -> str:
        """The meaning of the distance between waits."""
        if not self.apart:
            return ""
        return f"; the thread waits once in {self.apart} batches, as with {self.apart} workers that finish together"

    @property
    def computing(self) -> str:
        """The time in which workers compute."""
        return "" if self.busy is None else f"; each worker computes for {self.busy} of the time"

    @property
    def workers(self) -> str:
        """Advice about the number of workers."""
        if self.faster <= 1:
            return "Make loading cheaper: there are already as many workers as cores"
        if self.busy is not None and self.busy <= MOSTLY:
            return (
                "Give the `DataLoader` more workers, even more than the process has cores: they mostly wait for a disk "
                "or a network"
            )
        return (
            "Give the `DataLoader` more workers (up to the number of cores that the process may use), or make loading "
            "cheaper"
        )


class DataloaderStarvation(tt.Rule[Evidence]):
    """Data loader workers slower than the step."""

    code = "TT102"
    action = "Give the `DataLoader` more workers"
    message = "The step waits {waiting} ({share}) for the workers of a `DataLoader`"
    why = (
        "{waited} of {batches} batches were not ready when the training thread asked for them; the longest wait is "
        "{longest}{rhythm}{given}{computing}. Reported for {min_waits} waits of {min_wait_ns} or more, and for "
        "{min_share} of the step or more"
    )
    fix = (
        "{workers}. To see the loading functions and their lines, record with `num_workers=0`. Then do their work for "
        "a whole batch at once, or once beforehand"
    )
    caveat = "Each worker holds its own copy of the dataset object and `prefetch_factor` batches in memory."

    min_share = tt.Threshold(
        0.05, "below this share, the step does not wait for loading; also the limit of torch-tb-profiler"
    )
    min_wait_ns = tt.Threshold(
        1_000_000, "fetching a batch that is ready costs 0.1 to 1 ms, with any number of workers"
    )
    min_waits = tt.Threshold(2, "a single wait may be a pause of the disk or the start of an epoch")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        idle = device_idle(profile)
        for rows in batches_by_place(profile, WITH_WORKERS):
            later = rows[~is_first_batch(profile, rows)]
            lost = [wait.intersection(idle) for wait in waits_for_workers(profile, later, int(self.min_wait_ns))]
            long = _usual([at for at, wait in enumerate(lost) if wait.total_ns >= self.min_wait_ns], lost)
            waiting_ns = sum(lost[at].total_ns for at in long) // max(len(profile.steps.items), 1)
            share = profile.share_of_step(waiting_ns) or 0.0
            if len(long) >= self.min_waits and share >= self.min_share:
                evidence = self._evidence(profile, lost, long, share, waiting_ns)
                yield from _matches(profile, later, {at: lost[at] for at in long}, evidence)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        gone = (1 - 1 / match.evidence.faster) / match.evidence.share
        yield tt.Scale(match.events, factor=max(1 - gone, 0.0), low=0.0, high=1.0)

    def made_by(self, evidence: Evidence) -> tt.Made:
        return tt.made.loader("dataloader_num_workers=…")

    def _evidence(
        self, profile: tt.Profile, lost: Sequence[tt.Intervals], long: Sequence[int], share: float, waiting_ns: int
    ) -> Evidence:
        busy = profile.metadata.captured.workers_busy
        return Evidence(
            waiting=tt.Nanoseconds(waiting_ns),
            share=tt.Share(share),
            waited=len(long),
            batches=len(lost),
            longest=tt.Nanoseconds(max(lost[at].total_ns for at in long)),
            apart=_apart(long),
            given=_given(profile),
            busy=None if busy is None else tt.Share(busy),
            faster=_faster(profile, busy),
        )


def _matches(
    profile: tt.Profile, rows: tt.Rows, waits: dict[int, tt.Intervals], evidence: Evidence
) -> Iterator[tt.Match[Evidence]]:
    has_functions = bool((profile.table.category == tt.Category.PYTHON).any())
    for at, wait in waits.items():
        row = int(rows[at])
        yield tt.Match(row, (row,), evidence, confidence="high" if has_functions else "medium", lost=wait.spans)


def _usual(long: list[int], lost: Sequence[tt.Intervals]) -> list[int]:
    """The long waits without one outlier: a pause, or the start of an epoch, which may not be visible."""
    *_, second, longest = sorted((0, 0, *(lost[at].total_ns for at in long)))
    return [at for at in long if longest <= OUTLIER * second or lost[at].total_ns < longest]


def _apart(waited: Sequence[int]) -> int:
    """Number of batches between two waits, 0 for no rhythm.

    Workers that started together finish together: as many batches arrive at once as there are workers.
    """
    apart = {later - earlier for earlier, later in pairwise(waited)}
    is_even = len(waited) >= SHORTEST_RHYTHM and len(apart) == 1
    if not is_even or apart == {1}:
        return 0
    return min(apart)


def _given(profile: tt.Profile) -> str:
    """The loader's options, if they were captured and only one loader has workers."""
    loader, cores = loader_with_workers(profile), profile.settings.threads.available_cores
    if loader is None or not cores:
        return ""
    return f" (`num_workers={loader.num_workers}`, {cores} cores available, `prefetch_factor={loader.prefetch_factor}`)"


def _faster(profile: tt.Profile, busy: float | None) -> float:
    """Speed-up by more workers, limited to what the cores can compute."""
    loader, cores = loader_with_workers(profile), profile.settings.threads.available_cores
    workers = (loader and loader.num_workers) or profile.metadata.captured.workers
    if not workers or not cores:
        return MOST_FASTER
    if busy is None:
        return min(max(cores / workers, 1.0), MOST_FASTER)
    return min(max(cores / (workers * max(busy, LEAST_BUSY)), 1.0), MOST_FASTER_WAITING)
