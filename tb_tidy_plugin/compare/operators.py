"""Operators that take more or less time per step than before, by name and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tidy_plugin.compare.model import OperatorChange, PartChange
from tb_tidy_plugin.report.figures import OperatorRow
from tb_tidy_plugin.report.model import Lane
from tb_tidy_plugin.report.summary import ProfileSummary

MOST_ROWS = 200


@dataclass(slots=True)
class _PerStep:
    calls: float = 0.0
    host_ns: float = 0.0
    device_ns: float | None = None

    def add(self, row: OperatorRow, steps: int) -> None:
        self.calls += row.calls / steps
        self.host_ns += row.host_self_ns / steps
        if row.device_self_ns is not None:
            self.device_ns = (self.device_ns or 0.0) + row.device_self_ns / steps


def operator_changes(base: Sequence[ProfileSummary], candidate: Sequence[ProfileSummary]) -> list[OperatorChange]:
    """The largest changes of self time per step, of the slower of host and device; the mean over ranks."""
    before, after = _by_signature(base), _by_signature(candidate)
    nothing = _PerStep()
    found = [
        _change(key, before.get(key, nothing), after.get(key, nothing)) for key in dict.fromkeys([*before, *after])
    ]
    return sorted((each for each in found if _size(each)), key=lambda each: -_size(each))[:MOST_ROWS]


def _by_signature(profiles: Sequence[ProfileSummary]) -> dict[tuple[str, str], _PerStep]:
    sums: dict[tuple[str, str], _PerStep] = {}
    for profile in profiles:
        steps = max(profile.report.steps.count, 1) * len(profiles)
        for row in profile.figures.operators.get("shape") or profile.figures.operators.get("name", []):
            if row.kind == "operator":
                sums.setdefault((row.name, row.shapes), _PerStep()).add(row, steps)
    return sums


def _change(key: tuple[str, str], before: _PerStep, after: _PerStep) -> OperatorChange:
    has_device = before.device_ns is not None or after.device_ns is not None
    return OperatorChange(
        name=key[0],
        shapes=key[1],
        base_calls=before.calls,
        candidate_calls=after.calls,
        base_ns=round(before.host_ns),
        candidate_ns=round(after.host_ns),
        base_device_ns=round(before.device_ns or 0) if has_device else None,
        candidate_device_ns=round(after.device_ns or 0) if has_device else None,
    )


def _size(change: OperatorChange) -> int:
    device = (change.candidate_device_ns or 0) - (change.base_device_ns or 0)
    return max(abs(change.candidate_ns - change.base_ns), abs(device))


def part_changes(base: Sequence[ProfileSummary], candidate: Sequence[ProfileSummary]) -> list[PartChange]:
    """The parts of a step side by side; the mean over ranks."""
    before, after = _parts(base), _parts(candidate)
    return [
        PartChange(lane=lane, part=part, base_ns=round(before.get(key, 0.0)), candidate_ns=round(after.get(key, 0.0)))
        for key in dict.fromkeys([*before, *after])
        for lane, part in [key]
    ]


def _parts(profiles: Sequence[ProfileSummary]) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for profile in profiles:
        for lane in profile.report.lanes:
            for part in lane.parts:
                key = (_kind(lane), part.part)
                sums[key] = sums.get(key, 0.0) + part.mean_ns / len(profiles)
    return sums


def _kind(lane: Lane) -> str:
    """Ranks use devices of other numbers for the same work."""
    return lane.lane.split(":", 1)[0]
