"""Graph recorded for a backward pass that never runs.

## What it finds
A forward pass with gradients enabled whose result no backward pass uses: a validation without `torch.no_grad()`, a
teacher or target network, inference.

## Why it is slow
Autograd makes a node for each operator and keeps what its gradient needs. That takes time on the host, and all
activations stay in memory for as long as the result lives, where each could be freed as soon as the next one is there.

## Example
```python
prediction = model(x)
```

Use instead:
```python
with torch.inference_mode():
    prediction = model(x)
```

## How the saving is estimated
What a node costs, not what the forward pass takes: with torch 2.13 on a CPU 0.2 to 0.9 µs for each operator, measured
with and without `torch.no_grad()`, and up to 0.8 µs in a model with a graph that is kept. At most 1 µs per node is
counted, 0.6 µs is expected. On a GPU only while the device has nothing to do. The memory that is freed is not counted.

## When it stays quiet
Nodes that a backward pass in the profile uses, and what runs in a module's call where one of them is used, such as an
auxiliary head. Frozen parameters, which record nothing. The last step, whose backward pass may come after the profile,
and what no younger graph was used after. Operators of the backward pass: activation checkpoints, gradients of
gradients. Fewer than 10 nodes in a pass. Profiles without any backward pass, as a recording of a forward pass alone
leaves them, get a low confidence.
"""

from collections.abc import Iterator
from textwrap import indent

import numpy as np

from tb_tidy_plugin.rulekit import (
    Benchmark,
    Category,
    Edit,
    Intervals,
    Match,
    Nanoseconds,
    Nodes,
    Profile,
    Rows,
    Rule,
    Scale,
    Threshold,
    recorded_nodes,
)

MODULE = "nn.Module: "
NODE_NS = 1_000  # what recording one node costs at most, see the page
NO_MODULE = -1


class GradGraphNeverConsumed(Rule):
    """Graph recorded for a backward pass that never runs."""

    code = "TT1101"
    message = (
        "Autograd records {nodes} nodes for each pass{where} whose result no backward pass uses: up to {time} each"
    )
    why = (
        "{nodes} operators from `{first}` on advance autograd's counter, and no backward pass in the profile uses one "
        "of their nodes{others}. Reported from {least} nodes on"
    )
    fix = "Run it under `torch.inference_mode()`, or under `torch.no_grad()` where the result goes into a loss"
    caveat = "Tensors made in inference mode cannot be used in a graph later."

    min_nodes = Threshold(10, "fewer are a statistic or an unused output, whose nodes take some microseconds")

    def detect(self, profile: Profile) -> Iterator[Match]:
        nodes = recorded_nodes(profile)
        if not len(nodes):
            return
        has_backward = bool(nodes.is_used.any())
        first, end = _passes(profile, nodes)
        is_unused = np.add.reduceat(nodes.is_used, first, dtype=np.int64) == 0
        is_over = nodes.is_passed[end - 1] | (not has_backward)
        is_over &= profile.table.start_ns[nodes.row[first]] < _end_ns(profile, has_backward)
        for at in np.flatnonzero(is_unused & is_over & (end - first >= self.min_nodes)).tolist():
            yield self._match(profile, nodes.row[first[at] : end[at]], has_backward)

    def remedy(self, profile: Profile, match: Match) -> Iterator[Edit]:
        yield Scale(match.events, factor=0.4, low=0.0, high=0.8)

    def benchmark(self, match: Match) -> Benchmark | None:
        run = f"y = x\nfor _ in range({match.facts['nodes']}):\n    y = y * 0.5"
        after = "with torch.no_grad():\n" + indent(run, "    ")
        return Benchmark(run, after, "import torch\nx = torch.ones(64, requires_grad=True)")

    def _match(self, profile: Profile, rows: Rows, has_backward: bool) -> Match:
        root = int(_outermost_modules(profile, rows[:1])[0])
        module = profile.name(root).removeprefix(MODULE) if root != NO_MODULE else ""
        starts = profile.table.start_ns[rows]
        lost = Intervals.union(starts, np.minimum(starts + NODE_NS, profile.table.end_ns[rows]))
        lost = lost.minus(profile.device_busy)
        return Match(
            anchor=int(rows[0]) if root == NO_MODULE else root,
            events=tuple(rows.tolist()),
            facts={
                "nodes": len(rows), "where": f" of `{module}`" if module else "", "first": profile.name(int(rows[0])),
                "time": Nanoseconds(lost.total_ns), "least": round(self.min_nodes),
                "others": "" if has_backward else ", which runs none at all",
            },
            confidence="low" if not has_backward else "high" if module else "medium",
            lost=list(zip(lost.starts.tolist(), lost.ends.tolist(), strict=True)),
        )  # fmt: skip


def _passes(profile: Profile, nodes: Nodes) -> tuple[Rows, Rows]:
    """Where each pass begins and ends in `nodes`: the call of an outermost module, or nodes of a step that are alike.

    Outside of modules a node that is used ends a pass; inside it makes the whole pass one that is used.
    """
    root = _outermost_modules(profile, nodes.row)
    changes = (np.diff(root) != 0) | (np.diff(profile.step_of(nodes.row)) != 0)
    changes |= (root[1:] == NO_MODULE) & np.diff(nodes.is_used)
    changes |= np.diff(profile.table.thread[nodes.row]) != 0
    first = np.append(0, np.flatnonzero(changes) + 1)
    return first, np.append(first[1:], len(nodes))


def _outermost_modules(profile: Profile, rows: Rows) -> Rows:
    """For each of `rows` the outermost module call around it, `NO_MODULE` for none."""
    modules, last = profile.matching(f"^{MODULE}", Category.PYTHON), profile.tree.last_descendant
    reach = np.maximum.accumulate(last[modules])
    outermost = modules[modules > np.append(-1, reach)[: len(modules)]]
    at = np.searchsorted(outermost, rows, side="right") - 1
    found = np.append(outermost, NO_MODULE)[at]
    return np.where((found != NO_MODULE) & (rows <= last[found]), found, NO_MODULE)


def _end_ns(profile: Profile, has_backward: bool) -> int:
    """From when on nothing is told: the last step may be cut, and one step alone says nothing without a backward."""
    starts = profile.steps.starts
    return int(starts[-1]) if len(starts) > 1 else int(profile.table.end_ns.max()) if has_backward else 0
