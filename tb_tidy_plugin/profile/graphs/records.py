"""Graphs in a recording: their captures, their replays, and eager iterations that launch the same kernels.

While a stream is captured, the host runs every operator and launches every kernel, and the device runs none of them. A
replay is one call after which the device runs them all. HIP records a kernel's name with its launch, CUDA does not.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.tree import Tree, build_tree, innermost
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.steps.steps import ProfileSteps
from tb_tidy_plugin.torchfacts.event_names import (
    ASYNC_COPY_OR_FILL,
    BEGIN_CAPTURE,
    END_CAPTURE,
    GRAPH_LAUNCH,
    KERNEL_LAUNCH,
)
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    Category,
    EventTable,
    Grids,
    Mask,
    Numbers,
    Rows,
    Small,
)
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

BUCKET = re.compile(r"(?:^|\b)capture_(\d{1,7})(?:_|$)")
"""Annotation of vLLM and SGLang around the capture of a graph, with the batch that it is for."""

_CAPTURED = re.compile(r"^tidy:capture#([\w.-]{1,64})$")
_REPLAYED = re.compile(r"^tidy:replay#([\w.-]{1,64})$")
"""Annotations of `tb_tidy_plugin.capture.graphs`."""

NODE_ID = b'"graph node id"'
UNKNOWN_GRID = (0, 0, 0)
LEAST_EAGER = 8
_DIGITS = re.compile(r"\d+")


class _Launched(msgspec.Struct, gc=False):
    kernel: str = ""
    grid: tuple[Small, Small, Small] = UNKNOWN_GRID


class _Node(msgspec.Struct, gc=False):
    number: int = msgspec.field(name="graph node id", default=ABSENT)


class RecordSource(msgspec.Struct, frozen=True):
    """A recording in the order of its tree. `name` is its file's, empty for the recording being analysed."""

    name: str
    table: EventTable
    tree: Tree

    @classmethod
    def of(cls, table: EventTable, name: str = "") -> RecordSource:
        """The same events; host events come first, in pre-order."""
        order, tree = build_tree(table)
        is_other = np.ones(len(table), np.bool_)
        is_other[order] = False
        return cls(name, table.take(np.concatenate([order, np.flatnonzero(is_other)])), tree)


class Record(msgspec.Struct, frozen=True):
    """Launches in order: of one captured graph, or of an eager iteration.

    Attributes:
        cause: the innermost host event around each launch, a row of the source; `ABSENT` for none.
        names: of the launched kernels; empty if they were not recorded.
        grids: their thread blocks along three axes, 0 if they were not recorded.
        begin_ns: earlier events do not belong to it.
        bucket: the batch that the graph is for, None if unknown.
        ident: the name that `capture.graphs` gave it.
        eager: True for an eager iteration.
    """

    source: RecordSource
    cause: Rows
    names: tuple[str, ...]
    grids: Grids
    begin_ns: int
    bucket: int | None = None
    ident: str | None = None
    eager: bool = False

    @property
    def is_named(self) -> bool:
        """True if the kernels' names are known."""
        return all(self.names)


class Replay(msgspec.Struct, frozen=True):
    """One launch of a graph and the device work that it caused, in the graph's order if that is recorded.

    Attributes:
        launch: row of the call. work: rows of kernels, copies and fills.
        by_node: True for the order of the graph's nodes, False for that of the starts.
        streams: number of streams they ran on.
        step: index of the step, `ABSENT` outside.
        marks: names of the annotations around the launch, outermost first. ident: as `Record.ident`.
    """

    launch: int
    work: Rows
    names: tuple[str, ...]
    by_node: bool
    streams: int
    step: int
    marks: tuple[str, ...]
    ident: str | None


def captures_of(source: RecordSource) -> list[Record]:
    """The captured graphs of a recording, in order of time."""
    table = source.table
    runtime = np.flatnonzero(table.category == Category.RUNTIME)
    runtime = runtime[np.argsort(table.start_ns[runtime], kind="stable")]
    begins, ends = (runtime[_named(table, runtime, pattern)] for pattern in (BEGIN_CAPTURE, END_CAPTURE))
    if not len(begins) or not len(ends):
        return []
    found = []
    calls = runtime[_named(table, runtime, f"{KERNEL_LAUNCH}|{ASYNC_COPY_OR_FILL}")]
    for begin in begins.tolist():
        thread, start = table.thread[begin], int(table.end_ns[begin])
        after = ends[(table.thread[ends] == thread) & (table.start_ns[ends] >= start)]
        if not len(after):
            continue
        here = (table.thread[calls] == thread) & (table.start_ns[calls] >= start)
        mine = calls[here & (table.start_ns[calls] < table.start_ns[after[0]])]
        marks = _marks_around(table, begin)
        bucket = _first(BUCKET, marks)
        names, grids = _launched(table, mine)
        found.append(
            Record(
                source=source,
                cause=innermost(table, source.tree, mine),
                names=names,
                grids=grids,
                begin_ns=start,
                bucket=None if bucket is None else int(bucket),
                ident=_first(_CAPTURED, marks),
            )
        )
    return found


def grids_of(table: EventTable, rows: Rows) -> Grids:
    """Thread blocks along three axes, for each kernel or launch; 0 if they were not recorded."""
    return _launched(table, rows)[1]


def _launched(table: EventTable, calls: Rows) -> tuple[tuple[str, ...], Grids]:
    found = table.args.decoded(calls, _Launched)
    called = [table.names[number] for number in table.name[calls].tolist()]
    names = tuple(each.kernel or _copy_name(call) for each, call in zip(found, called, strict=True))
    return names, np.array([each.grid for each in found], np.int64).reshape(-1, 3)


def _copy_name(name: str) -> str:
    """`Memcpy` or `Memset` for calls and events of that kind, empty for others: the two sides name them differently."""
    return next((kind for kind in ("Memcpy", "Memset") if kind.lower() in name.lower()), "")


def _marks_around(table: EventTable, row: int) -> tuple[str, ...]:
    """Names of the annotations around an event of the host, on its thread, outermost first."""
    marks = np.flatnonzero((table.category == Category.ANNOTATION) & (table.thread == table.thread[row]))
    around = marks[(table.start_ns[marks] <= table.start_ns[row]) & (table.end_ns[marks] >= table.start_ns[row])]
    around = around[np.argsort(table.start_ns[around], kind="stable")]
    return tuple(table.names[number] for number in table.name[around].tolist())


def _first(pattern: re.Pattern[str], marks: tuple[str, ...]) -> str | None:
    """The group that the pattern finds in the innermost of `marks`."""
    return next((match[1] for mark in reversed(marks) if (match := pattern.search(mark))), None)


def replays_of(table: EventTable, launch: Rows, steps: ProfileSteps) -> list[Replay]:
    """The graph launches of a recording that have device work, in order of time.

    Args:
        table: the recording.
        launch: the row of each device work's launch.
        steps: of the recording.
    """
    runtime = np.flatnonzero(table.category == Category.RUNTIME)
    calls = runtime[_named(table, runtime, GRAPH_LAUNCH)]
    work = np.flatnonzero(table.is_category(DEVICE_WORK) & among(launch, calls))
    work = work[np.lexsort((table.start_ns[work], launch[work]))]
    nodes = _nodes(table, work)
    edges = np.flatnonzero(np.diff(launch[work])) + 1
    found = []
    for by_start, ids in zip(np.split(work, edges), np.split(nodes, edges), strict=True):
        if not len(by_start):
            continue
        by_node = bool((ids != ABSENT).all()) and len(distinct(ids)) == len(ids)
        rows = by_start[np.argsort(ids, kind="stable")] if by_node else by_start
        call = int(launch[rows[0]])
        marks = _marks_around(table, call)
        found.append(
            Replay(
                launch=call,
                work=rows,
                names=_work_names(table, rows),
                by_node=by_node,
                streams=len({*zip(table.device[rows].tolist(), table.stream[rows].tolist(), strict=True)}),
                step=int(steps.index_of(table.start_ns[[call]])[0]),
                marks=marks,
                ident=_first(_REPLAYED, marks),
            )
        )
    return sorted(found, key=lambda each: int(table.start_ns[each.launch]))


def _nodes(table: EventTable, work: Rows) -> Rows:
    if not any(NODE_ID in block for block in table.args.blocks):
        return np.full(len(work), ABSENT, np.int64)
    return np.array([node.number for node in table.args.decoded(work, _Node)], np.int64)


def _work_names(table: EventTable, rows: Rows) -> tuple[str, ...]:
    names = (table.names[number] for number in table.name[rows].tolist())
    kernel = (table.category[rows] == Category.KERNEL).tolist()
    return tuple(name if is_kernel else _copy_name(name) for name, is_kernel in zip(names, kernel, strict=True))


def eager_of(source: RecordSource, launch: Rows, steps: ProfileSteps) -> list[Record]:
    """The eager part of each step of a recording, or of the whole without steps, on its busiest thread.

    Args:
        source: the recording; `launch` and `steps` are of its table.
    """
    table = source.table
    work = np.flatnonzero(table.is_category(DEVICE_WORK) & (launch != ABSENT))
    runtime = np.flatnonzero(table.category == Category.RUNTIME)
    graphs = runtime[_named(table, runtime, GRAPH_LAUNCH)]
    work = work[~among(launch[work], graphs)]
    if len(work) < LEAST_EAGER:
        return []
    threads = table.thread[launch[work]]
    work = work[threads == np.bincount(threads).argmax()]
    work = work[np.lexsort((launch[work], table.start_ns[launch[work]]))]
    step = steps.index_of(table.start_ns[launch[work]])
    found = []
    for each in distinct(step).tolist():
        rows = work[step == each]
        if len(rows) >= LEAST_EAGER:
            calls = launch[rows]
            begin = int(table.start_ns[calls[0]]) if each == ABSENT else steps.items[each].start_ns
            cause = innermost(table, source.tree, calls)
            grids = np.zeros((len(rows), 3), np.int64)  # of another batch
            found.append(Record(source, cause, _work_names(table, rows), grids, begin, eager=True))
    return found


def _named(table: EventTable, rows: Rows, pattern: str) -> Mask:
    numbers: Numbers = numbers_where(table.names, re.compile(pattern).search)
    found: Mask = among(table.name[rows], numbers)
    return found


@lru_cache(maxsize=1 << 14)
def family_of(name: str) -> str:
    """The part of a kernel's name that does not depend on batch and device: the kind of products and attention."""
    kind = kernel_kind(name)
    return kind if kind in {"matrix", "attention", "convolution"} else _DIGITS.sub("#", name.partition("(")[0])
