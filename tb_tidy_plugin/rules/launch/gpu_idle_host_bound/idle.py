"""Idle time of a device because of the host's pace, and the host events that it waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.lanes import covered, idle_parts
from tb_tidy_plugin.profile.readbacks import device_readbacks, idle_after
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, HOST_TREE, Category, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

SHALLOW = 1
"""Unfinished work at the next launch, up to which the device lives from hand to mouth."""


class HostBoundIdle(msgspec.Struct, frozen=True):
    """Time in which a device was idle because the host had not launched anything yet.

    Attributes:
        time: that time, in pieces of gaps in the device's work.
        ended_by: the innermost host event around the launch that ended each piece's gap; the launch itself if no event
            encloses it.
        after_ns: busy time of the device just before each piece's gap.
        median_kernel_ns: median duration of the device's kernels.
        shallow: part of the launches that found at most `SHALLOW` unfinished pieces of launched work.
    """

    time: Intervals
    ended_by: Rows
    after_ns: Times
    median_kernel_ns: int
    shallow: float

    def beyond_ns(self, slowdown: float) -> int:
        """The part of the time that would remain if recording had slowed the host by `slowdown`, in recorded time.

        The host launched the next work as late as the gap and the work before it took together. A faster host leaves
        what is longer than the work, so a gap shrinks by the time that the host was slower during that work.
        """
        length = self.time.ends - self.time.starts
        return int(np.maximum(length - (slowdown - 1) * self.after_ns, 0).sum())

    def longest(self, count: int) -> list[int]:
        """The host events that ended the longest `count` pieces, in row order."""
        order = np.argsort(self.time.starts - self.time.ends, kind="stable")
        events: list[int] = distinct(self.ended_by[order[:count]]).tolist()
        return events

    def by_place(self, profile: Profile, is_place: Callable[[str], bool]) -> list[tuple[int, int, int]]:
        """The idle time by the nearest event around `ended_by`, or itself, whose name is a place: longest first.

        For each place the row of one such event, the idle time in ns, and the event that ended its longest piece.
        Without such an event the event itself is the place; those of one name are one place.
        """
        table, tree = profile.table, profile.tree
        is_named = among(table.name, numbers_where(table.names, is_place)) & table.is_category(HOST_TREE)
        near = np.append(tree.nearest_ancestor(is_named[: tree.size]), np.full(len(table) - tree.size, ABSENT))
        place = np.where(is_named | (near == ABSENT), np.arange(len(table)), near)[self.ended_by]
        length = self.time.ends - self.time.starts
        found = []
        for here in positions_of_each(table.name[place]):
            longest = here[np.argmax(length[here])]
            found.append((int(place[longest]), int(length[here].sum()), int(self.ended_by[longest])))
        return sorted(found, key=lambda entry: -entry[1])


def host_bound_idle(profile: Profile, device: int, most_gap_ns: float) -> HostBoundIdle:
    """The idle time of `device` that only the host's pace explains.

    That is time that no loader, compilation, garbage collection, communication or wait for the device explains
    (`idle_parts`), in gaps of at most `most_gap_ns` whose next work was launched after they began: work launched before
    waited for something on a device. Warm-up steps do not count, nor does time outside steps.
    """
    table, steady = profile.table, _steady(profile)
    work = np.flatnonzero(table.is_category(DEVICE_WORK) & (table.device == device))
    work = work[np.argsort(table.start_ns[work], kind="stable")]
    busy = covered(table, work)
    gap_starts, gap_ends = busy.ends[:-1], busy.starts[1:]
    following = work[np.searchsorted(table.start_ns[work], gap_ends)]
    launch = profile.launch[following]
    late = (launch != ABSENT) & (table.start_ns[launch] >= gap_starts) & (gap_ends - gap_starts <= most_gap_ns)
    gaps, launch = Intervals(gap_starts[late], gap_ends[late]), launch[late]
    free = idle_parts(table, device)["idle_launch_bound"].minus(_after_readbacks(profile))
    time = free.intersection(gaps).intersection(steady)
    gap = np.searchsorted(gaps.starts, time.starts, side="right") - 1
    cause = np.where(profile.launched_by[launch] == ABSENT, launch, profile.launched_by[launch])
    kernels = work[table.category[work] == Category.KERNEL]
    return HostBoundIdle(
        time=time,
        ended_by=cause[gap],
        after_ns=(busy.ends - busy.starts)[:-1][late][gap],
        median_kernel_ns=round(float(np.median(table.durations_of(kernels)))) if len(kernels) else 0,
        shallow=_shallow(profile, work),
    )


def _steady(profile: Profile) -> Intervals:
    """The steps after the warm-up."""
    steps = profile.steps
    wanted = np.array([oddity != "warmup" for oddity in steps.oddities], np.bool_)
    return Intervals.union(steps.starts[wanted], steps.ends[wanted])


def _after_readbacks(profile: Profile) -> Intervals:
    """The idle time that reading values of a device costs."""
    idle = idle_after(profile, device_readbacks(profile))
    edges = np.array([span for spans in idle.values() for span in spans], np.int64).reshape(-1, 2)
    return Intervals.union(edges[:, 0], edges[:, 1])


def _shallow(profile: Profile, work: Rows) -> float:
    work = work[profile.launch[work] != ABSENT]
    launched = np.sort(profile.table.start_ns[profile.launch[work]])
    done = np.sort(profile.table.end_ns[work])
    depth = np.arange(len(launched)) - np.searchsorted(done, launched, side="right")
    return float((depth <= SHALLOW).mean()) if len(depth) else 0.0
