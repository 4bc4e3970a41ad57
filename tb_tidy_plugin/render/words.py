"""Sentences that several documents share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render.document import Block, Line, Paragraph, code, message, section
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA, NOT_MADE
from tb_tidy_plugin.report.generated import place_text
from tb_tidy_plugin.report.model import Finding, Outcome, Place, Problem, ProfileReport, Status
from tb_tidy_plugin.words.units import Count, Nanoseconds, Share, plural
from tb_tidy_plugin.words.vocabulary import Oddity, Precision

LEAST_SHARE = 0.01
"""Least share of a step for a line or a column."""

_COMPILED = "; the recording contains the compiled function, not the lines of its kernels"
PRECISION: Mapping[Precision, str] = {
    "exact": "",
    "aligned": "",
    "definition": "; the recording contains the function, not the calling line",
}
CHECKS: Mapping[Status, str] = {"failed": "Failed checks", "clean": "Passed checks", "not_checked": "Not checked"}
ODDITIES: Mapping[Oddity | None, str] = {"warmup": "warm-up", "outlier": "outlier", None: ""}


def time_text(time_ns: float | None) -> str:
    """A time, possibly negative; empty for None."""
    if time_ns is None:
        return ""
    rounded = round(time_ns)
    return f"{'−' if rounded < 0 else ''}{Nanoseconds(abs(rounded))}"


def percentiles(values: Sequence[int]) -> tuple[float, float]:
    """The 10th and the 90th percentile of at least one value, linearly interpolated."""
    ordered = sorted(values)

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        below = int(position)
        low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
        return low + (high - low) * (position - below)

    return at(0.1), at(0.9)


def profile_names(run: str, profile: ProfileReport, *, with_span: bool = True) -> str:
    """Run, worker, span and rank of a profile, as far as it has them."""
    rank = "" if profile.rank is None else f"rank {profile.rank}"
    return " · ".join(filter(None, (run, profile.worker, profile.span if with_span else "", rank)))


def place_line(place: Place) -> Line:
    """`train.py:99 in train_step`, and a remark if the line is not the calling one."""
    where = code(place_text(place.file, place.line, place.generated))
    if place.generated is None:
        return (where, " in ", code(place.function), PRECISION[place.precision])
    remark = _COMPILED if place.precision == "definition" else ""
    return (where, " in compiled code of ", code(place.function), remark)


def measured_sentences(measurement: Measurement) -> str:
    """The result of a benchmark and the reasons to doubt it."""
    times = f"{time_text(measurement.before_ns)} before, {time_text(measurement.after_ns)} after"
    ratio = f"{measurement.ratio:.3g} times ({measurement.low:.3g} to {measurement.high:.3g}, 95 %)"
    on = f"on {measurement.on.kind} {measurement.on.name} with torch {measurement.on.torch}"
    return " ".join([f"{times}: {ratio} {on}.", *measurement.doubts])


def problem_paragraph(problem: Problem) -> Paragraph:
    """A trace that could not be read, the reason, and the advice."""
    line = (code(problem.path), ": ", message(problem.error))
    return Paragraph(line, "problem", "bad", below=(message(problem.advice),))


def problems_section(title: str, problems: Iterable[Problem]) -> doc.Section:
    """All traces that could not be read."""
    paragraphs = map(problem_paragraph, problems)
    return section(title, doc.Listing(tuple((*each.line, " ", *each.below) for each in paragraphs)), level=2)


def by_size(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """The findings shown one by one, and the small ones folded below; without large ones, small ones are not folded."""
    large = [each for each in findings if not each.small]
    return (large, [each for each in findings if each.small]) if large else (list(findings), [])


def small_title(findings: Sequence[Finding]) -> str:
    """The heading of small findings, with the part of a step that fixing all of them saves."""
    speedups = [each.saving.speedup for each in findings if each.saving and each.saving.speedup]
    together = Share(min(sum(1 - 1 / speedup for speedup in speedups), 1.0))
    return f"{plural(len(findings), 'small finding')}{', together' if len(findings) > 1 else ':'} {together} of a step"


def places_listing(finding: Finding, most: int, what: str = "") -> doc.Listing:
    """At most `most` places of a finding, and the number of further ones."""
    lines = [place_line(place) for place in finding.places]
    return doc.Listing((*lines[:most], *more(len(lines) - most, what)))


def more(left_out: int, what: str = "") -> tuple[Line, ...]:
    """`and 3 more places`, as a line of its own; no line if nothing is left out."""
    text = plural(left_out, f"more {what}") if what else f"{Count(left_out)} more"
    return ((f"and {text}",),) if left_out > 0 else ()


def fix_hint(finding: Finding) -> Iterator[Block]:
    """A note that a command can change the user's own code."""
    if finding.code_fixes is None:
        return
    if finding.code_fixes.reason == NOT_MADE:
        yield doc.sentence(NOT_MADE, style="muted")
    elif changes := finding.code_fixes.changes:
        review = ", which you must review" if any(each.needs_review for each in changes) else ""
        yield doc.sentence(f"`tb-tidy fix` can make this change{review}.", style="muted")


def extra_hint(findings: Iterable[Finding]) -> Iterator[Block]:
    """A note that changes of the user's own code need an extra, once for all findings."""
    if any(each.code_fixes is not None and each.code_fixes.reason == NEEDS_EXTRA for each in findings):
        yield doc.sentence(NEEDS_EXTRA, style="muted")


def matches_text(per_step: float) -> str:
    """The mean number of matches in words: `3 per step`, or `one in 5 steps`; empty if no step has one."""
    if not per_step:
        return ""
    is_rare = per_step < 1
    number = f"{1 / per_step if is_rare else per_step:,.1f}".removesuffix(".0")
    return f"one in {number} steps" if is_rare else f"{number} per step"


def by_reason(outcomes: Sequence[Outcome], status: Status) -> dict[str, list[str]]:
    """The rules with this outcome by its reason, empty if it has none."""
    found: dict[str, list[str]] = {}
    for each in outcomes:
        if each.status == status:
            found.setdefault(each.reason or "", []).append(each.rule)
    return found


def checks(outcomes: Sequence[Outcome], *statuses: Status) -> Iterator[Block]:
    """Checks with these outcomes, those with the same reason in one item."""
    for status in statuses:
        items = []
        for reason, rules in by_reason(outcomes, status).items():
            names = [piece for rule in rules for piece in (", ", code(rule))][1:]
            items.append((*names, *((": ", message(reason)) if reason else ())))
        if items:
            count = Count(sum(each.status == status for each in outcomes))
            yield doc.Fold((f"{CHECKS[status]}: {count}",), (doc.Listing(tuple(items)),))
