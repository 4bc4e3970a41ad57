"""Operators and kernels that take more or less time per step than before, by name and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.analysis.step_costs import CallCosts, StepCosts
from tb_tidy_plugin.compare.model import KernelChange, OperatorChange
from tb_tidy_plugin.compare.recording import Chosen
from tb_tidy_plugin.profile.graphs.replay import least_certain_of
from tb_tidy_plugin.words.vocabulary import KnownBy

Signature: TypeAlias = tuple[str, str]
"""A name and input shapes as text."""

_Costs: TypeAlias = Callable[[StepCosts], Sequence[CallCosts]]


class PerStep(msgspec.Struct, frozen=True):
    """Means over the steps of a recording, and over recordings; `known_by` is the least certain of all."""

    calls: float = 0.0
    host_ns: float = 0.0
    device_ns: float = 0.0
    known_by: KnownBy | None = None

    def plus(self, other: PerStep) -> PerStep:
        """The sum."""
        return PerStep(
            self.calls + other.calls,
            self.host_ns + other.host_ns,
            self.device_ns + other.device_ns,
            least_certain_of(self.known_by, other.known_by),
        )


_NOTHING = PerStep()


def operator_changes(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> list[OperatorChange]:
    """All changes of self time per step, largest of host and device first; the mean over ranks."""
    before, after = (mean_per_step(side, lambda costs: costs.operators) for side in (base, candidate))
    has_device = any(each.recording.report.devices for each in (*base, *candidate))
    found = [
        _operator(key, before.get(key, _NOTHING), after.get(key, _NOTHING), has_device=has_device)
        for key in dict.fromkeys([*before, *after])
    ]
    return sorted((each for each in found if _operator_size(each)), key=lambda each: -_operator_size(each))


def kernel_changes(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> list[KernelChange]:
    """All changes of kernels' time per step, largest first; the mean over ranks."""
    before, after = (mean_per_step(side, lambda costs: costs.kernels) for side in (base, candidate))
    found = [
        _kernel(key, before.get(key, _NOTHING), after.get(key, _NOTHING)) for key in dict.fromkeys([*before, *after])
    ]
    return sorted((each for each in found if _kernel_size(each)), key=lambda each: -_kernel_size(each))


def mean_per_step(side: Sequence[Chosen], costs: _Costs) -> dict[Signature, PerStep]:
    """Mean times of operators or kernels in the steps of one side, by name and shapes."""
    sums: dict[Signature, PerStep] = {}
    for each in side:
        if not each.steps:
            continue
        share, steps = 1 / (len(each.steps) * len(side)), set(each.steps)
        for row in costs(each.recording.costs):
            here = [at for at, step in enumerate(row.step) if step in steps]
            if here:
                columns = (row.calls, row.host_ns, row.device_ns)
                calls, host_ns, device_ns = (share * sum(column[at] for at in here) for column in columns)
                mean = PerStep(calls, host_ns, device_ns, row.known_by)
                sums[row.name, row.shapes] = sums.get((row.name, row.shapes), _NOTHING).plus(mean)
    return sums


def _operator(key: Signature, before: PerStep, after: PerStep, *, has_device: bool) -> OperatorChange:
    return OperatorChange(
        name=key[0],
        shapes=key[1],
        base_calls=before.calls,
        candidate_calls=after.calls,
        base_ns=round(before.host_ns),
        candidate_ns=round(after.host_ns),
        base_device_ns=round(before.device_ns) if has_device else None,
        candidate_device_ns=round(after.device_ns) if has_device else None,
        known_by=least_certain_of(before.known_by, after.known_by),
    )


def _kernel(key: Signature, before: PerStep, after: PerStep) -> KernelChange:
    return KernelChange(
        name=key[0],
        shapes=key[1],
        base_calls=before.calls,
        candidate_calls=after.calls,
        base_ns=round(before.device_ns),
        candidate_ns=round(after.device_ns),
        known_by=least_certain_of(before.known_by, after.known_by),
    )


def _operator_size(change: OperatorChange) -> int:
    device = (change.candidate_device_ns or 0) - (change.base_device_ns or 0)
    return max(abs(change.candidate_ns - change.base_ns), abs(device))


def _kernel_size(change: KernelChange) -> int:
    return abs(change.candidate_ns - change.base_ns)
