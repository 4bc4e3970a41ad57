"""What a report draws: an average step in parts, and its steps as columns.

Parts are those by which ranks are compared, so that one legend fits a device and a host alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tb_tidy_plugin.profile.lanes import Part
from tb_tidy_plugin.profile.steps import Oddity
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.report.rank_model import RankPart
from tb_tidy_plugin.report.rank_parts import RANK_PART, RANK_PARTS
from tb_tidy_plugin.report.step_model import Steps

MOST_COLUMNS = 200
ENOUGH_FOR_PERCENTILES = 10  # as on the page: below that the 10th percentile is the minimum in all but name
OVERLAP = 1.01  # a sum that differs by rounding alone is not worth a word


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar: from where on, and how much of the bar's full length, 0 to 1."""

    part: RankPart
    start: float
    share: float
    time_ns: float


@dataclass(frozen=True, slots=True)
class PartRow:
    """One part of the average step, in ns and of the whole step; the mean where there are several devices."""

    part: Part
    group: RankPart
    time_ns: float
    share: float


@dataclass(frozen=True, slots=True)
class Column:
    """A step, or the longest of several neighbours. `height` is of the highest column, 0 to 1."""

    name: str
    time_ns: int
    oddity: Oddity | None
    height: float
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The steps as columns; each stands for `per_column` steps."""

    columns: Sequence[Column]
    per_column: int


def parts_of_step(report: ProfileReport) -> list[PartRow]:
    """The average step, largest part first; what took no time is left out."""
    times: Counter[Part] = Counter()
    for lane in report.lanes:
        for part in lane.parts:
            times[part.part] += part.mean_ns
    whole_ns = sum(times.values())
    lanes = len(report.lanes)
    return [
        PartRow(part, RANK_PART[part], time_ns / lanes, time_ns / whole_ns)
        for part, time_ns in times.most_common()
        if time_ns > 0
    ]


def bar_of_step(rows: Sequence[PartRow]) -> list[Piece]:
    """The same as one bar of full length."""
    times = {group: sum(row.time_ns for row in rows if row.group == group) for group in RANK_PARTS}
    return _stacked(times, sum(times.values()))


def step_columns(report: ProfileReport) -> StepColumns:
    """Every step, cut into parts; of more steps than fit side by side, the longest of each so many neighbours."""
    items = report.steps.items
    per_column = -(-len(items) // MOST_COLUMNS) or 1
    groups = [range(at, min(at + per_column, len(items))) for at in range(0, len(items), per_column)]
    shown = [max(group, key=lambda at: items[at].duration_ns) for group in groups]
    highest = max((items[at].duration_ns for at in shown), default=0) or 1
    columns = [
        Column(
            name=items[at].name,
            time_ns=items[at].duration_ns,
            oddity=items[at].oddity,
            height=items[at].duration_ns / highest,
            pieces=_stacked(_times_in(report, at), highest),
        )
        for at in shown
    ]
    return StepColumns(columns, per_column)


def spread_of(steps: Steps) -> tuple[int, int, str] | None:
    """The shortest and the longest step, or the percentiles where there are enough; None for a step alone."""
    times = [step.duration_ns for step in steps.items]
    if len(times) < 2:
        return None
    if len(times) >= ENOUGH_FOR_PERCENTILES and steps.p10_ns is not None and steps.p90_ns is not None:
        return steps.p10_ns, steps.p90_ns, "p10–p90"
    return min(times), max(times), "min–max"


def overlap(report: ProfileReport) -> bool:
    """Whether the findings save less together than one by one."""
    added_up_ns = sum(finding.saving.expected_ns for finding in report.findings if finding.saving)
    return report.joint_saving is not None and added_up_ns > report.joint_saving.expected_ns * OVERLAP


def reach_of(findings: Sequence[Finding]) -> int:
    """What the bars of savings are drawn to scale with: the highest end of any of them, in ns."""
    return max((finding.saving.high_ns for finding in findings if finding.saving), default=0) or 1


def _times_in(report: ProfileReport, step: int) -> dict[RankPart, float]:
    times = dict.fromkeys(RANK_PARTS, 0.0)
    for lane in report.lanes:
        for part in lane.parts:
            if step < len(part.steps_ns):
                times[RANK_PART[part.part]] += part.steps_ns[step] / len(report.lanes)
    return times


def _stacked(times: dict[RankPart, float], whole: float) -> list[Piece]:
    pieces: list[Piece] = []
    start = 0.0
    for part, time_ns in times.items():
        if time_ns > 0:
            pieces.append(Piece(part, start, time_ns / whole, time_ns))
            start += time_ns / whole
    return pieces
