"""The ledger's time in which a device idles because of the host's pace, and the host events that it waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tb_tidy_plugin.ledger.account import Account, account_of
from tb_tidy_plugin.ledger.model import ordinary_steps
from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.causes import Cause

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

SHALLOW = 1
"""Unfinished work at the next launch, up to which the device lives from hand to mouth."""


class HostBoundIdle(msgspec.Struct, frozen=True):
    """The time of the ledger's entry `launch_pace`: the device idles, and the host has not launched anything yet.

    It comes in pieces, since a gap in the device's work may also hold time of other entries.

    Attributes:
        starts, ends: of each piece, ascending.
        ended_by: of each piece, the innermost host event around the launch that ended its gap, the launch itself if no
            event encloses it, or the host's call in the piece if nothing follows; `ABSENT` if nothing is recorded.
        in_gap_ns: time of this entry in each gap that has any. after_ns: busy time of the device just before each.
        between: part of the time between two pieces of device work, and not before the first or after the last.
        of_usual_steps: part of the steps after the warm-up that this time takes.
        median_kernel_ns: median duration of the device's kernels.
        shallow: part of the launches that found at most `SHALLOW` unfinished pieces of launched work.
    """

    starts: Times
    ends: Times
    ended_by: Rows
    in_gap_ns: Times
    after_ns: Times
    between: float
    of_usual_steps: float
    median_kernel_ns: int
    shallow: float

    @property
    def time(self) -> Intervals:
        """All of it."""
        return Intervals.union(self.starts, self.ends)

    def beyond_ns(self, slowdown: float) -> int:
        """The part of the time that would remain if recording had slowed the host by `slowdown`, in recorded time.

        The host launched the next work as late as the gap and the work before it took together. A faster host leaves
        what is longer than the work, so a gap shrinks by the time that the host was slower during that work.
        """
        return int(np.maximum(self.in_gap_ns - (slowdown - 1) * self.after_ns, 0).sum())

    def longest(self, count: int) -> list[int]:
        """The host events that ended the longest `count` pieces, in row order."""
        known = np.flatnonzero(self.ended_by != ABSENT)
        order = known[np.argsort((self.starts - self.ends)[known], kind="stable")]
        events: list[int] = distinct(self.ended_by[order[:count]]).tolist()
        return events

    def by_place(self, profile: Profile, is_place: Callable[[str], bool]) -> list[tuple[int, int, int]]:
        """The time by the nearest event around `ended_by`, or itself, whose name is a place: longest first.

        For each place the row of one such event, the idle time in ns, and the event that ended its longest piece.
        Without such an event the event itself is the place; those of one name are one place.
        """
        table, tree = profile.table, profile.tree
        known = np.flatnonzero(self.ended_by != ABSENT)
        ended_by, length = self.ended_by[known], (self.ends - self.starts)[known]
        is_named = among(table.name, numbers_where(table.names, is_place)) & table.is_category(HOST_TREE)
        near = np.append(tree.nearest_ancestor(is_named[: tree.size]), np.full(len(table) - tree.size, ABSENT))
        place = np.where(is_named | (near == ABSENT), np.arange(len(table)), near)[ended_by]
        found = []
        for here in positions_of_each(table.name[place]):
            longest = here[np.argmax(length[here])]
            found.append((int(place[longest]), int(length[here].sum()), int(ended_by[longest])))
        return sorted(found, key=lambda entry: -entry[1])


def host_bound_idle(profile: Profile) -> HostBoundIdle | None:
    """The time of the ledger's entry `launch_pace`; None if it has no such entry."""
    account = account_of(profile)
    segments, work = account.segments, profile.device_work
    here = np.flatnonzero(segments.cause == Cause.LAUNCH_PACE.number)
    if not len(here):
        return None
    starts, ends = segments.starts[here], segments.ends[here]
    busy = Intervals.union(work.starts, work.ends)
    gap = np.searchsorted(busy.ends, starts, side="right")  # number of busy spans before each piece
    first = np.flatnonzero(np.append(True, np.diff(gap) != 0))  # the first piece of each gap
    after = np.append(0, busy.ends - busy.starts)  # by the number of busy spans so far, the last one's length
    in_gap_ns = np.add.reduceat(ends - starts, first)
    is_between = (gap[first] > 0) & (gap[first] < len(busy.starts))
    kernels = work.rows[profile.table.category[work.rows] == Category.KERNEL]
    return HostBoundIdle(
        starts=starts,
        ends=ends,
        ended_by=_ended_by(profile, segments.work[here], account.calls[here]),
        in_gap_ns=in_gap_ns,
        after_ns=after[gap[first]],
        between=float(in_gap_ns[is_between].sum() / in_gap_ns.sum()),
        of_usual_steps=_of_usual_steps(profile, account),
        median_kernel_ns=round(float(np.median(profile.table.durations_of(kernels)))) if len(kernels) else 0,
        shallow=_shallow(profile, work.rows),
    )


def _ended_by(profile: Profile, work: Numbers, calls: Numbers) -> Rows:
    """The host event around the launch of each piece of `work`, else the one of `calls`."""
    launch = np.where(work == ABSENT, ABSENT, profile.launch[work])
    around = np.where(launch == ABSENT, ABSENT, profile.launched_by[launch])
    found: Rows = np.where(around != ABSENT, around, np.where(launch != ABSENT, launch, calls)).astype(np.int64)
    return found


def _of_usual_steps(profile: Profile, account: Account) -> float:
    """The entry's part of the steps after the warm-up, or of all steps if all are warm-up."""
    marked = zip(profile.steps.items, profile.steps.oddities, strict=True)
    usual = ordinary_steps(account.ledger, {step.name for step, oddity in marked if oddity == "warmup"})
    (entry,) = (each for each in account.ledger.entries if each.cause is Cause.LAUNCH_PACE)
    steps = account.ledger.steps
    whole_ns = sum(steps[at].end_ns - steps[at].start_ns for at in usual)
    return sum(entry.ns_by_step[at] for at in usual) / max(whole_ns, 1)


def _shallow(profile: Profile, work: Rows) -> float:
    work = work[profile.launch[work] != ABSENT]
    launched = np.sort(profile.table.start_ns[profile.launch[work]])
    done = np.sort(profile.table.end_ns[work])
    depth = np.arange(len(launched)) - np.searchsorted(done, launched, side="right")
    return float((depth <= SHALLOW).mean()) if len(depth) else 0.0
