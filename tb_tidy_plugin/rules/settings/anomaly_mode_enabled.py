"""Debug mode left on.

## What it finds
Anomaly detection (`torch.autograd.set_detect_anomaly(True)`), in which each operator formats a stack for its node, and
each node of the backward pass checks its results for NaN. Also blocking launches (`CUDA_LAUNCH_BLOCKING=1`), in which
each launch returns only after its kernel is done.

## Why it is slow
Formatting a stack takes longer than most operators, and each check reads a number back, for which the host waits for
the device. With blocking launches, the host does nothing while the device works, and the device does nothing while the
host works.

## Example
```python
torch.autograd.set_detect_anomaly(True)
train(model)
```

Use instead:
```python
train(model)
```

## How the saving is estimated
The checks and the formatting go. Without stacks, the formatting cannot be separated from the operators it runs in, so
the saving is a lower bound. For blocking launches, the host's waits or the device's idle time go, whichever is shorter,
since one then overlaps with the other.

## When it stays quiet
Checks for NaN in hooks and in your own code. Stacks that the compiler formats while it traces a function. Anomaly
detection with `check_nan=False` in recordings without stacks, where it leaves no trace. Launches that end before their
kernels, as all non-blocking ones do; fewer than 20 kernels of 50 µs.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.profile.debug_modes import blocked_time, blocking_launches, formatted_stacks, nan_checks
from tb_tidy_plugin.profile.events.calls import rows_of

BLOCKING = tuple(
    f"os.environ[{quote}{name}_LAUNCH_BLOCKING{quote}]" for name in ("CUDA", "HIP") for quote in ("'", '"')
)
"""Code with which a program itself switches on blocking launches."""


class Evidence(msgspec.Struct, frozen=True):
    """A mode, and its effect.

    Attributes:
        mode: its name. what: its effect, and how often. time: of the effect per step.
        sign: the sign that identifies it. cure: how to switch it off.
    """

    mode: str
    what: str
    time: tt.Nanoseconds
    sign: str
    cure: str


class AnomalyModeEnabled(tt.Rule[Evidence]):
    """Debug mode left on."""

    code = "TT1401"
    action = "Switch the debug mode off"
    message = "{mode} is on: {what}, {time} per step"
    why = "{sign}"
    fix = "{cure}, except while looking for an error"

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        stacks, checks = formatted_stacks(profile).tolist(), nan_checks(profile).tolist()
        if stacks or checks:
            yield from _anomaly(profile, stacks, checks)
        launches = blocking_launches(profile)
        if len(launches):
            yield _blocking(profile, launches)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        given = [value for name in BLOCKING for value in code.assigned(name)]
        splices = [Splice(*code.span(value), '"0"') for value in given if code.source(value) in {'"1"', "'1'"}]
        for call in code.calls:
            name, mode = code.qualified(call.func), call.args[0].value if len(call.args) == 1 else None
            if name == "torch.autograd.set_detect_anomaly" and mode and code.source(mode) == "True":
                splices.append(Splice(*code.span(mode), "False"))
            elif name == "torch.autograd.detect_anomaly" and not call.args and not call.lpar:
                torch = code.module_called("torch")
                splices.append(Splice(*code.span(call), f"{torch}.autograd.set_detect_anomaly(False)"))
        if not splices:
            raise Unfixable("This file does not switch it on.")
        return Change(tuple(splices), SAME_RESULTS)


def _anomaly(profile: tt.Profile, stacks: list[int], checks: list[int]) -> Iterator[tt.Match[Evidence]]:
    """One match per step, at the outermost frame that began in it: no event shows where the mode was switched on."""
    rows = rows_of(sorted([*stacks, *checks]))
    what = [f"{len(stacks):,} stacks formatted"] if stacks else []
    what += [f"{len(checks) // 3:,} checks for NaN"] if checks else []
    evidence = Evidence(
        mode="Anomaly detection",
        what=" and ".join(what) + " in the profile",
        time=tt.Nanoseconds(profile.per_step_ns(rows)),
        sign="Operators call `format_stack` for their nodes, or nodes of the backward pass check each result",
        cure="Remove `set_detect_anomaly` and `detect_anomaly`",
    )
    by_step: dict[int, list[int]] = {}
    for row, number in zip(rows.tolist(), profile.step_of(rows).tolist(), strict=True):
        by_step.setdefault(number, []).append(row)
    for number, events in by_step.items():
        begin_ns = profile.steps.items[number].start_ns if number >= 0 else 0
        around = [row for row in (events[0], *profile.ancestors(events[0])) if profile.start_ns(row) >= begin_ns]
        frames = [row for row in around if profile.category(row) is tt.Category.PYTHON]
        yield tt.Match((frames or around)[-1], tuple(events), evidence)


def _blocking(profile: tt.Profile, launches: tt.Rows) -> tt.Match[Evidence]:
    lost = blocked_time(profile, launches)
    return tt.Match(
        anchor=int(launches[0]),
        events=tuple(launches.tolist()),
        subject="launches",
        evidence=Evidence(
            mode="Blocking of launches",
            what=f"{len(launches):,} launches wait for their kernels",
            time=tt.Nanoseconds(lost.total_ns // max(len(profile.steps.items), 1)),
            sign="Launches return when their kernels are done; others return within microseconds",
            cure="Unset `CUDA_LAUNCH_BLOCKING` (on AMD `HIP_LAUNCH_BLOCKING`)",
        ),
        lost=list(zip(lost.starts.tolist(), lost.ends.tolist(), strict=True)),
    )
