"""Batches loaded in the training process itself.

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
Workers load beside the rest of the step, each as much at a time as the rest
of the step is long. Expected are as many as hide all loading, up to the cores
of the machine where these were captured, else up to 8. Handing a batch over
takes 0.2 to 1 ms on a quiet machine, 1.4 to 3 ms were measured on a busy one:
1 ms of each stays. At most all loading goes, at least nothing where disk or
cores are what limits it.

## When it stays quiet
Loading of less than 5 % of the step or less than 1 ms per step, such as
slices of tensors in memory, for which workers would only add the cost of
handing over. Most batches that short: a few long ones are the machine's doing,
which had something else to run, or the start of the recording. Batches loaded
before the first step. Loaders with workers, however slow they are. Jobs that
may use one core.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from tb_tidy_plugin.fixes.change import Change, Spot, changes_behaviour
from tb_tidy_plugin.fixes.kinds import is_loader
from tb_tidy_plugin.ledger.host_work import loading_functions
from tb_tidy_plugin.profile.loading import batches_by_place
from tb_tidy_plugin.rulekit import (
    Benchmark,
    Edit,
    Match,
    Nanoseconds,
    Overlap,
    Profile,
    Rows,
    Rule,
    Share,
    Threshold,
    parse_frame,
)

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Code

MOST_WORKERS = 8  # expected of a machine whose cores are not known
HANDING_OVER_NS = 1_000_000  # of each batch, which the training thread takes from a worker
LEAST_NAMED = 0.2  # of the loading, that a function takes which is named
LONGEST_NS = 20_000_000  # that loader or step take in the benchmark: a call of it is eight of both


@dataclass(frozen=True)
class Evidence:
    """What loading takes, and what is known of the machine.

    Attributes:
        loading: of a step. rest: the rest of the step. share: loading's part of the step.
        where: the function that takes most of it; empty where none takes a good part.
        batches, steps: how many there are. longest: the longest batch.
        cores_available: how many the process may use; 0 where that is not known.
        at_once: how many workers hide the loading.
        least_share, least: from which part of a step, and from which time on it is reported.
    """

    loading: Nanoseconds
    rest: Nanoseconds
    share: Share
    where: str
    batches: int
    steps: int
    longest: Nanoseconds
    cores_available: int
    at_once: int
    least_share: Share
    least: Nanoseconds

    @property
    def workers(self) -> str:
        """The number of workers, where the cores are known."""
        return f"={self.at_once}" if self.cores_available else ""

    @property
    def cores(self) -> str:
        """The cores, where they are known."""
        return f"; the process may use {self.cores_available} cores" if self.cores_available else ""


class DataloaderNumWorkersZero(Rule[Evidence]):
    """Batches loaded in the training process."""

    code = "TT101"
    message = "`DataLoader` loads each batch in the training process, which takes {loading} of a step ({share}){where}"
    why = (
        "`_SingleProcessDataLoaderIter.__next__` runs {batches} times in {steps} steps, the longest one "
        "{longest}{cores}. Reported for {least_share} and {least} of a step or more; what is loaded before the first "
        "step "
        "does not count"
    )
    fix = "Pass `num_workers{workers}` and `persistent_workers=True` to `DataLoader`, with `pin_memory=True` for a GPU"
    caveat = (
        "Where processes are spawned (Windows, macOS), dataset and collate function must be picklable; each worker "
        "holds a copy of the dataset object and draws random numbers of its own."
    )

    min_share = Threshold(0.05, "below it, loading is not what the step waits for; torch-tb-profiler's limit")
    min_ns = Threshold(1_000_000, "handing a batch over from a worker costs up to 1 ms per step itself")

    def not_applicable(self, profile: Profile) -> str | None:
        if profile.settings.threads.available_cores == 1:
            return "The process may use one core: a worker would take it from the step."
        return None

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        for rows in batches_by_place(profile, "SingleProcess"):
            loading_ns = profile.per_step_ns(rows)
            usual_ns = min(loading_ns, _usual_ns(profile, rows))
            if (profile.share_of_step(usual_ns) or 0.0) >= self.min_share and usual_ns >= self.min_ns:
                yield from self._matches(profile, rows, loading_ns, profile.share_of_step(loading_ns) or 0.0)

    def remedy(self, profile: Profile, match: Match[Evidence]) -> Iterator[Edit]:
        left = min(HANDING_OVER_NS / max(profile.duration_ns(match.anchor), 1), 1.0)
        yield Overlap(match.events, match.evidence.at_once, left)

    def benchmark(self, evidence: Evidence) -> Benchmark | None:
        """A loader and a step that take as long as those recorded, each keeping a core busy meanwhile."""
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
        return Benchmark(before, after, setup, devices=("cpu",))

    def _matches(self, profile: Profile, rows: Rows, loading_ns: int, share: float) -> Iterator[Match[Evidence]]:
        cores = profile.settings.threads.available_cores or 0
        evidence = Evidence(
            loading=Nanoseconds(loading_ns),
            rest=Nanoseconds(max((profile.steps.median_ns or 0) - loading_ns, 0)),
            share=Share(share),
            where=_where(profile, rows),
            batches=len(rows),
            steps=len(profile.steps.items),
            longest=Nanoseconds(max(profile.duration_ns(row) for row in rows.tolist())),
            cores_available=cores,
            at_once=_workers(share, cores or MOST_WORKERS),
            least_share=Share(self.min_share),
            least=Nanoseconds(int(self.min_ns)),
        )
        for row in rows.tolist():
            yield Match(anchor=row, events=(row,), evidence=evidence)

    def fixer(self, code: "Code", spot: Spot, evidence: Evidence) -> Change:
        loader = code.constructor(code.iterated_on(spot.lines), is_loader, "`DataLoader`")
        workers = {"num_workers": str(evidence.at_once)}
        splices = code.with_arguments(loader, workers | {"persistent_workers": "True"}, instead_of="0")
        how = "random numbers that the dataset draws differ"
        return Change(tuple(splices), changes_behaviour(how), "The dataset uses no CUDA tensors, and can be pickled.")


def _usual_ns(profile: Profile, rows: Rows) -> int:
    """What loading takes of a step where all batches are like the shorter half of them."""
    lengths_ns = sorted(profile.duration_ns(row) for row in rows.tolist())
    return round(lengths_ns[(len(rows) - 1) // 2] * profile.per_step_count(rows))


def _where(profile: Profile, rows: Rows) -> str:
    """The function that takes most of the loading, where one takes a good part of it."""
    row, time_ns = next(iter(loading_functions(profile, rows)), (0, 0))
    share = time_ns / max(profile.covered(rows).total_ns, 1)
    frame = parse_frame(profile.name(row))
    if share < LEAST_NAMED or frame is None:
        return ""
    return f", {Share(share)} of it in `{frame.function}` ({frame.file}:{frame.line})"


def _workers(share: float, most: int) -> int:
    """As many as hide the loading behind the rest of the step, no more than there are cores.

    PyTorch itself warns of more workers than cores, and not of as many: the training thread often waits, too.
    """
    return min(ceil(share / (1 - share)) if share < 1 else MOST_WORKERS, most)
