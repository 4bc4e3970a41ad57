"""The report for a terminal.

Names in a trace are untrusted: they are shown without control characters, and never read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.report import ranks_text
from tb_tidy_plugin.report.model import Finding, Note, Outcome, Place, Problem, ProfileReport, Report, RunReport
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.units import Nanoseconds, Share, between
from tb_tidy_plugin.visible import visible

MOST_OUTLIERS = 3
MARKS = {"high": ("▲", "bold red"), "medium": ("◆", "yellow"), "low": ("●", "cyan"), "info": ("○", "dim")}
STEP_BASIS = {
    "profiler_step": "profiler steps",
    "optimizer_step": "times between optimizer steps",
    "data_loader": "times between batches",
    "whole_trace": "no steps recorded: the whole trace counts as one",
    "none": "only device events: no steps",
}
PRECISION = {"exact": "", "aligned": "", "definition": "; the recording holds the function, not the calling line"}
SHARES = (
    ("data loading", "data_loading_ns"),
    ("device busy", "device_busy_ns"),
    ("compute", "compute_ns"),
    ("communication", "communication_ns"),
    ("of it exposed", "communication_exposed_ns"),
    ("host to device", "host_to_device_ns"),
    ("device to host", "device_to_host_ns"),
)


def to_text(report: Report) -> RenderableType:
    """Everything in the report, for rich to print."""
    parts: list[RenderableType] = []
    for run in report.runs:
        if run.outcomes or run.ranks:
            parts += [*_run(run), Text()]
        for profile in run.profiles:
            parts += [*_profile(run.run, profile), Text()]
    parts += [part for problem in report.problems for part in _problem(problem)]
    return Group(*parts)


def plain(text: str) -> Text:
    """Untrusted text, without anything that a terminal would obey."""
    return Text(visible(text))


def _run(run: RunReport) -> Iterator[RenderableType]:
    ranks = sorted({profile.rank for profile in run.profiles if profile.rank is not None})
    yield Text.assemble((f"{plain(run.run).plain} · {len(ranks)} ranks together", "bold"))
    if run.ranks is not None:
        yield from _ranks(run.ranks)
    yield Text()
    for finding in run.findings:
        yield _indented(_finding(finding))
    yield from _others(run.outcomes)


def _ranks(ranks: Ranks) -> Iterator[RenderableType]:
    yield _indented(plain(ranks.present))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ranks_text.headings(ranks):
        table.add_column(heading, justify="right")
    for row in ranks_text.worst_rows(ranks):
        table.add_row(*row)
    yield _indented(table)
    for sentence in ranks_text.sentences(ranks):
        yield _indented(plain(sentence))
    if ranks.findings:
        yield _indented(Text("findings of the ranks:", "dim"))
    for line in ranks_text.shared_lines(ranks):
        yield _indented(_indented(plain(line)))


def _profile(run: str, profile: ProfileReport) -> Iterator[RenderableType]:
    names = [run, profile.worker, profile.span, "" if profile.rank is None else f"rank {profile.rank}"]
    yield Text.assemble((" · ".join(plain(name).plain for name in names if name), "bold"))
    yield _indented(Text(_steps(profile)))
    yield _indented(Text(_recorded(profile)))
    if shares := _shares(profile):
        yield _indented(Text(shares))
    for note in profile.quality.notes:
        yield _indented(Text.assemble(("note: ", "yellow"), plain(note)))
    for outlier in profile.outliers[:MOST_OUTLIERS]:
        yield _indented(Text.assemble(("outlier: ", "yellow"), plain(outlier.text)))
    if len(profile.outliers) > MOST_OUTLIERS:
        yield _indented(Text(f"and {len(profile.outliers) - MOST_OUTLIERS} more outliers", "dim"))
    yield Text()
    for finding in profile.findings:
        yield _indented(_finding(finding))
    yield from _others(profile.outcomes)


def _steps(profile: ProfileReport) -> str:
    steps = profile.steps
    if steps.median_ns is None:
        return STEP_BASIS[steps.basis]
    count = f"{steps.count} steps" if steps.count != 1 else "1 step"
    true = f", {Nanoseconds(profile.true_step_ns)} without the profiler" if profile.true_step_ns else ""
    return f"{count}, median {Nanoseconds(steps.median_ns)} ({STEP_BASIS[steps.basis]}){true}"


def _recorded(profile: ProfileReport) -> str:
    devices = ", ".join(f"{device.kind}:{device.index} {device.name}".strip() for device in profile.devices)
    recorded = ", ".join(profile.recorded) or "nothing but operators"
    length = Nanoseconds(profile.duration_ns)
    return plain(f"{profile.events:,} events over {length} on {devices or 'the CPU'}; recorded: {recorded}").plain


def _shares(profile: ProfileReport) -> str:
    breakdown = profile.breakdown
    figures = [(label, getattr(breakdown, name)) for label, name in SHARES]
    shown = [f"{label} {Share(time / breakdown.wall_ns)}" for label, time in figures if time and breakdown.wall_ns]
    return f"of the recorded time: {', '.join(shown)}" if shown else ""


def _finding(finding: Finding) -> RenderableType:
    mark, style = MARKS[finding.severity]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.expand = True
    saving = finding.saving
    amount = f"{Nanoseconds(saving.expected_ns)} per step" if saving and finding.share is not None else ""
    table.add_row(Text(mark, style), Text.assemble((plain(finding.message).plain, "bold")), Text(amount, style))
    for place in finding.places[:3]:
        table.add_row("", _place(place), "")
    if len(finding.places) > 3:
        table.add_row("", f"and {len(finding.places) - 3} more places", "")
    if saving and finding.share is not None:
        bounds = f"saves {between(saving.low_ns, saving.high_ns)} ({', '.join(saving.basis)})"
        taken = f"{Nanoseconds(finding.cost_ns)} per step ({Share(finding.share)})"
        table.add_row("", f"{finding.matches}×, {taken}; {bounds}; confidence {finding.confidence}", "")
    for detail in finding.details:
        if isinstance(detail, Note):
            table.add_row("", Text.assemble(("why: ", "dim"), plain(detail.text)), "")
    if finding.measurement is not None:
        table.add_row("", Text.assemble(("measured: ", "dim"), _measured(finding.measurement)), "")
    table.add_row("", Text.assemble(("fix: ", "green"), plain(finding.fix)), "")
    table.add_row("", Text(f"{finding.rule} {finding.id}", "dim"), "")
    table.add_row("", "", "")
    return table


def _measured(measurement: Measurement) -> Text:
    before, after = (Nanoseconds(round(each)) for each in (measurement.before_ns, measurement.after_ns))
    interval = f"{measurement.low:.3g} to {measurement.high:.3g}"
    said = f"{before} before, {after} after, {measurement.ratio:.3g} times ({interval}) on {measurement.on.kind}"
    return plain(" ".join([f"{said} {measurement.on.name}.", *measurement.doubts]))


def _place(place: Place) -> Text:
    return plain(f"{place.file}:{place.line} in {place.function}{PRECISION[place.precision]}")


def _others(outcomes: Sequence[Outcome]) -> Iterator[RenderableType]:
    clean = [outcome.rule for outcome in outcomes if outcome.status == "clean" and not outcome.reason]
    if clean:
        yield _indented(Text.assemble(("passed: ", "green"), ", ".join(clean)))
    not_checked: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status == "not_checked":
            not_checked.setdefault(outcome.reason or "", []).append(outcome.rule)
    for reason, rules in not_checked.items():
        yield _indented(Text.assemble((f"not checked: {', '.join(rules)}: ", "dim"), plain(reason)))
    for outcome in outcomes:
        if outcome.status == "failed":
            yield _indented(Text.assemble((f"failed: {outcome.rule}: ", "red"), plain(outcome.reason or "")))
        elif outcome.reason and outcome.status != "not_checked":
            yield _indented(Text.assemble((f"{outcome.rule}: ", "dim"), plain(outcome.reason)))


def _problem(problem: Problem) -> Iterator[RenderableType]:
    yield Text.assemble(("problem: ", "bold red"), plain(f"{problem.path}: {problem.error}"))
    yield _indented(plain(problem.advice))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))
