"""The time that a step waits for, as far as a recording shows it: of events, of a side, and for kernels that load.

CUDA loads a kernel when it is launched for the first time, which takes the launching call up to hundreds of
milliseconds. Operators that happen to be the first pay for that, and would not again: a step takes this time once, and
no operator costs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.intervals import Intervals, covered
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import first_of_each

LOADING = re.compile(r"^(?:Lazy Function Loading|Runtime Triggered Module Loading|Driver Compiler)$")
"""Names of CUPTI's overheads that are loads of kernels: the driver's, with the profiler or without it."""

PROFILER_OVERHEADS = re.compile(
    r"^(?:Buffer Flush|Activity Buffer Request|Instrumentation|Resource|UVM Activity Init)$"
)
"""Names of CUPTI's overheads that only recording causes; the others are of unknown kinds, or waits for the device."""

FIRST_LAUNCH = (
    r"Launch|ModuleLoad|LibraryLoad|GetFunction|FuncGetAttributes|FuncSetAttribute|OccupancyMax|GetSymbolAddress"
)
"""Runtime calls that load what they are the first to need."""

LONG_CALL_NS = 300_000
"""From this time on, a runtime call that launches or asks for a kernel loads it, unless it waits for the device."""

FULL_QUEUE = 256
"""Unfinished pieces of work from which a long launch is one that waits for a place in the queue: drivers hold about
1,024 launches, fewer of those with many arguments.
"""


@once
def loading_calls(profile: Profile) -> Rows:
    """Runtime calls that load kernels, in row order.

    They are long, launch something for the first time in the recording or only ask for it, are not waiting for a place
    in a full queue, and last until their own work begins: a launch that blocks lasts until it is done.
    """
    table = profile.table
    calls = profile.matching(FIRST_LAUNCH, Category.RUNTIME)
    calls = calls[table.durations_of(calls) > LONG_CALL_NS]
    if not len(calls):
        return calls
    work = np.flatnonzero(profile.launch != ABSENT)
    launched, ends = np.sort(table.start_ns[profile.launch[work]]), np.sort(table.end_ns[work])
    depth = np.searchsorted(launched, table.start_ns[calls]) - np.searchsorted(ends, table.start_ns[calls])
    begun_ns = np.full(len(table), np.iinfo(np.int64).max)  # start of the first work of each call
    np.minimum.at(begun_ns, profile.launch[work], table.start_ns[work])
    before_ns = np.minimum(begun_ns[calls], table.end_ns[calls]) - table.start_ns[calls]
    found: Rows = calls[(depth < FULL_QUEUE) & (before_ns > LONG_CALL_NS) & ~_launches_again(profile)[calls]]
    return found


def _launches_again(profile: Profile) -> Mask:
    """Mask of the runtime calls that launch device work of a name that an earlier call launched."""
    table, launch = profile.table, profile.launch
    work = np.flatnonzero(launch != ABSENT)
    work = work[np.argsort(table.start_ns[launch[work]], kind="stable")]
    first = first_of_each(table.name[work], len(table.names))
    found = np.zeros(len(table), np.bool_)
    found[launch[work][launch[work[first[table.name[work]]]] != launch[work]]] = True
    return found


@once
def loading_time(profile: Profile) -> Intervals:
    """Spans in which kernels are loaded, by calls or as the recording names it."""
    table = profile.table
    named = np.flatnonzero((table.category == Category.OVERHEAD) & table.is_named(LOADING.search))
    return covered(table, np.concatenate([loading_calls(profile), named]))


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


def slower_side(profile: Profile, operators: Iterable[int]) -> tuple[int, ...]:
    """`operators`, or the device work that they launch if that takes longer: the other side waits for it, or could.

    A host that takes 10 µs to launch 500 µs of work costs a step 500 µs; one that takes 10 µs to launch 2 µs costs 10.
    Operators that load kernels say nothing about the host of a warm step: then it is the device, if that works at all.
    """
    host = rows_of(operators)
    device = profile.device_activity_of_all(host)
    loading = np.sort(profile.launched_by[loading_calls(profile)])
    last = profile.tree.last_descendant[host]
    is_cold = np.searchsorted(loading, host) < np.searchsorted(loading, last, side="right")
    if is_cold.any():
        warm = host if is_cold.all() else host[~is_cold]
        return tuple((device if len(device) else warm).tolist())
    is_device = profile.covered(device).total_ns > profile.covered(host).total_ns
    return tuple((device if is_device else host).tolist())
