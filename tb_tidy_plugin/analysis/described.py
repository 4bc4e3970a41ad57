"""Description of a profile for the report: its steps, its devices, and its time by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from tb_tidy_plugin.profile.devices import device_name
from tb_tidy_plugin.profile.lanes import LaneParts, step_parts
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report import model
from tb_tidy_plugin.report.step_model import Breakdown, Lane, LanePart, StepItem, Steps
from tb_tidy_plugin.trace.columns import DEVICE_WORK
from tb_tidy_plugin.trace.sets import distinct

IDLE = "idle_"


class ProfileParts(msgspec.Struct, frozen=True):
    """What each report says of a profile besides its findings."""

    devices: list[model.Device]
    steps: Steps
    breakdown: Breakdown
    lanes: list[Lane]


def parts_of_profile(profile: Profile) -> ProfileParts:
    """The devices, the steps, and their time by part."""
    lanes = step_parts(profile.table, profile.steps)
    return ProfileParts(_devices(profile), _steps(profile), _breakdown(profile, lanes), lanes_of(profile, lanes))


def _steps(profile: Profile) -> Steps:
    """The steps, and where they were taken from."""
    steps = profile.steps
    return Steps(
        basis=steps.basis,
        count=len(steps.items),
        median_ns=steps.median_ns,
        p10_ns=steps.percentile_ns(10),
        p90_ns=steps.percentile_ns(90),
        items=[
            StepItem(name=step.name, start_ns=step.start_ns, duration_ns=step.duration_ns, oddity=oddity)
            for step, oddity in zip(steps.items, steps.oddities, strict=True)
        ],
    )


def _devices(profile: Profile) -> list[model.Device]:
    """The devices that did something, with what the trace knows of them."""
    used = distinct(profile.table.device[profile.table.is_category(DEVICE_WORK)])
    return [_device(profile, index) for index in used.tolist()]


def _device(profile: Profile, index: int) -> model.Device:
    known = profile.device_properties(index)
    version = None
    if known is not None and known.computeMajor is not None:
        version = f"{known.computeMajor}.{known.computeMinor or 0}"
    name, kind = device_name(known) if known else "", profile.metadata.inferred_devices.get(index)
    if kind is not None:
        return model.Device(kind=kind, index=index, name=f"{name} (inferred)".strip(), compute_capability=None)
    return model.Device(kind=profile.platform, index=index, name=name, compute_capability=version)


def _breakdown(profile: Profile, lanes: Sequence[LaneParts]) -> Breakdown:
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
