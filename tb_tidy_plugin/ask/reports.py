"""Answers about recordings: traces, the ledger of a step, findings and their evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from tb_tidy_plugin.analysis.answers import FIXES, Answer, FixesAnswer, Question
from tb_tidy_plugin.analysis.findings import order_of
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.paths import analyse_files
from tb_tidy_plugin.analysis.runs import STATUSES, run_report
from tb_tidy_plugin.ask import arguments
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import Head, Row, WholeAnswer
from tb_tidy_plugin.ask.quoted import TEXT_LETTERS, Quoted, quoted, quoted_lines, unquoted
from tb_tidy_plugin.compare.entries import shared_out
from tb_tidy_plugin.ledger.advice import BANNERS
from tb_tidy_plugin.ledger.model import Certainty, Entry, Ledger, Owner, Proof, RecordingKind
from tb_tidy_plugin.report.model import Finding, Note, Outcome, Place, Problem, RunReport
from tb_tidy_plugin.sources.lookup import FoundSources
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.remote import size_of
from tb_tidy_plugin.words.errors import NotFoundError, TraceError
from tb_tidy_plugin.words.vocabulary import Confidence

_AROUND = 3
"""Lines of source before and after a place."""

_PLACES = 5
_SOURCES = 2
PROBLEMS = 3

_A = TypeVar("_A", bound=Answer)
_NUMBER_AT_END = re.compile(r"[0-9]+$")


def microseconds(ns: int) -> float:
    """Converts ns to µs, rounded to a tenth."""
    return round(ns / 1000, 1)


class RunsHead(Head, frozen=True):
    """Number of traces."""

    traces: int


class TraceRow(Row, frozen=True):
    """One trace file; other questions name it by `trace`."""

    trace: str
    run: Quoted
    worker: Quoted
    span: Quoted
    file: Quoted
    kilobytes: int


def runs(folder: Folder, asked: arguments.RunsQuestion) -> WholeAnswer:
    """The traces, without reading them."""
    files = folder.traces(asked.path)
    rows = [
        TraceRow(
            folder.id_of(file),
            quoted(file.run),
            quoted(file.worker),
            quoted(file.span),
            quoted(folder.name_of(file), TEXT_LETTERS),
            size_of(file.path) // 1000,
        )
        for file in files
    ]
    return WholeAnswer(RunsHead(traces=len(files)), TraceRow, rows)


def answer_of(folder: Folder, file: TraceFile, question: Question[_A]) -> _A:
    """The answer about one trace.

    Raises:
        TraceError: nothing in it can be used.
    """
    (found,) = analyse_files(folder.job, [file], question)
    if found.answer is None:
        assert found.problem is not None
        raise TraceError(found.problem.error, found.problem.advice)
    return found.answer


class LedgerHead(Head, frozen=True):
    """The account that the rows add up to.

    Attributes:
        trace: its id.
        recording: the kind of time that was recorded; only `steady` shows how the job runs. banner: the same in words.
        steps: number of steps. step_source: their source.
        step_us: what the rows add up to: the mean step; for a single step, its length.
        median_us: the median step, as `check` prints it; null for a single step.
        step: its name.
        unnamed_share: share of the time that no row explains.
    """

    trace: str
    recording: RecordingKind
    steps: int
    step_source: str
    step_us: float
    unnamed_share: float
    median_us: float | None = None
    banner: Quoted | None = None
    step: Quoted | None = None


class EntryRow(Row, frozen=True):
    """One cause of time: of the step asked for, else of the mean step."""

    entry: str
    us_per_step: float
    share: float
    owner: Quoted
    proof: Proof
    confidence: Certainty
    finding: str
    advice: Quoted


def ledger(folder: Folder, asked: arguments.LedgerQuestion) -> WholeAnswer:
    """The account of a step."""
    file = folder.trace(asked.path)
    report = answer_of(folder, file, FIXES).report
    found = renamed(report.ledger, ShownNames(folder.job).beside(report.path))
    if not found.entries:
        raise NotFoundError(BANNERS["empty"], "Ask `operators` or `kernels`.")
    at = _step_called(found, unquoted(asked.step)) if asked.step else None
    length_ns = sum(entry.ns_total for entry in found.entries)
    of_entry = _times_ns(found, at)
    head = LedgerHead(
        trace=folder.id_of(file),
        recording=found.recording,
        steps=len(found.steps),
        step_source=found.step_source,
        step_us=microseconds(sum(of_entry.values())),
        median_us=microseconds(found.step_ns.median) if at is None else None,
        unnamed_share=_share(found.unnamed_ns, length_ns),
        banner=quoted(found.banner, TEXT_LETTERS) if found.banner else None,
        step=quoted(found.steps[at].name) if at is not None else None,
    )
    entries = sorted(found.entries, key=lambda each: (-of_entry[each.id], each.id))
    step_ns = sum(of_entry.values())
    return WholeAnswer(head, EntryRow, [_entry_row(each, of_entry[each.id], step_ns) for each in entries])


def _times_ns(found: Ledger, at: int | None) -> dict[str, int]:
    """The entries of one step or of the mean step, by id, in whole tenths of a µs: printed rows add up to it."""
    totals = {each.id: each.ns_total if at is None else each.ns_by_step[at] for each in found.entries}
    return {
        each: 100 * tenths for each, tenths in shared_out(totals, 100 * (found.step_ns.n if at is None else 1)).items()
    }


def _step_called(found: Ledger, name: str) -> int:
    """The position of the step of this name or number."""
    for at, step in enumerate(found.steps):
        number = _NUMBER_AT_END.search(step.name)
        if name == step.name or name == (number[0] if number else str(at + 1)):
            return at
    raise NotFoundError("This step does not exist.", f"{len(found.steps)} steps were recorded. Ask without `step`.")


def _entry_row(entry: Entry, ns: int, of_ns: int) -> EntryRow:
    return EntryRow(
        entry.id,
        microseconds(ns),
        _share(ns, of_ns),
        quoted(_owner(entry.owner)),
        entry.proof,
        entry.confidence,
        entry.finding_id or "",
        quoted(entry.advice or entry.nothing_to_fix or "", 300),
    )


def _owner(owner: Owner) -> str:
    """The names of an owner, ending with the line of the user's own code."""
    own = f"{owner.own.function} ({owner.own.file}:{owner.own.line})" if owner.own else None
    names = (owner.operator, owner.kernel, owner.mark, owner.neighbours, own)
    return ", ".join(dict.fromkeys(name for name in names if name))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


class _Located(msgspec.Struct, frozen=True):
    """A finding where it saves most, and the number of traces of its run with it; None if it is about several ranks."""

    finding: Finding
    file: TraceFile | None
    answer: FixesAnswer | None
    traces: int

    def named(self, folder: Folder) -> Callable[[str], str]:
        """Names of the files in its recording."""
        names = ShownNames(folder.job)
        return names.of if self.file is None else names.beside(str(self.file.path))


class _Reported(msgspec.Struct, frozen=True):
    """One run with its findings."""

    report: RunReport
    findings: list[_Located]
    problems: list[tuple[TraceFile, Problem]]


def _reported(folder: Folder, path: str) -> list[_Reported]:
    job, found = folder.job, list[_Reported]()
    files = folder.traces(path)
    for run, group in groupby(analyse_files(job, files, FIXES), key=lambda each: each.file.run):
        of_run = list(group)
        answers = [(each.file, each.answer) for each in of_run if each.answer is not None]
        summaries = [summary for _, answer in answers for summary in answer.summaries]
        report = run_report(run, [answer.report for _, answer in answers], summaries, job.of_runs, job.ignores)
        located: dict[str, _Located] = {}
        for finding in report.findings:
            located[finding.id] = _Located(finding, None, None, len(finding.ranks))
        for file, answer in answers:
            for finding in answer.report.findings:
                known = located.get(finding.id)
                here = _Located(finding, file, answer, 1 + (known.traces if known else 0))
                if known is not None and order_of(known.finding) <= order_of(finding):
                    here = _Located(known.finding, known.file, known.answer, here.traces)
                located[finding.id] = here
        problems = [(each.file, each.problem) for each in of_run if each.problem is not None]
        ranked = sorted(located.values(), key=lambda each: order_of(each.finding))
        found.append(_Reported(report, ranked, problems))
    return found


class Unchecked(msgspec.Struct, frozen=True):
    """Why a number of rules could not be checked; `rules` names the first of them."""

    reason: Quoted
    count: int
    rules: list[str]


def _unchecked(said: Mapping[str, Outcome]) -> list[Unchecked]:
    """The reasons of all rules that could not be checked, that of most rules first."""
    rules: dict[str, list[str]] = {}
    for rule, each in sorted(said.items()):
        if each.status in {"not_checked", "failed"}:
            rules.setdefault(each.reason or "", []).append(rule)
    found = sorted(rules.items(), key=lambda each: -len(each[1]))
    return [Unchecked(quoted(reason, TEXT_LETTERS), len(of), of[:_MOST_NAMED]) for reason, of in found[:PROBLEMS]]


_MOST_NAMED = 8


class FindingsHead(Head, frozen=True):
    """Summary of the checks.

    Attributes:
        traces: number of traces. problems: the first of those that could not be read, or not completely.
        step_us: the step of the first trace that savings refer to, null without steps: the median step that was not
            recorded, if it is known and shorter, else the median recorded one.
        recorded_us: the median recorded step of the first trace, which costs and `share` refer to, as `median_us` of
            `ledger`; null without steps.
        rules: number of rules that found something, found nothing, could not be checked, or failed.
        not_checked: rules that could not be checked, by what is missing; most rules first.
    """

    traces: int
    step_us: float | None
    rules: dict[str, int]
    recorded_us: float | None = None
    not_checked: list[Unchecked] = msgspec.field(default_factory=list)
    problems: list[Quoted] = msgspec.field(default_factory=list)


class FindingRow(Row, frozen=True):
    """One finding; savings are per step, with both ends of the estimate, null without an estimate."""

    finding: str
    rule: str
    title: Quoted
    saving_us: float | None
    low_us: float | None
    high_us: float | None
    share: float | None
    confidence: Confidence
    place: Quoted
    trace: str
    traces: int


def findings_answer(folder: Folder, asked: arguments.FindingsQuestion) -> WholeAnswer:
    """The findings, largest saving first."""
    found = _reported(folder, asked.path)
    profiles = [profile for run in found for profile in run.report.profiles]
    outcomes = [outcome for run in found for outcome in run.report.outcomes]
    outcomes += [outcome for profile in profiles for outcome in profile.outcomes]
    said = {each.rule: each for each in sorted(outcomes, key=lambda each: STATUSES.index(each.status))}
    problems = [problem for run in found for problem in run.problems]
    counts: dict[str, int] = {
        status: sum(each.status == status for each in said.values()) for status in reversed(STATUSES)
    }
    recorded = profiles[0].ledger if profiles else None
    has_steps = recorded is not None and bool(recorded.entries) and recorded.step_source != "whole_trace"
    head = FindingsHead(
        traces=len(profiles),
        step_us=microseconds(profiles[0].step_ns) if profiles and profiles[0].step_ns else None,
        rules=counts,
        recorded_us=microseconds(recorded.step_ns.median) if recorded is not None and has_steps else None,
        not_checked=_unchecked(said),
        problems=[quoted(f"{folder.id_of(file)}: {each.error}") for file, each in problems[:PROBLEMS]],
    )
    located = [each for run in found for each in run.findings if asked.rule in {"", each.finding.rule}]
    located.sort(key=lambda each: order_of(each.finding))
    return WholeAnswer(head, FindingRow, [_finding_row(folder, each) for each in located])


def _finding_row(folder: Folder, located: _Located) -> FindingRow:
    finding = renamed(located.finding, located.named(folder))
    saving = finding.saving
    return FindingRow(
        finding.id,
        finding.rule,
        quoted(finding.title),
        microseconds(saving.expected_ns) if saving else None,
        microseconds(saving.low_ns) if saving else None,
        microseconds(saving.high_ns) if saving else None,
        round(finding.share, 4) if finding.share is not None else None,
        finding.confidence,
        quoted(_place(finding.places[0]) if finding.places else ""),
        folder.id_of(located.file) if located.file else "",
        located.traces,
    )


def _place(place: Place) -> str:
    return f"{place.file}:{place.line} {place.function}"


class FindingHead(Head, frozen=True):
    """A finding in figures, per step.

    Attributes:
        share: of the step, null without steps.
        basis: how the saving is known.
        known_by: how operators of replayed graphs are known.
        ranks: ranks that cause it, for findings about several ranks.
    """

    finding: str
    rule: str
    title: Quoted
    cost_us: float
    share: float | None
    matches_per_step: float
    confidence: Confidence
    saving_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    speedup: float | None = None
    basis: list[str] = msgspec.field(default_factory=list)
    known_by: str | None = None
    ranks: list[int] = msgspec.field(default_factory=list)
    trace: str = ""


class PartRow(Row, frozen=True):
    """One part: `message`, `fix`, `evidence`, `place` or `source`, or a heading of a rule's page."""

    part: str
    text: str


def finding(folder: Folder, asked: arguments.FindingQuestion) -> WholeAnswer:
    """One finding with evidence and source."""
    located = _located(folder, asked.path, asked.finding)
    found, saving = located.finding, located.finding.saving
    head = FindingHead(
        finding=found.id,
        rule=found.rule,
        title=quoted(found.title),
        cost_us=microseconds(found.cost_ns),
        share=round(found.share, 4) if found.share is not None else None,
        matches_per_step=round(found.matches_per_step, 2),
        confidence=found.confidence,
        saving_us=microseconds(saving.expected_ns) if saving else None,
        low_us=microseconds(saving.low_ns) if saving else None,
        high_us=microseconds(saving.high_ns) if saving else None,
        speedup=round(saving.speedup, 3) if saving and saving.speedup is not None else None,
        basis=list(saving.basis) if saving else [],
        known_by=found.known_by,
        ranks=found.ranks,
        trace=folder.id_of(located.file) if located.file else "",
    )
    return WholeAnswer(head, PartRow, list(_parts(folder, located)))


def _located(folder: Folder, path: str, name: str) -> _Located:
    for run in _reported(folder, path):
        for each in run.findings:
            if each.finding.id == unquoted(name):
                return each
    raise NotFoundError("This finding does not exist.", "Ask `findings` for their ids, with the same `path`.")


def _parts(folder: Folder, located: _Located) -> Iterator[PartRow]:
    named = located.named(folder)
    found = renamed(located.finding, named)
    yield PartRow("message", quoted(found.message, TEXT_LETTERS))
    yield PartRow("fix", quoted(found.fix, TEXT_LETTERS))
    for detail in found.details:
        if isinstance(detail, Note):
            yield PartRow("evidence", quoted(detail.text, TEXT_LETTERS))
    for place in found.places[:_PLACES]:
        known = f"{place.precision}, {place.matches} matches, {microseconds(place.duration_ns)} µs per step"
        yield PartRow("place", quoted(f"{_place(place)} ({known})", TEXT_LETTERS))
    if located.file is not None and located.answer is not None:
        sources = FoundSources(located.file, folder.job.source_roots, located.answer.captured)
        for place in located.finding.places[:_SOURCES]:
            if place.precision != "definition" and (lines := sources(place.file)):
                yield PartRow("source", quoted_lines(_around(renamed(place, named), lines), TEXT_LETTERS))


def _around(place: Place, lines: Sequence[str]) -> str:
    """The lines of a place and those around it, numbered; its own lines begin with `>`."""
    first, last = max(place.line - _AROUND, 1), min(place.end_line + _AROUND, len(lines))
    shown = [
        f"{'>' if place.line <= number <= place.end_line else ' '}{number} {lines[number - 1]}"
        for number in range(first, last + 1)
    ]
    return "\n".join([f"{place.file}:", *shown])
