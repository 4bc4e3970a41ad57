"""Batches loaded in the training process.

## What it finds
A `DataLoader` with `num_workers=0` whose loading takes a noticeable part of
the step.

## Why it is slow
Without workers every batch is read, decoded and collated on the Python thread
that also drives the model. Step and loading take turns, and a GPU idles for
as long as the loading lasts. Worker processes prepare the next batches while
the step runs.

## Example
```python
loader = DataLoader(dataset, batch_size=64)
```

Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
```

## How the saving is estimated
Workers load while the rest of the step runs. The estimate uses as many workers
as hide all loading: up to the cores of the machine if these were captured,
otherwise up to 8. Handing a batch over takes 0.2 to 1 ms on a quiet machine and
took 1.4 to 3 ms on a busy one, so 1 ms per batch remains. If the cores were
captured, workers cannot use more of them than the machine has: with all work on
C cores, of which the step itself uses T, the loading L and the rest R take at
best (L + T·R) / C. A step on the CPU uses as many cores as torch has threads.
If those are all cores, workers take cores from the step, and half of that best
saving is expected: four public programs on two such cores saved −7 to 15 %,
where at best 8 to 36 % was possible. Loading that sleeps, or waits for a socket
or a lock, needs no core, so L is without it, and it is hidden whatever cores
the step uses; only recorded stacks show it. At most all loading goes, at least
nothing.

With few cores, fewer calls per batch save more than workers: transform a whole
batch, keep results, or make the dataset one tensor. The finding therefore names
the functions that take most of the loading.

## When it stays quiet
Loading of less than 5 % of the step or less than 1 ms per step, such as slices
of tensors in memory, for which workers would only add the cost of handing over.
Loading in which most batches are that short: the few long ones come from other
load on the machine or from the start of the recording. Batches loaded before
the first step. Loaders with workers, however slow. Jobs that may use only one
core.
"""

from collections.abc import Iterator, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, changes_behaviour
from tb_tidy_plugin.ledger.host_work import LoadingPart, loading_functions
from tb_tidy_plugin.profile.host.loading import (
    HANDING_OVER_NS,
    WITHOUT_WORKERS,
    asleep_share,
    batches_by_place,
    workers_hiding,
)
from tb_tidy_plugin.words.units import plural

LEAST_NAMED = 0.2  # least part of the loading for a function or an operator to be named
_MOST_NAMED = 3
PER_ITEM = 1.5  # calls per batch: a function that runs more often works on single items
KEPT_ON_BUSY_CORES = 0.5  # of the best saving, if the step's own operators use all cores
LONGEST_NS = 20_000_000  # longest loader or step in the benchmark: one call runs both eight times


class Evidence(msgspec.Struct, frozen=True):
    """Time of loading, and data on the machine.

    Attributes:
        loading: of a step. rest: the rest of the step. share: loading's part of the step.
        where: the functions or operators that take most of it; empty if none takes a large part.
        largest: the first of them, per_batch: its calls for each batch; empty and 0 without one.
        batches, steps: their numbers. longest: the longest batch.
        asleep: the part of loading that needs no core; 0 if unknown.
        cores_available: number that the process may use, cores_used: number that the step itself uses; 0 if unknown.
        at_once: number of workers that hide the loading.
    """

    loading: tt.Nanoseconds
    rest: tt.Nanoseconds
    share: tt.Share
    where: str
    largest: str
    per_batch: float
    batches: int
    steps: int
    longest: tt.Nanoseconds
    asleep: tt.Share
    cores_available: int
    cores_used: int
    at_once: int

    @property
    def runs(self) -> str:
        return f"{plural(self.batches, 'time')} in {plural(self.steps, 'step')}"

    @property
    def workers(self) -> str:
        """The number of workers, if the cores are known."""
        return f"={self.at_once}" if self.cores_available else ""

    @property
    def cores(self) -> str:
        if not self.cores_available:
            return ""
        used = ", as many as the step's operators have threads" if self.cores_used >= self.cores_available else ""
        return f"; the process may use {self.cores_available} cores{used}"

    @property
    def sleeping(self) -> str:
        """The part of the loading that needs no core, if it is one to speak of."""
        return f"; {self.asleep} of the loading sleeps or waits" if self.asleep >= LEAST_NAMED else ""

    @property
    def give(self) -> str:
        """The advice before the number of workers."""
        if not self.largest:
            return "Pass"
        if self.per_batch < PER_ITEM:
            return f"Make `{self.largest}` cheaper, or do its work once, beforehand. Then pass"
        calls = f"`{self.largest}` runs {self.per_batch:.3g} times per batch"
        return f"{calls}: work on a whole batch at once, keep its results, or make the dataset one tensor. Then pass"

    @property
    def hidden(self) -> float:
        """The part of the loading that workers are expected to remove from the step, as far as cores allow."""
        cores, used = self.cores_available, self.cores_used
        if not cores or not self.loading:
            return 1.0
        best = min(1 - (1 - self.asleep) / cores + self.rest / self.loading * (1 - min(used / cores, 1)), 1.0)
        return self.asleep + (best - self.asleep) * (KEPT_ON_BUSY_CORES if used >= cores else 1.0)


class DataloaderNumWorkersZero(tt.Rule[Evidence]):
    """Batches loaded in the training process."""

    code = "TT101"
    reads_ledger = True
    action = "Load batches in worker processes"
    message = "`DataLoader` loads each batch in the training process, which takes {loading} of a step ({share}){where}"
    why = (
        "`_SingleProcessDataLoaderIter.__next__` runs {runs}, for up to {longest}{sleeping}{cores}. Reported for "
        "{min_share} and {min_ns} of a step or more; batches loaded before the first step do not count"
    )
    fix = (
        "{give} `num_workers{workers}` and `persistent_workers=True` to `DataLoader`, with `pin_memory=True` for a GPU"
    )
    caveat = (
        "If processes are spawned (Windows, macOS), the dataset and the collate function must be picklable; each "
        "worker holds a copy of the dataset object and draws random numbers of its own."
    )

    min_share = tt.Threshold(
        0.05, "below this share, the step does not wait for loading; also the limit of torch-tb-profiler"
    )
    min_ns = tt.Threshold(1_000_000, "handing a batch over from a worker itself costs up to 1 ms per step")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.settings.threads.available_cores == 1:
            return "The process may use only one core, which a worker would take from the step."
        return None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for rows in batches_by_place(profile, WITHOUT_WORKERS):
            loading_ns = profile.per_step_ns(rows)
            usual_ns = min(loading_ns, _usual_ns(profile, rows))
            if (profile.share_of_step(usual_ns) or 0.0) >= self.min_share and usual_ns >= self.min_ns:
                yield from self._matches(profile, rows, loading_ns, profile.share_of_step(loading_ns) or 0.0)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        left = min(HANDING_OVER_NS / max(profile.duration_ns(match.anchor), 1), 1.0)
        yield tt.Overlap(match.events, match.evidence.at_once, max(left, 1 - match.evidence.hidden))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        """A loader and a step with the recorded durations, each keeping a core busy meanwhile."""
        loading, step = (min(each, LONGEST_NS) / 1e9 for each in (evidence.loading, evidence.rest))
        setup = (
            "import time\nimport torch\nimport torch.utils.data\ndef work(seconds):\n"
            "    until = time.perf_counter() + seconds\n    while time.perf_counter() < until:\n        pass\n"
            "class Batches(torch.utils.data.Dataset):\n    def __len__(self):\n        return 8\n"
            f"    def __getitem__(self, index):\n        work({loading:.6f})\n        return index\n"
            "alone = torch.utils.data.DataLoader(Batches(), batch_size=None)\n"
            "beside = torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=1, persistent_workers=True)"
        )
        before, after = (
            f"result = []\nfor batch in {loader}:\n    work({step:.6f})\n    result.append(batch)"
            for loader in ("alone", "beside")
        )
        return tt.Benchmark(before, after, setup, devices=("cpu",))

    def _matches(
        self, profile: tt.Profile, rows: tt.Rows, loading_ns: int, share: float
    ) -> Iterator[tt.Match[Evidence]]:
        cores = profile.settings.threads.available_cores or 0
        parts = _largest_parts(profile, rows)
        evidence = Evidence(
            loading=tt.Nanoseconds(loading_ns),
            rest=tt.Nanoseconds(max((profile.steps.median_ns or 0) - loading_ns, 0)),
            share=tt.Share(share),
            where=_where(profile, rows, parts),
            largest=_short(profile, parts[0]) if parts else "",
            per_batch=parts[0].per_batch if parts else 0.0,
            batches=len(rows),
            steps=len(profile.steps.items),
            longest=tt.Nanoseconds(max(profile.duration_ns(row) for row in rows.tolist())),
            asleep=tt.Share(asleep_share(profile, rows)),
            cores_available=cores,
            cores_used=_cores_used(profile, cores),
            at_once=workers_hiding(share, cores),
        )
        for row in rows.tolist():
            yield tt.Match(anchor=row, events=(row,), evidence=evidence)

    def made_by(self, evidence: Evidence) -> tt.Made:
        return tt.made.loader(f"dataloader_num_workers={evidence.at_once}")

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        loader = code.constructor(code.iterated_on(spot.lines), self.made_by(evidence))
        workers = {"num_workers": str(evidence.at_once)}
        splices = code.with_arguments(loader, workers | {"persistent_workers": "True"}, instead_of="0")
        how = "random numbers that the dataset draws differ"
        return Change(tuple(splices), changes_behaviour(how), "The dataset uses no CUDA tensors, and can be pickled.")


def _usual_ns(profile: tt.Profile, rows: tt.Rows) -> int:
    """Loading time of a step if all batches were like the shorter half of them."""
    lengths_ns = sorted(profile.duration_ns(row) for row in rows.tolist())
    return round(lengths_ns[(len(rows) - 1) // 2] * profile.per_step_count(rows))


def _largest_parts(profile: tt.Profile, rows: tt.Rows) -> list[LoadingPart]:
    """The functions or operators that each take a large part of the loading."""
    loading_ns = max(profile.covered(rows).total_ns, 1)
    parts = loading_functions(profile, rows)[:_MOST_NAMED]
    return [part for part in parts if part.time_ns >= LEAST_NAMED * loading_ns]


def _where(profile: tt.Profile, rows: tt.Rows, parts: Sequence[LoadingPart]) -> str:
    """Each of the parts with its share of the loading and its line."""
    loading_ns = max(profile.covered(rows).total_ns, 1)
    named = []
    for part in parts:
        frame = tt.parse_frame(profile.name(part.row))
        line = f" ({frame.file}:{frame.line})" if frame is not None else ""
        named.append(f"{tt.Share(part.time_ns / loading_ns)} of it in `{_short(profile, part)}`{line}")
    return "".join(f", {each}" for each in named)


def _short(profile: tt.Profile, part: LoadingPart) -> str:
    """The name of a function without its file, or of an operator."""
    frame = tt.parse_frame(profile.name(part.row))
    return profile.name(part.row) if frame is None else frame.function


def _cores_used(profile: tt.Profile, available: int) -> int:
    """Number of cores that a step itself uses, at least most of the time: one if a device does the work."""
    if "device" in profile.recorded:
        return 1
    return min(profile.settings.threads.intra_op or available, available)
