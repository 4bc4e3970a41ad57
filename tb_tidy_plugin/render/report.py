"""A report as a document. One builder makes all forms: each sentence and each figure comes from one function.

A terminal shows the findings in short, a comment on a pull request folds them below a table, and a page has all of
them, with the names and the order of the tab. Of the paths on the machine that created it, a page holds only the parts
that name a recording.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import NamedTuple, TypeAlias

import msgspec

from tb_tidy_plugin.analysis.code_fixes import MOST_PLACES
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Figure, Line, Paragraph, code, message, section, sentence
from tb_tidy_plugin.render.ledger import (
    busy_share,
    has_device,
    ledger_blocks,
    lengths_of,
    step_line,
    step_remarks,
    verdict,
)
from tb_tidy_plugin.render.ranks import ToldOnce, elsewhere_text, ranks_blocks, shown_profiles, told_once
from tb_tidy_plugin.render.serving import serving_blocks, serving_section
from tb_tidy_plugin.render.words import time_text
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA, NOT_MADE
from tb_tidy_plugin.report.model import (
    CodeChange,
    Device,
    Finding,
    Note,
    Outcome,
    Place,
    Problem,
    ProfileReport,
    Report,
    RunReport,
    Saving,
)
from tb_tidy_plugin.report.savings import NO_SAVING, basis_text, has_two_clocks, likelihood_text, saving_text
from tb_tidy_plugin.sources.files import recorded_at
from tb_tidy_plugin.words.units import Count, Share, between, plural
from tb_tidy_plugin.words.vocabulary import KNOWN_BY_WORDS, STEP_SOURCES

MOST_PLACES_ON_SCREEN = 3
MOST_RULES_ON_SCREEN = 6
MOST_OUTLIERS_ON_SCREEN = 3
RECORDINGS = ("steps", "stacks", "shapes", "memory", "device")
OVERLAP = 1.01  # smaller excesses of a sum are rounding, and are not mentioned
WORTH_TELLING = 1.005  # of a speedup; a smaller one reads as 1.00×
_MOST_BARS = 200
_LONGEST_NAME = 200
_PATH = re.compile(r"[/\\]+")

_Part: TypeAlias = ProfileReport | RunReport


class DetailLevel(msgspec.Struct, frozen=True):
    """How much of a report a document shows.

    Attributes:
        places: of a finding, at most. rules: names of one outcome, at most.
        is_whole: True if small findings are shown in full, and all ranks of a run.
    """

    form: doc.Form
    places: int = MOST_PLACES_ON_SCREEN
    rules: int = MOST_RULES_ON_SCREEN
    is_whole: bool = False


_LEVELS: Mapping[doc.Form, DetailLevel] = {
    "text": DetailLevel("text"),
    "markdown": DetailLevel("markdown", MOST_PLACES),
    "html": DetailLevel("html", is_whole=True),
}
_VERBOSE = DetailLevel("text", rules=1 << 30, is_whole=True)


def report_document(report: Report, form: doc.Form, muted: int = 0, *, verbose: bool = False) -> doc.Document:
    """The report as a document of this form.

    `muted` is the number of findings left out of it. A verbose text names all rules that passed or were not
    checked; otherwise long lists are counted.
    """
    detail = _VERBOSE if verbose and form == "text" else _LEVELS[form]
    runs = [told_once(run) for run in report.runs]
    title = f"TorchTidy: {plural(sum(_found_in(each.run) for each in runs), 'finding')}"
    of_run = f" in {report.runs[0].run or '.'}" if len(report.runs) == 1 else ""
    footer = f"TorchTidy {report.version}. Savings are estimates with a range."
    blocks = tuple(_blocks(runs, report.problems, muted, detail))
    return doc.Document(f"{title}{of_run}", blocks, "tb-tidy check", footer)


def _found_in(run: RunReport) -> int:
    return len(run.findings) + sum(len(profile.findings) for profile in run.profiles)


def _blocks(runs: Sequence[ToldOnce], problems: Sequence[Problem], muted: int, detail: DetailLevel) -> Iterator[Block]:
    if muted:
        yield Paragraph((f"{plural(muted, 'finding')} muted and left out.",), style="warning")
    for number, told in enumerate(runs, 1):
        if detail.form == "markdown":
            heading = (f"TorchTidy: {plural(_found_in(told.run), 'finding')} in ", code(told.run.run))
            yield doc.Section(heading, tuple(_run(told, number, detail)))
        else:
            yield from _run(told, number, detail)
    if detail.form == "text":
        yield from map(words.problem_paragraph, problems)
    elif problems:
        is_page = detail.form == "html"
        shown = (msgspec.structs.replace(each, path=_recording(each.path)) if is_page else each for each in problems)
        yield words.problems_section("Could not be read", shown)


def _run(told: ToldOnce, number: int, detail: DetailLevel) -> Iterator[Block]:
    """The ranks of a run together, then its profiles."""
    run, level, of_run = told.run, 2, told.run.run or "."
    if detail.form == "markdown":
        level, of_run = 3, ""  # the heading above names the run
    if run.outcomes or run.ranks:
        ranks = {profile.rank for profile in run.profiles if profile.rank is not None}
        title = " · ".join(filter(None, (of_run, f"{plural(len(ranks), 'rank')} together")))
        judged = _judged(run, f"run-{number}", detail)
        yield section(title, *ranks_blocks(run.ranks), doc.GAP, *judged, level=level)
    profiles, left_out = shown_profiles(told, verbose=detail.is_whole)
    for at, (profile, elsewhere) in enumerate(profiles, 1):
        title = words.profile_names(of_run, profile, with_span=detail.form != "html") or run.run
        blocks = _profile(profile, f"profile-{number}-{at}", detail, elsewhere)
        yield section(title, *blocks, level=level)
    if left_out:
        yield sentence(left_out)


def _profile(profile: ProfileReport, anchor: str, detail: DetailLevel, elsewhere: int) -> Iterator[Block]:
    if detail.form == "html":
        yield doc.FigureStrip(tuple(_figures(profile)))
    else:
        yield Paragraph(step_line(profile))
    yield from serving_blocks(profile) if detail.form == "text" else serving_section(profile)
    if profile.floor is not None and profile.floor.text and profile.ledger.recording == "steady":
        yield sentence(profile.floor.text, "floor" if detail.form == "text" else "")
    yield from ledger_blocks(profile.ledger, detail.form, _unit(profile))
    if detail.form != "markdown":
        yield Paragraph((_recorded(profile, detail),), style="muted" if detail.form == "html" else None)
    label = "note" if detail.form == "text" else ""
    yield from (sentence(note, label, "warning") for note in profile.quality.notes)
    yield from _judged(profile, anchor, detail, elsewhere)


def _unit(part: _Part) -> str:
    """What a cost or a saving is counted per."""
    is_trace = isinstance(part, ProfileReport) and part.steps.basis in {"whole_trace", "none"}
    return "trace" if is_trace else "step"


def _figures(profile: ProfileReport) -> Iterator[Figure]:
    steps, saving, ledger, unit = profile.steps, profile.joint_saving, profile.ledger, _unit(profile)
    if steps.median_ns is None or unit == "trace":
        yield Figure("Trace length", time_text(profile.duration_ns), (_capital(STEP_SOURCES[steps.basis]),))
    else:
        count = f"{'median of ' if ledger.step_ns.n > 1 else ''}{plural(ledger.step_ns.n, 'step')}"
        yield Figure("Step time", time_text(ledger.step_ns.median), (f"{count}{step_remarks(profile)}",))
    if saving and saving.expected_ns > 0:
        now = _step_now(profile)
        part = f", {Share(saving.expected_ns / now)}" if now else ""
        note = f"per {unit}{part}; {likelihood_text(saving)}; {basis_text(saving.basis)}"
        notes = (note, *_all_fixed(profile, saving, unit))
        yield Figure("Recoverable", f"≈ {time_text(saving.expected_ns)}", notes, strong=True)
    if has_device(ledger):
        names = ", ".join(dict.fromkeys(device.name or device.kind for device in profile.devices))
        yield Figure("Device busy", str(busy_share(ledger)), (names,))


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


def _device(device: Device) -> str:
    """Kind, number and name, and how its limits are known if that is not from a datasheet."""
    limits = "" if device.limits in {None, "datasheet"} else f" (limits {device.limits})"
    return f"{device.kind}:{device.index} {device.name}".strip() + limits


def _recorded(profile: ProfileReport, detail: DetailLevel) -> str:
    """Size, devices and contents of the recording; on a page also its name and date."""
    devices = ", ".join(_device(device) for device in profile.devices)
    length = f"{plural(profile.events, 'event')} over {time_text(profile.duration_ns)}"
    lacks = ", ".join(each for each in RECORDINGS if each not in profile.recorded)
    what = f"recorded: {', '.join(profile.recorded) or 'nothing but operators'}"
    text = f"{length} on {devices or profile.ledger.hidden_device or 'the CPU'}; {what}"
    if detail.form == "text":
        return text
    named = (_recording(profile.path), _when(profile.span), f"{text}{f'; not recorded: {lacks}' if lacks else ''}")
    return " · ".join(filter(None, named))


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


# Steps


def _steps(profile: ProfileReport, detail: DetailLevel) -> Iterator[Block]:
    """The outliers; on a page below a chart of all steps."""
    if detail.form == "text":
        for outlier in profile.outliers[:MOST_OUTLIERS_ON_SCREEN]:
            yield sentence(outlier.text, "outlier", "warning")
        for line in words.more(len(profile.outliers) - MOST_OUTLIERS_ON_SCREEN, "outlier"):
            yield Paragraph(line, style="muted")
    elif detail.form == "html" and len(profile.ledger.steps) > 1:
        yield section("Steps", *_chart(profile), *(sentence(outlier.text) for outlier in profile.outliers))


def _chart(profile: ProfileReport) -> tuple[Block, ...]:
    """Every step in parts. With too many steps, each column is the longest of several neighbours."""
    odd = {step.name: words.ODDITIES[step.oddity] for step in profile.steps.items}
    names = [step.name for step in profile.ledger.steps]
    lengths = lengths_of(profile.ledger)
    per_bar = -(-len(lengths) // _MOST_BARS)
    groups = (range(at, min(at + per_bar, len(lengths))) for at in range(0, len(lengths), per_bar))
    shown = [max(group, key=lengths.__getitem__) for group in groups]
    longest_ns = max(lengths) or 1
    bars = (_bar(profile.ledger, at, lengths[at] / longest_ns) for at in shown)
    each = f"; each column is the longest of {per_bar}" if per_bar > 1 else ""
    caption = f"Time of each step by part: {plural(len(lengths), 'step')}, the longest {time_text(longest_ns)}{each}."
    rows = (((names[at],), (odd.get(names[at], ""),), (time_text(lengths[at]),)) for at in shown)
    table = doc.Table(("Step", "Odd"), ("Duration",), tuple(rows))
    return doc.Chart(tuple(bars), caption), doc.Fold(("Table of the steps",), (table,), "details")


def _bar(ledger: Ledger, step: int, height: float) -> doc.Bar:
    times = [(entry.colour, entry.ns_by_step[step]) for entry in ledger.entries if entry.ns_by_step[step]]
    whole_ns = sum(time_ns for _, time_ns in times)
    return doc.Bar(tuple((colour, time_ns / whole_ns) for colour, time_ns in times), height)


# Findings and checks


def _judged(part: _Part, anchor: str, detail: DetailLevel, elsewhere: int = 0) -> Iterator[Block]:
    """The findings of a profile or a run, and the other checks."""
    large, small = words.by_size(part.findings)
    shown = _Shown(part, {each.id: f"{anchor}-{at}" for at, each in enumerate(part.findings, 1)}, detail)
    if part.findings and detail.form != "text":
        title = (words.small_title(small),)
        folded = (doc.Fold(title, tuple(_table(small, shown)), "details"),) if small else ()
        listed = (*_table(large, shown), *folded)
        yield from (section("Worth most", *listed),) if detail.form == "html" else listed
    if isinstance(part, ProfileReport):
        yield from _steps(part, detail)
    yield doc.GAP
    if elsewhere:
        yield sentence(elsewhere_text(elsewhere))
    elif not part.findings:
        yield sentence(_none(part))
    full = () if detail.form == "markdown" else part.findings if detail.is_whole else large
    cards = [_card(finding, shown) for finding in full]
    if small and detail == _LEVELS["text"]:
        heading = (message(f"{words.small_title(small)} (`-v` shows them in full)"),)
        cards.append(doc.Section(heading, (doc.Listing(tuple(map(_in_one_line, small))),), 3, severity="low"))
    has_heading = detail.form == "html" and part.findings
    yield from (section(plural(len(part.findings), "finding"), *cards),) if has_heading else cards
    yield from words.extra_hint(part.findings)
    if detail.form == "text":
        yield from _rules_in_lines(part.outcomes, detail)
    else:
        yield from words.checks(part.outcomes, "failed", *(("clean",) if detail.is_whole else ()), "not_checked")


def _none(part: _Part) -> str:
    """What takes the place of findings."""
    if isinstance(part, RunReport):
        return "No finding is about several ranks."
    none_ran = {outcome.status for outcome in part.outcomes} == {"not_checked"}
    nothing = "Nothing could be checked: this recording lacks what the checks need." if none_ran else "No finding."
    return f"{nothing} {verdict(part.ledger)}"


def _rules_in_lines(outcomes: Sequence[Outcome], detail: DetailLevel) -> Iterator[Block]:
    """Rules that passed, rules that were not checked by reason, and rules with other remarks."""
    if passed := [outcome.rule for outcome in outcomes if outcome.status == "clean" and not outcome.reason]:
        yield Paragraph((_listed(passed, detail),), "passed", "good")
    for reason, rules in words.by_reason(outcomes, "not_checked").items():
        yield sentence(reason, f"not checked: {_listed(rules, detail)}", "muted")
    for outcome in outcomes:
        if outcome.status == "failed":
            yield sentence(outcome.reason or "", f"failed: {outcome.rule}", "bad")
        elif outcome.reason and outcome.status != "not_checked":
            yield sentence(outcome.reason, outcome.rule, "muted")


def _listed(rules: Sequence[str], detail: DetailLevel) -> str:
    return ", ".join(rules) if len(rules) <= detail.rules else f"{plural(len(rules), 'rule')} (`-v` names them)"


class _Shown(NamedTuple):
    """What the blocks of a finding depend on besides it: its profile or run, all anchors by id, and the detail."""

    part: _Part
    anchors: Mapping[str, str]
    detail: DetailLevel


def _table(findings: Sequence[Finding], shown: _Shown) -> Iterator[Block]:
    """The findings as rows; in a comment with a fold for each."""
    if shown.detail.form == "html":
        savings = [finding.saving.expected_ns for finding in shown.part.findings if finding.saving]
        rows = tuple(_linked_row(finding, shown, max([*savings, 1])) for finding in findings)
        yield doc.Table(("Finding",), ("Fix saves about",), rows)
        return
    if findings:
        figures = ("costs per step", "could save")
        if has_two_clocks(shown.part):
            figures = ("costs per recorded step", "could save without the profiler")
        yield doc.Table(("severity", "rule", "place"), figures, tuple(map(_row, findings)))
    for finding in findings:
        title = (code(finding.rule), ": ", message(finding.title))
        yield doc.Fold(title, tuple(_parts(finding, shown)), "details")


def _row(finding: Finding) -> tuple[Line, ...]:
    costs, saves = "", ""
    if finding.share is not None:
        costs = f"{time_text(finding.cost_ns)} ({Share(finding.share)})"
        if saving := finding.saving:
            saves = saving_text(saving)
    where = [words.place_line(place)[:3] for place in finding.places[:1]]
    place = tuple(piece for line in (*where, *words.more(len(finding.places) - 1)) for piece in (*line, " "))
    return ((finding.severity,), (code(finding.rule),), place, (costs,), (saves,))


def _linked_row(finding: Finding, shown: _Shown, most_ns: int) -> tuple[Line, Line]:
    places = [f"{_PATH.split(place.file)[-1]}:{place.line}" for place in finding.places]
    where = f"{places[0]}{f' +{len(places) - 1}' if len(places) > 1 else ''}" if places else "no source line"
    facts = doc.muted(f"{Count(finding.matches)}× · {where} · confidence {finding.confidence}")
    link = doc.Span(finding.title, "link", shown.anchors[finding.id])
    title = (doc.Span(finding.severity, "mark"), " ", link, doc.BREAK, facts)
    saving = finding.saving
    if not saving or not saving.expected_ns:
        return title, (doc.muted(saving_text(saving) if saving else "no saving known"),)
    expected = (doc.Span(time_text(saving.expected_ns), "strong"), doc.muted(f" per {_unit(shown.part)}"), doc.BREAK)
    meter = doc.Span(f"{saving.expected_ns / most_ns}", "meter")
    return title, (*expected, doc.muted(likelihood_text(saving)), meter)


def _in_one_line(finding: Finding) -> Line:
    where = [piece for place in finding.places[:1] for piece in (*words.place_line(place)[:3], ": ")]
    saves = f" ({time_text(finding.saving.expected_ns)}; {finding.rule})" if finding.saving else ""
    return (*where, message(finding.title), saves)


def _card(finding: Finding, shown: _Shown) -> Block:
    saving, worth = finding.saving, ""
    if saving and finding.share is not None:
        worth = f"{time_text(saving.expected_ns)} per step" if saving.expected_ns else NO_SAVING
    blocks, anchor = tuple(_parts(finding, shown)), shown.anchors[finding.id]
    return doc.Section((message(finding.title),), blocks, 4, anchor, finding.severity, worth)


# One finding, in parts


def _parts(finding: Finding, shown: _Shown) -> Iterator[Block]:
    for part in _ON_A_PAGE if shown.detail.form == "html" else _IN_LINES:
        yield from part(finding, shown)


def _message(finding: Finding, _: _Shown) -> Iterator[Block]:
    yield sentence(f"{finding.message.rstrip('.')}.")


def _name(finding: Finding, shown: _Shown) -> Iterator[Block]:
    name: Line = (code(finding.rule), f" {finding.id}")
    if shown.detail.form == "html":
        ranks = f"{'rank' if len(finding.ranks) == 1 else 'ranks'} {', '.join(map(str, finding.ranks))}"
        name = (f"{_capital(finding.severity)} · ", *name, f" · {ranks}" if finding.ranks else "")
    yield Paragraph(name, style="muted")


def _worth(finding: Finding, shown: _Shown) -> Iterator[Block]:
    """Cost, saving, matches and confidence in one sentence."""
    text, two_clocks = f"{Count(finding.matches)}×", has_two_clocks(shown.part)
    if finding.share is not None:
        step = "recorded step" if two_clocks else "step"
        text = f"{text}, costs {time_text(finding.cost_ns)} per {step} ({Share(finding.share)})"
        if saving := finding.saving:
            saves = f"{'saves ' if saving.expected_ns else ''}{saving_text(saving)} ({basis_text(saving.basis)})"
            text = f"{text}; {'without the profiler, ' if two_clocks else ''}{saves}"
    yield Paragraph(("; ".join(filter(None, (text, f"confidence {finding.confidence}", _replayed(finding)))),))


def _worth_in_figures(finding: Finding, shown: _Shown) -> Iterator[Block]:
    yield doc.FigureStrip(tuple(_figures_of(finding, _unit(shown.part), two_clocks=has_two_clocks(shown.part))))


def _figures_of(finding: Finding, unit: str, *, two_clocks: bool) -> Iterator[Figure]:
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
    yield Figure("Matches", str(Count(finding.matches)), tuple(filter(None, (per_step,))))
    places = f"{plural(len(finding.places), 'place')} in the source" if finding.places else ""
    remarks = tuple(filter(None, (places, _capital(_replayed(finding)))))
    yield Figure("Confidence", _capital(finding.confidence), remarks)


def _replayed(finding: Finding) -> str:
    """A remark on how the operators of a replayed graph are known."""
    known_by = finding.known_by
    return f"operators from the graph's capture ({KNOWN_BY_WORDS[known_by]})" if known_by else ""


def _why(finding: Finding, shown: _Shown) -> Iterator[Block]:
    why = [sentence(detail.text) for detail in finding.details if isinstance(detail, Note)]
    if shown.detail.form == "html":
        found = [each.reason for each in shown.part.outcomes if (each.rule, each.status) == (finding.rule, "found")]
        why += [sentence(reason, style="muted") for reason in found if reason]
    yield from _headed("Why", why, shown)


def _places(finding: Finding, shown: _Shown) -> Iterator[Block]:
    if finding.places:
        yield words.places_listing(finding, shown.detail.places, "place")


def _source(finding: Finding, shown: _Shown) -> Iterator[Block]:
    blocks: list[Block] = []
    for place in finding.places:
        times = f"{time_text(place.duration_ns)} per {_unit(shown.part)}"
        facts = f" · {plural(place.matches, 'match', 'matches')}, {times}{_lines(place)}"
        blocks.append(Paragraph((*words.place_line(place), doc.muted(facts))))
        blocks += [doc.CodeBlock(place.text, line=place.line)] if place.text else []
    unknown = sentence("The recording has no Python frame for these events, so no line is known.", style="muted")
    yield section("Source", *(blocks or [unknown]), level=5)


def _lines(place: Place) -> str:
    if len(place.ties) > 1:
        return f" · one of lines {', '.join(map(str, place.ties))}, which fit equally well"
    return f" · lines {place.line}–{place.end_line}" if place.end_line > place.line else ""


def _measured(finding: Finding, shown: _Shown) -> Iterator[Block]:
    if finding.measurement is not None:
        yield from _headed("Micro-benchmark", [sentence(words.measured_sentences(finding.measurement))], shown)


def _fix(finding: Finding, shown: _Shown) -> Iterator[Block]:
    fix = [sentence(f"{finding.fix.rstrip('.')}.")]
    others = [*words.fix_hint(finding), *(_changes(finding) if shown.detail.form == "html" else ())]
    if shown.detail.form != "text" and not any(isinstance(each, doc.CodeBlock) for each in others):
        others += _examples(finding)
    if shown.detail.form == "html":
        yield section("Fix", *fix, *others, level=5)
    else:
        yield from (*_headed("Fix", fix, shown), *others)


def _changes(finding: Finding) -> Iterator[Block]:
    """The changes of the user's own code."""
    if finding.code_fixes is None:
        return
    for change in finding.code_fixes.changes:
        yield Paragraph((code(change.file), f": {change.safety}"))
        if change.needs_review:
            yield sentence(change.check, "Check first")
        yield doc.CodeBlock(change.diff, "Change")
    if finding.code_fixes.reason not in {None, NEEDS_EXTRA, NOT_MADE}:
        yield sentence(finding.code_fixes.reason or "", style="muted")


def _examples(finding: Finding) -> Iterator[Block]:
    """Code with and without the pattern, and the caveats."""
    for detail in finding.details:
        if isinstance(detail, CodeChange):
            yield sentence("The pattern in general, not your code:", style="muted")
            yield from (doc.CodeBlock(detail.before, "Before"), doc.CodeBlock(detail.after, "After"))
            if detail.caveat:
                yield Paragraph(("Note: ", message(f"{detail.caveat.rstrip('.')}.")))


def _headed(heading: str, paragraphs: Iterable[Paragraph], shown: _Shown) -> Iterator[Block]:
    """Paragraphs below a heading on a page, each behind a label elsewhere."""
    blocks = tuple(paragraphs)
    if shown.detail.form != "html":
        label, style = (heading.lower(), _LABELS[heading]) if shown.detail.form == "text" else (heading, None)
        yield from (msgspec.structs.replace(each, label=label, style=style) for each in blocks)
    elif blocks:
        yield section(heading, *blocks, level=5)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_LABELS: Mapping[str, doc.Style] = {"Why": "muted", "Fix": "good", "Micro-benchmark": "muted"}
_Parts: TypeAlias = tuple[Callable[[Finding, _Shown], Iterator[Block]], ...]
_IN_LINES: _Parts = (_message, _places, _worth, _why, _measured, _fix, _name)
_ON_A_PAGE: _Parts = (_message, _name, _worth_in_figures, _why, _source, _fix, _measured)
