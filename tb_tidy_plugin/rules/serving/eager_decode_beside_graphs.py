"""Decode iterations without a graph beside others that replay one.

## What it finds
Decode iterations of a server that launch each kernel separately and take longer than those that replay a graph.

## Why it is slow
A decode step has hundreds of kernels of a few microseconds each. The host launches them more slowly than the device
runs them. Servers capture graphs for some batch sizes; a batch larger than all of these runs without a graph.

## Example
```python
LLM(model, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8]})  # batches of 9 requests and more run eagerly
```

Use instead:
```python
LLM(model, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 256]})
```

## How the saving is estimated
At best each such iteration takes as long as the median iteration with a graph; most likely half of that is gained.
Batches of different sizes also differ in time.

## When it stays quiet
Recordings without a graph in any decode iteration, or in which the eager iterations are as fast. Prefill and mixed
iterations, whose shapes vary.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.serving.iterations import iterations_of, mark_of


class Evidence(msgspec.Struct, frozen=True):
    """Decode iterations without a graph.

    Attributes:
        eager, replayed: iterations without and with a graph.
        sizes: requests of the eager ones, smallest and largest; empty if the annotations do not count them.
        time, usual: median times without and with a graph.
        kept: part of the time of one that replaying a graph leaves.
    """

    eager: int
    replayed: int
    sizes: tuple[int, ...]
    time: tt.Nanoseconds
    usual: tt.Nanoseconds
    kept: tt.Share

    @property
    def batches(self) -> str:
        if not self.sizes:
            return ""
        low, high = self.sizes[0], self.sizes[-1]
        return f" (batch {low})" if low == high else f" (batch {low} to {high})"


class EagerDecodeBesideGraphs(tt.Rule[Evidence]):
    """Decode iterations that launch each kernel by itself."""

    code = "TT1506"
    needs = frozenset({"device"})
    action = "Capture graphs for all decode batch sizes"
    message = (
        "{eager} of the decode iterations{batches} run without a graph and take {time}; with one they take {usual}"
    )
    why = "{replayed} decode iterations replay a graph. Reported if these take at most {max_kept} of the time"
    fix = "Capture graphs for these batch sizes too, or limit the batch to the largest captured size"
    caveat = "Each captured size takes memory and start-up time."

    max_kept = tt.Threshold(0.8, "of the time; smaller differences may come from the batch alone")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        decodes = [each for each in iterations_of(profile) if each.batch.phase == "decode"]
        eager = [each for each in decodes if each.mode == "eager"]
        replayed = [each for each in decodes if each.mode in {"graph", "piecewise"}]
        if not eager or not replayed:
            return
        time, usual = (float(np.median([each.window_ns for each in chosen])) for chosen in (eager, replayed))
        if usual > self.max_kept * time:
            return
        evidence = Evidence(
            eager=len(eager),
            replayed=len(replayed),
            sizes=tuple(sorted({each.batch.requests for each in eager if each.batch.requests})),
            time=tt.Nanoseconds(time),
            usual=tt.Nanoseconds(usual),
            kept=tt.Share(usual / time),
        )
        for each in eager:
            row = mark_of(profile, each)
            lost = (int(each.start_ns + usual), each.end_ns)
            yield tt.Match(row, (row,), evidence, confidence="medium", lost=(lost,) if lost[0] < lost[1] else ())

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        kept = match.evidence.kept
        yield tt.Scale(match.events, (1 + kept) / 2, kept, 1.0)
