"""A comparison as a document: verdict, promised and realised savings, findings, parts of the step, operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tb_tidy_plugin.compare.model import (
    Comparison,
    ComparisonVerdict,
    EntryChange,
    FindingChange,
    FindingState,
    LedgerChange,
    Side,
)
from tb_tidy_plugin.compare.steps import is_vague
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render.document import Block, Document, Form, Line, Paragraph, Style, code, sentence
from tb_tidy_plugin.render.words import LEAST_SHARE, time_text
from tb_tidy_plugin.report.generated import place_text
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.words.units import plural
from tb_tidy_plugin.words.vocabulary import known_by_mark

_VERDICTS: Mapping[ComparisonVerdict, tuple[str, Style]] = {
    "faster": ("Faster", "good"),
    "slower": ("Slower", "bad"),
    "no_clear_difference": ("No clear difference", "strong"),
    "different_work": ("Different work per step", "strong"),
}
STATES: Mapping[FindingState, tuple[str, Style]] = {
    "gone": ("✓", "good"),
    "better": ("↓", "good"),
    "new": ("+", "bad"),
    "worse": ("↑", "bad"),
    "same": ("=", "muted"),
    "below_limit": ("·", "muted"),
    "covered": ("·", "muted"),
    "not_checked": ("?", "muted"),
}
CHANGE = ("baseline", "candidate", "change")
MOST_OPERATORS = 10
_MOST_FINDINGS = 15  # in a comment
LONGEST_SHAPES = 40


def comparison_document(comparison: Comparison, form: Form) -> Document:
    """The comparison as a document of this form."""
    verdict, style = _VERDICTS[comparison.verdict]
    blocks = _comment(comparison, verdict) if form == "markdown" else _terminal(comparison, doc.Span(verdict, style))
    return Document(f"TorchTidy: {verdict}", tuple(blocks), "tb-tidy compare")


def _terminal(comparison: Comparison, verdict: doc.Span) -> Iterator[Block]:
    yield from _notes(comparison)
    yield Paragraph((verdict, f": {_ratio(comparison)}"))
    yield from _work(comparison)
    yield Paragraph((f"baseline   {_side(comparison.base)}",))
    yield Paragraph((f"candidate  {_side(comparison.candidate)}",))
    if promise := _promise(comparison):
        yield Paragraph((promise,))
    yield from (doc.GAP, _findings(comparison, comparison.findings, _marked), doc.GAP)
    if comparison.ledger:
        yield from (_parts(comparison.ledger), doc.GAP)
    if comparison.operators:
        yield _operators(comparison)


def _comment(comparison: Comparison, verdict: str) -> Iterator[Block]:
    blocks = [*_notes(comparison), *_work(comparison)]
    if promise := _promise(comparison):
        blocks.append(Paragraph((f"{promise[0].upper()}{promise[1:]}.",)))
    blocks.append(_findings(comparison, comparison.findings[:_MOST_FINDINGS], _linked))
    if (left_out := len(comparison.findings) - _MOST_FINDINGS) > 0:
        blocks.append(Paragraph((plural(left_out, "more finding is left out.", "more findings are left out."),)))
    if comparison.ledger:
        blocks.append(doc.Fold(("Where the time of the mean step goes",), (_parts(comparison.ledger),)))
    yield doc.Section((f"{verdict}: {_ratio(comparison)}",), tuple(blocks), level=3)


def _notes(comparison: Comparison) -> Iterator[Block]:
    return (sentence(note, "note", "warning") for note in comparison.notes)


def _ratio(comparison: Comparison) -> str:
    """Candidate divided by baseline: `step time ×0.63 (0.58 to 0.68)`."""
    ratio = comparison.step_ratio
    if ratio is None:
        return "one side has no steps"
    interval = "no interval" if is_vague(ratio) else f"{ratio.low:.3g} to {ratio.high:.3g}"
    return f"step time ×{ratio.value:.3g} ({interval})"


def _work(comparison: Comparison) -> Iterator[Block]:
    """The change of the work per step, and the time per unit of it."""
    work = comparison.work
    if work is None:
        return
    operations = "" if work.operations is None else f"; operations ×{work.operations:.3g}"
    yield Paragraph((f"The work per step changed: {work.text}{operations}.",))
    if work.time_per_unit is not None and not is_vague(work.time_per_unit):
        per = work.time_per_unit
        yield Paragraph((f"Time per {work.unit} ×{per.value:.3g} ({per.low:.3g} to {per.high:.3g}).",))


def _side(side: Side) -> str:
    steps = "no steps"
    if side.median_ns is not None:
        host_ns, host = side.host_median_ns, ""
        if host_ns is not None and abs(host_ns - side.median_ns) * 50 > side.median_ns:
            host = f"; the host's own mark takes {time_text(host_ns)}"
        warming_up = f", {side.warming_up} of them warm-up" if side.warming_up else ""
        steps = f"{plural(side.steps, 'step')}{warming_up}, median {time_text(side.median_ns)}{host}"
    return f"{side.path} ({_pooled(side)}{plural(side.profiles, 'profile')}, {steps})"


def _pooled(side: Side) -> str:
    """Whose steps count together, with a comma: `7 runs, `, `2 runs of up to 4 ranks, `; empty for one rank."""
    ranks = plural(side.ranks, "rank")
    if len(side.runs) > 1:
        return f"{len(side.runs)} runs{f' of up to {ranks}' if side.ranks > 1 else ''}, "
    return f"{ranks}, " if side.ranks > 1 else ""


def _promise(comparison: Comparison) -> str:
    if not comparison.predicted_ns or comparison.realised_ns is None:
        return ""
    alone_ns = sum(each.predicted_ns or 0 for each in comparison.findings if each.realised_ns is not None)
    shared = " (less than the sum, since some findings share time)" if comparison.predicted_ns < alone_ns else ""
    predicted, realised = time_text(comparison.predicted_ns), time_text(comparison.realised_ns)
    return f"predicted {predicted} per step{shared}, realised {realised}"


def _findings(
    comparison: Comparison,
    findings: Sequence[FindingChange],
    named: Callable[[FindingChange, str], tuple[Line, Line]],
) -> Block:
    """The findings with their times; `named` gives the first two cells of a row, with the run if there are several."""
    if not findings:
        return Paragraph(("No findings on either side.",))
    rows = tuple(
        (
            *named(each, _run(comparison, each)),
            *_times(each.base_ns, each.candidate_ns, each.predicted_ns, each.realised_ns),
        )
        for each in findings
    )
    return doc.Table(("", "finding"), ("baseline", "candidate", "predicted", "realised"), rows)


def _run(comparison: Comparison, change: FindingChange) -> str:
    """The run where a finding costs most; empty if its side is one run."""
    side = comparison.base if change.only == "base" else comparison.candidate
    return change.run if len(side.runs) > 1 else ""


def _marked(change: FindingChange, run: str) -> tuple[Line, Line]:
    sign, style = STATES[change.state]
    most = f"costs most in run {run}" if run else ""
    places = [f"{_at(place)} in {place.function}" for place in change.places[:1]]
    below = [piece for text in (*places, most, change.reason) if text for piece in (doc.BREAK, doc.Span(text, "muted"))]
    return (doc.Span(sign, style),), (doc.Span(f"{_word(change.state)} ", "strong"), change.rule, *below)


def _linked(change: FindingChange, run: str) -> tuple[Line, Line]:
    where = [piece for place in change.places[:1] for piece in (doc.BREAK, code(_at(place)))]
    most = (doc.BREAK, "costs most in run ", code(run)) if run else ()
    why = (doc.BREAK, change.reason) if change.reason else ()
    return (_word(change.state),), (code(change.rule), *where, *most, *why)


def _at(place: Place) -> str:
    return place_text(place.file, place.line, place.generated)


def _word(state: FindingState) -> str:
    return "below the limit" if state == "below_limit" else state.replace("_", " ")


def _parts(ledger: LedgerChange) -> Block:
    """The entries of the mean step with their sum."""
    whole = ledger.base_step_ns, ledger.candidate_step_ns
    shown = [each for each in ledger.entries if max(each.base_ns, each.candidate_ns) >= LEAST_SHARE * max(whole)]
    rows: list[tuple[Line, ...]] = [(_named(each), *_change(each.base_ns, each.candidate_ns)) for each in shown]
    small = [each for each in ledger.entries if each not in shown]
    if small:
        rest = (sum(each.base_ns for each in small), sum(each.candidate_ns for each in small))
        rows.append(((plural(len(small), "smaller entry", "smaller entries"),), *_change(*rest)))
    rows.append((("mean step",), *_change(*whole)))
    return doc.Table(("where the step's time goes",), CHANGE, tuple(rows))


def _named(change: EntryChange) -> Line:
    """The entry, and below it the owner that changed most."""
    owners = [each for each in change.owners if None not in {each.base_ns, each.candidate_ns}]
    if not owners or owners[0].base_ns == owners[0].candidate_ns:
        return (change.title,)
    times = f"{time_text(owners[0].base_ns)} → {time_text(owners[0].candidate_ns)}"
    name = f"{owners[0].name}{known_by_mark(owners[0].known_by)}"
    return (change.title, doc.BREAK, doc.Span(f"{name}: {times}", "muted"))


def _operators(comparison: Comparison) -> Block:
    rows = []
    for row in comparison.operators[:MOST_OPERATORS]:
        times = (row.base_ns, row.candidate_ns)
        if row.base_device_ns or row.candidate_device_ns:
            times = (row.base_device_ns or 0, row.candidate_device_ns or 0)
        shapes = row.shapes if len(row.shapes) <= LONGEST_SHAPES else f"{row.shapes[: LONGEST_SHAPES - 1]}…"
        rows.append(((f"{row.name}{known_by_mark(row.known_by)}",), (shapes,), *_change(*times)))
    return doc.Table(("operator", "shapes"), CHANGE, tuple(rows))


def _change(before_ns: int, after_ns: int) -> tuple[Line, ...]:
    sign = "+" if after_ns > before_ns else ""
    return (*_times(before_ns, after_ns), (f"{sign}{time_text(after_ns - before_ns)}",))


def _times(*times: int | None) -> tuple[Line, ...]:
    return tuple((time_text(time),) for time in times)
