"""Graphs captured for more requests than the batch has.

## What it finds
Decode iterations that replay a graph captured for many more requests than the batch has, according to the server's
mark.

## Why it is slow
Servers capture graphs for some batch sizes, and pad a batch to the next larger size. The padding is computed, too, and
its results are discarded.

## Example
```python
LLM(model, compilation_config={"cudagraph_capture_sizes": [1, 8, 64, 512]})  # 65 requests are padded to 512
```

Use instead:
```python
LLM(model, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512]})
```

## How the saving is estimated
At best the iterations become shorter by the share of padded requests. Reading weights takes the same time for any
batch, so most likely a quarter of this is gained, at worst nothing.

## When it stays quiet
Iterations whose marks do not give the graph's batch size, and those with little padding. Prefill and mixed iterations.
"""

from collections.abc import Iterator
from itertools import groupby

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.serving.iterations import Iteration, iterations_of, mark_of
from tb_tidy_plugin.words.units import times

_LIKELY = 0.25
"""Part of the padded share that is most likely gained: products of small batches are bound by reading weights."""


class Evidence(msgspec.Struct, frozen=True):
    """Iterations that replay the graph of one size.

    Attributes:
        iterations: their number. captured: requests of the graph. low, high: fewest and most requests of a batch.
        padded: part of all computed work.
    """

    iterations: int
    captured: int
    low: int
    high: int
    padded: tt.Share

    @property
    def times(self) -> str:
        return times(self.iterations)

    @property
    def batches(self) -> str:
        return f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"


class GraphLargerThanBatch(tt.Rule[Evidence]):
    """Batches that are padded to the size of a graph."""

    code = "TT1511"
    needs = frozenset({"device"})
    action = "Capture graphs for the batch sizes that you serve"
    message = "Decode iterations of {batches} requests replay a graph for {captured}, {times}: {padded} is padding"
    why = "Padded requests are computed like the others. Reported above {min_padding}"
    fix = "Capture a graph for a size between the next smaller one and {captured}"
    caveat = "Each captured size takes memory and start-up time."

    min_padding = tt.Threshold(0.25, "of the requests; every choice of sizes leaves some padding")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        padded = [each for each in iterations_of(profile) if each.batch.phase == "decode" and _captured(each)]
        padded = [each for each in padded if each.mode in {"graph", "piecewise"}]
        for captured, group in groupby(sorted(padded, key=_captured), key=_captured):
            mine = list(group)
            requests = [each.batch.requests or 0 for each in mine]
            share = 1 - sum(requests) / (captured * len(mine))
            if share <= self.min_padding:
                continue
            evidence = Evidence(
                iterations=len(mine),
                captured=captured,
                low=min(requests),
                high=max(requests),
                padded=tt.Share(share),
            )
            for each, served in zip(mine, requests, strict=True):
                row = mark_of(profile, each)
                lost = (each.start_ns + each.window_ns * served // captured, each.end_ns)
                subject = f"{captured} requests"
                yield tt.Match(row, (row,), evidence, subject, "medium", (lost,) if lost[0] < lost[1] else ())

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        padded = match.evidence.padded
        yield tt.Scale(match.events, 1 - _LIKELY * padded, 1 - padded, 1.0)


def _captured(iteration: Iteration) -> int:
    """Requests that the graph of an iteration was captured for, 0 if there are as many."""
    return iteration.batch.padded or 0
