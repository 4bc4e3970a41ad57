"""Transfers between host and device: copies, reads of values, and the waits for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tb_tidy_plugin.profile.events.calls import NOT_IN_LOOPS, Loop, LoopLimits
from tb_tidy_plugin.profile.events.inputs import Shape
from tb_tidy_plugin.profile.events.intervals import Intervals, covered
from tb_tidy_plugin.profile.host.critical import device_idle
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import SYNCHRONISATION, TO_HOST
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, common, distinct, united

SOURCE = aten.by_name("known", {"to": 0, "_to_copy": 0, "copy_": 1})
"""Operators that only copy, and the position of the input that they copy."""

PINNED = r"(?:HtoD|HostToDevice).{0,100}\(Pinned"
_LARGE = 1 << 20
"""Least bytes of a copy that reaches the speed of the bus."""

LINK_BYTES_PER_NS = {7: 12.0, 8: 24.0, 9: 55.0, 10: 55.0, 12: 55.0}
"""Rates that copies from pinned memory reach in practice, by major compute capability: PCIe 3, 4 and 5 with 16 lanes.
Since Volta, each generation of data centre GPUs doubled it; Blackwell stays at PCIe 5. A public recording of an H100
(shreyansh26/MLSys-Experiments) copies 20 MiB at 57 GB/s.
"""

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


def copying_operator(profile: Profile, cause: int) -> int | None:
    """The outermost operator around `cause` that only copies, None without one."""
    found = [row for row in (cause, *profile.ancestors(cause)) if profile.name(row) in SOURCE]
    return found[-1] if found else None


def copied_input(profile: Profile, operator: int) -> tuple[Shape, str]:
    """Shape and dtype of the input of a copying operator; no elements if unknown."""
    position, inputs = SOURCE.get(profile.name(operator)), profile.inputs(operator)
    return ((0,), "") if position is None else (inputs.shape(position) or (0,), inputs.dtype(position))


def exposed_copies(profile: Profile, copies: Rows) -> list[Intervals]:
    """Spans in which the step waits for each of `copies`.

    The step waits for the copy itself while no kernel runs on its device, and for the host in the call while no device
    runs. The call is the innermost operator, which includes the wait for the copy's end. The time before a device's
    first recorded work does not count: work launched before the recording is missing.
    """
    table, busy = profile.table, profile.device_busy
    always = device_idle(profile).plus(busy)
    idle = device_idle(profile).intersection(Intervals(busy.starts[:1], always.ends))
    kernels = {
        device: always.minus(covered(table, (table.category == Category.KERNEL) & (table.device == device)))
        for device in distinct(table.device[copies]).tolist()
    }
    found = []
    for row in copies.tolist():
        without_kernel = _time_of(profile, row).intersection(kernels[int(table.device[row])])
        cause = int(profile.launched_by[row])
        host = Intervals.none() if cause == ABSENT else _time_of(profile, cause).intersection(idle)
        found.append(without_kernel.plus(host))
    return found


def pinned_bytes_per_ns(profile: Profile) -> tuple[float, bool]:
    """Rate of copies from pinned memory to the device, and True if the recording itself shows it."""
    table = profile.table
    rows = profile.matching(PINNED, Category.COPY)
    rows = rows[(table.bytes[rows] >= _LARGE) & (table.end_ns[rows] > table.start_ns[rows])]
    if len(rows):
        return float(np.median(table.bytes[rows] / (table.end_ns[rows] - table.start_ns[rows]))), True
    known = profile.metadata.devices[0] if profile.metadata.devices else None
    return LINK_BYTES_PER_NS.get((known and known.computeMajor) or 0, LINK_BYTES_PER_NS[7]), False


def _time_of(profile: Profile, row: int) -> Intervals:
    return covered(profile.table, np.array([row]))


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
