"""Operators that hand values of tensors to Python, and the time that a device idles because the host waits in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tb_tidy_plugin.profile.copies import SOURCE
from tb_tidy_plugin.profile.loops import NOT_IN_LOOPS, Loop, LoopLimits
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import SYNCHRONISATION, TO_HOST
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, common, united

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

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


def device_readbacks(profile: Profile) -> Rows:
    """The outermost operators that read values of a device and wait for them, in row order.

    A copy, as in `.cpu()` and `.numpy()`, counts if it brings few bytes to the host and waits for them; a copy to
    pinned memory need not wait.
    """
    waiting = profile.launched_by[device_waits(profile)]
    reads, copies = value_reads(profile), _outermost(profile, profile.named(*SOURCE))
    copies = common(copies, enclosing(profile, copies, profile.launched_by[_small_copies(profile)]))
    found = _outermost(profile, united(reads, copies))
    return common(found, enclosing(profile, found, waiting))


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


def device_waits(profile: Profile) -> Rows:
    """Runtime calls that return only when a device has caught up, in row order."""
    return np.flatnonzero((profile.table.category == Category.RUNTIME) & profile.table.is_named(SYNCHRONISATION.search))


def _small_copies(profile: Profile) -> Rows:
    """Copies of few bytes to the host."""
    table = profile.table
    copies = np.flatnonzero((table.category == Category.COPY) & table.is_named(TO_HOST.search))
    return copies[table.bytes[copies] <= _MOST_BYTES]


def enclosing(profile: Profile, rows: Rows, causes: Rows) -> Rows:
    """The one of `rows`, which must not nest, that contains or is each of `causes`; `ABSENT` for none."""
    if not len(rows):
        return np.full(len(causes), ABSENT, np.int64)
    nearest = rows[np.maximum(np.searchsorted(rows, causes, side="right") - 1, 0)]
    is_there = (causes >= nearest) & (causes <= profile.tree.last_descendant[nearest])
    return np.where(is_there, nearest, ABSENT)
