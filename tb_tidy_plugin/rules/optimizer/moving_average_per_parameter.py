"""Moving average of weights, one parameter at a time.

## What it finds
Python loops outside of an optimizer that update an average one tensor at a time: with `lerp_`, with `mul_` and `add_`
of a tensor of equal shape, or with a weighted sum that `copy_` writes. Target networks and averaged weights (EMA,
Polyak) are often kept this way.

## Why it is slow
Each parameter takes one or two calls from Python for a few elements each; on a GPU each call is also a launch.

## Example
```python
for average, weight in zip(averages, weights):
    average.mul_(0.99).add_(weight, alpha=0.01)
```

Use instead:
```python
torch._foreach_lerp_(averages, weights, 0.01)  # torch.optim.swa_utils.AveragedModel does the same
```

## How the saving is estimated
The operators are scaled by factors measured on a CPU with torch 2.13: `_foreach_lerp_` takes 0.1 to 0.62 of the time of
`mul_` and `add_`, 0.19 to 0.93 of the time of `lerp_`, and 0.04 to 0.3 of the time of two products, a sum and `copy_`
(12 to 100 parameters of 100 to 262,144 elements).

## When it stays quiet
Fewer than 8 parameters per step. Updates of an optimizer, which `optimizer-single-tensor` reports. Calls by libraries.
Integer tensors.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.inputs import FLOATING, Inputs
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.strings import asked_once

LERP = "aten::lerp_"
MUL_ = "aten::mul_"
ADD_ = "aten::add_"
MUL = "aten::mul"
ADD = "aten::add"
COPY_ = "aten::copy_"
_IN_PLACE, COPIED = (MUL_, ADD_), (MUL, MUL, ADD, COPY_)
_LEFT = {1: (0.45, 0.19, 0.93), 2: (0.25, 0.1, 0.62), 4: (0.09, 0.04, 0.3)}
"""Remaining part of the time, by operators for each parameter: most likely, at least, at most; see the page."""

SAID = {1: "`lerp_`", 2: "`mul_` and `add_`", 4: "two products, a sum and `copy_`"}


class Evidence(msgspec.Struct, frozen=True):
    """The averages that one function keeps.

    Attributes:
        parameters: per step. each: number of operators for each.
        time: of the averages per step.
    """

    parameters: int
    each: int
    time: tt.Nanoseconds

    @property
    def operators(self) -> str:
        return SAID[self.each]


class MovingAveragePerParameter(tt.Rule[Evidence]):
    """Moving average of weights, one parameter at a time."""

    code = "TT350"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Average all tensors in one call"
    message = "A loop averages {parameters} tensors one at a time with {operators}, which takes {time} per step"
    why = "Each tensor needs its own calls from Python. Reported for {min_parameters} tensors or more"
    fix = "Average all tensors in one call: `torch._foreach_lerp_(averages, weights, weight)`"
    caveat = "Results differ in their last bits. The lists must hold floating-point parameters on one device."

    min_parameters = tt.Threshold(8, "per step; for fewer parameters the calls take about 50 µs")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found: dict[str, list[tuple[int, ...]]] = {}
        for rows in _averages(profile):
            function = profile.calls.caller_name(rows[0])
            if (frame := tt.parse_frame(function)) is None or frame.own_code:
                found.setdefault(function, []).append(rows)
        for kept in found.values():
            parameters = profile.per_step_count(rows_of(rows[0] for rows in kept))
            if parameters >= self.min_parameters:
                yield from self._matches(profile, kept, parameters)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, *_LEFT[match.evidence.each])

    def fixer(self, code: tt.Code, spot: "Spot", evidence: Evidence) -> "Change":
        from tb_tidy_plugin.fixes.averaging import averaged

        return averaged(code, spot)

    def _matches(
        self, profile: tt.Profile, averages: list[tuple[int, ...]], count: float
    ) -> Iterator[tt.Match[Evidence]]:
        evidence = Evidence(
            parameters=round(count),
            each=len(averages[0]),
            time=tt.Nanoseconds(profile.per_step_ns(rows_of(row for rows in averages for row in rows))),
        )
        by_step: dict[int, list[int]] = {}
        for rows, step in zip(averages, profile.step_of(rows_of(rows[0] for rows in averages)).tolist(), strict=True):
            by_step.setdefault(step, []).extend(rows)
        for events in by_step.values():
            yield tt.Match(events[0], tuple(events), evidence)


def _averages(profile: tt.Profile) -> Iterator[tuple[int, ...]]:
    """The operators that average one tensor: `lerp_`, or products by numbers, their sum, and a copy of a new one.

    Without those of optimizers.
    """
    rows = profile.calls.among(profile.named(LERP, MUL_, MUL))
    rows = rows[profile.covering(rows, profile.matching(r"^Optimizer\.", tt.Category.ANNOTATION)) == ABSENT]
    fits = [*map(asked_once(_is_floating), profile.known_inputs)]
    for row in rows[np.array(fits, np.bool_)[profile.table.inputs[rows]]].tolist():
        if profile.name(row) == LERP:
            yield (row,)
            continue
        wanted = _IN_PLACE if profile.name(row) == MUL_ else COPIED
        average = (row, *profile.operators_after(row, len(wanted) - 1))
        if tuple(map(profile.name, average)) == wanted and _averages_one(profile, average):
            yield average


def _is_floating(inputs: Inputs) -> bool:
    return inputs.shape(0) is not None and inputs.dtype(0) in FLOATING


def _averages_one(profile: tt.Profile, rows: tuple[int, ...]) -> bool:
    """True if products are by numbers, sums and copies of equal tensors, all of them called by one function."""
    shape, body = profile.inputs(rows[0]).shape(0), profile.calls.body[rows[0]]
    for row in rows:
        given = profile.inputs(row)
        others = {None, ()} if profile.name(row) in {MUL_, MUL} else {shape}
        if given.shape(0) != shape or given.shape(1) not in others or profile.calls.body[row] != body:
            return False
    return True
