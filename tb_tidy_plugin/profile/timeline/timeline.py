"""A profile as rows of bars, with an index that makes any window of it quick to draw.

A lane is a host thread, a device stream, or the steps. Its events take as many rows as are needed so that no two of a
row overlap. So the events of a row are sorted both by start and by end, a window is one slice of each row, and the
position of its first event represents a block of merged events: the next block begins where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.events.inputs import InputSizes, distinct_inputs, known_inputs, signatures_of
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.graphs.replay import known_by_of
from tb_tidy_plugin.profile.steps.steps import ProfileSteps
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    Category,
    EventTable,
    Mask,
    Numbers,
    Replays,
    Rows,
    Thread,
    Times,
)
from tb_tidy_plugin.trace.links import launches
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.vocabulary import KnownBy

BUSY_PARTS = 1_000
"""Number of pixels of a minimap."""

LaneKind: TypeAlias = Literal["steps", "thread", "stream"]

ON_DEVICE = (*DEVICE_WORK, Category.DEVICE_ANNOTATION)
MOST_LEVELS = 256
"""Most rows of a lane. Real stacks of Python and operators have 20 to 80; deeper events are counted and not drawn."""

FIRST_LEVEL_NS = 1024
LEVEL_FACTOR = 4
"""Ratio of one level of detail to the next: an answer reads at most 4 times what it shows."""

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1

_NUMBER = re.compile(r"\d+")


class Busy(msgspec.Struct, frozen=True):
    """Shares from 0 to 1, one for each of `BUSY_PARTS` equally long parts of the recording.

    Attributes:
        host: share in which any thread runs an operator. Empty if no operator was recorded.
        device: share in which any kernel, copy or fill runs. Empty if none was recorded.
    """

    host: NDArray[np.float64]
    device: NDArray[np.float64]


def busy_of(table: EventTable, until_ns: int) -> Busy:
    """Busy shares from 0 to `until_ns`."""
    return Busy(
        _shares(table, table.is_category((Category.OPERATOR,)), until_ns),
        _shares(table, table.is_category(DEVICE_WORK), until_ns),
    )


def _shares(table: EventTable, which: Mask, until_ns: int) -> NDArray[np.float64]:
    if not which.any():
        return np.zeros(0)
    taken = Intervals.union(table.start_ns[which], table.end_ns[which])
    edges = np.array([part * until_ns // BUSY_PARTS for part in range(BUSY_PARTS + 1)], np.int64)
    shares: NDArray[np.float64] = np.diff(taken.covered_before(edges)) / np.maximum(np.diff(edges), 1)
    return shares


class TimelineLane(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host thread, a device stream, or the steps; its number is its position in the list.

    `rows` is the number of rows that its events take, `deeper` the number of events that are nested too deep to draw.
    """

    kind: LaneKind
    name: str
    rows: int
    events: int
    deeper: int


class _Level(msgspec.Struct, frozen=True):
    """All rows at a resolution of `pixel_ns` per pixel: the first event of each block, ascending."""

    pixel_ns: int
    first: Numbers


class Timeline(msgspec.Struct, frozen=True):
    """All events of a profile and its steps, by row and start. Columns have one entry per event.

    Attributes:
        lanes: steps first, then threads, then streams.
        start_ns, end_ns: as in the table; equal for instants.
        name: number in `names`. category: a `Category`.
        ids: the event's `file_order`, its id everywhere; `ABSENT` for steps.
        shapes: number in `shape_texts`.
        launch: position of the call that launched this event, `ABSENT` for none.
        busy_ns: sum of the durations of all events before each, with one more entry for all of them.
        row_first: start of each row, with one more entry for the end of the last.
        row_lane, row_depth: of each row.
        levels: from fine to coarse.
        until_ns: end of the last event.
        busy: busy shares of host and devices over time.
        replays: inserted events of the captures of replayed graphs, by ids; None without any.
    """

    lanes: tuple[TimelineLane, ...]
    steps: ProfileSteps
    start_ns: Times
    end_ns: Times
    name: Numbers
    category: NDArray[np.int8]
    ids: Numbers
    shapes: Numbers
    launch: Numbers
    busy_ns: NDArray[np.float64]
    row_first: Rows
    row_lane: Numbers
    row_depth: Numbers
    names: tuple[str, ...]
    shape_texts: tuple[str, ...]
    levels: tuple[_Level, ...]
    by_id: Rows
    until_ns: int
    busy: Busy
    replays: Replays | None

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def size(self) -> int:
        """Size of its columns in bytes."""
        narrow = [self.name, self.ids, self.shapes, self.launch, *(level.first for level in self.levels)]
        wide = [self.start_ns, self.end_ns, self.by_id]
        columns = sum(column.nbytes for column in narrow) + sum(column.nbytes for column in wide)
        return columns + self.busy_ns.nbytes + self.category.nbytes

    def position_of(self, event: int) -> int | None:
        """Position of the event with this id, None if there is none."""
        found = self.positions_of(np.array([event]))
        return int(found[0]) if len(found) else None

    def positions_of(self, events: Rows) -> Rows:
        """Positions of the events with these ids, ascending; unknown ids are left out."""
        if not len(self):
            return np.zeros(0, np.int64)
        at = np.minimum(np.searchsorted(self.ids, events, sorter=self.by_id), len(self) - 1)
        positions = self.by_id[at]
        return distinct(positions[(self.ids[positions] == events) & (events >= 0)])

    def replayed(self, event: int) -> tuple[int | None, KnownBy | None]:
        """The id of the operator that launched replayed device work when it was captured, and how an event is known.

        Both are None for events that were recorded themselves; the first one for everything except device work.
        """
        if (replays := self.replays) is None:
            return None, None
        if event >= replays.first_inserted:
            return None, known_by_of(int(replays.known_inserted[event - replays.first_inserted]))
        found = np.flatnonzero(replays.work == event)
        if not len(found):
            return None, None
        return int(replays.cause[found[0]]), known_by_of(int(replays.known[found[0]]))

    def row_of(self, positions: Rows) -> Rows:
        """The row of each of these events."""
        return np.searchsorted(self.row_first, positions, side="right") - 1


def thread_name(thread: Thread) -> str:
    """A host thread in words."""
    return f"Thread {thread.tid}"


def stream_name(thread: Thread, device: int, stream: int) -> str:
    """A device stream in words. If an event names no device or stream, its process and thread replace them."""
    return f"Device {thread.pid if device < 0 else device}, stream {thread.tid if stream < 0 else stream}"


def timeline_of(table: EventTable, steps: ProfileSteps) -> Timeline:
    """The timeline of a trace."""
    number, names = _lane_numbers(table)
    start_ns = np.concatenate([table.start_ns, steps.starts])
    end_ns = np.concatenate([table.end_ns, steps.ends])
    lane = np.concatenate([number, np.zeros(len(steps.items), np.int64)])
    depth, order = _rows_within(lane, start_ns, end_ns)
    drawn = depth < MOST_LEVELS
    deeper = np.bincount(lane[order][~drawn], minlength=len(names))
    order, depth = order[drawn], depth[drawn]
    by_row = np.lexsort((depth, lane[order]))  # stable: by start within a row
    order, depth = order[by_row], depth[by_row]
    row_first, row_lane, row_depth = _row_bounds(lane[order], depth)
    start_ns, end_ns = start_ns[order], end_ns[order]
    ids = _extended(table.file_order, len(steps.items))[order]
    shapes, shape_texts = _shapes(table)
    step_names = len(table.names) + np.arange(len(steps.items), dtype=np.int32)
    rows_of_lane = np.bincount(row_lane, minlength=len(names)).tolist()
    events_of_lane = np.bincount(lane[order], minlength=len(names)).tolist()
    until_ns = int(end_ns.max(initial=0)) + 1
    return Timeline(
        lanes=tuple(
            TimelineLane(kind, name, *counts)
            for (kind, name), *counts in zip(names, rows_of_lane, events_of_lane, deeper.tolist(), strict=True)
        ),
        steps=steps,
        start_ns=start_ns,
        end_ns=end_ns,
        name=np.concatenate([table.name, step_names])[order],
        category=np.concatenate([table.category, np.full(len(steps.items), Category.ANNOTATION, np.int8)])[order],
        ids=ids,
        shapes=np.concatenate([shapes, np.zeros(len(steps.items), np.int32)])[order],
        launch=_launches(table, len(steps.items), order),
        busy_ns=np.concatenate([[0.0], np.cumsum((end_ns - start_ns).astype(np.float64))]),
        row_first=row_first,
        row_lane=row_lane,
        row_depth=row_depth,
        names=(*table.names, *(step.name for step in steps.items)),
        shape_texts=shape_texts,
        levels=tuple(_levels(start_ns, end_ns, row_first)),
        by_id=np.argsort(ids, kind="stable"),
        until_ns=until_ns,
        busy=busy_of(table, until_ns),
        replays=table.replays,
    )


def _lane_numbers(table: EventTable) -> tuple[Rows, list[tuple[LaneKind, str]]]:
    """The lane of each row of the table, and the kind and name of each lane, those with Python or annotations first."""
    on_device = table.is_category(ON_DEVICE)
    device, stream = (np.where(on_device, column, 0) for column in (table.device, table.stream))
    columns = (on_device.astype(np.int8), table.thread, device, stream)
    of_row, some_row = combinations(*columns)
    named: list[tuple[LaneKind, str]] = [
        ("stream", stream_name(table.threads[thread], device, stream))
        if is_device
        else ("thread", thread_name(table.threads[thread]))
        for is_device, thread, device, stream in zip(*(column[some_row].tolist() for column in columns), strict=True)
    ]
    led = table.is_category((Category.ANNOTATION, Category.PYTHON))
    lead, count = (np.bincount(rows, minlength=len(named)).tolist() for rows in (of_row[led], of_row))
    ranked = sorted(range(len(named)), key=lambda at: _lane_rank(*named[at], lead[at], count[at]))
    steps: tuple[LaneKind, str] = ("steps", "Steps")
    lanes = list(dict.fromkeys([steps, *(named[at] for at in ranked)]))
    numbers = {lane: number for number, lane in enumerate(lanes)}
    return np.array([numbers[lane] for lane in named], np.int64)[of_row], lanes


def combinations(*columns: NDArray[np.integer]) -> tuple[Rows, Rows]:
    """The number of each row's combination of values, in their order, and some row of each combination.

    Same as `np.unique` of the rows, 20 times as fast.
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = distinct(column)
        number = number * len(values) + np.searchsorted(values, column)
        number = np.searchsorted(distinct(number), number)
    some_row = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    some_row[number] = np.arange(len(number))
    return number, some_row


def _lane_rank(kind: LaneKind, name: str, lead: int, count: int) -> tuple[object, ...]:
    if kind == "stream":
        return True, *(int(digits) for digits in _NUMBER.findall(name)[:2]), name
    return False, -lead, -count, name


def _rows_within(lane: Rows, start_ns: Times, end_ns: Times) -> tuple[Rows, Rows]:
    """The row of each event within its lane, sorted by lane and start, and the positions in that order."""
    order = np.lexsort((-end_ns, start_ns, lane))
    bounds = np.flatnonzero(np.diff(lane[order])) + 1
    depths = [_depths(start_ns[events], end_ns[events]) for events in np.split(order, bounds)]
    return np.concatenate(depths), order


def _depths(start_ns: Times, end_ns: Times) -> Rows:
    """Number of events open at the start of each; if two in one row would overlap, the first free row instead."""
    is_instant = start_ns == end_ns
    over = np.searchsorted(np.sort(end_ns[~is_instant]), start_ns, side="right")
    depth = np.arange(len(start_ns)) - over - (np.cumsum(is_instant) - is_instant)
    by_row = np.argsort(depth, kind="stable")
    overlaps = (np.diff(depth[by_row]) == 0) & (start_ns[by_row][1:] < end_ns[by_row][:-1])
    return np.array(_first_free(start_ns, end_ns), np.int64) if overlaps.any() else depth


def _first_free(start_ns: Times, end_ns: Times) -> list[int]:
    open_rows: list[int] = []  # end and row in one number, which compares faster than pairs
    free: list[int] = []
    found: list[int] = []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while open_rows and open_rows[0] >> _ROW_BITS <= start:
            heappush(free, heappop(open_rows) & _ROW_MASK)
        row = heappop(free) if free else len(open_rows)
        heappush(open_rows, end << _ROW_BITS | row)
        found.append(row)
    return found


def _row_bounds(lane: Rows, depth: Rows) -> tuple[Rows, Numbers, Numbers]:
    if not len(lane):
        return np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
    first = np.flatnonzero((np.diff(lane, prepend=-1) != 0) | (np.diff(depth, prepend=-1) != 0))
    return np.append(first, len(lane)), lane[first].astype(np.int32), depth[first].astype(np.int32)


def _extended(column: Numbers, count: int) -> Numbers:
    return np.concatenate([column, np.full(count, ABSENT, np.int32)])


def _launches(table: EventTable, steps: int, order: Rows) -> Numbers:
    """Launches as positions on the timeline; `ABSENT` for a launch that is not drawn."""
    launch = np.append(launches(table), np.full(steps, ABSENT, np.int64))[order]
    position = np.full(len(table) + steps + 1, ABSENT, np.int32)  # the last one is that of ABSENT
    position[order] = np.arange(len(order))
    return position[launch]


def _shapes(table: EventTable) -> tuple[Numbers, tuple[str, ...]]:
    """Shapes of each row as a number of their text; number 0 is for none."""
    signatures = signatures_of(table, np.arange(len(table)), distinct_inputs(known_inputs(table)))
    texts = [shapes_line(inputs.dims) for inputs in signatures.inputs]
    known = list(dict.fromkeys(["", *texts]))
    numbers = {text: number for number, text in enumerate(known)}
    return np.array([numbers[text] for text in texts], np.int32)[signatures.number], tuple(known)


def shapes_line(dims: Sequence[InputSizes]) -> str:
    """Input shapes in one line (`64×3×224×224, 64`); other inputs are left out."""
    return ", ".join(text for shape in dims if (text := _shape_text(shape)))


def _shape_text(shape: InputSizes) -> str:
    if any(isinstance(size, tuple) for size in shape):  # a list of tensors
        return f"[{', '.join(_shape_text(inner) for inner in shape if isinstance(inner, tuple))}]"
    return "×".join(str(size) for size in shape)


def _levels(start_ns: Times, end_ns: Times, row_first: Rows) -> Iterator[_Level]:
    first, pixel_ns = np.arange(len(start_ns)), FIRST_LEVEL_NS
    until_ns = int(end_ns.max(initial=0))
    while pixel_ns < LEVEL_FACTOR * until_ns and len(first) >= len(row_first):
        first = first[begins_block(start_ns, end_ns, row_first, first, np.append(first[1:], len(start_ns)), pixel_ns)]
        yield _Level(pixel_ns, first.astype(np.int32))
        pixel_ns *= LEVEL_FACTOR


def begins_block(start_ns: Times, end_ns: Times, row_first: Rows, first: Rows, last: Rows, pixel_ns: float) -> Mask:
    """Mask of the blocks `first[i]:last[i]`, in ascending order, that must not be merged with the one before.

    Blocks less than a pixel apart are merged; a single event as long as a pixel is not.
    """
    begin, end = start_ns[first], end_ns[last - 1]
    is_long = (last - first == 1) & (end - begin >= pixel_ns)
    begins = np.ones(len(first), np.bool_)
    begins[1:] = is_long[1:] | is_long[:-1] | (begin[1:] - end[:-1] >= pixel_ns)
    at = np.searchsorted(first, row_first[:-1])  # the first block of each row
    begins[at[at < len(first)]] = True
    return begins
