"""A report as a document: short for a terminal, tables and folds for a pull request, complete for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_tidy_plugin.analysis.code_fixes import MOST_PLACES
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Document, Form, Line, Paragraph, code, message, sentence
from tb_tidy_plugin.render.ledger import ledger_blocks, step_line, verdict
from tb_tidy_plugin.render.ranks import ToldOnce, elsewhere_text, ranks_blocks, shown_profiles, told_once
from tb_tidy_plugin.render.serving import serving_blocks, serving_section
from tb_tidy_plugin.report.model import (
    Finding,
    Note,
    Outcome,
    Problem,
    ProfileReport,
    Report,
    RunReport,
    Saving,
    unnamed_device,
)
from tb_tidy_plugin.report.savings import NO_SAVING, basis_text, has_two_clocks, saving_text
from tb_tidy_plugin.words.units import Count, Nanoseconds, Share, plural

MOST_PLACES_ON_SCREEN = 3
MOST_RULES_ON_SCREEN = 6
MOST_OUTLIERS_ON_SCREEN = 3


def report_document(report: Report, form: Form, muted: int = 0, *, verbose: bool = False) -> Document:
    """The report as a document of this form.

    `muted` is the number of findings left out of it, which only a page mentions. A verbose text names all rules that
    passed or were not checked; otherwise long lists are counted.
    """
    runs = [told_once(run) for run in report.runs]
    if form == "html":
        from tb_tidy_plugin.render.page import page_blocks  # not imported for a terminal

        blocks = page_blocks(runs, report.problems, muted)
    else:
        blocks = _terminal(runs, report.problems, verbose) if form == "text" else _comment(runs, report.problems)
    title = f"TorchTidy: {plural(sum(_found_in(each.run) for each in runs), 'finding')}"
    of_run = f" in {report.runs[0].run or '.'}" if len(report.runs) == 1 else ""
    footer = f"TorchTidy {report.version}. Savings are estimates with a range."
    return Document(f"{title}{of_run}", tuple(blocks), "tb-tidy check", footer)


def _found_in(run: RunReport) -> int:
    return len(run.findings) + sum(len(profile.findings) for profile in run.profiles)


# On a terminal


def _terminal(runs: Sequence[ToldOnce], problems: Sequence[Problem], verbose: bool) -> Iterator[Block]:
    for told_run in runs:
        run = told_run.run
        if run.outcomes or run.ranks:
            ranks = {profile.rank for profile in run.profiles if profile.rank is not None}
            title = f"{run.run} · {plural(len(ranks), 'rank')} together"
            yield doc.Section((title,), (*ranks_blocks(run.ranks), doc.GAP, *_judged(run, verbose)))
        profiles, left_out = shown_profiles(told_run, verbose=verbose)
        for profile, count in profiles:
            blocks = (*_about(profile), doc.GAP, *_judged(profile, verbose, count))
            yield doc.Section((words.profile_names(run.run, profile),), blocks)
        if left_out:
            yield sentence(left_out)
    yield from map(words.problem_paragraph, problems)


def _about(profile: ProfileReport) -> Iterator[Block]:
    yield Paragraph(step_line(profile))
    yield from serving_blocks(profile)
    yield from ledger_blocks(profile, is_terminal=True)
    devices = ", ".join(f"{device.kind}:{device.index} {device.name}".strip() for device in profile.devices)
    length = f"{plural(profile.events, 'event')} over {Nanoseconds(profile.duration_ns)}"
    recorded = ", ".join(profile.recorded) or "nothing but operators"
    place = devices or unnamed_device(profile) or "the CPU"
    yield Paragraph((f"{length} on {place}; recorded: {recorded}",))
    for note in profile.quality.notes:
        yield sentence(note, "note", "warning")
    for outlier in profile.outliers[:MOST_OUTLIERS_ON_SCREEN]:
        yield sentence(outlier.text, "outlier", "warning")
    for line in words.more(len(profile.outliers) - MOST_OUTLIERS_ON_SCREEN, "outlier"):
        yield Paragraph(line, style="muted")


def _judged(part: ProfileReport | RunReport, verbose: bool, elsewhere: int = 0) -> Iterator[Block]:
    yield from _cards(part, verbose, elsewhere)
    yield from _outcomes(part.outcomes, verbose)


def _cards(part: ProfileReport | RunReport, verbose: bool, elsewhere: int = 0) -> Iterator[Block]:
    if elsewhere:
        yield sentence(elsewhere_text(elsewhere))
    elif isinstance(part, ProfileReport) and not part.findings:
        yield sentence(f"No finding. {verdict(part.ledger)}")
    large, small = words.by_size(part.findings)
    for finding in part.findings if verbose else large:
        saving = finding.saving if finding.share is not None else None
        worth = _worth(saving) if saving else ""
        blocks = tuple(_card(finding, saving, two_clocks=has_two_clocks(part)))
        yield doc.Section((message(finding.title),), blocks, 3, severity=finding.severity, aside=worth)
    if small and not verbose:
        title = f"{words.small_title(small)} (`-v` shows them in full)"
        yield doc.Section((message(title),), (doc.Listing(tuple(map(_in_one_line, small))),), 3, severity="low")
    yield from words.extra_hint(part.findings)


def _worth(saving: Saving) -> str:
    return f"{Nanoseconds(saving.expected_ns)} per step" if saving.expected_ns else NO_SAVING


def _in_one_line(finding: Finding) -> Line:
    where = [piece for place in finding.places[:1] for piece in (*words.place_line(place)[:3], ": ")]
    saves = f" ({Nanoseconds(finding.saving.expected_ns)}; {finding.rule})" if finding.saving else ""
    return (*where, message(finding.title), saves)


def _card(finding: Finding, saving: Saving | None, *, two_clocks: bool) -> Iterator[Block]:
    yield sentence(finding.message)
    yield words.places_listing(finding, MOST_PLACES_ON_SCREEN, "place")
    if saving and finding.share is not None:
        taken = f"{Nanoseconds(finding.cost_ns)} per {'recorded ' if two_clocks else ''}step ({Share(finding.share)})"
        saves = f"{'saves ' if saving.expected_ns else ''}{saving_text(saving)} ({basis_text(saving.basis)})"
        saves = f"without the profiler, {saves}" if two_clocks else saves
        yield Paragraph(
            (f"{Count(finding.matches)}×, costs {taken}; {saves}; confidence {finding.confidence}{_replayed(finding)}",)
        )
    for detail in finding.details:
        if isinstance(detail, Note):
            yield sentence(detail.text, "why", "muted")
    if finding.measurement is not None:
        yield Paragraph((words.measured_sentences(finding.measurement),), "measured", "muted")
    yield sentence(finding.fix, "fix", "good")
    yield from words.fix_hint(finding)
    yield Paragraph((f"{finding.rule} {finding.id}",), style="muted")


def _replayed(finding: Finding) -> str:
    """A remark on how the operators of a replayed graph are known."""
    known_by = finding.known_by
    return f"; operators from the graph's capture ({words.KNOWN_BY_WORDS[known_by]})" if known_by else ""


def _outcomes(outcomes: Sequence[Outcome], verbose: bool) -> Iterator[Block]:
    """Rules that passed, rules that were not checked by reason, and rules with other remarks."""
    if passed := [outcome.rule for outcome in outcomes if outcome.status == "clean" and not outcome.reason]:
        yield Paragraph((_listed(passed, verbose),), "passed", "good")
    unchecked: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status == "not_checked":
            unchecked.setdefault(outcome.reason or "", []).append(outcome.rule)
    for reason, rules in unchecked.items():
        yield sentence(reason, f"not checked: {_listed(rules, verbose)}", "muted")
    for outcome in outcomes:
        if outcome.status == "failed":
            yield sentence(outcome.reason or "", f"failed: {outcome.rule}", "bad")
        elif outcome.reason and outcome.status != "not_checked":
            yield sentence(outcome.reason, outcome.rule, "muted")


def _listed(rules: Sequence[str], verbose: bool) -> str:
    are_named = verbose or len(rules) <= MOST_RULES_ON_SCREEN
    return ", ".join(rules) if are_named else f"{plural(len(rules), 'rule')} (`-v` names them)"


# On a pull request


def _comment(runs: Sequence[ToldOnce], problems: Sequence[Problem]) -> Iterator[Block]:
    for told_run in runs:
        title = (f"TorchTidy: {plural(_found_in(told_run.run), 'finding')} in ", code(told_run.run.run))
        yield doc.Section(title, tuple(_comment_on(told_run)))
    if problems:
        yield words.problems_section("TorchTidy: could not be read", problems)


def _comment_on(told_run: ToldOnce) -> Iterator[Block]:
    run = told_run.run
    if run.outcomes or run.ranks:
        yield Paragraph((f"All ranks together.{'' if run.findings else ' No findings.'}",))
        yield from ranks_blocks(run.ranks)
        yield from _tabled(run)
    profiles, left_out = shown_profiles(told_run)
    for profile, count in profiles:
        yield Paragraph(_in_short(profile, count))
        yield from serving_section(profile)
        yield from ledger_blocks(profile)
        yield from _tabled(profile)
    if left_out:
        yield sentence(left_out)


def _in_short(profile: ProfileReport, elsewhere: int) -> Line:
    rank = () if profile.rank is None else (f"rank {profile.rank}",)
    names = (*(code(name) for name in (profile.worker, profile.span) if name), *rank)
    named = [piece for name in names for piece in (" · ", name)][1:]
    notes = [piece for note in profile.quality.notes for piece in (" ", message(note))]
    none = f" {elsewhere_text(elsewhere)}" if elsewhere else "" if profile.findings else " No findings."
    return (*named, ": " if named else "", *step_line(profile), f".{none}", *notes)


def _tabled(part: ProfileReport | RunReport) -> Iterator[Block]:
    large, small = words.by_size(part.findings)
    two_clocks = has_two_clocks(part)
    yield from _table_of(large, two_clocks=two_clocks)
    if small:
        yield doc.Fold((words.small_title(small),), tuple(_table_of(small, two_clocks=two_clocks)), "details")
    yield from words.extra_hint(part.findings)
    yield from words.checks(part.outcomes, "failed", "not_checked")


def _table_of(findings: Sequence[Finding], *, two_clocks: bool) -> Iterator[Block]:
    if findings:
        figures = ("costs per step", "could save")
        if two_clocks:
            figures = ("costs per recorded step", "could save without the profiler")
        yield doc.Table(("severity", "rule", "place"), figures, tuple(map(_row, findings)))
    for finding in findings:
        title = (code(finding.rule), ": ", message(finding.title))
        yield doc.Fold(title, tuple(_details(finding)), "details")


def _row(finding: Finding) -> tuple[Line, ...]:
    costs, saves = "", ""
    if finding.share is not None:
        costs = f"{Nanoseconds(finding.cost_ns)} ({Share(finding.share)})"
        if saving := finding.saving:
            saves = saving_text(saving)
    where = [words.place_line(place)[:3] for place in finding.places[:1]]
    place = tuple(piece for line in (*where, *words.more(len(finding.places) - 1)) for piece in (*line, " "))
    return ((finding.severity,), (code(finding.rule),), place, (costs,), (saves,))


def _details(finding: Finding) -> Iterator[Block]:
    yield sentence(f"{finding.message}.")
    yield words.places_listing(finding, MOST_PLACES)
    yield from (sentence(detail.text) for detail in finding.details if isinstance(detail, Note))
    yield sentence(f"{finding.fix}.", "Fix")
    yield from words.fix_hint(finding)
    yield from words.examples(finding)
    basis = f", saving {basis_text(finding.saving.basis)}" if finding.saving else ""
    yield Paragraph((f"{Count(finding.matches)}×, confidence {finding.confidence}{basis}{_replayed(finding)}.",))
