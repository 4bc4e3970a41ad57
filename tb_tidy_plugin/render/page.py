"""A report as a page of its own, with the names and the order of the tab.

Of the paths on the machine that created it, the page holds only the parts that name a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

import msgspec

from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Figure, Line, Paragraph, Span, code, message, muted, section, sentence
from tb_tidy_plugin.render.ledger import busy_share, chart_blocks, has_device, lengths_of, part_of, verdict
from tb_tidy_plugin.render.ranks import ToldOnce, elsewhere_text, ranks_blocks
from tb_tidy_plugin.render.serving import serving_section
from tb_tidy_plugin.render.words import ODDITIES, percentiles, place_line, time_text
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA
from tb_tidy_plugin.report.model import Finding, Note, Place, Problem, ProfileReport, RunReport, Saving, unnamed_device
from tb_tidy_plugin.report.savings import NO_SAVING, basis_text, has_two_clocks, likelihood_text, saving_text
from tb_tidy_plugin.sources.files import recorded_at
from tb_tidy_plugin.words.units import Count, Share, between, plural
from tb_tidy_plugin.words.vocabulary import StepBasis

_PATH = re.compile(r"[/\\]+")
_LONGEST_NAME = 200
_MOST_BARS = 200
ENOUGH_FOR_PERCENTILES = 10  # with fewer steps, the 10th percentile is practically the minimum
OVERLAP = 1.01  # smaller excesses of a sum are rounding, and are not mentioned
WORTH_TELLING = 1.005  # of a speedup; a smaller one reads as 1.00×

STEP_BASIS_IN_WORDS: Mapping[StepBasis, str] = {
    "profiler_step": "marked by the profiler",
    "serving_step": "marked by the inference engine",
    "framework_step": "marked by the training framework",
    "optimizer_step": "taken from optimizer steps",
    "data_loader": "taken from the data loader",
    "whole_trace": "no steps were marked: the whole trace counts as one",
    "none": "no steps found",
}
RECORDINGS = ("steps", "stacks", "shapes", "memory", "device")


def page_blocks(runs: Sequence[ToldOnce], problems: Sequence[Problem], muted_findings: int) -> Iterator[Block]:
    """Runs, their profiles, and the traces that could not be read."""
    if muted_findings:
        yield Paragraph((f"{plural(muted_findings, 'finding')} muted and left out.",), style="warning")
    for at, (run, elsewhere) in enumerate(runs, 1):
        if run.outcomes or run.ranks:
            found = (*_worth_most(run, f"run-{at}", "step"), *_findings(run, f"run-{at}", "step"))
            yield section(f"{run.run or '.'} · all ranks together", *ranks_blocks(run.ranks), *found, level=2)
        for number, (profile, count) in enumerate(zip(run.profiles, elsewhere, strict=True), 1):
            title = words.profile_names(run.run or ".", profile, with_span=False)
            yield section(title, *_profile(profile, f"profile-{at}-{number}", count), level=2)
    if problems:
        shown = (msgspec.structs.replace(problem, path=_recording(problem.path)) for problem in problems)
        yield words.problems_section("Could not be read", shown)


def _profile(profile: ProfileReport, anchor: str, elsewhere: int) -> Iterator[Block]:
    unit = "trace" if profile.steps.basis in {"whole_trace", "none"} else "step"
    yield doc.FigureStrip(tuple(_figures(profile, unit)))
    yield from serving_section(profile)
    yield from chart_blocks(profile.ledger, unit)
    yield Paragraph((_recorded(profile),), style="muted")
    yield from (sentence(note, style="warning") for note in profile.quality.notes)
    yield from _worth_most(profile, anchor, unit)
    yield from _steps(profile)
    yield from _findings(profile, anchor, unit, elsewhere)


def _figures(profile: ProfileReport, unit: str) -> Iterator[Figure]:
    steps, saving, ledger = profile.steps, profile.joint_saving, profile.ledger
    basis = STEP_BASIS_IN_WORDS[steps.basis]
    if steps.median_ns is None or unit == "trace":
        yield Figure("Trace length", time_text(profile.duration_ns), (_capital(basis),))
    else:
        true = f"; recorded; without the profiler {time_text(profile.true_step_ns)}" if profile.true_step_ns else ""
        lengths = lengths_of(ledger)
        note = f"median of {plural(len(lengths), 'step')}{_spread(lengths)}; steps {basis}{true}"
        yield Figure("Step time", time_text(ledger.step_ns.median), (note,))
    if saving and saving.expected_ns > 0:
        now = _step_now(profile)
        part = f", {Share(saving.expected_ns / now)}" if now else ""
        note = f"per {unit}{part}; {likelihood_text(saving)}; {basis_text(saving.basis)}"
        notes = (note, *_all_fixed(profile, saving, unit))
        yield Figure("Recoverable", f"≈ {time_text(saving.expected_ns)}", notes, strong=True)
    if has_device(ledger):
        names = ", ".join(dict.fromkeys(device.name or device.kind for device in profile.devices))
        yield Figure("Device busy", str(busy_share(ledger)), (names,))


def _spread(times: Sequence[int]) -> str:
    """The 10th and 90th percentile, or with few steps the shortest and longest."""
    if len(times) < 2:
        return ""
    if len(times) >= ENOUGH_FOR_PERCENTILES:
        low, high = percentiles(times)
        return f", {time_text(low)} to {time_text(high)} p10–p90"
    return f", {time_text(min(times))} to {time_text(max(times))} min–max"


def _step_now(profile: ProfileReport) -> int | None:
    """The step that savings refer to: a step without the profiler if known, else the median step.

    Where more is saved than that, because few long steps hold most of the time, it is the average step.
    """
    ledger, saving = profile.ledger, profile.joint_saving
    if profile.true_step_ns or not ledger.entries:
        return profile.step_ns
    steps = ledger.step_ns
    return max(steps.median, steps.mean) if saving and saving.expected_ns > steps.median else steps.median


def _all_fixed(profile: ProfileReport, saving: Saving, unit: str) -> Iterator[str]:
    """The duration of a step without all findings, and a remark if they overlap."""
    if now := _step_now(profile):
        left, low, high = (max(0, now - saved) for saved in (saving.expected_ns, saving.high_ns, saving.low_ns))
        what = "a step" if unit == "step" else "the recording"
        yield f"With all findings fixed {what} would take {time_text(left)} ({between(low, high)})."
    added_up_ns = sum(finding.saving.expected_ns for finding in profile.findings if finding.saving)
    if added_up_ns > saving.expected_ns * OVERLAP:
        yield "Findings overlap: this is less than the rows’ sum."


def _times_of_step(ledger: Ledger, step: int) -> dict[str, float]:
    times: dict[str, float] = {}
    for entry in ledger.entries:
        if time_ns := entry.ns_by_step[step]:
            times[part_of(entry)] = times.get(part_of(entry), 0.0) + time_ns
    return times


def _bar(times: Mapping[str, float], height: float = 1.0) -> doc.Bar:
    whole_ns = sum(times.values())
    return doc.Bar(tuple((part, time_ns / whole_ns) for part, time_ns in times.items()), height)


def _recorded(profile: ProfileReport) -> str:
    devices = [device.name or device.kind for device in profile.devices]
    only = unnamed_device(profile).capitalize() or "CPU only"
    on = f"{len(devices)} × {devices[0]}" if len(devices) > 1 else "".join(devices) or only
    recorded = (f"{'✓ ' if what in profile.recorded else '✕ no '}{what}" for what in RECORDINGS)
    length = (on, time_text(profile.duration_ns), plural(profile.events, "event"))
    return " · ".join(filter(None, (_recording(profile.path), _when(profile.span), *length, *recorded)))


def _steps(profile: ProfileReport) -> Iterator[Block]:
    """Every step in parts. With too many steps, each column is the longest of several neighbours."""
    odd = {step.name: ODDITIES[step.oddity] for step in profile.steps.items}
    names = [step.name for step in profile.ledger.steps]
    lengths = lengths_of(profile.ledger)
    if len(lengths) < 2:
        return
    per_bar = -(-len(lengths) // _MOST_BARS)
    groups = (range(at, min(at + per_bar, len(lengths))) for at in range(0, len(lengths), per_bar))
    shown = [max(group, key=lengths.__getitem__) for group in groups]
    longest_ns = max(lengths) or 1
    bars = (_bar(_times_of_step(profile.ledger, at), lengths[at] / longest_ns) for at in shown)
    each = f"; each column is the longest of {per_bar}" if per_bar > 1 else ""
    caption = f"Time of each step by part: {plural(len(lengths), 'step')}, the longest {time_text(longest_ns)}{each}."
    rows = (((names[at],), (odd.get(names[at], ""),), (time_text(lengths[at]),)) for at in shown)
    table = doc.Table(("Step", "Odd"), ("Duration",), tuple(rows))
    outliers = (sentence(outlier.text) for outlier in profile.outliers)
    folded = doc.Fold(("Table of the steps",), (table,), "details")
    yield section("Steps", doc.Chart(tuple(bars), caption), folded, *outliers)


def _worth_most(part: ProfileReport | RunReport, anchor: str, unit: str) -> Iterator[Block]:
    """A short list of the findings, with links to the full ones."""
    if part.findings:
        most_ns = max(finding.saving.expected_ns if finding.saving else 0 for finding in part.findings) or 1
        anchors = {each.id: f"{anchor}-{at}" for at, each in enumerate(part.findings, 1)}
        large, small = (
            doc.Table(
                ("Finding",),
                ("Fix saves about",),
                tuple(_row(each, anchors[each.id], unit, most_ns) for each in findings),
            )
            for findings in words.by_size(part.findings)
        )
        title = words.small_title(words.by_size(part.findings)[1])
        folded = (doc.Fold((title,), (small,), "details"),) if small.rows else ()
        yield section("Worth most", large, *folded)


def _findings(part: ProfileReport | RunReport, anchor: str, unit: str, elsewhere: int = 0) -> Iterator[Block]:
    """The findings in full, and the other checks."""
    if part.findings:
        cards = (_card(each, f"{anchor}-{at}", part, unit) for at, each in enumerate(part.findings, 1))
        yield section(plural(len(part.findings), "finding"), *cards, *words.extra_hint(part.findings))
    if elsewhere:
        yield sentence(elsewhere_text(elsewhere))
    elif not part.findings:
        none_ran = {outcome.status for outcome in part.outcomes} == {"not_checked"}
        nothing = "Nothing could be checked: this recording lacks what the checks need."
        bound = verdict(part.ledger) if isinstance(part, ProfileReport) else "No finding is about several ranks."
        yield section("No findings", *([sentence(nothing)] if none_ran else []), sentence(bound))
    yield from words.checks(part.outcomes, "failed", "clean", "not_checked")


def _row(finding: Finding, anchor: str, unit: str, most_ns: int) -> tuple[Line, Line]:
    places = [f"{_PATH.split(place.file)[-1]}:{place.line}" for place in finding.places]
    where = f"{places[0]}{f' +{len(places) - 1}' if len(places) > 1 else ''}" if places else "no source line"
    facts = muted(f"{Count(finding.matches)}× · {where} · confidence {finding.confidence}")
    title = (Span(finding.severity, "mark"), " ", Span(finding.title, "link", anchor), doc.BREAK, facts)
    if not finding.saving:
        return title, (muted("no saving known"),)
    expected_ns = finding.saving.expected_ns
    if not expected_ns:
        return title, (muted(saving_text(finding.saving)),)
    expected = (Span(time_text(expected_ns), "strong"), muted(f" per {unit}"), doc.BREAK)
    bounds = muted(likelihood_text(finding.saving))
    return title, (*expected, bounds, Span(f"{expected_ns / most_ns}", "meter"))


def _card(finding: Finding, anchor: str, part: ProfileReport | RunReport, unit: str) -> Block:
    ranks = f" · {'rank' if len(finding.ranks) == 1 else 'ranks'} {', '.join(map(str, finding.ranks))}"
    kind = (f"{_capital(finding.severity)} · ", code(finding.rule), ranks if finding.ranks else "")
    why = [sentence(detail.text) for detail in finding.details if isinstance(detail, Note)]
    found = [each.reason for each in part.outcomes if (each.rule, each.status) == (finding.rule, "found")]
    why += [sentence(reason, style="muted") for reason in found if reason]
    blocks: list[Block] = [
        sentence(f"{finding.message}."),
        Paragraph(kind, style="muted"),
        doc.FigureStrip(tuple(_worth(finding, unit, two_clocks=has_two_clocks(part)))),
    ]
    blocks += [section("Why", *why, level=5)] if why else []
    blocks += [section("Source", *_source(finding, unit), level=5), section("Fix", *_fix(finding), level=5)]
    if finding.measurement:
        blocks.append(section("Micro-benchmark", sentence(words.measured_sentences(finding.measurement)), level=5))
    return doc.Section((message(finding.title),), tuple(blocks), 4, anchor, finding.severity)


def _worth(finding: Finding, unit: str, *, two_clocks: bool) -> Iterator[Figure]:
    per = f" per {unit}"
    if saving := finding.saving:
        speed = f" · {saving.speedup:.2f}× speed" if (saving.speedup or 0) >= WORTH_TELLING else ""
        notes = (f"{_capital(likelihood_text(saving))}{speed}".removeprefix(" · "), _capital(basis_text(saving.basis)))
        if saving.expected_ns:
            clock = ("Of a step without the profiler",) if two_clocks else ()
            yield Figure("Fix saves about", time_text(saving.expected_ns), (*notes, *clock), per, strong=True)
        else:
            yield Figure("Fix saves", NO_SAVING, notes)
    recorded = "recorded " if two_clocks else ""
    share = () if finding.share is None else (f"{Share(finding.share)} of the {recorded}{unit} time",)
    yield Figure("Costs", time_text(finding.cost_ns), share, per)
    per_step = words.matches_text(finding.matches_per_step) if unit == "step" else ""
    yield Figure("Matches", str(Count(finding.matches)), (per_step,) if per_step else ())
    places = (f"{plural(len(finding.places), 'place')} in the source",) if finding.places else ()
    yield Figure("Confidence", _capital(finding.confidence), places)


def _source(finding: Finding, unit: str) -> Iterator[Block]:
    if not finding.places:
        yield sentence("The recording has no Python frame for these events, so no line is known.", style="muted")
    for place in finding.places:
        facts = f" · {plural(place.matches, 'match', 'matches')}, {time_text(place.duration_ns)} per {unit}"
        yield Paragraph((*place_line(place), muted(f"{facts}{_lines(place)}")))
        if place.text:
            yield doc.CodeBlock(place.text, line=place.line)


def _lines(place: Place) -> str:
    if len(place.ties) > 1:
        return f" · one of lines {', '.join(map(str, place.ties))}, which fit equally well"
    return f" · lines {place.line}–{place.end_line}" if place.end_line > place.line else ""


def _fix(finding: Finding) -> Iterator[Block]:
    yield sentence(f"{finding.fix.rstrip('.')}.")
    if own := finding.code_fixes:
        yield from words.fix_hint(finding)
        for change in own.changes:
            yield Paragraph((code(change.file), f": {change.safety}"))
            if change.needs_review:
                yield sentence(change.check, "Check first")
            yield doc.CodeBlock(change.diff, "Change")
        if own.reason and own.reason != NEEDS_EXTRA:
            yield sentence(own.reason, style="muted")
        if own.changes:
            return
    if changes := [*words.examples(finding)]:
        yield from (sentence("The pattern in general, not your code:", style="muted"), *changes)


def _recording(path: str) -> str:
    """The names of the file and its folder, which is the run."""
    return "/".join(_PATH.split(path)[-2:])[-_LONGEST_NAME:]


def _when(span: str) -> str:
    """The time of the recording, if its name holds one."""
    time_s = recorded_at(span)
    try:
        return "" if time_s is None else f"recorded {datetime.fromtimestamp(time_s, timezone.utc):%Y-%m-%d %H:%M UTC}"
    except (OverflowError, OSError, ValueError):
        return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
