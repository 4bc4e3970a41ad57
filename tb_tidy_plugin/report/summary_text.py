"""The tables of a profile for a terminal: where its steps, operators, modules, memory and CPU time go.

Names in a trace are untrusted: they are shown without control characters, and never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.report.figures import CpuFigures, DeviceMemoryRow, Figures, ModuleRow, OperatorGroup, OperatorRow
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.report.step_model import Lane, Steps
from tb_tidy_plugin.report.summary import ProfileSummary, Summary
from tb_tidy_plugin.report.text import STEP_BASIS, plain
from tb_tidy_plugin.units import Bytes, Nanoseconds, Share

MOST_ODD_STEPS = 5
GROUPED_BY = {"name": "name", "shape": "name and input shapes", "line": "source line", "module": "module"}
ELSEWHERE = {"line": "no line known", "module": "outside all modules"}
ODDITIES = {"warmup": "warm-up", "outlier": "outlier"}
MARKS = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True, slots=True)
class Wanted:
    """By what operators are grouped, and how many rows of each table are shown."""

    group: OperatorGroup = "name"
    top: int = 10


def to_text(summary: Summary, wanted: Wanted) -> RenderableType:
    """Everything in the summary, for rich to print."""
    parts: list[RenderableType] = []
    for profile in summary.profiles:
        parts += [*_profile(profile, wanted), Text()]
    parts += [part for problem in summary.problems for part in _problem(problem)]
    return Group(*parts)


def _profile(profile: ProfileSummary, wanted: Wanted) -> Iterator[RenderableType]:
    report, figures = profile.report, profile.figures
    names = [profile.run, report.worker, report.span, "" if report.rank is None else f"rank {report.rank}"]
    yield Text(" · ".join(plain(name).plain for name in names if name), "bold")
    for line in _steps(report.steps):
        yield _indented(line)
    for note in report.quality.notes:
        yield _indented(Text.assemble(("note: ", "yellow"), plain(note)))
    for lane in report.lanes:
        yield from _section(*_lane(lane, report.steps))
    yield from _section(*_operators(report, figures, wanted))
    yield from _section(*_modules(figures, wanted))
    if figures.memory:
        for device in figures.memory:
            yield from _section(*_memory(device, wanted))
    else:
        yield from _section("Memory", _missing(figures, "memory"))
    yield from _section("CPU work", _cpu(figures.cpu, wanted))


def _section(title: str, *parts: RenderableType) -> Iterator[RenderableType]:
    yield Text()
    yield _indented(Text(title, "bold"))
    for part in parts:
        yield _indented(part)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _add(table: Table, first: Text, *others: str) -> None:
    table.add_row(first, *(Text(other) for other in others))


def _time(time_ns: int | None) -> str:
    return "" if time_ns is None else str(Nanoseconds(time_ns))


def _size(size: int | None) -> str:
    return "" if size is None else str(Bytes(size))


def _steps(steps: Steps) -> Iterator[Text]:
    if steps.median_ns is None:
        yield Text(STEP_BASIS[steps.basis])
        return
    if steps.count == 1:
        yield Text(f"1 step of {_time(steps.median_ns)} ({STEP_BASIS[steps.basis]})")
        return
    spread = f"p10 to p90 {_time(steps.p10_ns)} to {_time(steps.p90_ns)}"
    yield Text(f"{steps.count} steps, median {_time(steps.median_ns)}, {spread} ({STEP_BASIS[steps.basis]})")
    odd = [(step, ODDITIES[step.oddity]) for step in steps.items if step.oddity is not None]
    if odd:
        named = [f"{step.name} {_time(step.duration_ns)} ({what})" for step, what in odd[:MOST_ODD_STEPS]]
        more = f" and {len(odd) - MOST_ODD_STEPS} more" if len(odd) > MOST_ODD_STEPS else ""
        yield Text.assemble(("odd steps: ", "yellow"), plain(", ".join(named) + more))


def _lane(lane: Lane, steps: Steps) -> tuple[str, RenderableType]:
    whole_ns = sum(part.mean_ns for part in lane.parts)
    kind = "whole trace" if steps.basis in {"whole_trace", "none"} else "mean step"
    table = _table("part", "time", f"of the {kind}")
    for part in sorted(lane.parts, key=lambda part: -part.mean_ns):
        _add(table, Text(part_text(part.part)), _time(part.mean_ns), str(Share(part.mean_ns / max(whole_ns, 1))))
    overlapped = f", communication behind compute {_time(lane.communication_overlapped_ns)}"
    hidden = overlapped if lane.communication_overlapped_ns else ""
    return f"{plain(lane.lane).plain}: {kind} of {_time(whole_ns)}{hidden}", table


def part_text(part: str) -> str:
    """A part of a step in words: `idle: data loading`."""
    idle, is_idle, cause = part.rpartition("idle_")
    return f"idle: {cause.replace('_', ' ')}" if is_idle else (idle + cause).replace("_", " ")


def _missing(figures: Figures, table: str) -> Text:
    return Text(f"not shown: {figures.missing.get(table, 'there is nothing to show.')}", "dim")


def _operators(report: ProfileReport, figures: Figures, wanted: Wanted) -> tuple[str, RenderableType]:
    title = f"Operators by {GROUPED_BY[wanted.group]}"
    rows = figures.operators.get(wanted.group)
    if not rows:
        return title, _missing(figures, wanted.group)
    has_device = any(row.device_total_ns is not None for row in rows)
    severities = {finding.id: finding.rule for finding in report.findings}
    device_columns = ("device total", "tensor cores") if has_device else ()
    table = _table(wanted.group, "calls", "CPU self", "CPU total", *device_columns, "findings")
    for row in rows[: wanted.top]:
        device = (_time(row.device_total_ns), MARKS[row.tensor_cores]) if has_device else ()
        found = len({severities[finding] for finding in row.findings if finding in severities})
        times = (f"{row.calls:,}", _time(row.host_self_ns), _time(row.host_total_ns))
        _add(table, plain(_label(row, wanted.group)), *times, *device, str(found or ""))
    return f"{title}: {min(wanted.top, len(rows))} of {len(rows):,}, over the whole profile", table


def _label(row: OperatorRow, group: OperatorGroup) -> str:
    match group:
        case "name":
            return row.name
        case "shape":
            return f"{row.name} {row.shapes}".strip()
        case "line":
            return f"{row.file}:{row.line} {row.function}" if row.file else ELSEWHERE[group]
        case "module":
            return row.module or ELSEWHERE[group]


def _modules(figures: Figures, wanted: Wanted) -> tuple[str, RenderableType]:
    rows = figures.modules
    if not rows:
        return "Modules", _missing(figures, "modules")
    shown = largest(rows, 2 * wanted.top)
    has_device = any(row.device_forward_ns is not None for row in rows)
    has_memory = any(row.allocated_bytes is not None for row in rows)
    device_column, memory_column = ("device",) if has_device else (), ("allocated",) if has_memory else ()
    table = _table("module", "calls", "forward", "backward", *device_column, *memory_column)
    for row in shown:
        device = (_time((row.device_forward_ns or 0) + (row.device_backward_ns or 0)),) if has_device else ()
        memory = (_size(row.allocated_bytes),) if has_memory else ()
        name = plain("  " * row.depth + row.name)
        _add(table, name, f"{row.calls:,}", _time(row.forward_ns), _time(row.backward_ns), *device, *memory)
    return f"Modules: {len(shown)} of {len(rows):,}, over the whole profile", table


def largest(rows: Sequence[ModuleRow], most: int) -> list[ModuleRow]:
    """The modules with most time, in their order; those around one have at least its time, so they are there, too."""
    order = sorted(range(len(rows)), key=lambda at: -(rows[at].forward_ns + rows[at].backward_ns))
    return [rows[at] for at in sorted(order[:most])]


def _memory(device: DeviceMemoryRow, wanted: Wanted) -> tuple[str, RenderableType]:
    at_least = "at least " if device.basis == "running_sum" else ""
    reserved = f", reserved {_size(device.peak_reserved_bytes)}" if device.peak_reserved_bytes is not None else ""
    title = f"{device.device}: peak {at_least}{_size(device.peak_bytes)} at {_time(device.peak_ns)}{reserved}"
    if device.other_bytes is None:
        return f"Memory of {title}", Text(
            "not shown: who holds it; addresses were not recorded (torch before 2.0)", "dim"
        )
    table = _table("held at the peak by", "allocations", "size")
    for holder in device.holders[: wanted.top]:
        place = f" {holder.file}:{holder.line} {holder.function}" if holder.file else ""
        name = plain((holder.operator or "no operator") + place)
        _add(table, name, f"{holder.allocations:,}", _size(holder.bytes))
    rest = device.peak_bytes - device.other_bytes - sum(holder.bytes for holder in device.holders[: wanted.top])
    if rest > 0:
        _add(table, Text("others", "dim"), "", _size(rest))
    if device.other_bytes > 0:
        _add(table, Text("allocated before the recording", "dim"), "", _size(device.other_bytes))
    return f"Memory of {plain(title).plain}", table


def _cpu(cpu: CpuFigures, wanted: Wanted) -> RenderableType:
    return Group(*_cpu_lines(cpu, wanted))


def _cpu_lines(cpu: CpuFigures, wanted: Wanted) -> Iterable[RenderableType]:
    threads = "1 thread" if cpu.threads == 1 else f"{cpu.threads or 'no'} threads"
    mean = f", {cpu.mean_threads:.1f} on average" if cpu.most_threads > 1 else ""
    together = f", at most {cpu.most_threads} at once{mean}" if cpu.threads > 1 else ""
    yield Text(f"{threads} ran operators{together}")
    if cpu.slow_calls:
        lost_ns = sum(call.own_ns - call.median_ns for call in cpu.slow_calls)
        contended = sum(call.contended for call in cpu.slow_calls)
        beside = f", {contended} of them while other threads ran operators" if contended else ""
        yield Text(f"{len(cpu.slow_calls)} calls far slower than their like, {_time(lost_ns)} lost{beside}")
        table = _table("slow call", "took", "usual")
        for call in cpu.slow_calls[: wanted.top]:
            place = f" {call.file}:{call.line}" if call.file else ""
            label = f"{call.operator} {call.shapes}{place}"
            _add(table, plain(label), _time(call.own_ns), _time(call.median_ns))
        yield table
    if cpu.frames:
        table = _table("Python between operators, in", "calls", "self")
        for frame in cpu.frames[: wanted.top]:
            _add(table, plain(f"{frame.file}:{frame.line} {frame.function}"), f"{frame.calls:,}", _time(frame.self_ns))
        yield table


def _problem(problem: Problem) -> Iterator[RenderableType]:
    yield Text.assemble(("problem: ", "bold red"), plain(f"{problem.path}: {problem.error}"))
    yield _indented(plain(problem.advice))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))
