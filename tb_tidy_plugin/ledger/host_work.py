"""Host work that a device waits for, by the user's function that causes it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.owners import is_library_frame
from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, per_step
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.frames import parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.causes import Cause

MOST_EVENTS = 200


class HostWait(msgspec.Struct, frozen=True):
    """Time in which a device waits for host work of one of the user's own functions.

    Attributes:
        anchor: the innermost event of the longest piece.
        events: the calls that do the work, those with most of it, at most `MOST_EVENTS`, in row order. Each is the
            outermost one that launches nothing, or a function that launches and does most of the work itself.
        time: spans in which the device waits, over all steps.
        per_step_ns: the same per step. share: of the step, or of the ledger's window without steps.
        parts: what does the work, largest first: a row of the nearest function outside PyTorch and the standard
            library, else of the operator, and its time over all steps, in ns.
        recorded_every_ns: mean distance of the recorded host events meanwhile.
    """

    anchor: int
    events: tuple[int, ...]
    time: Intervals
    per_step_ns: int
    share: float
    parts: tuple[tuple[int, int], ...]
    recorded_every_ns: float


def waits_for_host_work(profile: Profile) -> list[HostWait]:
    """The ledger's host work, by own function, in steps after the warm-up; empty if no step is steady.

    Excludes operators that launch device work, and all operators inside them: their library causes the time before the
    launch.
    """
    account = account_of(profile)
    if account.ledger.recording != "steady":
        return []
    here = np.flatnonzero((account.segments.cause == Cause.HOST_WORK.number) & (account.calls != ABSENT))
    rows = account.calls[here]
    rows = np.where(rows < profile.tree.size, rows, profile.launched_by[rows])
    names = _Names(profile)
    doer = names.inclusive(names.acts)[rows]
    outermost = names.inclusive(names.is_operator & ~np.append(names.is_operator, False)[names.around])[doer]
    is_operator = np.append(names.is_operator, False)[doer]
    kept = (doer != ABSENT) & ~(is_operator & np.append(names.launches, False)[outermost])
    kept &= ~_warms_up(profile).containing(account.segments.starts[here])
    here, rows, doer = here[kept], rows[kept], doer[kept]
    own = names.inclusive(names.named(lambda name: (frame := parse_frame(name)) is not None and frame.own_code))[rows]
    key = np.append(profile.table.name, np.int32(ABSENT))[own]
    starts, ends = account.segments.starts[here], account.segments.ends[here]
    function = names.inclusive(names.named(is_library_frame))[rows]
    part = np.where(function == ABSENT, doer, function)
    head = names.inclusive(names.heads)[doer]
    window = account.ledger.window
    found = []
    for at in positions_of_each(key):
        time = Intervals.union(starts[at], ends[at])
        per_step_ns = per_step(profile, clipped_to_steps(profile, time))
        share = profile.share_of_step(per_step_ns)
        length = ends[at] - starts[at]
        silent = head[at] != ABSENT
        if 2 * length[silent].sum() >= length.sum():
            event, took = head[at][silent], length[silent]
        else:
            event, took = np.where(silent, head[at], doer[at]), length
        found.append(
            HostWait(
                anchor=int(rows[at[np.argmax(length)]]),
                events=tuple(sorted(row for row, _ in _largest(event, event, took)[:MOST_EVENTS])),
                time=time,
                per_step_ns=per_step_ns,
                share=time.total_ns / (window.end_ns - window.start_ns) if share is None else share,
                parts=_largest(part[at], profile.table.name[part[at]], length),
                recorded_every_ns=time.total_ns / max(int(time.containing(names.starts).sum()), 1),
            )
        )
    return sorted(found, key=lambda wait: -wait.time.total_ns)


class LoadingPart(msgspec.Struct, frozen=True):
    """A function or an operator that loads batches.

    Attributes:
        row: one of its calls. time_ns: its time over all steps. per_batch: calls per batch.
    """

    row: int
    time_ns: int
    per_batch: float


def loading_functions(profile: Profile, batches: Rows) -> list[LoadingPart]:
    """The functions that the step waits for while it loads `batches`, largest first.

    These are functions outside PyTorch and the standard library that loading a batch calls, each with the PyTorch work
    that it causes. If no such function was recorded, these are the operators.
    """
    account, table = account_of(profile), profile.table
    time = profile.covered(batches)
    is_loading = (account.segments.cause == Cause.DATA_LOADING.number) & (account.calls != ABSENT)
    here = np.flatnonzero(is_loading & time.containing(account.segments.starts))
    rows = account.calls[here]
    rows = np.where(rows < profile.tree.size, rows, profile.launched_by[rows])
    names = _Names(profile)
    length = account.segments.ends[here] - account.segments.starts[here]
    outermost = np.zeros_like(names.is_operator)
    outermost[profile.calls.among(np.flatnonzero(names.is_operator))] = True
    for wanted in (names.named(is_library_frame), outermost):
        part = names.inclusive(wanted)[rows]
        called = (part != ABSENT) & time.containing(table.start_ns[part])
        if called.any():
            found = _largest(part[called], table.name[part[called]], length[called])
            loads = np.flatnonzero(wanted & time.containing(names.starts))
            calls = np.bincount(table.name[loads], minlength=len(table.names)) / max(len(batches), 1)
            return [LoadingPart(row, time_ns, float(calls[table.name[row]])) for row, time_ns in found]
    return []


class _Names:
    """Masks over the rows of the tree, and the nearest row around each that satisfies a mask.

    Attributes:
        acts: operators and Python functions. around: the nearest of these around each row.
        launches: rows that launch device work, themselves or below.
        heads: rows that act and launch nothing, whose `around` launches or is `ABSENT`.
    """

    def __init__(self, profile: Profile) -> None:
        table, self.tree = profile.table, profile.tree
        self.profile = profile
        size = self.tree.size
        self.starts = table.start_ns[:size]
        self.is_operator: Mask = table.category[:size] == Category.OPERATOR
        self.acts: Mask = self.is_operator | (table.category[:size] == Category.PYTHON)
        causes = profile.launched_by[np.flatnonzero(table.is_category(DEVICE_WORK))]
        before = np.append(0, np.cumsum(np.bincount(causes[(causes != ABSENT) & (causes < size)], minlength=size)))
        self.launches: Mask = before[self.tree.last_descendant + 1] > before[:size]
        self.around = self.tree.nearest_ancestor(self.acts)
        silent = self.acts & ~self.launches
        self.heads: Mask = silent & ~np.append(silent, False)[self.around]

    def named(self, test: Callable[[str], object]) -> Mask:
        table, size = self.profile.table, self.tree.size
        is_named = among(table.name[:size], numbers_where(table.names, test))
        found: Mask = is_named & (table.category[:size] == Category.PYTHON)
        return found

    def inclusive(self, wanted: Mask) -> Rows:
        """The row or its nearest ancestor that is `wanted`, else `ABSENT`; one more entry, for `ABSENT`."""
        nearest = np.where(wanted, np.arange(self.tree.size), self.tree.nearest_ancestor(wanted))
        return np.append(nearest, ABSENT)


def _warms_up(profile: Profile) -> Intervals:
    steps = profile.steps
    warm = np.array([oddity == "warmup" for oddity in steps.oddities], np.bool_)
    return Intervals.union(steps.starts[warm], steps.ends[warm])


def _largest(rows: Rows, key: Rows, length: Rows) -> tuple[tuple[int, int], ...]:
    """The first row of each key and the key's total time, largest first."""
    sums = [(int(rows[at[0]]), int(length[at].sum())) for at in positions_of_each(key)]
    return tuple(sorted(sums, key=lambda part: (-part[1], part[0])))
