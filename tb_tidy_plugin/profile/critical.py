"""The time of events that the step waits for, as far as a recording shows it, and time per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.lanes import covered
from tb_tidy_plugin.trace.columns import ABSENT, Rows

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile


def critical_time(profile: Profile, rows: Rows) -> Intervals:
    """When the step waits for `rows`: for device work while it runs, for the host only while no device runs.

    Host events count with the device work that they launch. A host that runs ahead of a busy device delays nobody: time
    taken away there only makes the queue of launched work longer. Without a device the step waits for all of its host.
    """
    table = profile.table
    host = rows[rows < profile.tree.size]
    time = covered(table, host)
    if "device" not in profile.recorded:
        return time
    device = rows[rows >= profile.tree.size]
    work = covered(table, np.concatenate([device, profile.device_activity_of_all(host)]))
    return work.plus(time.minus(profile.device_busy))


def device_idle(profile: Profile) -> Intervals:
    """When no device runs, which is when a step waits for its host; always where no device was recorded.

    Time before the first and after the last work of a device is idle, too.
    """
    always = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    return Intervals(*always).minus(profile.device_busy)


def in_steps(profile: Profile, rows: Rows) -> Rows:
    """Those of `rows` that belong to a step; all of them where there are no steps."""
    return rows[profile.step_of(rows) != ABSENT] if profile.steps.items else rows


def clipped_to_steps(profile: Profile, time: Intervals) -> Intervals:
    """What of `time` lies in steps, and behind the last one until all is done that they launched.

    All of it where there are no steps.
    """
    return time.intersection(profile.step_time) if profile.steps.items else time


def per_step(profile: Profile, time: Intervals) -> int:
    """`time`, in ns, divided by the number of steps; all of it where there are no steps."""
    return round(time.total_ns / max(len(profile.steps.items), 1))
