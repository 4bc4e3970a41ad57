"""Share of a difference that comes from the machine, estimated from the work that is the same on both sides.

No number of steps of one recording shows the effect of other processes, clocks and memory on all of them. But two
recordings of one job share most of their operators and kernels, and these have no reason to take longer on one side.
If they do, the machine was slower or busier there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.compare.operators import PerStep, Signature, mean_per_step
from tb_tidy_plugin.compare.recording import Chosen

FEWEST_GROUPS = 3  # most of these must agree
_LEAST_SHARE = 0.01  # of the shared time; operators with less show their own noise
MOST_WEIGHT = 0.25
"""No operator counts for more than this, so that one that really became faster does not count as the machine."""


class MachineRatio(msgspec.Struct, frozen=True):
    """The candidate's time for the same work divided by the baseline's: its logarithm and the error of that."""

    log_ratio: float
    error: float

    @property
    def ratio(self) -> float:
        """Ratio of the candidate's time to the baseline's for the same work."""
        return float(np.exp(self.log_ratio))

    @property
    def is_different(self) -> bool:
        """True if the machine clearly differed: by more than its own error, and than recordings usually differ."""
        return abs(self.log_ratio) > max(2 * self.error, CLEARLY)


CLEARLY = 0.05


def machine_of(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> MachineRatio | None:
    """The machine's part; None if too little is shared.

    Counts operators' self times on the host and kernels' times, each with the same number of calls per step on both
    sides, summed by name: time is lost here and there, and only sums show how much. The ratio is their weighted median,
    the error the spread around it.
    """
    shared = _shared(base, candidate)
    whole = sum(min(pair) for pair in shared)
    times = np.array([pair for pair in shared if min(pair) >= _LEAST_SHARE * whole], np.float64).reshape(-1, 2)
    if len(times) < FEWEST_GROUPS:
        return None
    logs = np.log(times[:, 1] / times[:, 0])
    weights = np.minimum(times.min(axis=1) / times.min(axis=1).sum(), MOST_WEIGHT)
    weights /= weights.sum()
    order = np.argsort(logs)
    middle = float(np.interp(0.5, np.cumsum(weights[order]) - weights[order] / 2, logs[order]))
    counted = 1 / float((weights**2).sum())
    return MachineRatio(middle, float(np.sqrt((weights * (logs - middle) ** 2).sum() / (counted - 1))))


def _shared(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> list[tuple[float, float]]:
    """Time per step on both sides of each operator on the host and each kernel, by name."""
    operators = _by_name(*(mean_per_step(side, lambda costs: costs.operators) for side in (base, candidate)))
    kernels = _by_name(*(mean_per_step(side, lambda costs: costs.kernels) for side in (base, candidate)))
    found = [(before.host_ns, after.host_ns) for before, after in operators]
    found += [(before.device_ns, after.device_ns) for before, after in kernels]
    return [pair for pair in found if min(pair) > 0]


def _by_name(before: Mapping[Signature, PerStep], after: Mapping[Signature, PerStep]) -> list[tuple[PerStep, PerStep]]:
    sums: dict[str, tuple[PerStep, PerStep]] = {}
    for key in before.keys() & after.keys():
        one, other = before[key], after[key]
        if np.isclose(one.calls, other.calls):
            left, right = sums.get(key[0], (PerStep(), PerStep()))
            sums[key[0]] = (left.plus(one), right.plus(other))
    return list(sums.values())
