"""Slow guards of compiled code.

## What it finds
Steps that spend a good part of their time finding the right variant of a compiled function. Each call evaluates guards
on everything that the function read during compilation: modules, parameters, attributes and sizes.

## Why it is slow
The host evaluates guards before the function runs, one variant after the other until all guards of a variant hold. A
model of many modules has thousands of guards.

## Example
```python
compiled = torch.compile(model)
for batch in batches:
    compiled(batch)
```

Use instead:
```python
compiled = torch.compile(model)
for batch in first_batches:  # of each size
    compiled(batch)
with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
    for batch in batches:
        compiled(batch)
```

## How the saving is estimated
Without the guards that all variants share, looking up a variant took 43 instead of 238 µs for a network of 48 blocks
with torch 2.13 on one core. So a fifth is expected to remain, at most three fifths.

## When it stays quiet
Less than 3 % of the step, or 500 µs, in look-ups. More than 3 compiled calls per step: `small-compiled-regions` reports
these. Calls that a graph break split, which `torch-compile-graph-break` reports. Look-ups that are slow in fewer than
half of the steps. Recordings without marked steps.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.compilations import is_lookup, whole_calls
from tb_tidy_plugin.profile.events.calls import rows_of


class Evidence(msgspec.Struct, frozen=True):
    """The look-ups of a profile.

    Attributes:
        calls: of compiled functions per step. time: of their look-ups per step. share: that of the step.
    """

    calls: int
    time: tt.Nanoseconds
    share: tt.Share

    @property
    def counted(self) -> str:
        """Number of calls, in words."""
        return "1 compiled call" if self.calls == 1 else f"{self.calls} compiled calls"


class GuardsTakeLong(tt.Rule[Evidence]):
    """Slow guards of compiled code."""

    code = "TT1007"
    action = "Skip guards that all variants share"
    message = "Evaluating guards takes {time} per step, {share} of it, for {counted}"
    why = (
        "Each call evaluates its guards on the host before its graph runs. Reported for {min_share} of the step or more"
    )
    fix = (
        "Once all variants are compiled, run the steps under "
        "`torch.compiler.set_stance(skip_guard_eval_unsafe=True)`, which evaluates only the guards that distinguish "
        "variants"
    )
    caveat = (
        "This is unsafe if anything but sizes and values of tensors changes: it does not notice a replaced module or "
        "attribute."
    )
    left = (0.2, 0.1, 0.6)

    max_calls = tt.Threshold(3, "per step; with more calls, prologues also cost time, and one region for all is better")
    min_share = tt.Threshold(0.03, "of the step; less is not worth an unsafe setting")
    min_lookup_ns = tt.Threshold(500_000, "per step; steps in which less matters are too short for a model")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if profile.steps.basis == "whole_trace":
            return
        calls = dict(whole_calls(profile))
        lookups = {region: row for region, rows in calls.items() for row in rows[:1] if is_lookup(profile, row)}
        steps = profile.steps
        of_steps = profile.covered(rows_of(lookups.values())).within(steps.starts, steps.ends)
        time_ns = profile.per_step_ns(rows_of(lookups.values()))
        usual_ns = float(np.median(of_steps))  # a single slow look-up says more about the machine
        count = profile.per_step_count(rows_of(calls))
        step_ns = max(1, sum(step.duration_ns for step in steps.items) / len(steps.items))
        is_slow = usual_ns >= max(self.min_lookup_ns, self.min_share * step_ns)
        if count <= self.max_calls and is_slow:
            evidence = Evidence(round(count), tt.Nanoseconds(time_ns), tt.Share(profile.share_of_step(time_ns) or 0.0))
            yield from (tt.Match(region, (row,), evidence) for region, row in lookups.items())
