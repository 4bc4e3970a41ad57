"""Many small compiled regions instead of one.

## What it finds
Steps that call many separate compiled regions: `torch.compile` around each layer or each small function, and eager code
that calls them.

## Why it is slow
Each call looks up its variant, evaluates its guards, runs the prologues of its graph and adds a node to the backward
pass. Operators are fused only within a region. For layers of a few operators this costs more than fusion saves.

## Example
```python
layers = [torch.compile(layer) for layer in layers]
model = nn.Sequential(*layers)
```

Use instead:
```python
model = torch.compile(nn.Sequential(*layers))
```

## How the saving is estimated
The estimate counts the time before the first operator of a call and after its last one: Dynamo's frames around it, its
look-up, its prologues, and the code that wraps its graph. One region with one of each remains; at most half remain,
since one large region has more guards. With torch 2.13 on one core, the forward pass of 16 layers of width 32 took 0.3
to 0.5 ms without a compiler, 2.3 to 6.1 ms with a region for each layer, and 0.4 to 0.8 ms with one for all (backend
`aot_eager`). The gain from fusion across regions is not counted.

## When it stays quiet
Fewer than 4 regions per step. Less than 3 % of the step in look-ups and prologues: compiling large layers one by one is
fine, and compiles sooner. Calls that a graph break split, which `torch-compile-graph-break` reports. Recordings without
marked steps.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.compilations import time_around, whole_calls
from tb_tidy_plugin.profile.events.calls import rows_of


class Evidence(msgspec.Struct, frozen=True):
    """The regions of a profile.

    Attributes:
        regions: per step. time: their time per step outside their operators. share: of the step, for guards and
            prologues.
    """

    regions: int
    time: tt.Nanoseconds
    share: tt.Share


class SmallCompiledRegions(tt.Rule[Evidence]):
    """Many small compiled regions instead of one."""

    code = "TT1003"
    action = "Compile the code around the compiled parts, once"
    message = "{regions} compiled regions per step take {time} around their operators"
    why = (
        "Each region evaluates guards and runs prologues before its graph, {share} of the step, and Dynamo wraps its "
        "calls. Reported for {min_regions} regions per step or more"
    )
    fix = (
        "Call `torch.compile` on the function or module that calls the parts, instead of on each part. If they must "
        "stay separate, make them larger"
    )
    caveat = "One large graph takes longer to compile than equal parts, which share their code."

    min_regions = tt.Threshold(4, "per step; sound programs also compile a model, a loss and an optimizer separately")
    min_share = tt.Threshold(0.03, "of the step; larger regions can stay separate")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if profile.steps.basis == "whole_trace":
            return
        calls, steps = dict(whole_calls(profile)), profile.steps
        regions = profile.per_step_count(rows_of(calls))
        if regions < self.min_regions:
            return
        of_regions = profile.covered(rows_of(row for rows in calls.values() for row in rows))
        of_steps = of_regions.within(steps.starts, steps.ends)
        lengths = steps.ends - steps.starts
        usual = float(np.median(of_steps / np.maximum(lengths, 1)))  # one slow step says more about the machine
        if usual >= self.min_share:
            share = float(of_steps.sum() / max(lengths.sum(), 1))
            around = {region: time_around(profile, region, rows) for region, rows in calls.items() if rows}
            around_ns = sum(end - start for spans in around.values() for start, end in spans)
            per_step = tt.Nanoseconds(around_ns / len(profile.steps.items))
            evidence = Evidence(round(regions), per_step, tt.Share(share))
            for region, spans in around.items():
                yield tt.Match(region, (region, *calls[region]), evidence, lost=spans)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        left = 1 / match.evidence.regions
        yield tt.Scale(match.events, factor=left, low=left, high=0.5)
