"""The tables beside the report: left as text until a request, then filtered, sorted and cut into pages."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.plugin.models import (
    CpuAnswer,
    FileCost,
    FilesAnswer,
    KernelsAnswer,
    LineColumns,
    LinesAnswer,
    MemoryAnswer,
    ModulesAnswer,
    OperatorsAnswer,
)
from tb_tidy_plugin.report.chosen import KERNEL_ORDERS, OPERATOR_ORDERS, chosen_kernels, chosen_operators, ordered
from tb_tidy_plugin.report.figures import (
    CpuFigures,
    DeviceKernelRow,
    DeviceMemoryRow,
    KernelFamilyRow,
    ModuleRow,
    OperatorGroup,
    OperatorRow,
)
from tb_tidy_plugin.report.idle import IdleAnswer, IdleGaps, idle_at
from tb_tidy_plugin.system.decoders import decode

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.lines import FunctionTime, LineCost, LineCosts
    from tb_tidy_plugin.report.figures import Figures


_PARTS = ("families", "kernels", "modules", "memory", "cpu", "flame", "roofline", "idle")
_OF_A_LINE = (
    "line", "host_ns", "device_ns", "calls", "shared", "known_by", "total_ns", "forward_ns", "backward_ns",
    "optimizer_ns", "loading_ns", "other_ns", "ties",
)  # fmt: skip


class Tables(msgspec.Struct, frozen=True):
    """`Figures` with its parts left as text: most of them are never requested."""

    operators: dict[OperatorGroup, msgspec.Raw]
    left_out: dict[OperatorGroup, int]
    families: msgspec.Raw
    kernels: msgspec.Raw
    modules: msgspec.Raw
    memory: msgspec.Raw
    cpu: msgspec.Raw
    flame: msgspec.Raw
    roofline: msgspec.Raw
    idle: msgspec.Raw
    lines: dict[str, msgspec.Raw]
    missing: dict[str, str]

    @property
    def size(self) -> int:
        """Size in memory in bytes."""
        parts = (*self.operators.values(), *(getattr(self, part) for part in _PARTS), *self.lines.values())
        return sum(memoryview(part).nbytes for part in parts)


def tables_of(figures: Figures, lines: LineCosts, wall_ns: int) -> Tables:
    """The figures as text, and costs of lines by file; `wall_ns` is the duration of the recording."""
    return Tables(
        operators={group: _text(rows) for group, rows in figures.operators.items()},
        left_out=figures.left_out,
        lines={file: _text(columns) for file, columns in line_columns(lines, wall_ns).items()},
        missing=figures.missing,
        **{part: _text(getattr(figures, part)) for part in _PARTS},
    )


def line_columns(costs: LineCosts, wall_ns: int) -> dict[str, LineColumns]:
    """The costs of lines by file; a file whose functions were all left out has no lines."""
    functions: dict[str, list[str]] = {}
    for frame in costs.left_out:
        functions.setdefault(frame.file, []).append(frame.function)
    lines: dict[str, list[LineCost]] = {file: [] for file in functions}
    for cost in costs.lines:
        lines.setdefault(cost.file, []).append(cost)
    unplaced: dict[str, list[FunctionTime]] = {}
    for each in costs.step.functions:
        unplaced.setdefault(each.file, []).append(each)
    return {
        file: LineColumns(
            wall_ns=wall_ns,
            **{name: [getattr(cost, name) for cost in found] for name in _OF_A_LINE},
            left_out=list(dict.fromkeys(functions.get(file, ()))),
            steps=costs.step.steps,
            step_ns=costs.step.ns,
            functions=[each.function for each in unplaced.get(file, ())],
            functions_ns=[each.own_ns for each in unplaced.get(file, ())],
        )
        for file, found in lines.items()
    }


def _text(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


class Page(msgspec.Struct, frozen=True):
    """Selection and order of rows.

    Attributes:
        order: one of `OPERATOR_ORDERS`, of kernels of `KERNEL_ORDERS`.
        text: only rows whose name, shapes, file, function or module contains it, in any case; or the row with this key.
        kind: only rows of this kind, of kernels of this family; all if empty.
    """

    offset: int
    limit: int
    order: str
    descending: bool
    text: str = ""
    kind: str = ""


def operators_answer(tables: Tables, group: OperatorGroup, page: Page) -> OperatorsAnswer:
    """One page of one grouping. Rows without the figure that orders them come last in either direction."""
    text = tables.operators.get(group)
    rows = decode(text, list[OperatorRow]) if text is not None else []
    found = ordered(chosen_operators(rows, page.text, page.kind), page.order, descending=page.descending)
    return OperatorsAnswer(
        group=group,
        total=len(found),
        offset=page.offset,
        rows=found[page.offset : page.offset + page.limit],
        left_out=tables.left_out.get(group, 0),
        missing=tables.missing.get(group),
        host_ns=sum(row.host_self_ns for row in rows),
        device_ns=_sum([row.device_self_ns for row in rows]),
        empty=_empty(rows, OPERATOR_ORDERS),
    )


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _empty(rows: Sequence[OperatorRow] | Sequence[DeviceKernelRow], columns: Sequence[str]) -> list[str]:
    return [name for name in columns if all(getattr(row, name) in {None, ""} for row in rows)]


def kernels_answer(tables: Tables, page: Page) -> KernelsAnswer:
    """One page of the device's work: rows with the text in their family, operator or name, or the row with this key."""
    rows = decode(tables.kernels, list[DeviceKernelRow])
    found = ordered(chosen_kernels(rows, page.text, page.kind), page.order, descending=page.descending)
    return KernelsAnswer(
        total=len(found),
        offset=page.offset,
        rows=found[page.offset : page.offset + page.limit],
        families=decode(tables.families, list[KernelFamilyRow]),
        missing=tables.missing.get("kernels"),
        empty=_empty(rows, KERNEL_ORDERS),
    )


def modules_answer(tables: Tables) -> ModulesAnswer:
    """All modules."""
    rows = decode(tables.modules, list[ModuleRow])
    return ModulesAnswer(rows=rows, missing=tables.missing.get("modules"))


def memory_answer(tables: Tables) -> MemoryAnswer:
    """All devices with memory events."""
    devices = decode(tables.memory, list[DeviceMemoryRow])
    problem = tables.missing.get("snapshot")
    return MemoryAnswer(devices=devices, missing=tables.missing.get("memory"), snapshot_problem=problem)


def lines_answer(tables: Tables, file: str) -> LinesAnswer:
    """Costs of the lines of one file; null for a file in which no call was placed."""
    text = tables.lines.get(file)
    columns = None if text is None else decode(text, LineColumns)
    return LinesAnswer(file=file, costs=columns)


def files_answer(tables: Tables, files: Container[str]) -> FilesAnswer:
    """Those of `files` in which calls were placed, each with its costliest line."""
    wall_ns = steps = step_ns = 0
    found = []
    for file, text in tables.lines.items():
        columns = decode(text, LineColumns)
        if columns.line and file in files:
            costs = list(zip(columns.total_ns, columns.host_ns, columns.device_ns, columns.line, strict=True))
            total_ns, host_ns, device_ns, line = max(costs, key=lambda each: each[:2])
            found.append(FileCost(file, line, host_ns, device_ns, total_ns))
            wall_ns, steps, step_ns = columns.wall_ns, columns.steps, columns.step_ns
    files_in_order = sorted(found, key=lambda cost: (-cost.total_ns, -cost.host_ns, cost.file))
    return FilesAnswer(wall_ns, files_in_order, steps, step_ns)


def cpu_answer(tables: Tables) -> CpuAnswer:
    """Work of the CPU."""
    return CpuAnswer(cpu=decode(tables.cpu, CpuFigures))


def idle_answer(tables: Tables, at_ns: int) -> IdleAnswer:
    """Why the device idles at a time."""
    return idle_at(decode(tables.idle, IdleGaps), at_ns)
