"""Loading of kernels at their first launch: time that a step takes once, and that no operator costs.

CUDA loads a kernel when it is launched for the first time, which takes the launching call up to hundreds of
milliseconds. Operators that happen to be the first pay for that, and would not again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals, covered
from tb_tidy_plugin.profile.kept import once
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import first_of_each

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

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
