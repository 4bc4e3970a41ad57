"""Gradients clipped one parameter at a time.

## What it finds
Calls of `clip_grad_norm_` or `clip_grad_value_` on a GPU that run an operator for each parameter, and no `_foreach_`
operator.

## Why it is slow
Each parameter needs a norm and a product, and the host launches a kernel of a few µs for each. `_foreach_` operators
handle all parameters in a few kernels.

## Example
```python
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
```

Use instead:
```python
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
```

## How the saving is estimated
As for an optimizer that updates one parameter at a time, 0.3 of the time on a GPU remains (0.13 to 0.88).

## When it stays quiet
Gradients on a CPU, where `foreach` takes 0.6 to 3 times as long (torch 2.13: faster for parameters of 1,000 elements,
slower for those of 65,000 or more). Fewer than 10 parameters.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten

NAMES = ("clip_grad_norm_", "clip_grad_value_")
TOGETHER = "_foreach_"


class Evidence(msgspec.Struct, frozen=True):
    """The calls of a profile.

    Attributes:
        operators: number in a call. parameters: number that it clips. time: of all calls, per step.
    """

    operators: int
    parameters: int
    time: tt.Nanoseconds


class GradientsClippedOneByOne(tt.CallRule[Evidence]):
    """Gradients clipped one parameter at a time."""

    code = "TT351"
    needs = frozenset({"stacks", "device", "steps"})
    frames = r"^torch/nn/utils/clip_grad\.py\(\d+\): clip_grad_(?:norm|value)_$"
    in_most_steps = False
    reads_operators = True
    action = "Clip all gradients in one call"
    message = "Gradients of {parameters} parameters are clipped one at a time: {operators} operators, {time} per step"
    why = "The call runs no `_foreach_` operator. Reported for {min_parameters} parameters or more"
    fix = "Leave out `foreach=False`; with PyTorch before 2.0, upgrade"
    caveat = "Norms differ in their last bits."
    left = (0.3, 0.13, 0.88)

    min_parameters = tt.Threshold(10, "per call; for fewer parameters the loop costs little more than one joint call")

    def matches(self, profile: tt.Profile, rows: tt.Rows) -> Iterator[tt.Match[Evidence]]:
        found: list[tuple[int, int, int]] = []
        for row in rows.tolist():
            operators = Counter(aten.without_overload(profile.name(each)) for each in profile.calls.operators_in([row]))
            parameters = max(operators.values(), default=0)
            is_together = any(aten.short_name(name).startswith(TOGETHER) for name in operators)
            if parameters >= self.min_parameters and not is_together and len(profile.device_activity_of(row)):
                found.append((row, parameters, sum(operators.values())))
        time = tt.Nanoseconds(profile.per_step_ns(rows_of(row for row, _, _ in found)))
        for row, parameters, operators_of_call in found:
            evidence = Evidence(operators_of_call, parameters, time)
            yield tt.Match(row, (row,), evidence)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        calls = [
            (call, arg) for call in code.calls_on(spot.lines) if (arg := code.argument(call, "foreach")) is not None
        ]
        given = [(call, arg) for call, arg in calls if code.callee(call).rpartition(".")[2] in NAMES]
        if len(given) != 1 or code.source(given[0][1].value) != "False":
            raise Unfixable("The lines do not contain a single call that clips with `foreach=False`.")
        return Change(tuple(code.without_argument(*given[0])), SAME_UP_TO_ROUNDING)
