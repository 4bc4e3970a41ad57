"""Operators that hand values of tensors to Python, and the time that a device idles because the host waits in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tb_tidy_plugin import aten
from tb_tidy_plugin.profile.copies import SOURCE
from tb_tidy_plugin.profile.intervals import Intervals, Spans
from tb_tidy_plugin.profile.lanes import SYNCHRONISATION, TO_HOST, devices_of, idle_parts
from tb_tidy_plugin.profile.loops import NOT_IN_LOOPS, Loop, LoopLimits
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows, Times
from tb_tidy_plugin.trace.sets import among, common, united
from tb_tidy_plugin.vocabulary import DevicePart

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

"""Starts and ends in ns of the profile."""

OF_ONE_ELEMENT = aten.names("read", "_local_scalar_dense is_nonzero item")
READS = OF_ONE_ELEMENT | aten.names("read", "equal nonzero")
"""Operators that cannot return before a value is on the host: a number, a truth value, a result's size."""

SINGLE_READS, LIST = aten.names("read", "is_nonzero item"), "^<built-in method tolist of "
IN_LIST = "aten::resolve_conj"
"""Marks the read of one value: `.tolist()` is a built-in, of whose operators this is the first."""


VIEWS_IF_POSSIBLE = aten.names("shares", "reshape resolve_conj resolve_neg")
"""Operators that also make a view of a single value."""

_LARGEST_BODY, _SHORTEST = 6, 8  # most operators, least reads: other loops do not count

_MOST_BYTES = 4096
"""Most bytes of a copy to the host that reads values: results and checkpoints are larger."""

OWN_CAUSES: tuple[DevicePart, ...] = (
    "idle_data_loading", "idle_compilation", "idle_garbage_collection", "idle_communication_wait",
)  # fmt: skip
"""Parts of idle time with a cause of their own, whatever the host waited for before."""


def device_readbacks(profile: Profile) -> Rows:
    """The outermost operators that read values of a device and wait for them, in row order.

    A copy, as in `.cpu()` and `.numpy()`, counts if it brings few bytes to the host and waits for them; a copy to
    pinned memory need not wait.
    """
    waiting = profile.launched_by[device_waits(profile)]
    reads, copies = value_reads(profile), _outermost(profile, profile.named(*SOURCE))
    copies = common(copies, _around(profile, copies, profile.launched_by[_small_copies(profile)]))
    found = _outermost(profile, united(reads, copies))
    return common(found, _around(profile, found, waiting))


def value_reads(profile: Profile) -> Rows:
    """The outermost operators that read values, of any device, in row order."""
    return _outermost(profile, profile.named(*READS))


def read_loops(profile: Profile, is_own: Callable[[str], bool | None]) -> Iterator[tuple[Loop, list[int]]]:
    """Python loops in the user's own code whose only tensor work is reading values, and the reads of each.

    `is_own` as in `Calls.loops`.
    """
    never = profile.matching(NOT_IN_LOOPS, Category.OPERATOR, Category.ANNOTATION, Category.PYTHON)
    single = _single_reads(profile)
    is_read = set(single.tolist())
    for loop in profile.calls.loops(single, np.empty(0, np.int64), LoopLimits(never, _LARGEST_BODY, _SHORTEST), is_own):
        operators = profile.calls.operators_in(loop.calls)
        if all(row in is_read or _makes_view(profile.name(row)) for row in operators):
            yield loop, [row for row in operators if row in is_read]


def _makes_view(name: str) -> bool:
    return aten.is_a("view", name) or name in VIEWS_IF_POSSIBLE


def _single_reads(profile: Profile) -> Rows:
    """The outermost operators that read one value each; for `.tolist()`, which may read several, its first operator."""
    lists = profile.matching(LIST, Category.PYTHON)
    first = profile.named(IN_LIST)
    first = first[among(profile.tree.parent[first], lists)]
    return _outermost(profile, united(profile.named(*SINGLE_READS), first))


def _outermost(profile: Profile, rows: Rows) -> Rows:
    return rows[~profile.inside(rows)[rows]]


def idle_after(profile: Profile, readbacks: Rows) -> dict[int, Spans]:
    """Time that the devices idle because the host waited in each of `readbacks`.

    When the wait ends the device has done all launched work, and idles until the host launches more. Without the wait
    the host would be ahead by its duration: a device gains at most what the host gains in this wait and in those before
    it. A wait that is not in `readbacks` resets that: there host and device meet again.
    """
    found: dict[int, Spans] = dict.fromkeys(readbacks.tolist(), ())
    won_ns = 0
    for row, idle in _waits_with_idle(profile, readbacks) if found else ():
        if row == ABSENT:
            won_ns = 0
            continue
        found[row] = _first(idle, won_ns + profile.duration_ns(row))
        won_ns += profile.duration_ns(row) - sum(end - start for start, end in found[row])
    return found


def _first(spans: Spans, most_ns: int) -> Spans:
    """The first `most_ns` of `spans`."""
    taken: list[tuple[int, int]] = []
    for start, end in spans:
        until = min(end, start + most_ns)
        if until > start:
            taken.append((start, until))
        most_ns -= until - start
    return tuple(taken)


def device_waits(profile: Profile) -> Rows:
    """Runtime calls that return only when a device has caught up, in row order."""
    return np.flatnonzero((profile.table.category == Category.RUNTIME) & profile.table.is_named(SYNCHRONISATION.search))


def _small_copies(profile: Profile) -> Rows:
    """Copies of few bytes to the host."""
    table = profile.table
    copies = np.flatnonzero((table.category == Category.COPY) & table.is_named(TO_HOST.search))
    return copies[table.bytes[copies] <= _MOST_BYTES]


def _around(profile: Profile, rows: Rows, causes: Rows) -> Rows:
    """The one of `rows`, which must not nest, that contains or is each of `causes`; `ABSENT` for none."""
    if not len(rows):
        return np.full(len(causes), ABSENT, np.int64)
    nearest = rows[np.maximum(np.searchsorted(rows, causes, side="right") - 1, 0)]
    is_there = (causes >= nearest) & (causes <= profile.tree.last_descendant[nearest])
    return np.where(is_there, nearest, ABSENT)


def _waits_with_idle(profile: Profile, readbacks: Rows) -> Iterator[tuple[int, Spans]]:
    """Each wait for a device in order of end: its row of `readbacks`, `ABSENT` for none, and the idle time after it.

    A readback ends when its last wait has ended and the value has been copied: clocks of host and device may differ a
    bit.
    """
    table = profile.table
    waits = device_waits(profile)
    caused = np.concatenate([waits, profile.device_activity_of_all(readbacks)])
    readback = _around(profile, readbacks, profile.launched_by[caused])
    others = caused[readback == ABSENT]
    ends: Times = np.zeros(len(readbacks), np.int64)
    mine = readback != ABSENT
    np.maximum.at(ends, np.searchsorted(readbacks, readback[mine]), table.end_ns[caused[mine]])
    rows = np.concatenate([readbacks, np.full(len(others), ABSENT, np.int64)])
    times = np.concatenate([ends, table.end_ns[others]])
    order = np.argsort(times, kind="stable")
    yield from zip(rows[order].tolist(), _idle_at(profile, times[order]), strict=True)


def _idle_at(profile: Profile, times: Times) -> Iterator[Spans]:
    """The gap in the devices' work at each of `times`, without pieces that have a cause of their own."""
    busy = profile.device_busy
    gap_starts, gap_ends = busy.ends[:-1], busy.starts[1:]
    idle = Intervals(gap_starts, gap_ends)
    for device in devices_of(profile.table):
        parts = idle_parts(profile.table, device)
        for part in OWN_CAUSES:
            idle = idle.minus(parts[part])
    gap = np.searchsorted(gap_starts, times, side="right") - 1
    inside = (gap >= 0) & (times <= np.append(gap_ends, 0)[gap])
    first = np.searchsorted(idle.starts, np.append(gap_starts, 0)[gap]).tolist()
    last = np.searchsorted(idle.starts, np.append(gap_ends, 0)[gap]).tolist()
    starts, ends = idle.starts.tolist(), idle.ends.tolist()
    for low, high, there in zip(first, last, inside.tolist(), strict=True):
        yield tuple(zip(starts[low:high], ends[low:high], strict=True)) if there else ()
