"""Quality of a recording: notes on how far its figures can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_tidy_plugin.estimate.saving import MOST_RESIDUAL, SOME_UNEXPLAINED, SavingEstimates
from tb_tidy_plugin.profile.device_models import device_name, is_named, plain_name
from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import UNMARKED
from tb_tidy_plugin.report.model import Quality
from tb_tidy_plugin.torchfacts.event_names import GIVES_WORK
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, DeviceProperties
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.words.units import Nanoseconds, Share

NOTABLE_MISMATCH = 0.001
"""Least share of misplaced Python frames that is reported."""


SHOWN_DEVICES, SHOWN_MARKS = 8, 3

NOTABLE_RECORDING = 0.05
"""Least part of a step taken by the profiler itself that is reported."""


def quality_of(profile: Profile, estimates: SavingEstimates | None = None) -> Quality:
    """Counts of missing, misplaced or impossible data in the recording, with a sentence for each."""
    table = profile.table
    mismatch = parent_mismatch(profile)
    notes = []
    if table.partial:
        notes.append(f"{table.partial}: the numbers cover what comes before.")
    notes += table.metadata.notes
    notes += [f"{count:,} events left out: {reason}." for reason, count in table.dropped.items() if count]
    if mismatch is not None and mismatch > NOTABLE_MISMATCH:
        notes.append(f"{Share(mismatch)} of the Python frames lie below a frame that is not their recorded parent.")
    notes += [*_steps(profile), *_launches(profile), *_devices(profile)]
    if "device" in profile.recorded and not profile.tree.size:
        notes.append("Only device events were recorded: there are no steps and no source lines.")
    if estimates is not None:
        notes += _estimates(estimates, _time_of_steps(profile))
    return Quality(
        partial=table.partial is not None,
        dropped_events=sum(table.dropped.values()),
        parent_mismatch=mismatch,
        notes=notes,
        unknown_events=table.metadata.unknown_events,
    )


def _steps(profile: Profile) -> Iterator[str]:
    steps = profile.steps
    unused = steps.unused
    if unused.cut:
        overlaps = _many(unused.cut, "step mark overlaps", "step marks overlap")
        yield f"{overlaps} the next one: a step ends where the next begins."
    if unused.nested and steps.basis == "profiler_step":
        lies = _many(unused.nested, "step mark lies", "step marks lie")
        yield f"{lies} inside another one: only the outer one counts."
    if unused.elsewhere:
        left = _many(unused.elsewhere, "mark is", "marks are")
        yield (f"Several threads mark steps at the same time. Only the thread with most marks counts: {left} left out.")
    if unused.empty:
        names = ", ".join(f"`{step.name}`" for step in unused.empty[:SHOWN_MARKS])
        more = len(unused.empty) - SHOWN_MARKS
        names += f" and {more:,} more" if more > 0 else ""
        what = "contains" if len(unused.empty) == 1 else "contain"
        count = "it does not count as a step" if len(unused.empty) == 1 else "they do not count as steps"
        yield f"{names} {what} little or no work: {count}."
    empty = sum(step.duration_ns == 0 for step in steps.items)
    if empty:
        yield f"{_many(empty, 'step has', 'steps have')} no length."
    if profile.pace.behind_ns:
        late, took = (
            Nanoseconds(profile.pace.done_ns - int(steps.ends.max())),
            Nanoseconds(profile.pace.recorded_ns or 0),
        )
        yield f"Devices fall behind their host: they finish {late} after its last step. A step takes about {took}."


def _launches(profile: Profile) -> Iterator[str]:
    """Notes on device events without launches, and on the arrows that connect them."""
    table, launch = profile.table, profile.launch
    work = np.flatnonzero(table.is_category(DEVICE_WORK))
    if not len(work):
        return
    launched = work[launch[work] != ABSENT]
    if len(launched) < len(work):
        yield f"{len(work) - len(launched):,} of {len(work):,} device events have no launch in the file."
        if earlier := int(profile.device_work.is_earlier.sum()):
            event = _many(earlier, "device event comes", "device events come")
            belongs = "it belongs" if earlier == 1 else "they belong"
            yield f"{event} before all launched work of the stream: {belongs} to no step."
    calls = profile.matching(GIVES_WORK, Category.RUNTIME)
    idle = int((~among(calls, launch[launched])).sum())
    if idle:
        yield f"{_many(idle, 'launch has', 'launches have')} no device event in the file."
    early_ns = table.start_ns[launch[launched]] - table.start_ns[launched]
    early = int((early_ns > 0).sum())
    if early:
        start = _many(early, "device event starts", "device events start")
        yield f"{start} up to {Nanoseconds(early_ns.max())} before the launch: clocks differ."
    flows = table.flows
    started = distinct(flows.flow[flows.is_start])
    loose = int((~among(flows.flow[~flows.is_start], started)).sum())
    if loose and len(launched) < len(work):  # usual in Kineto's traces, and irrelevant where launches are known
        yield f"{_many(loose, 'flow arrow has', 'flow arrows have')} an end and no start."


def _devices(profile: Profile) -> Iterator[str]:
    table = profile.table
    known = profile.metadata.devices
    used = set(distinct(table.device[table.is_category(DEVICE_WORK)]).tolist())
    strange = sorted(used - {device.id for device in known} - set(profile.metadata.inferred_devices))
    if strange and known:
        names = ", ".join(map(str, strange))
        listed = {device_name(device) for device in known}
        alike = listed.pop() if len(listed) == 1 else ""
        what = f"it is taken for the {alike} that is listed" if alike else "its name and peak rates are unknown"
        yield f"The trace describes no device {names}: {what}."
    unnamed = {device_name(device) for device in known if device.id in used and not is_named(device)}
    for name in sorted(name for name in unnamed if plain_name(name)):
        yield f"The trace does not name its device: architecture, size and memory are those of the {name}."
    estimated = [device for device in known if device.id in used and _is_estimated(profile, device)]
    for name in sorted({device_name(device) or "device" for device in estimated}):
        yield f"The limits of the {name} are estimated from its architecture, size and memory: no datasheet is known."
    if len(used) > 1:
        shares = ", ".join(f"device {device} for {share}" for device, share in _busy_shares(profile)[:SHOWN_DEVICES])
        yield (
            f"{len(used)} devices work in this process. The ledger counts a moment as busy if any of them works. "
            f"Share of the step in which each works by itself: {shares}."
        )


def _is_estimated(profile: Profile, device: DeviceProperties) -> bool:
    model = profile.device_model(device)
    return model is not None and model.source == "estimated"


def _busy_shares(profile: Profile) -> list[tuple[int, Share]]:
    """Part of the ledger's window in which each device works, by the device's number."""
    table, span, work = profile.table, profile.step_bounds, profile.device_work
    device, length_ns = table.device[work.rows], span.end_ns - span.start_ns
    window = np.array([span.start_ns]), np.array([span.end_ns])
    found = []
    for at in positions_of_each(device):
        busy_ns = int(Intervals.union(work.starts[at], work.ends[at]).within(*window)[0])
        found.append((int(device[at[0]]), Share(busy_ns / max(length_ns, 1))))
    return sorted(found)


def _time_of_steps(profile: Profile) -> str:
    """The time that the steps cover together, in words."""
    if profile.steps.basis in UNMARKED:
        return "the recording"
    return "the step" if len(profile.steps.items) == 1 else "the steps' time"


def _estimates(estimates: SavingEstimates, time: str) -> Iterator[str]:
    """Notes on how far savings can be trusted; `time` is what the steps cover together."""
    sure = f"savings are of {estimates.confidence} confidence at most."
    if estimates.residual is not None and estimates.residual > MOST_RESIDUAL:
        yield f"Replaying the recording misses one of its steps by {Share(estimates.residual)}: {sure}"
    if estimates.unexplained > SOME_UNEXPLAINED:
        share = Share(estimates.unexplained)
        yield f"For {share} of {time} the replay finds nothing that explains when the device works: {sure}"
    if estimates.recording > NOTABLE_RECORDING:
        yield (
            f"Recording takes about {Share(estimates.recording)} of a step or more; the lower bounds of savings allow "
            "for this part. In steps of 7 to 62 ms it took twice as much: `tb_tidy_plugin.capture` times steps without "
            "the profiler."
        )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def parent_mismatch(profile: Profile) -> float | None:
    """Share of the Python frames with a recorded parent that the tree places below another one; None without any."""
    size = profile.tree.size
    is_python = profile.table.category[:size] == Category.PYTHON
    frames = np.flatnonzero(is_python)
    own, wanted = profile.table.python_id[:size], profile.table.python_parent_id[:size]
    known = frames[among(wanted[frames], own[frames]) & (wanted[frames] != ABSENT)]
    if not len(known):
        return None
    above = profile.tree.nearest_ancestor(is_python)[known]
    rebuilt = np.where(above == ABSENT, ABSENT, own[above])
    return float((rebuilt != wanted[known]).mean())
