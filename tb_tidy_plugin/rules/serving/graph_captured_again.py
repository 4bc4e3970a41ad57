"""Graphs captured again while the job runs.

## What it finds
Graphs that are captured or instantiated after others were already replayed, twice or more in a recording.

## Why it is slow
Capturing runs the whole model on the host, and instantiating builds the graph. This takes milliseconds to seconds, in
which the device has nothing to do. A graph pays off only if it is replayed many times.

## Example
```python
for batch in requests:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = model(batch)
    graph.replay()
```

Use instead:
```python
graph = graphs[padded_size(len(batch))]  # captured once for each size, before the first request
static_input[: len(batch)].copy_(batch)
graph.replay()
```

## How the saving is estimated
The time from the start of each capture to the end of its instantiation goes, since a kept graph is replayed at once.

## When it stays quiet
Captures before the first replay, which belong to start-up. A single later capture.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.torchfacts.event_names import BEGIN_CAPTURE, GRAPH_INSTANTIATE, GRAPH_LAUNCH


class Evidence(msgspec.Struct, frozen=True):
    """Captures while the job runs.

    Attributes:
        times: their number. time: of all of them, from the start of the capture to the end of the instantiation.
    """

    times: int
    time: tt.Nanoseconds


class GraphCapturedAgain(tt.Rule[Evidence]):
    """Graphs that are captured while others are replayed."""

    code = "TT1507"
    needs = frozenset({"device"})
    action = "Capture all graphs before the first request"
    message = "Graphs are captured or instantiated {times} times after the first replay, which takes {time}"
    why = "Capturing belongs to start-up. Reported for {min_times} times or more"
    fix = "Capture one graph for each size before the first request, pad batches to these sizes, and keep the graphs"

    min_times = tt.Threshold(2, "after the first replay; a single one may be for a new size")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table = profile.table
        launches = profile.matching(GRAPH_LAUNCH, tt.Category.RUNTIME)
        if not len(launches):
            return
        first_ns = int(table.end_ns[launches].min())
        made = _after(profile, GRAPH_INSTANTIATE, first_ns)
        if len(made) < self.min_times:
            return
        begins = _after(profile, BEGIN_CAPTURE, first_ns)
        spans = {row: (_begin_ns(profile, row, begins, made), profile.end_ns(row)) for row in made.tolist()}
        time_ns = sum(end - start for start, end in spans.values())
        evidence = Evidence(len(made), tt.Nanoseconds(time_ns))
        for row, span in spans.items():
            cause = int(profile.launched_by[row])
            yield tt.Match(cause if cause >= 0 else row, (row,), evidence, lost=(span,))


def _after(profile: tt.Profile, calls: str, after_ns: int) -> tt.Rows:
    rows = profile.matching(calls, tt.Category.RUNTIME)
    return rows[profile.table.start_ns[rows] > after_ns]


def _begin_ns(profile: tt.Profile, row: int, begins: tt.Rows, made: tt.Rows) -> int:
    """Start of the capture of the graph that `row` instantiates, on the same thread; else the start of `row`."""
    table, start = profile.table, profile.start_ns(row)
    before = begins[(table.thread[begins] == table.thread[row]) & (table.start_ns[begins] < start)]
    others = made[(table.thread[made] == table.thread[row]) & (table.start_ns[made] < start)]
    last = int(table.end_ns[others].max(initial=-1))
    before = before[table.start_ns[before] >= last]
    return int(table.start_ns[before].max(initial=-1)) if len(before) else start
