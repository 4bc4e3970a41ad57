"""A summary as a document: steps, operators, modules, memory and CPU time of each profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tb_tidy_plugin.analysis.summary import ProfileSummary, Summary
from tb_tidy_plugin.render.document import Block, Document, Paragraph, Section, Span, Table, section, sentence
from tb_tidy_plugin.render.ledger import step_line, whole_ledger
from tb_tidy_plugin.render.serving import serving_section
from tb_tidy_plugin.render.words import ODDITIES, problem_paragraph, profile_names, time_text
from tb_tidy_plugin.report.figures import (
    CpuFigures,
    DeviceKernelRow,
    DeviceMemoryRow,
    Figures,
    KernelFamilyRow,
    ModuleRow,
    OperatorGroup,
    OperatorRow,
)
from tb_tidy_plugin.report.generated import place_text
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.words.units import Bytes, Count, PerSecond, Share, plural
from tb_tidy_plugin.words.vocabulary import known_by_mark

MOST_ODD_STEPS = 5
MOST_NAME = 70
GROUPED_BY = {"name": "name", "shape": "name and input shapes", "line": "source line", "module": "module"}
ROWS_ARE = {"name": "operator", "shape": "operator", "line": "source line", "module": "module"}
ELSEWHERE = {"line": "no line known", "module": "outside all modules"}
YES_OR_NO = {True: "yes", False: "no", None: ""}


class SummaryOptions(msgspec.Struct, frozen=True):
    """The grouping of the operators, and the number of rows of each table."""

    group: OperatorGroup = "name"
    top: int = 10


def summary_document(summary: Summary, wanted: SummaryOptions) -> Document:
    """The wanted parts of the summary."""
    profiles = (_profile(profile, wanted) for profile in summary.profiles)
    blocks: tuple[Block, ...] = (*profiles, *map(problem_paragraph, summary.problems))
    return Document("TorchTidy: where time and memory go", blocks, "tb-tidy summary")


def _profile(profile: ProfileSummary, wanted: SummaryOptions) -> Section:
    report, figures = profile.report, profile.figures
    blocks: list[Block] = [*_steps(report), *serving_section(report)]
    blocks += [sentence(note, "note", "warning") for note in report.quality.notes]
    blocks += whole_ledger(report.ledger)
    blocks += [_operators(report, figures, wanted), *_kernels(figures, wanted), _modules(report, figures, wanted)]
    blocks += [_memory(device, wanted) for device in figures.memory] or [_missing("Memory", figures, "memory")]
    blocks.append(section("CPU work", *_cpu(figures.cpu, wanted)))
    return Section((profile_names(profile.run, report),), tuple(blocks))


def _missing(title: str, figures: Figures, table: str) -> Section:
    return _not_shown(title, figures.missing.get(table, "there is nothing to show."))


def _not_shown(title: str, reason: str) -> Section:
    return section(title, Paragraph((f"not shown: {reason}",), style="muted"))


def _table(titles: Sequence[str], rows: Sequence[tuple[str | Span, ...]]) -> Table:
    """A table with a column of names and columns of figures."""
    return Table(tuple(titles[:1]), tuple(titles[1:]), tuple(tuple((cell,) for cell in row) for row in rows))


def _size(size: int | None) -> str:
    return "" if size is None else str(Bytes(size))


def _steps(report: ProfileReport) -> Iterator[Block]:
    steps = report.steps
    several = steps.median_ns is not None and steps.count > 1
    yield Paragraph(step_line(report, has_spread=True))
    odd = [step for step in steps.items if step.oddity is not None]
    if several and odd:
        shown = (
            f"{step.name} {time_text(step.duration_ns)} ({ODDITIES[step.oddity]})" for step in odd[:MOST_ODD_STEPS]
        )
        others = f" and {Count(len(odd) - MOST_ODD_STEPS)} more" if len(odd) > MOST_ODD_STEPS else ""
        yield Paragraph((f"{', '.join(shown)}{others}",), "odd steps", "warning")


def _operators(report: ProfileReport, figures: Figures, wanted: SummaryOptions) -> Section:
    title = f"Operators by {GROUPED_BY[wanted.group]}"
    rows = figures.operators.get(wanted.group)
    if not rows:
        return _missing(title, figures, wanted.group)
    has_device = any(row.device_total_ns is not None for row in rows)
    rules = {finding.id: finding.rule for finding in report.findings}
    shown = []
    for row in rows[: wanted.top]:
        device = (time_text(row.device_total_ns), YES_OR_NO[row.tensor_cores]) if has_device else ()
        found = len({rules[finding] for finding in row.findings if finding in rules})
        times = (str(Count(row.calls)), time_text(row.host_self_ns), time_text(row.host_total_ns))
        shown.append((f"{_label(row, wanted.group)}{known_by_mark(row.known_by)}", *times, *device, str(found or "")))
    device_titles = ("device total", "tensor cores") if has_device else ()
    titles = (ROWS_ARE[wanted.group], "calls", "CPU self", "CPU total", *device_titles, "findings")
    return section(f"{title}: {len(shown)} of {_whole(len(rows))}", _table(titles, shown))


def _kernels(figures: Figures, wanted: SummaryOptions) -> Iterator[Block]:
    """Families of the device's work, and its largest kernels."""
    if not figures.kernels:
        yield _missing("Kernels", figures, "kernels")
        return
    families = [
        (
            row.family.title,
            str(Count(row.count)),
            time_text(row.total_ns),
            str(Share(row.share)),
            *_rates(row),
        )
        for row in figures.families
    ]
    titles = ("count", "time", "share", "FLOP/s", "B/s", "roofline")
    yield section("Kernels by family, over the whole profile", _table(("family", *titles), families))
    rows = figures.kernels[: wanted.top]
    shown = []
    for row in rows:
        times = (str(Count(row.count)), time_text(row.total_ns), str(Share(row.share)), time_text(row.mean_ns))
        shown.append((_kernel(row), *times, *_rates(row)))
    table = _table(("kernel", "count", "time", "share", "mean", "FLOP/s", "B/s", "roofline"), shown)
    yield section(f"Kernels: {len(rows)} of {_whole(len(figures.kernels))}", table)


def _rates(row: KernelFamilyRow | DeviceKernelRow) -> tuple[str, str, str]:
    """FLOP/s, B/s and the share of the roofline, empty if unknown."""
    share = "" if row.roofline is None else str(Share(row.roofline))
    return _per_second(row.flops_per_second, "FLOP"), _per_second(row.bytes_per_second, "B"), share


def _per_second(rate: float | None, unit: str) -> str:
    return "" if rate is None else f"{PerSecond(rate)}{unit}/s"


def _kernel(row: DeviceKernelRow) -> str:
    """Operator and kernel; names of libraries' kernels have hundreds of characters, of which the first matter."""
    text = f"{row.operator}{known_by_mark(row.known_by)}: {row.name}" if row.operator else row.name
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - 1]}…"


def _whole(rows: int) -> str:
    return f"{Count(rows)}, over the whole profile"


def _label(row: OperatorRow, group: OperatorGroup) -> str:
    match group:
        case "name":
            return row.name
        case "shape":
            return f"{row.name} {row.shapes}".strip()
        case "line":
            place = place_text(row.file, row.line or 0, row.generated)
            return f"{place} {row.function}" if row.file else ELSEWHERE[group]
        case "module":
            return row.module or ELSEWHERE[group]


def _modules(report: ProfileReport, figures: Figures, wanted: SummaryOptions) -> Section:
    """The part of an average step in each module, by pass; and totals over the profile of its calls."""
    rows, steps = figures.modules, max(len(report.ledger.steps), 1)
    if not rows:
        return _missing("Modules", figures, "modules")
    has_optimizer = any(row.step_optimizer_ns for row in rows)
    has_device = any(row.device_forward_ns is not None for row in rows)
    has_memory = any(row.allocated_bytes is not None for row in rows)
    shown = []
    for row in largest(rows, 2 * wanted.top):
        passes = [row.step_ns, row.step_forward_ns, row.step_backward_ns, *[row.step_optimizer_ns] * has_optimizer]
        times = (time_text(round(each / steps)) if each else "" for each in passes)
        host = time_text(row.forward_ns + row.backward_ns)
        device = (time_text((row.device_forward_ns or 0) + (row.device_backward_ns or 0)),) if has_device else ()
        memory = (_size(row.allocated_bytes),) if has_memory else ()
        name = "  " * row.depth + row.name + known_by_mark(row.known_by)
        shown.append((name, *times, str(Count(row.calls)), host, *device, *memory))
    of_step = ("per step", "forward", "backward", *["optimizer"] * has_optimizer)
    titles = ("module", *of_step, "calls", "host", *["device"] * has_device, *["allocated"] * has_memory)
    title = f"Modules: {len(shown)} of {Count(len(rows))}, per step; from calls on, over the whole profile"
    return section(title, _table(titles, shown))


def largest(rows: Sequence[ModuleRow], most: int) -> list[ModuleRow]:
    """The modules with most time, in their order; their parents have at least the same time and are included."""
    order = sorted(range(len(rows)), key=lambda at: (-rows[at].step_ns, -rows[at].forward_ns - rows[at].backward_ns))
    return [rows[at] for at in sorted(order[:most])]


def _memory(device: DeviceMemoryRow, wanted: SummaryOptions) -> Section:
    at_least = "at least " if device.basis == "running_sum" else ""
    reserved = f", reserved {_size(device.peak_reserved_bytes)}" if device.peak_reserved_bytes is not None else ""
    failed = f", {plural(device.failures, 'allocation')} failed" if device.failures else ""
    peak = f"peak {at_least}{_size(device.peak_bytes)} at {time_text(device.peak_ns)}{reserved}{failed}"
    title = f"Memory of {device.device}: {peak}"
    if device.other_bytes is None:
        return _not_shown(title, "who holds it; addresses were not recorded (torch before 2.0)")
    holders = device.holders[: wanted.top]
    rows: list[tuple[str | Span, ...]] = []
    for holder in holders:
        place = f" {holder.file}:{holder.line} {holder.function}" if holder.file else ""
        rows.append((f"{holder.operator or 'no operator'}{place}", str(Count(holder.allocations)), _size(holder.bytes)))
    others = device.peak_bytes - device.other_bytes - sum(holder.bytes for holder in holders)
    unknown = "no recorded stack" if device.basis == "snapshot" else "allocated before the recording"
    for label, size in (("others", others), (unknown, device.other_bytes)):
        if size > 0:
            rows.append((Span(label, "muted"), "", _size(size)))
    return section(title, _table(("held at the peak by", "allocations", "size"), rows))


def _cpu(cpu: CpuFigures, wanted: SummaryOptions) -> Iterator[Block]:
    threads = plural(cpu.threads, "thread") if cpu.threads else "no threads"
    mean = f", {cpu.mean_threads:.1f} on average" if cpu.most_threads > 1 else ""
    together = f", at most {cpu.most_threads} at once{mean}" if cpu.threads > 1 else ""
    yield Paragraph((f"{threads} ran operators{together}",))
    if cpu.slow_calls:
        lost = time_text(sum(call.own_ns - call.median_ns for call in cpu.slow_calls))
        contended = sum(call.contended for call in cpu.slow_calls)
        beside = f", {Count(contended)} of them while other threads ran operators" if contended else ""
        slow = plural(len(cpu.slow_calls), "call far slower than similar calls", "calls far slower than similar calls")
        yield Paragraph((f"{slow}, {lost} lost{beside}",))
        rows = []
        for call in cpu.slow_calls[: wanted.top]:
            place = f" {call.file}:{call.line}" if call.file else ""
            rows.append((f"{call.operator} {call.shapes}{place}", time_text(call.own_ns), time_text(call.median_ns)))
        yield _table(("slow call", "took", "usual"), rows)
    if cpu.frames:
        frames = [
            (f"{frame.file}:{frame.line} {frame.function}", str(Count(frame.calls)), time_text(frame.self_ns))
            for frame in cpu.frames[: wanted.top]
        ]
        yield _table(("Python between operators, in", "calls", "self"), frames)
