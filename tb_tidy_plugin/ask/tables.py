"""Answers as tables: operators, kernels, and windows of the timeline."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.analysis.answers import TABLES_BY_LINE, TABLES_OF_REPORT
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.timeline import read_timeline
from tb_tidy_plugin.ask import arguments
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import WholeAnswer, columns, if_known, microseconds, picked
from tb_tidy_plugin.ask.quoted import quoted
from tb_tidy_plugin.ask.reports import answer_of
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
from tb_tidy_plugin.report.figures import DeviceKernelRow, OperatorRow
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.limits import held_to
from tb_tidy_plugin.words.errors import NotFoundError

FINDINGS = 3
"""Most findings named for one operator."""

OPERATOR_COLUMNS = columns(
    OperatorRow,
    "name where= calls host_self_us=host_self_ns host_total_us=host_total_ns device_us=device_total_ns roofline "
    "findings= known_by",
)
KERNEL_COLUMNS = columns(
    DeviceKernelRow, "name operator family count total_us=total_ns share roofline tensor_cores known_by"
)
BAR_COLUMNS = columns(object, "lane= depth= start_us= duration_us= events= kind= name=")
"""One event, or `events` consecutive ones of one lane and depth; `name` is that of the first one."""


def operators(folder: Folder, asked: arguments.OperatorsQuestion) -> WholeAnswer:
    """One grouping of the operators."""
    _check_order(asked.order, OPERATOR_ORDERS)
    file = folder.trace(asked.path)
    question = TABLES_BY_LINE if asked.by == "line" else TABLES_OF_REPORT
    figures = renamed(answer_of(folder, file, question).figures, ShownNames(folder.job).beside(str(file.path)))
    rows = chosen_operators(figures.operators.get(asked.by, []), asked.text, asked.kind)
    head = {"trace": folder.id_of(file), "total": len(rows)}
    head |= if_known(missing=figures.missing.get(asked.by), left_out=figures.left_out.get(asked.by) or None)
    found = ordered(rows, asked.order, descending=asked.descending)
    return WholeAnswer(head, OPERATOR_COLUMNS, [_operators_row(row) for row in found])


def _check_order(order: str, known: tuple[str, ...]) -> None:
    if order not in known:
        raise NotFoundError("This column does not exist or cannot be ordered by.", f"Give one of {', '.join(known)}.")


def _operators_row(row: OperatorRow) -> dict[str, object]:
    place = f"{row.file}:{row.line} {row.function}" if row.file else ""
    where = quoted(row.shapes or place or row.module)
    return picked(OPERATOR_COLUMNS, row, where=where, findings=row.findings[:FINDINGS])


def kernels(folder: Folder, asked: arguments.KernelsQuestion) -> WholeAnswer:
    """The device's work."""
    _check_order(asked.order, KERNEL_ORDERS)
    file = folder.trace(asked.path)
    figures = answer_of(folder, file, TABLES_OF_REPORT).figures
    family = asked.family.word if asked.family else ""
    found = ordered(chosen_kernels(figures.kernels, asked.text, family), asked.order, descending=asked.descending)
    head = {"trace": folder.id_of(file), "total": len(found)} | if_known(missing=figures.missing.get("kernels"))
    return WholeAnswer(head, KERNEL_COLUMNS, [picked(KERNEL_COLUMNS, row) for row in found])


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
    head = {
        "trace": folder.id_of(file),
        "from_us": microseconds(from_ns),
        "to_us": microseconds(to_ns),
        "until_us": microseconds(found.until_ns),
        "part_us": microseconds(round(bars.pixel_ns)),
        "lanes": [quoted(lane.name, 40) for lane in found.lanes[:_MOST_LANES]],
    } | if_known(step=quoted(step) if step else None)
    table = [
        picked(
            BAR_COLUMNS,
            None,
            lane=lane,
            depth=depth,
            start_us=microseconds(start_ns),
            duration_us=microseconds(end_ns - start_ns),
            events=events,
            kind=Category(category).name.lower(),
            name=quoted(found.names[name]),
        )
        for start_ns, lane, depth, end_ns, events, category, name in shown
    ]
    return WholeAnswer(head, BAR_COLUMNS, table)


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
