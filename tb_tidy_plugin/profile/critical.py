"""The time of events that the step waits for, as far as a recording shows it, and time per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals, covered
from tb_tidy_plugin.profile.start_up import loading_time
from tb_tidy_plugin.trace.columns import Category, Rows

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile


def critical_time(profile: Profile, rows: Rows) -> Intervals:
    """Spans in which the step waits for `rows`: for device work while it runs, for the host only while no device runs.

    Host events count with the device work that they launch. A host that runs ahead of a busy device delays nobody:
    saving time there only lengthens the queue of launched work. Operators do not cost the time in which they load
    kernels, because any other one would do that in their place. Without a device, the step waits for all of its host's
    work.
    """
    table = profile.table
    host = rows[rows < profile.tree.size]
    if "device" not in profile.recorded:
        return covered(table, host)
    is_operator = table.category[host] == Category.OPERATOR
    time = covered(table, host[is_operator]).minus(loading_time(profile)).plus(covered(table, host[~is_operator]))
    device = rows[rows >= profile.tree.size]
    work = covered(table, np.concatenate([device, profile.device_activity_of_all(host)]))
    return work.plus(time.minus(profile.device_busy))


def device_idle(profile: Profile) -> Intervals:
    """Spans in which no device runs, so that a step waits for its host; all time if no device was recorded.

    Time before the first and after the last work of a device is also idle.
    """
    always = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    return Intervals(*always).minus(profile.device_busy)


def clipped_to_steps(profile: Profile, time: Intervals) -> Intervals:
    """The part of `time` that lies in steps, or after the last one until all work that they launched is done.

    All of it without steps.
    """
    return time.intersection(profile.step_time) if profile.steps.items else time


def per_step(profile: Profile, time: Intervals) -> int:
    """`time`, in ns, divided by the number of steps; all of it without steps."""
    return profile.steps.mean_of(time.total_ns)
