"""The comparison as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tb_tidy_plugin.compare.model import Comparison, FindingChange
from tb_tidy_plugin.compare.words import VERDICTS, change_words, ratio_words, time_words
from tb_tidy_plugin.report.markdown import code, plain
from tb_tidy_plugin.units import Nanoseconds

MOST_ROWS = 15


def to_markdown(comparison: Comparison) -> str:
    """A heading with the verdict, what to know first, findings, and the parts of the step folded."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    ratio = ratio_words(comparison.step_ratio) if comparison.step_ratio else "one side has no steps"
    yield f"### {VERDICTS[comparison.verdict]}: {ratio}"
    yield ""
    for note in comparison.notes:
        yield f"> {plain(note)}"
        yield ""
    if comparison.predicted_ns and comparison.realised_ns is not None:
        predicted, realised = time_words(comparison.predicted_ns), time_words(comparison.realised_ns)
        yield f"Predicted {predicted} per step, realised {realised}."
        yield ""
    if comparison.findings:
        yield "| | finding | baseline | candidate | predicted | realised |"
        yield "|---|---|--:|--:|--:|--:|"
        yield from map(_finding, comparison.findings[:MOST_ROWS])
        if len(comparison.findings) > MOST_ROWS:
            yield f"\n{len(comparison.findings) - MOST_ROWS} more findings are left out."
    else:
        yield "No findings on either side."
    if comparison.breakdown:
        yield from _breakdown(comparison)


def _finding(change: FindingChange) -> str:
    place = change.places[0] if change.places else None
    where = f"<br>{code(f'{place.file}:{place.line}')}" if place else ""
    times = (change.base_ns, change.candidate_ns, change.predicted_ns, change.realised_ns)
    cells = " | ".join("" if time is None else time_words(time) for time in times)
    return f"| {change.state} | {code(change.rule)}{where} | {cells} |"


def _breakdown(comparison: Comparison) -> Iterator[str]:
    yield "\n<details><summary>Parts of the step</summary>\n"
    yield "| part | baseline | candidate | change |"
    yield "|---|--:|--:|--:|"
    for part in comparison.breakdown:
        times = f"{Nanoseconds(part.base_ns)} | {Nanoseconds(part.candidate_ns)}"
        name = plain(f"{part.lane} {part.part.replace('_', ' ')}")
        yield f"| {name} | {times} | {change_words(part.base_ns, part.candidate_ns)} |"
    yield "\n</details>"
