"""Sort of the whole vocabulary.

## What it finds
`aten::sort` over a last dimension of 16,384 or more, with a row for each request. Top-p or top-k sampling written with
PyTorch's operators does this.

## Why it is slow
Sorting 150,000 values of each request takes several passes over memory in every step, although only about fifty of them
are needed.

## Example
```python
values, order = logits.sort(dim=-1, descending=True)
values = values.masked_fill(values.softmax(-1).cumsum(-1) > top_p, float("-inf"))
```

Use instead:
```python
values, order = logits.topk(1024, dim=-1)  # what lies beyond has no probability to speak of
values = values.masked_fill(values.softmax(-1).cumsum(-1) > top_p, float("-inf"))
```

## How the saving is estimated
A fifth of the time is expected to remain, for one pass that selects instead of several that sort; a tenth at best, half
at worst.

## When it stays quiet
Shorter rows. More than 8,192 rows, which cannot be a batch of requests. Sorts on the host.
"""

from collections.abc import Iterator
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.words.units import Count

_MOST_ROWS = 8192

MOST_ELEMENTS = 1 << 25  # in the benchmark, of 4 bytes


class Evidence(msgspec.Struct, frozen=True):
    """Sorts of one size.

    Attributes:
        requests: rows. vocabulary: values in each. time: of one sort.
    """

    requests: int
    vocabulary: Count
    time: tt.Nanoseconds


class FullVocabularySort(tt.Rule[Evidence]):
    """Sorts of the whole vocabulary for each request."""

    code = "TT1505"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Select tokens with `torch.topk` instead of a sort"
    message = "`torch.sort` orders all {vocabulary} values of {requests} requests, which takes {time}"
    why = "Sampling needs only the largest of them. Reported for rows of {min_values} values or more"
    fix = "Select with `torch.topk`, or sample with a fused kernel for top-k and top-p, such as FlashInfer's"
    caveat = "With `topk`, tokens beyond the first k are never sampled."
    left = (0.2, 0.1, 0.5)  # for selecting

    min_values = tt.Threshold(16_384, "in a row; vocabularies begin at 30,000, and shorter rows sort in one pass")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for row in profile.named("aten::sort").tolist():
            shape = profile.inputs(row).shape(0)
            work = profile.device_activity_of(row)
            if not shape or shape[-1] < self.min_values or not len(work):
                continue
            requests = prod(shape[:-1])
            if requests <= _MOST_ROWS:
                time = tt.Nanoseconds(int(profile.table.durations_of(work).sum()))
                yield tt.Match(row, tuple(work.tolist()), Evidence(requests, Count(shape[-1]), time))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        requests, vocabulary = evidence.requests, int(evidence.vocabulary)
        if not requests * vocabulary <= MOST_ELEMENTS:
            return None
        setup = f"import torch\nx = torch.randn({requests}, {vocabulary}, device=device)"
        return tt.Benchmark(
            "result = x.sort(-1, descending=True)[0][:, :1024]",
            "result = x.topk(1024, -1)[0]",
            setup,
            devices=("cuda",),
        )
