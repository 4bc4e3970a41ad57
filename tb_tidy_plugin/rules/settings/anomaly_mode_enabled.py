"""Debug mode left on.

## What it finds
Anomaly detection (`torch.autograd.set_detect_anomaly(True)`): each operator formats a stack for its node, and each node
of the backward pass checks its results for NaN. Or launches that block (`CUDA_LAUNCH_BLOCKING=1`): each call that
launches a kernel returns only when the kernel is done.

## Why it is slow
A stack takes longer than most operators, and each check reads a number back, for which the host waits for the device.
With launches that block, the host does nothing while the device works, and the other way round.

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
The checks and the formatting go. Without stacks the formatting cannot be told from the operators it runs in, so that
the saving is a lower bound. Of launches that block, what the host waits or what the device idles goes, whichever is
less: one hides behind the other.

## When it stays quiet
Checks for NaN in hooks and in the user's own code. Stacks that the compiler formats while it traces a function.
Anomaly detection with `check_nan=False` without stacks, where it leaves no trace. Launches that end before their
kernels, as all do that do not block; fewer than 20 kernels of 50 µs.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tb_tidy_plugin.rulekit import (
    Category,
    Fact,
    Intervals,
    Match,
    Nanoseconds,
    Profile,
    Rows,
    Rule,
    compilations,
    rows_of,
)

FORMATS = r"^(?:torch/fx/)?traceback\.py\(\d+\): format_stack$"
NODE = r"^autograd::engine::evaluate_function: (?!torch::autograd::AccumulateGrad)"
ANY_SINCE_2_0 = "aten::_is_any_true"  # which users do not call
ANY = frozenset({ANY_SINCE_2_0, "aten::any"})
MOST_NODES = 0.5  # of the nodes are checked, where users could have written the check
LAUNCH = r"LaunchKernel|ModuleLaunch|LaunchCooperative"
LONG_NS = 50_000  # shorter kernels may be done before a launch that does not block returns
CLOCKS_NS = 5_000  # by which the clocks of host and device differ at most
ENOUGH, NEARLY_ALL = 20, 0.95  # of such kernels


class AnomalyModeEnabled(Rule):
    """Debug mode left on."""

    code = "TT1401"
    message = "{mode} is on: {what}, {time} per step"
    why = "{sign}"
    fix = "{cure}, except while looking for an error"

    def detect(self, profile: Profile) -> Iterator[Match]:
        stacks, checks = _stacks(profile), _checks(profile)
        if len(stacks) or len(checks):
            yield from _anomaly(profile, stacks, checks)
        launches = _blocking_launches(profile)
        if len(launches):
            yield _blocking(profile, launches)


def _stacks(profile: Profile) -> Rows:
    """Frames that format a stack for an operator's node, in the operator itself."""
    rows = profile.matching(FORMATS, Category.PYTHON)
    rows = rows[profile.tree.parent[rows] >= 0]
    above = profile.tree.parent[rows]
    is_of_node = (profile.table.category[above] == Category.OPERATOR) & (profile.table.sequence[above] >= 0)
    compiler = profile.covered(rows_of(each.row for each in compilations(profile)))
    found: Rows = rows[is_of_node & ~compiler.containing(profile.table.start_ns[rows])]
    return found


def _checks(profile: Profile) -> Rows:
    """The three operators of each check that follows a node's own operators."""
    nodes, firsts = profile.matching(NODE, Category.OPERATOR), profile.named("aten::isnan")
    parent, last, found = profile.tree.parent, profile.tree.last_descendant, list[tuple[int, int, int]]()
    firsts = firsts[np.isin(parent[firsts], nodes) & (parent[firsts] != firsts - 1)]
    for first in firsts.tolist():
        second = int(last[first]) + 1
        third = int(last[second]) + 1 if second <= last[parent[first]] else second
        is_inside = third <= last[parent[first]]
        if is_inside and profile.name(second) in ANY and profile.name(third) == "aten::item":
            found.append((first, second, third))
    checked = len({int(parent[first]) for first, _, _ in found})
    is_sure = any(profile.name(second) == ANY_SINCE_2_0 for _, second, _ in found)
    is_sure |= checked > MOST_NODES * len(nodes)
    return rows_of(row for check in found for row in check if is_sure)


def _anomaly(profile: Profile, stacks: Rows, checks: Rows) -> Iterator[Match]:
    """One match per step, at the outermost frame that began in it: no event tells where the mode was switched on."""
    rows = np.sort(np.append(stacks, checks))
    what = [f"{len(stacks):,} stacks formatted"] if len(stacks) else []
    what += [f"{len(checks) // 3:,} checks for NaN"] if len(checks) else []
    facts: Mapping[str, Fact] = {
        "mode": "Anomaly detection", "what": " and ".join(what) + " in the profile",
        "time": Nanoseconds(profile.per_step_ns(rows)),
        "sign": "Operators call `format_stack` for their nodes, or nodes of the backward pass check each result",
        "cure": "Remove `set_detect_anomaly` and `detect_anomaly`",
    }  # fmt: skip
    step = profile.step_of(rows)
    for number in np.unique(step).tolist():
        events = rows[step == number].tolist()
        begin_ns = profile.steps.items[number].start_ns if number >= 0 else 0
        around = [row for row in (events[0], *profile.ancestors(events[0])) if profile.start_ns(row) >= begin_ns]
        frames = [row for row in around if profile.category(row) is Category.PYTHON]
        yield Match((frames or around)[-1], tuple(events), facts)


def _blocking_launches(profile: Profile) -> Rows:
    """The launches of a profile in which nearly all kernels are done when their launch returns; else none."""
    table, calls = profile.table, profile.matching(LAUNCH, Category.RUNTIME)
    kernels = np.flatnonzero((table.category == Category.KERNEL) & (table.duration_ns >= LONG_NS))
    kernels = kernels[np.isin(profile.launch[kernels], calls)]
    blocks = table.end_ns[profile.launch[kernels]] >= table.end_ns[kernels] - CLOCKS_NS
    return calls if len(kernels) >= ENOUGH and blocks.mean() >= NEARLY_ALL else calls[:0]


def _blocking(profile: Profile, launches: Rows) -> Match:
    busy = profile.device_busy
    waits = profile.covered(launches).intersection(busy)
    idle = Intervals(busy.ends[:-1], busy.starts[1:])
    lost = min(waits, idle, key=lambda time: time.total_ns)
    return Match(
        anchor=int(launches[0]), events=tuple(launches.tolist()), subject="launches",
        facts={
            "mode": "Blocking of launches", "what": f"{len(launches):,} launches wait for their kernels",
            "time": Nanoseconds(lost.total_ns // max(len(profile.steps.items), 1)),
            "sign": "Launches return when their kernels are done; others return within microseconds",
            "cure": "Unset `CUDA_LAUNCH_BLOCKING` (on AMD `HIP_LAUNCH_BLOCKING`)",
        },
        lost=list(zip(lost.starts.tolist(), lost.ends.tolist(), strict=True)),
    )  # fmt: skip
