"""Chain of kernels as short as a launch.

## What it finds
Three or more kernels of one module that run in a row without a pause, each shorter than twice the shortest kernels of
the recording. The same chain repeats in each layer.

## Why it is slow
Every kernel takes a few microseconds, however little it does: it starts, fills the device and drains. One kernel for
the whole chain would take hardly longer than a single kernel of the chain.

## Example
```python
q, k = q.clone(), k.clone()
q, k = q_norm(q), k_norm(k)
q, k = rotary(positions, q, k)
cache.store(k, v)  # six kernels of 4 to 5 µs in each layer
```

Use instead:
```python
fused_qk_norm_rope_store(q, k, v, positions, cache)  # one kernel: a server's own, or from torch.compile
```

## How the saving is estimated
One kernel of each chain remains. At worst half of the chain's time remains.

## When it stays quiet
Chains of two kernels. Replayed graphs without their capture, since the modules of the kernels are unknown. Chains with
pauses between their kernels, in which the host is slow. Kernels that take longer than a launch. Chains that occur less
than 8 times.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.torchfacts.event_names import MODULE, class_of_module
from tb_tidy_plugin.trace.columns import ABSENT

_SHORTEST = 0.05  # of all kernels are as short as a launch: they define the floor
WORST = 0.5
_MOST_NAMED = 6


class Evidence(msgspec.Struct, frozen=True):
    """A chain that repeats.

    Attributes:
        kernels: in one chain. operators: that launch them. times: number of repetitions.
        time: of all of them. floor: duration of the shortest kernels here.
        module: the innermost module around the chain. kept: part of the time that one kernel leaves.
    """

    kernels: int
    operators: tuple[str, ...]
    times: int
    time: tt.Nanoseconds
    floor: tt.Nanoseconds
    module: str
    kept: float

    @property
    def names(self) -> str:
        more = len(self.operators) - _MOST_NAMED
        shown = ", ".join(f"`{name}`" for name in self.operators[:_MOST_NAMED])
        return f"{shown} and {more} more" if more > 0 else shown


class KernelChainAtLaunchFloor(tt.Rule[Evidence]):
    """Chains of kernels as short as a launch."""

    code = "TT1503"
    needs = frozenset({"device"})
    yields_to = ("decoder-pieces-written-out", "elementwise-op-flood", "unfused-attention")
    action = "Fuse the {kernels} kernels of `{module}` into one"
    message = "{kernels} kernels in a row of `{module}` are hardly longer than a launch: {names}; {times} times, {time}"
    why = (
        "Each takes less than twice the {floor} of the shortest kernels here, and none waits for the host. Reported "
        "for chains of {min_kernels} kernels or more that repeat"
    )
    fix = "Fuse them into one kernel: the server's fused operator, `torch.compile`, or a Triton kernel"
    caveat = "A fused kernel may round differently."

    min_kernels = tt.Threshold(3, "in a chain; fusing only two kernels is seldom worth the work")
    min_times = tt.Threshold(8, "that the chain occurs; layers repeat, and a rarer chain is not part of the model")
    max_floors = tt.Threshold(2, "times the shortest kernels; longer kernels do work that a fused kernel must do, too")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table = profile.table
        kernels = np.flatnonzero((table.category == tt.Category.KERNEL) & (profile.launched_by != ABSENT))
        if not len(kernels):
            return
        floor = int(np.sort(table.durations_of(kernels))[int(_SHORTEST * (len(kernels) - 1))])
        chains: dict[tuple[int, ...], list[tt.Rows]] = {}
        for chain in _chains(profile, kernels, self.max_floors * floor, floor, int(self.min_kernels)):
            chains.setdefault(tuple(table.name[chain].tolist()), []).append(chain)
        for alike in chains.values():
            if len(alike) >= self.min_times:
                yield from self._matches(profile, alike, floor)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        kept = match.evidence.kept
        yield tt.Scale(match.events, kept, kept, max(WORST, kept))

    def _matches(self, profile: tt.Profile, alike: Sequence[tt.Rows], floor: int) -> Iterator[tt.Match[Evidence]]:
        causes = profile.launched_by[alike[0]].tolist()
        module = _module(profile, causes)
        if not module or any(profile.category(row) is not tt.Category.OPERATOR for row in causes):
            return
        operators = tuple(profile.name(row) for row in causes)
        time_ns = sum(int(profile.table.durations_of(chain).sum()) for chain in alike)
        evidence = Evidence(
            kernels=len(alike[0]),
            operators=tuple(dict.fromkeys(operators)),
            times=len(alike),
            time=tt.Nanoseconds(time_ns),
            floor=tt.Nanoseconds(floor),
            module=module,
            kept=1 / len(alike[0]),
        )
        for chain in alike:
            rows = tuple(chain.tolist())
            yield tt.Match(int(profile.launched_by[rows[0]]), rows, evidence, subject=module, confidence="medium")


def _chains(profile: tt.Profile, kernels: tt.Rows, longest_ns: float, pause_ns: int, least: int) -> Iterator[tt.Rows]:
    """Runs of `least` kernels or more on one stream that are all short and follow each other within `pause_ns`."""
    table = profile.table
    order = kernels[np.lexsort((table.start_ns[kernels], table.stream[kernels], table.device[kernels]))]
    short = table.durations_of(order) < longest_ns
    near = np.zeros(len(order), np.bool_)
    near[1:] = (table.start_ns[order[1:]] - table.end_ns[order[:-1]] <= pause_ns) & short[1:] & short[:-1]
    near[1:] &= (table.device[order[1:]] == table.device[order[:-1]]) & (
        table.stream[order[1:]] == table.stream[order[:-1]]
    )
    begins = np.flatnonzero(~near)
    ends = np.append(begins[1:], len(order))
    for at in np.flatnonzero((ends - begins >= least) & short[begins]).tolist():
        yield order[begins[at] : ends[at]]


def _module(profile: tt.Profile, rows: Sequence[int]) -> str:
    """Name of the innermost module around all of `rows`, without its number; empty if there is none."""
    above = [[at for at in profile.ancestors(row) if profile.name(at).startswith(MODULE)] for row in rows]
    shared = set(above[0]).intersection(*above[1:])
    innermost = next((at for at in above[0] if at in shared), None)
    return "" if innermost is None else class_of_module(profile.name(innermost))
