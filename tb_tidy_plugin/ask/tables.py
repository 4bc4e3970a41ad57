"""Answers as tables: operators, kernels, and windows of the timeline."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.analysis.answers import TABLES_BY_LINE, TABLES_OF_REPORT
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.timeline import read_timeline
from tb_tidy_plugin.ask import arguments
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import Head, Row, WholeAnswer
from tb_tidy_plugin.ask.quoted import Quoted, quoted
from tb_tidy_plugin.ask.reports import answer_of, microseconds
from tb_tidy_plugin.profile.timeline.timeline import Timeline
from tb_tidy_plugin.profile.timeline.window import bars_in
from tb_tidy_plugin.report.chosen import (
    KERNEL_ORDERS,
    OPERATOR_ORDERS,
    chosen_kernels,
    chosen_operators,
    ordered,
    searchable,
)
from tb_tidy_plugin.report.figures import KernelFamily, OperatorRow
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.limits import held_to
from tb_tidy_plugin.words.errors import NotFoundError

FINDINGS = 3
"""Most findings named for one operator."""


class TableHead(Head, frozen=True):
    """The trace of a table; `missing` says what the recording lacks for it, `left_out` counts dropped rows."""

    trace: str
    total: int
    missing: str | None = None
    left_out: int = 0


class OperatorsRow(Row, frozen=True):
    """Calls of operators that share a name, shapes, a line or a module; times over the whole recording.

    `known_by` says how calls of replayed graphs are known from the capture, null without any.
    """

    name: Quoted
    where: Quoted
    calls: int
    host_self_us: float
    host_total_us: float
    device_us: float | None
    roofline: float | None
    findings: list[str]
    known_by: str | None


def operators(folder: Folder, asked: arguments.OperatorsQuestion) -> WholeAnswer:
    """One grouping of the operators."""
    _check_order(asked.order, OPERATOR_ORDERS)
    file = folder.trace(asked.path)
    question = TABLES_BY_LINE if asked.by == "line" else TABLES_OF_REPORT
    figures = renamed(answer_of(folder, file, question).figures, ShownNames(folder.job).beside(str(file.path)))
    rows = chosen_operators(figures.operators.get(asked.by, []), asked.text, asked.kind)
    head = TableHead(
        trace=folder.id_of(file),
        total=len(rows),
        missing=figures.missing.get(asked.by),
        left_out=figures.left_out.get(asked.by, 0),
    )
    found = ordered(rows, asked.order, descending=asked.descending)
    return WholeAnswer(head, OperatorsRow, [_operators_row(row) for row in found])


def _check_order(order: str, known: tuple[str, ...]) -> None:
    if order not in known:
        raise NotFoundError("This column does not exist or cannot be ordered by.", f"Give one of {', '.join(known)}.")


def _operators_row(row: OperatorRow) -> OperatorsRow:
    place = f"{row.file}:{row.line} {row.function}" if row.file else ""
    return OperatorsRow(
        quoted(row.name),
        quoted(row.shapes or place or row.module),
        row.calls,
        microseconds(row.host_self_ns),
        microseconds(row.host_total_ns),
        microseconds(row.device_total_ns) if row.device_total_ns is not None else None,
        round(row.roofline, 3) if row.roofline is not None else None,
        row.findings[:FINDINGS],
        row.known_by,
    )


class KernelsRow(Row, frozen=True):
    """Kernels, copies or fills with one name that one operator launched; times over the whole recording.

    `known_by` says how the operator is known if replayed graphs launched them, else null.
    """

    name: Quoted
    operator: Quoted
    family: KernelFamily
    count: int
    total_us: float
    share: float
    roofline: float | None
    tensor_cores: bool | None
    known_by: str | None


def kernels(folder: Folder, asked: arguments.KernelsQuestion) -> WholeAnswer:
    """The device's work."""
    _check_order(asked.order, KERNEL_ORDERS)
    file = folder.trace(asked.path)
    figures = answer_of(folder, file, TABLES_OF_REPORT).figures
    found = ordered(chosen_kernels(figures.kernels, asked.text, asked.family), asked.order, descending=asked.descending)
    head = TableHead(trace=folder.id_of(file), total=len(found), missing=figures.missing.get("kernels"))
    rows = [
        KernelsRow(
            quoted(row.name),
            quoted(row.operator),
            row.family,
            row.count,
            microseconds(row.total_ns),
            round(row.share, 4),
            round(row.roofline, 3) if row.roofline is not None else None,
            row.tensor_cores,
            row.known_by,
        )
        for row in found
    ]
    return WholeAnswer(head, KernelsRow, rows)


class TimelineHead(Head, frozen=True):
    """The window shown; consecutive rows shorter than `part_us` are merged. `until_us` is the recording's end."""

    trace: str
    from_us: float
    to_us: float
    until_us: float
    part_us: float
    lanes: list[Quoted]
    step: Quoted | None = None


class BarRow(Row, frozen=True):
    """One event, or `events` consecutive ones of one lane and depth; `name` is that of the first one."""

    lane: int
    depth: int
    start_us: float
    duration_us: float
    events: int
    kind: str
    name: Quoted


def timeline_answer(folder: Folder, asked: arguments.TimelineQuestion) -> WholeAnswer:
    """Events in a window."""
    file = folder.trace(asked.path)
    with held_to(folder.job.limits):
        left_out = [Category.MEMORY] if asked.python else [Category.MEMORY, Category.PYTHON]
        found = read_timeline(file.path, folder.job.cache, folder.job.limits, left_out)
        from_ns, to_ns, step = _window(found, asked)
        wanted = searchable(asked.lane)
        lanes = [at for at, lane in enumerate(found.lanes) if wanted in searchable(lane.name)]
        if not lanes:
            raise NotFoundError("No lane contains this text.", "Ask without `lane`: `lanes` names all.")
        bars = bars_in(found, from_ns, to_ns, asked.parts, np.array(lanes, np.int64))
        rows = found.row_of(bars.first)
        columns = zip(
            found.row_lane[rows].tolist(),
            found.row_depth[rows].tolist(),
            found.start_ns[bars.first].tolist(),
            found.end_ns[bars.last - 1].tolist(),
            (bars.last - bars.first).tolist(),
            found.category[bars.first].tolist(),
            found.name[bars.first].tolist(),
            strict=True,
        )
        shown = sorted(
            (start_ns, lane, depth, end_ns, events, category, name)
            for lane, depth, start_ns, end_ns, events, category, name in columns
        )
    head = TimelineHead(
        trace=folder.id_of(file),
        from_us=microseconds(from_ns),
        to_us=microseconds(to_ns),
        until_us=microseconds(found.until_ns),
        part_us=microseconds(round(bars.pixel_ns)),
        lanes=[quoted(lane.name, 40) for lane in found.lanes[:_MOST_LANES]],
        step=quoted(step) if step else None,
    )
    table = [
        BarRow(
            lane,
            depth,
            microseconds(start_ns),
            microseconds(end_ns - start_ns),
            events,
            Category(category).name.lower(),
            quoted(found.names[name]),
        )
        for start_ns, lane, depth, end_ns, events, category, name in shown
    ]
    return WholeAnswer(head, BarRow, table)


_MOST_LANES = 20
"""Most lanes named in an answer."""


def _window(found: Timeline, asked: arguments.TimelineQuestion) -> tuple[int, int, str]:
    """Start and end in ns, and the step's name if the window is a step: the first of median length."""
    if asked.from_us is not None or asked.to_us is not None:
        from_ns = round((asked.from_us or 0) * 1000)
        to_ns = found.until_ns if asked.to_us is None else round(asked.to_us * 1000)
        if to_ns <= from_ns:
            raise NotFoundError("The window is empty.", "Give a `to_us` after `from_us`.")
        return from_ns, to_ns, ""
    if not found.steps.items:
        return 0, max(found.until_ns, 1), ""
    by_length = sorted(found.steps.items, key=lambda step: (step.duration_ns, step.start_ns))
    step = by_length[(len(by_length) - 1) // 2]
    return step.start_ns, max(step.end_ns, step.start_ns + 1), step.name
