"""Tensors checked for NaN one by one.

## What it finds
`torch.isnan(x).any()`, `torch.isfinite(x).all()` and similar checks whose results Python reads many times per step,
outside of PyTorch's own debug modes.

## Why it is slow
A check takes three operators or more and a read. On a GPU the host waits for each read, and the device idles after it.

## Example
```python
for gradient in gradients:
    assert torch.isfinite(gradient).all()
```

Use instead:
```python
norm = torch.nn.utils.get_total_norm(gradients)  # not finite if one of them is not
assert torch.isfinite(norm)
```

## How the saving is estimated
One check of all tensors remains. On a CPU it still reads all elements, which takes a third of the time, at most two
thirds.

## When it stays quiet
Fewer than 8 checks per step: one check of the loss or of the norm of all gradients is good practice. Checks whose
result stays a tensor. Anomaly detection, which `anomaly-mode-enabled` reports. Checks inside PyTorch and other
libraries.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten

TESTS = aten.names("known", "isnan isinf isfinite")
_JOINS = aten.names("known", "any all _is_any_true _is_all_true logical_not bitwise_not")
_READS = aten.names("read", "is_nonzero item")
_REACH = 3  # operators after a test: its negation, its reduction, and the read


class Evidence(msgspec.Struct, frozen=True):
    """The checks of one function.

    Attributes:
        checks: per step. time: of the checks per step.
    """

    checks: int
    time: tt.Nanoseconds


class FiniteCheckPerTensor(tt.Rule[Evidence]):
    """Tensors checked for NaN one by one."""

    code = "TT850"
    reads_operators = True
    action = "Check for NaN and infinity once per step"
    message = "Python checks {checks} tensors per step for NaN or infinity one by one, which takes {time}"
    why = (
        "Each check tests a tensor, reduces the result and reads it. Reported for {min_checks} checks per step or more"
    )
    fix = "Check the loss, or the norm of all gradients (`torch.nn.utils.get_total_norm`), once per step"
    left = (0.33, 0.0, 0.67)

    min_checks = tt.Threshold(8, "per step and function; a few take about 50 µs, and one is good practice")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found: dict[str, list[tuple[int, ...]]] = {}
        for first in profile.calls.among(profile.named(*TESTS)).tolist():
            function = profile.calls.caller_name(first)
            frame = tt.parse_frame(function)
            if (frame is None or frame.own_code) and (check := _check(profile, first)):
                found.setdefault(function, []).append(check)
        for checks in found.values():
            per_step = profile.per_step_count(rows_of(check[0] for check in checks))
            if per_step >= self.min_checks:
                rows = rows_of(row for check in checks for row in check)
                evidence = Evidence(round(per_step), tt.Nanoseconds(profile.per_step_ns(rows)))
                yield from (tt.Match(check[0], check, evidence) for check in checks)

    def fixer(self, code: tt.Code, spot: "Spot", evidence: Evidence) -> "Change":
        from tb_tidy_plugin.fixes.checking import guarded

        return guarded(code, spot)


def _check(profile: tt.Profile, first: int) -> tuple[int, ...]:
    """The operators of the check that begins with `first`; empty if its result is not read at once."""
    rows = [first]
    for row in profile.operators_after(first, _REACH):
        rows.append(row)
        if profile.name(row) in _READS:
            return tuple(rows)
        if profile.name(row) not in _JOINS:
            break
    return ()
