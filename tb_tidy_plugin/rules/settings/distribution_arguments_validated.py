"""Arguments of distributions validated on each call.

## What it finds
`torch.distributions` objects that check their parameters on creation and their values in `log_prob`: the frames
`Distribution.__init__` and `_validate_sample`, with the operators that they run.

## Why it is slow
A check compares a tensor, reduces the result and reads it back, which takes four or more operators for each parameter.
On a GPU the host waits for each read. Small policies and priors spend more time on checks than on their own
computation.

## Example
```python
action = torch.distributions.Normal(mean, deviation).rsample()
```

Use instead:
```python
torch.distributions.Distribution.set_default_validate_args(False)  # once, at the start
action = torch.distributions.Normal(mean, deviation).rsample()
```

## How the saving is estimated
The checks and all operators in them go.

## When it stays quiet
Distributions created with `validate_args=False`, whose frames run no operator. Fewer than 2 checks per step. Less than
1 % of the step. Recordings without marked steps or without stacks.
"""

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of


class DistributionArgumentsValidated(tt.LibraryCallRule):
    """Arguments of distributions validated on each call."""

    code = "TT1450"
    frames = r"^torch/distributions/distribution\.py\(\d+\): (?:__init__|_validate_sample)$"
    in_most_steps = False
    action = "Switch the checks of distributions off"
    message = "Distributions check their arguments {calls} times per step"
    why = (
        "`Distribution.__init__` and `_validate_sample` run operators and read their results. Reported for "
        "{min_checks} checks per step or more"
    )
    fix = (
        "Call `torch.distributions.Distribution.set_default_validate_args(False)` once, or pass `validate_args=False`, "
        "except while looking for an error"
    )
    caveat = "An argument out of range gives NaN instead of an error."

    min_share = tt.Threshold(0.01, "of the step; less is not worth giving up a check that finds errors")
    min_checks = tt.Threshold(2, "per step; a single check costs little")

    def chosen(self, profile: tt.Profile, rows: tt.Rows) -> tt.Rows:
        return rows_of(row for row in rows.tolist() if profile.calls.operators_in([row]))

    def is_worth(self, calls: tt.LibraryCalls) -> bool:
        return calls.per_step >= self.min_checks

    def fixer(self, code: tt.Code, spot: Spot, evidence: tt.LibraryCalls) -> Change:
        function = "set_default_validate_args"
        if any(code.callee(call).endswith(f".{function}") for call in code.calls):
            raise Unfixable(f"The file calls `{function}` already.")
        line = f"{code.module_called('torch')}.distributions.Distribution.{function}(False)"
        how = "an argument out of range gives NaN instead of an error"
        return Change((code.after_imports(line),), changes_behaviour(how))
