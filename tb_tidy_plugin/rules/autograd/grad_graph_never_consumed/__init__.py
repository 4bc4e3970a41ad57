"""Graph recorded for a backward pass that never runs.

## What it finds
A forward pass with gradients enabled whose result no backward pass uses: a validation without `torch.no_grad()`, a
teacher or target network, inference.

## Why it is slow
Autograd creates a node for each operator and keeps the tensors that its gradient needs. That takes time on the host.
All activations also stay in memory as long as the result, although each could be freed as soon as the next one exists.

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
The estimate counts the cost of the nodes, not the time of the forward pass: creating a node, the tensors that it keeps,
and freeing both. Ten models ran four times in a row with and without `torch.no_grad()`, between training steps of
another model, with torch 2.13 on a CPU. A node cost 0.9 to 1.4 µs for small tensors, which is 0.2 to 0.55 of the
forward pass, and 2 to 6 % of the pass if products of large matrices take the time. In between, memory dominates, since
kept memory cannot be reused: in networks of 20 and 100 layers (norm, linear, GELU, sum), up to 4 µs per node for
tensors of 3 to 8 kB, and 13 to 57 % of the pass for 32 kB to 1 MB. The estimate is 1.2 µs per node and 15 % of its
operator, at most 4 µs and half of its operator. On a GPU, whose memory torch caches, only the node counts, and only
while the device has nothing to do. A module in evaluation mode may also run differently without gradients, which is not
counted.

## When it stays quiet
Nodes that a backward pass in the profile uses, and other nodes in the same module call, such as those of an auxiliary
head. Frozen parameters, which record nothing. The last step, whose backward pass may come after the profile, unless the
same module's passes went unused in all earlier steps. Passes after which no later graph was used. Operators of the
backward pass: activation checkpoints, gradients of gradients. Fewer than 10 nodes in a pass. In profiles without any
backward pass, such as a recording of only a forward pass, the finding has low confidence.
"""

from collections.abc import Iterator
from textwrap import indent

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot, Unfixable
from tb_tidy_plugin.rules.autograd.grad_graph_never_consumed.recorded_nodes import UnusedPass, unused_passes
from tb_tidy_plugin.torchfacts.event_names import MODULE

_MOST, _USUAL = (4_000, 0.5), (1_200, 0.15)  # cost of a node in ns, and as a part of its operator, see the page
NO_MODULE = -1


class Evidence(msgspec.Struct, frozen=True):
    """A pass with unused nodes.

    Attributes:
        nodes: number of operators that record one. first: the name of the first.
        module: module of the pass; empty if unknown.
        time: most time that recording takes. usual: the part of it that recording usually takes.
        has_backward: True if any backward pass runs.
    """

    nodes: int
    first: str
    module: str
    time: tt.Nanoseconds
    usual: tt.Share
    has_backward: bool

    @property
    def where(self) -> str:
        return f" of `{self.module}`" if self.module else ""

    @property
    def others(self) -> str:
        """A sentence on the profile's backward passes."""
        return "" if self.has_backward else "; the profile has no backward pass"


class GradGraphNeverConsumed(tt.Rule[Evidence]):
    """Graph recorded for a backward pass that never runs."""

    code = "TT1101"
    action = "Run passes without a backward pass under `inference_mode()`"
    message = "Autograd records {nodes} nodes in each pass{where} that no backward pass uses: up to {time} a pass"
    why = (
        "Starting with `{first}`, {nodes} operators record nodes that no backward pass in the profile uses{others}. "
        "Reported for {min_nodes} nodes or more"
    )
    fix = "Run it under `torch.inference_mode()`, or under `torch.no_grad()` if the result goes into a loss"
    caveat = "Tensors created in inference mode cannot be used in a graph later."

    min_nodes = tt.Threshold(10, "fewer nodes belong to a statistic or an unused output and take a few microseconds")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for unused in unused_passes(profile, self.min_nodes):
            yield self._match(profile, unused)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, factor=1 - match.evidence.usual, low=0.0, high=1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        run = f"result = x\nfor _ in range({evidence.nodes}):\n    result = result * 0.5"
        after = "with torch.no_grad():\n" + indent(run, "    ")
        return tt.Benchmark(run, after, "import torch\nx = torch.ones(64, requires_grad=True, device=device)")

    def _match(self, profile: tt.Profile, unused: UnusedPass) -> tt.Match[Evidence]:
        nodes, has_module = unused.nodes.tolist(), unused.module != NO_MODULE
        module = profile.name(unused.module).removeprefix(MODULE) if has_module else ""
        lost, usual = (unused.time_recording(profile, *each) for each in (_MOST, _USUAL))
        return tt.Match(
            anchor=unused.module if has_module else nodes[0],
            events=tuple(nodes),
            evidence=Evidence(
                nodes=len(nodes),
                first=profile.name(nodes[0]),
                module=module,
                time=tt.Nanoseconds(lost.total_ns),
                usual=tt.Share(usual.total_ns / max(lost.total_ns, 1)),
                has_backward=unused.has_backward,
            ),
            confidence="low" if not unused.has_backward else "high" if module else "medium",
            lost=list(zip(lost.starts.tolist(), lost.ends.tolist(), strict=True)),
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        if spot.function in {"forward", "__call__"}:
            raise Unfixable(
                "The line belongs to a model, and the file does not show which of its calls need gradients."
            )
        statements = code.statements_on(spot.lines)
        if len(statements) != 1 or not code.calls_on(spot.lines):
            raise Unfixable("The lines do not contain exactly one statement with a call.")
        splices = code.wrapped(statements[0], f"with {code.module_called('torch')}.no_grad():")
        return Change(tuple(splices), SAME_RESULTS, "No backward pass uses the result of the statement.")
