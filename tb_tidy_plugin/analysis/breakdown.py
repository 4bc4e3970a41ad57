"""Time by part for the report: over the whole profile, and step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict

from tb_tidy_plugin.profile.lanes import LaneParts
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.step_model import Breakdown, Lane, LanePart

IDLE = "idle_"


def breakdown_of(profile: Profile, lanes: Sequence[LaneParts]) -> Breakdown:
    """Unions over the whole profile; idle time by cause is that of the steps in `lanes`, averaged over devices."""
    return Breakdown(**asdict(profile.time_spent), idle_by_cause_ns=_idle_by_cause(lanes))


def lanes_of(profile: Profile, lanes: Sequence[LaneParts]) -> list[Lane]:
    """The steps of each device, or of the host, cut into parts that add up to them."""
    return [_lane(profile, lane) for lane in lanes]


def _idle_by_cause(lanes: Sequence[LaneParts]) -> dict[str, int] | None:
    if any(lane.device is None for lane in lanes):
        return None
    causes: Counter[str] = Counter()
    for lane in lanes:
        idle = {part: times for part, times in lane.parts.items() if part.startswith(IDLE)}
        causes.update({part.removeprefix(IDLE): int(times.sum()) for part, times in idle.items()})
    return {cause: round(total / len(lanes)) for cause, total in causes.items()}


def _lane(profile: Profile, lane: LaneParts) -> Lane:
    return Lane(
        lane="host" if lane.device is None else f"{profile.platform}:{lane.device}",
        parts=[
            LanePart(part=part, mean_ns=round(float(times.mean())), steps_ns=times.tolist())
            for part, times in lane.parts.items()
        ],
        communication_overlapped_ns=round(float(lane.communication_overlapped_ns.mean())),
    )
