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
from tb_tidy_plugin.ask.pages import WholeAnswer, columns, if_known, microseconds, picked
from tb_tidy_plugin.ask.quoted import TEXT_LETTERS, Quoted, quoted, quoted_lines, unquoted
from tb_tidy_plugin.compare.entries import shared_out
from tb_tidy_plugin.ledger.advice import BANNERS
from tb_tidy_plugin.ledger.model import Entry, Ledger
from tb_tidy_plugin.report.model import Finding, Note, Outcome, Place, Problem, RunReport
from tb_tidy_plugin.sources.lookup import FoundSources
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.remote import size_of
from tb_tidy_plugin.words.errors import NotFoundError, TraceError

_AROUND = 3
"""Lines of source before and after a place."""

_PLACES = 5
_SOURCES = 2
PROBLEMS = 3

TRACE_COLUMNS = columns(TraceFile, "trace= run worker span file= kilobytes=")
ENTRY_COLUMNS = columns(Entry, "entry=id us_per_step= share= owner= proof confidence finding= advice=")
"""One cause of time: of the step asked for, else of the mean step."""

FINDING_COLUMNS = columns(
    Finding,
    "finding=id rule title saving_us=saving.expected_ns low_us=saving.low_ns high_us=saving.high_ns share confidence "
    "place= trace= traces=",
)
"""Savings are per step, with both ends of the estimate, null without one."""

FINDING_FIGURES = columns(Finding, "finding=id rule title cost_us=cost_ns share matches_per_step confidence")
MORE_FIGURES = columns(
    Finding,
    "saving_us=saving.expected_ns low_us=saving.low_ns high_us=saving.high_ns speedup=saving.speedup "
    "basis=saving.basis known_by ranks trace=",
)
PART_COLUMNS = {"part": "", "text": ""}
"""A part of a finding is its `message`, `fix`, `evidence`, a `place` or `source`; of a rule, a heading of its page."""

_A = TypeVar("_A", bound=Answer)
_NUMBER_AT_END = re.compile(r"[0-9]+$")


def runs(folder: Folder, asked: arguments.RunsQuestion) -> WholeAnswer:
    """The traces, without reading them."""
    files = folder.traces(asked.path)
    rows = [
        picked(
            TRACE_COLUMNS,
            file,
            trace=folder.id_of(file),
            file=quoted(folder.name_of(file), TEXT_LETTERS),
            kilobytes=size_of(file.path) // 1000,
        )
        for file in files
    ]
    return WholeAnswer({"traces": len(files)}, TRACE_COLUMNS, rows)


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
    step_ns = sum(of_entry.values())
    head = {
        "trace": folder.id_of(file),
        "recording": found.recording,
        "steps": len(found.steps),
        "step_source": found.step_source,
        "step_us": microseconds(step_ns),
        "unnamed_share": _share(found.unnamed_ns, length_ns),
    } | if_known(
        median_us=microseconds(found.step_ns.median) if at is None else None,
        banner=quoted(found.banner, TEXT_LETTERS) if found.banner else None,
        step=quoted(found.steps[at].name) if at is not None else None,
    )
    entries = sorted(found.entries, key=lambda each: (-of_entry[each.id], each.id))
    return WholeAnswer(head, ENTRY_COLUMNS, [_entry_row(each, of_entry[each.id], step_ns) for each in entries])


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


def _entry_row(entry: Entry, ns: int, of_ns: int) -> dict[str, object]:
    return picked(
        ENTRY_COLUMNS,
        entry,
        us_per_step=microseconds(ns),
        share=_share(ns, of_ns),
        owner=quoted(entry.owner.name),
        finding=entry.finding_id or "",
        advice=quoted(entry.advice or entry.nothing_to_fix or "", 300),
    )


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
    head = {
        "traces": len(profiles),
        "step_us": microseconds(profiles[0].step_ns or None) if profiles else None,
        "rules": counts,
    } | if_known(
        recorded_us=microseconds(recorded.step_ns.median) if recorded is not None and has_steps else None,
        not_checked=_unchecked(said),
        problems=[quoted(f"{folder.id_of(file)}: {each.error}") for file, each in problems[:PROBLEMS]],
    )
    located = [each for run in found for each in run.findings if asked.rule in {"", each.finding.rule}]
    located.sort(key=lambda each: order_of(each.finding))
    return WholeAnswer(head, FINDING_COLUMNS, [_finding_row(folder, each) for each in located])


def _finding_row(folder: Folder, located: _Located) -> dict[str, object]:
    finding = renamed(located.finding, located.named(folder))
    return picked(
        FINDING_COLUMNS,
        finding,
        place=quoted(_place(finding.places[0]) if finding.places else ""),
        trace=folder.id_of(located.file) if located.file else "",
        traces=located.traces,
    )


def _place(place: Place) -> str:
    return f"{place.file}:{place.line} {place.function}"


def finding(folder: Folder, asked: arguments.FindingQuestion) -> WholeAnswer:
    """One finding with evidence and source."""
    located = _located(folder, asked.path, asked.finding)
    head = picked(FINDING_FIGURES, located.finding)
    head |= if_known(**picked(MORE_FIGURES, located.finding, trace=folder.id_of(located.file) if located.file else ""))
    return WholeAnswer(head, PART_COLUMNS, list(_parts(folder, located)))


def _located(folder: Folder, path: str, name: str) -> _Located:
    for run in _reported(folder, path):
        for each in run.findings:
            if each.finding.id == unquoted(name):
                return each
    raise NotFoundError("This finding does not exist.", "Ask `findings` for their ids, with the same `path`.")


def _parts(folder: Folder, located: _Located) -> Iterator[dict[str, object]]:
    named = located.named(folder)
    found = renamed(located.finding, named)
    yield part_row("message", quoted(found.message, TEXT_LETTERS))
    yield part_row("fix", quoted(found.fix, TEXT_LETTERS))
    for detail in found.details:
        if isinstance(detail, Note):
            yield part_row("evidence", quoted(detail.text, TEXT_LETTERS))
    for place in found.places[:_PLACES]:
        known = f"{place.precision}, {place.matches} matches, {microseconds(place.duration_ns)} µs per step"
        yield part_row("place", quoted(f"{_place(place)} ({known})", TEXT_LETTERS))
    if located.file is not None and located.answer is not None:
        sources = FoundSources(located.file, folder.job.source_roots, located.answer.captured)
        for place in located.finding.places[:_SOURCES]:
            if place.precision != "definition" and (lines := sources(place.file)):
                yield part_row("source", quoted_lines(_around(renamed(place, named), lines), TEXT_LETTERS))


def part_row(part: str, text: str) -> dict[str, object]:
    """One part of a finding or of a rule's page; `text` is quoted if it is of a recording."""
    return {"part": part, "text": text}


def _around(place: Place, lines: Sequence[str]) -> str:
    """The lines of a place and those around it, numbered; its own lines begin with `>`."""
    first, last = max(place.line - _AROUND, 1), min(place.end_line + _AROUND, len(lines))
    shown = [
        f"{'>' if place.line <= number <= place.end_line else ' '}{number} {lines[number - 1]}"
        for number in range(first, last + 1)
    ]
    return "\n".join([f"{place.file}:", *shown])
