"""Device activity of an out-of-tree back end, inferred from a side file beside the trace.

Kineto sees the kernels of the back ends it was built for. It may see none of a device that registers itself with
PyTorch as PrivateUse1; then the device time of each operator is known (`FunctionEvent.device_time_total`), but not when
the device ran it. The side file holds those times, and this module turns them into rows of device work.

A launch becomes a runtime row without duration at the start of its operator, with a correlation of its own: queries for
launches need not know where the rows came from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    ROW_COLUMNS,
    ArgsText,
    Category,
    DeviceProperties,
    EventTable,
    Mask,
    Numbers,
    Rows,
    Thread,
    Times,
)
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.side_file import (
    DeviceEvents,
    ExternalDevice,
    OperatorTime,
    read_device_events,
    refuse_link_away,
    side_file_of,
)
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.errors import TraceError
from tb_tidy_plugin.words.units import Nanoseconds

LAUNCH = "launch (inferred)"
"""Name of the row for the launch of an inferred kernel."""

STREAM = 1  # not 0: Perfetto takes thread 0 of process 0 for the idle task
FREE_PIDS = 5_000_000  # no process of Linux has a higher number than 4,194,304
MAX_TOTAL_NS = 1000 << 43  # 101 days, the longest plausible duration of a trace; keeps all sums within int64
MAX_ID = (1 << 63) - 1
NOTABLE_REST = 0.01
"""Least share of all device time in enclosing operators, beyond what they enclose, that is reported to the user."""

_OVERLOAD = re.compile(r"^(\w+::\w+)\.\w+$")
NEGATIVE = "their device time is negative"
UNMATCHED = "no operator of the trace has their name, External id and thread"
_RECORDED = "the trace itself has device work of their operators"
REPEATED = "an operator is given more than once, and the first is used"


class Activity(msgspec.Struct, frozen=True):
    """Kernels inferred for one trace, in the order in which their one stream runs them.

    Attributes:
        device: with an index that no device of the trace has.
        operators: the row of each kernel's operator.
        start_ns, end_ns: like the columns of `EventTable`.
        notes: sentences about what was inferred and what was left out.
    """

    device: ExternalDevice
    operators: Rows
    start_ns: Times
    end_ns: Times
    notes: tuple[str, ...]

    @property
    def busy_ns(self) -> int:
        """Time with a kernel running, which is the kernels' sum, since they never overlap."""
        return int((self.end_ns - self.start_ns).sum())


class _MergedArgs(msgspec.Struct, frozen=True, rename={"kind": "device kind", "name": "device name"}):
    kind: str = "other"
    name: str = ""


def args_of(device: ExternalDevice) -> dict[str, object]:
    """Args of every inferred kernel, in the table and in a merged trace."""
    return {"inferred": True, "device kind": device.kind, "device name": device.name}


def with_device_events(table: EventTable, trace: AnyPath) -> EventTable:
    """`table` with the device activity of the side file beside `trace`; the same table without one.

    Never raises for a side file that cannot be used: `Metadata.notes` then says why. Samples of memory in use do not
    become rows, since a row of memory is one allocation with its address: they serve `tb-tidy merge-device-events`.
    """
    side_file = side_file_of(trace)
    if is_merged(table):
        inferred = _as_inferred(table)
        if side_file is None:
            return inferred
        return inferred.noted(f"The side file `{side_file.name}` is not used: it is already merged into the trace.")
    if side_file is None:
        return table
    try:
        refuse_link_away(side_file, trace)
        return with_activity(table, infer_activity(table, read_device_events(side_file), side_file.name))
    except TraceError as problem:
        return table.not_using(side_file.name, problem)


def is_merged(table: EventTable) -> bool:
    """True if the trace holds inferred device work, as written by `tb-tidy merge-device-events`."""
    return bool(_inferred_launches(table).any())


def _inferred_launches(table: EventTable) -> Mask:
    number = table.names.index(LAUNCH) if LAUNCH in table.names else ABSENT
    launches: Mask = (table.name == number) & (table.category == Category.RUNTIME)
    return launches


def infer_activity(table: EventTable, events: DeviceEvents, source: str) -> Activity:
    """The device's activity, placed on the timeline of the trace.

    Args:
        table: the trace, as read.
        events: its side file.
        source: name of that file, for the notes.

    Raises:
        TraceError: the times cannot be nanoseconds.
    """
    device = msgspec.structs.replace(events.device, index=_free_index(table, events.device.index))
    rows, time_ns, left_out = _joined(table, events.operators)
    innermost, rest_ns = _innermost(table, rows, time_ns)
    recorded = among(table.external_id[rows], table.external_id[table.is_category(DEVICE_WORK)])
    left_out += Counter({_RECORDED: int((innermost & recorded).sum())})
    rows, time_ns = rows[innermost & ~recorded], time_ns[innermost & ~recorded]
    order = np.lexsort((rows, table.start_ns[rows]))
    rows, time_ns = rows[order], time_ns[order]
    start_ns = placed(table.start_ns[rows] + events.launch_latency_ns, time_ns)
    total = len(events.operators)
    notes = [_said(device, source, events.launch_latency_ns)]
    notes += [f"{count:,} of {total:,} entries in `{source}` are left out: {why}." for why, count in left_out.items()]
    if rest_ns > NOTABLE_REST * int(time_ns.sum()):
        notes.append(
            f"{Nanoseconds(rest_ns)} of device time that operators have beyond the operators inside them is left out: "
            "it may be gaps between kernels."
        )
    return Activity(device, rows, start_ns, start_ns + time_ns, tuple(notes))


def placed(earliest_ns: Times, duration_ns: Times) -> Times:
    """Start of each piece of work on one stream: at `earliest_ns`, but never before the previous one ends.

    Both in ns, one entry per piece of work, in the order in which the stream runs them.
    """
    before = np.cumsum(duration_ns) - duration_ns
    starts: Times = before + np.maximum.accumulate(earliest_ns - before)
    return starts


def with_activity(table: EventTable, activity: Activity) -> EventTable:
    """`table` with a launch and a kernel for each entry of `activity`."""
    device = activity.device
    operators = table.take(activity.operators)
    number = np.arange(1, len(operators) + 1)
    bare = replace(
        operators,
        correlation=first_free_id(table) + number - 1,
        **{name: np.full_like(getattr(operators, name), ABSENT) for name in _NOT_INHERITED},
        forward_thread=np.zeros_like(operators.forward_thread),
        inputs=np.zeros_like(operators.inputs),
    )
    launches = replace(
        bare,
        end_ns=bare.start_ns,
        name=np.full_like(bare.name, len(table.names)),
        category=np.full_like(bare.category, Category.RUNTIME),
        file_order=_after(table.file_order, number),
    )
    kernels = replace(
        bare,
        start_ns=activity.start_ns,
        end_ns=activity.end_ns,
        category=np.full_like(bare.category, Category.KERNEL),
        thread=np.full_like(bare.thread, len(table.threads)),
        device=np.full_like(bare.device, device.index),
        stream=np.full_like(bare.stream, STREAM),
        file_order=_after(table.file_order, number + len(number)),
    )
    metadata = table.metadata
    return replace(
        _stacked(table, launches, kernels, msgspec.json.encode(args_of(device))),
        names=(*table.names, LAUNCH),
        threads=(*table.threads, lane_of(table, device)),
        metadata=replace(
            metadata,
            devices=(*metadata.devices, DeviceProperties(id=device.index, name=device.name)),
            inferred_devices={**metadata.inferred_devices, device.index: device.kind},
            notes=metadata.notes + activity.notes,
        ),
    )


_NOT_INHERITED = (
    "event_index",
    "sequence",
    "python_id",
    "python_parent_id",
    "called_from",
    "device",
    "stream",
    "bytes",
)
"""Columns of an operator that its launch and its kernel do not share with it."""


def lane_of(table: EventTable, device: ExternalDevice) -> Thread:
    """Process and thread of the stream: a device is the process of its number, unless a real process has that."""
    is_taken = any(thread.pid == str(device.index) for thread in table.threads)
    return Thread(str(device.index + FREE_PIDS * is_taken), str(STREAM))


def first_free_id(table: EventTable) -> int:
    """The least number from which no correlation and no arrow of the trace uses an id."""
    return 1 + max(int(ids[ids < MAX_ID >> 1].max(initial=0)) for ids in (table.correlation, table.flows.flow))


def _stacked(table: EventTable, launches: EventTable, kernels: EventTable, args: bytes) -> EventTable:
    """All rows in one table, in its order; the new ones after others of the same thread and start."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in (table, launches, kernels)]) for name in ROW_COLUMNS
    }
    count, old = len(launches) + len(kernels), table.args
    whole = replace(
        table,
        **columns,
        args=ArgsText(
            blocks=(*old.blocks, b"," + args),
            ends=np.append(old.ends, old.ends[-1] + 1 + len(args)),
            number=_extended(old.number, len(old.ends), count),
        ),
    )
    return whole.take(np.lexsort((whole.start_ns, whole.thread)))


def _extended(column: Numbers, value: int, count: int) -> Numbers:
    longer: Numbers = np.concatenate([column, np.full(count, value, column.dtype)])
    return longer


def _after(file_order: Numbers, number: Rows) -> Numbers:
    orders: Numbers = (number + file_order.max(initial=ABSENT)).astype(file_order.dtype)
    return orders


# Operators


def _joined(table: EventTable, given: Sequence[OperatorTime]) -> tuple[Rows, Times, Counter[str]]:
    """Rows of operators with device time, in row order; their times; the number of omitted `given`, by reason."""
    entries = [entry for entry in given if entry.device_time_ns >= 0]
    if sum(entry.device_time_ns for entry in entries) > MAX_TOTAL_NS:
        raise TraceError("The device times add up to more than 101 days.", "Give them in nanoseconds.")
    found = _rows_of(table, entries)
    time_ns = np.array([entry.device_time_ns for entry in entries], np.int64)
    # An annotation is known but never work itself: it may enclose launches of other threads.
    used = (found != ABSENT) & (table.category[found] == Category.OPERATOR) & (time_ns > 0)
    chosen = np.flatnonzero(used)
    rows, first = np.unique(found[chosen], return_index=True)
    left_out = Counter({
        NEGATIVE: len(given) - len(entries),
        UNMATCHED: int((found == ABSENT).sum()),
        REPEATED: len(chosen) - len(rows),
    })  # fmt: skip
    return rows, time_ns[chosen][first], +left_out


def _rows_of(table: EventTable, entries: Sequence[OperatorTime]) -> Rows:
    """The row with the name, External id and thread of each entry, `ABSENT` if there is none."""
    numbers = NumberTable[str]()
    name = numbers.numbers(map(_plain, table.names), len(table.names))
    ids = np.array([entry.external_id for entry in entries if 0 < entry.external_id <= MAX_ID], np.int64)
    host = table.is_category((Category.OPERATOR, Category.ANNOTATION))
    rows = np.flatnonzero(host & among(table.external_id, ids))
    by_key: dict[tuple[int, int], list[int]] = {}
    for row, number, external_id in zip(
        rows.tolist(), name[table.name[rows]].tolist(), table.external_id[rows].tolist(), strict=True
    ):
        by_key.setdefault((number, external_id), []).append(row)
    candidates = [by_key.get((numbers.number(_plain(entry.name)), entry.external_id), []) for entry in entries]
    homes = _threads(table, entries, candidates)
    found = [
        next((row for row in rows if table.thread[row] == homes[entry.thread]), ABSENT)
        for entry, rows in zip(entries, candidates, strict=True)
    ]
    return np.array(found, np.int64)


def _threads(table: EventTable, entries: Sequence[OperatorTime], candidates: Sequence[Sequence[int]]) -> dict[int, int]:
    """The thread of the trace for each `thread` of the side file.

    `FunctionEvent.thread` is a small number of the profiler's own (1, 2, …) that the trace does not contain. So it is
    the thread with most of the entries that have the right name and id; if two tie, the one with that very `tid`.
    """
    votes = Counter(
        (entry.thread, int(table.thread[row]))
        for entry, rows in zip(entries, candidates, strict=True)
        for row in rows
    )  # fmt: skip
    homes = dict.fromkeys((entry.thread for entry in entries), ABSENT)
    ranked = sorted(votes.items(), key=lambda vote: (vote[1], table.threads[vote[0][1]].tid == str(vote[0][0])))
    return homes | dict(pair for pair, _ in ranked)


def _plain(name: str) -> str:
    """Name without overload (`aten::add`, not `aten::add.Tensor`)."""
    return _OVERLOAD.sub(r"\1", name)


def _innermost(table: EventTable, rows: Rows, time_ns: Times) -> tuple[Mask, int]:
    """Mask of `rows`, in the table's order, that enclose no other one, and the device time in ns that this leaves out.

    The time of an operator includes that of operators inside; the outermost ones' time beyond it is left out.
    """
    start_ns, end_ns, thread = table.start_ns[rows], table.end_ns[rows], table.thread[rows]
    encloses_next = (thread[1:] == thread[:-1]) & (start_ns[1:] < end_ns[:-1])
    innermost = ~np.append(encloses_next, np.zeros(min(len(rows), 1), np.bool_))
    outermost = np.ones(len(rows), np.bool_)
    reach: dict[int, int] = {}
    columns = (thread.tolist(), start_ns.tolist(), end_ns.tolist())
    for at, (lane, start, end) in enumerate(zip(*columns, strict=True)):
        outermost[at] = start >= reach.get(lane, start)
        reach[lane] = max(end, reach.get(lane, end))
    group = np.cumsum(outermost) - 1
    inside_ns = np.zeros(int(outermost.sum()), np.int64)
    np.add.at(inside_ns, group[innermost], time_ns[innermost])
    return innermost, int(np.maximum(time_ns[outermost] - inside_ns, 0).sum())


# Sentences about it


def _free_index(table: EventTable, index: int) -> int:
    """`index`, or if a device of the trace itself has it, the next one that none has."""
    work = table.device[table.is_category(DEVICE_WORK)].tolist()
    taken = {*work, *(entry.id for entry in table.metadata.devices)}
    return max(taken) + 1 if index in taken else index


def _said(device: ExternalDevice, source: str, latency_ns: int) -> str:
    return (
        f"Device times of {device.kind}:{device.index} come from a side file, `{source}`; start times are inferred: "
        f"{Nanoseconds(latency_ns)} after the start of the operator, one after the other."
    )


def _as_inferred(table: EventTable) -> EventTable:
    """A merged trace, with its inferred devices marked as such."""
    correlation = table.correlation[_inferred_launches(table)]
    kernels = (table.category == Category.KERNEL) & among(table.correlation, correlation)
    _, first = np.unique(table.device[kernels], return_index=True)
    rows = np.flatnonzero(kernels)[first]
    devices = list(zip(table.device[rows].tolist(), table.args.decoded(rows, _MergedArgs), strict=True))
    metadata = replace(
        table.metadata,
        devices=(*table.metadata.devices, *(DeviceProperties(id=index, name=found.name) for index, found in devices)),
        inferred_devices={index: found.kind for index, found in devices},
        notes=tuple(
            f"Device times of {found.kind}:{index} come from a side file, merged into the trace; start times "
            "are inferred."
            for index, found in devices
        ),
    )
    return replace(table, metadata=metadata)
