"""The comparison for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.compare.model import Comparison, FindingChange, Ratio, Side
from tb_tidy_plugin.compare.words import VERDICTS, change_words, ratio_words, time_words
from tb_tidy_plugin.report.text import plain
from tb_tidy_plugin.units import Nanoseconds

STATES = {
    "gone": ("✓", "green"),
    "better": ("↓", "green"),
    "new": ("+", "red"),
    "worse": ("↑", "red"),
    "same": ("=", "dim"),
}
MOST_OPERATORS = 10
STYLES = {"faster": "bold green", "slower": "bold red", "no_clear_difference": "bold"}


def to_text(comparison: Comparison) -> RenderableType:
    """The verdict, what was promised and kept, findings, parts of the step, operators."""
    return Group(*_parts(comparison))


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    for note in comparison.notes:
        yield Text.assemble(("note: ", "yellow"), plain(note))
    yield Text.assemble(
        (VERDICTS[comparison.verdict], STYLES[comparison.verdict]), plain(_ratio(comparison.step_ratio))
    )
    yield plain(f"baseline   {_side(comparison.base)}")
    yield plain(f"candidate  {_side(comparison.candidate)}")
    if comparison.predicted_ns and comparison.realised_ns is not None:
        yield plain(
            f"predicted {time_words(comparison.predicted_ns)} per step, realised {time_words(comparison.realised_ns)}"
        )
    yield Text()
    yield from _findings(comparison)
    yield from _breakdown(comparison)
    yield from _operators(comparison)


def _ratio(ratio: Ratio | None) -> str:
    return f": {ratio_words(ratio)}" if ratio else ": one side has no steps"


def _side(side: Side) -> str:
    step = f"{side.steps} steps, median {Nanoseconds(side.median_ns)}" if side.median_ns is not None else "no steps"
    return f"{side.path} ({side.profiles} profile{'s' if side.profiles != 1 else ''}, {step})"


def _findings(comparison: Comparison) -> Iterator[RenderableType]:
    if not comparison.findings:
        yield Text("No findings on either side.")
        yield Text()
        return
    table = Table("", "finding", "baseline", "candidate", "predicted", "realised", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for change in comparison.findings:
        mark, style = STATES[change.state]
        table.add_row(Text(mark, style), _finding(change), *map(_time, (
            change.base_ns, change.candidate_ns, change.predicted_ns, change.realised_ns,
        )))  # fmt: skip
    yield table
    yield Text()


def _finding(change: FindingChange) -> Text:
    place = change.places[0] if change.places else None
    where = f"\n{place.file}:{place.line} in {place.function}" if place else ""
    return Text.assemble(
        (f"{change.state} ", "bold"),
        change.rule,
        (plain(where).plain if not where else "\n" + plain(where[1:]).plain, "dim"),
    )


def _breakdown(comparison: Comparison) -> Iterator[RenderableType]:
    table = Table("part of the step", "baseline", "candidate", "change", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for part in comparison.breakdown:
        name = f"{part.lane} {part.part.replace('_', ' ')}"
        table.add_row(
            name, _time(part.base_ns), _time(part.candidate_ns), change_words(part.base_ns, part.candidate_ns)
        )
    if comparison.breakdown:
        yield table
        yield Text()


def _operators(comparison: Comparison) -> Iterator[RenderableType]:
    table = Table("operator", "shapes", "baseline", "candidate", "change", box=None, pad_edge=False)
    table.columns[1].overflow = "ellipsis"
    table.columns[1].no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
        column.no_wrap = True
    for row in comparison.operators[:MOST_OPERATORS]:
        base, candidate = row.base_ns, row.candidate_ns
        if row.base_device_ns or row.candidate_device_ns:
            base, candidate = row.base_device_ns or 0, row.candidate_device_ns or 0
        table.add_row(plain(row.name), plain(row.shapes), _time(base), _time(candidate), change_words(base, candidate))
    if comparison.operators:
        yield table


def _time(time_ns: int | None) -> str:
    return "" if time_ns is None else time_words(time_ns)
