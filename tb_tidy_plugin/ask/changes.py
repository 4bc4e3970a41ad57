"""Answers about changes: comparisons, fixes and their verification."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.answers import FIXES
from tb_tidy_plugin.analysis.named import ShownNames
from tb_tidy_plugin.analysis.paths import analyse_files, analyze_path
from tb_tidy_plugin.ask import arguments
from tb_tidy_plugin.ask.folder import Folder, OutsideError
from tb_tidy_plugin.ask.pages import Head, Row, WholeAnswer
from tb_tidy_plugin.ask.quoted import TEXT_LETTERS, Quoted, quoted, quoted_lines, unquoted
from tb_tidy_plugin.ask.reports import microseconds
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.model import Comparison, ComparisonVerdict
from tb_tidy_plugin.compare.reading import asked_for, named
from tb_tidy_plugin.compare.recording import step_range
from tb_tidy_plugin.compare.steps import is_vague
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.report.fix_model import Unfixed
from tb_tidy_plugin.trace.files import is_under
from tb_tidy_plugin.verify.checkouts import folder_of
from tb_tidy_plugin.verify.model import Equality
from tb_tidy_plugin.verify.programs import ended_by_signals
from tb_tidy_plugin.verify.verify import Plan, promises_in, verified
from tb_tidy_plugin.words.errors import NotFoundError, TidyError

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.fixing import Proposal

NOTES = 4
_MOST_ROWS = 200
"""Most operators, and most kernels, of a comparison."""


class CompareHead(Head, frozen=True):
    """Step times of both sides.

    Attributes:
        ratio, low, high: candidate divided by base, with its 95 % interval, null if that says nothing.
        notes: what makes the figures doubtful.
        work: how the work per step changed, null if it did not.
        predicted_us: saving that the base promised for fixes that were made. realised_us: reduction of the step.
    """

    verdict: ComparisonVerdict
    base_us: float | None
    candidate_us: float | None
    base_steps: int
    candidate_steps: int
    predicted_us: float
    realised_us: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    notes: list[Quoted] = msgspec.field(default_factory=list)
    work: Quoted | None = None


class ChangeRow(Row, frozen=True):
    """One difference, per step: values of a `setting`, else times; null for a side without it."""

    kind: str
    name: Quoted
    state: Quoted
    base_us: float | None
    candidate_us: float | None


def compare_answer(folder: Folder, asked: arguments.CompareQuestion) -> WholeAnswer:
    """Differences between two recordings."""
    base = _side(folder, asked.base, asked.base_steps)
    candidate = _side(folder, asked.candidate, asked.candidate_steps)
    found = named(compared(base, candidate), base, candidate, ShownNames(folder.job))
    ratio = found.step_ratio
    head = CompareHead(
        verdict=found.verdict,
        base_us=_us(found.base.median_ns),
        candidate_us=_us(found.candidate.median_ns),
        base_steps=found.base.steps,
        candidate_steps=found.candidate.steps,
        predicted_us=microseconds(found.predicted_ns),
        realised_us=_us(found.realised_ns),
        ratio=round(ratio.value, 4) if ratio else None,
        low=round(ratio.low, 4) if ratio and not is_vague(ratio) else None,
        high=round(ratio.high, 4) if ratio and not is_vague(ratio) else None,
        notes=[quoted(note, 200) for note in found.notes[:NOTES]],
        work=_work_of(found),
    )
    return WholeAnswer(head, ChangeRow, list(_changes(found)))


def _side(folder: Folder, path: str, steps: str) -> Asked:
    place = folder.place(path)
    folder.traces(path)
    side = asked_for(place, folder.job, step_range(steps) if steps else None)
    return replace(side, path=os.path.relpath(place, folder.root))


def _work_of(found: Comparison) -> Quoted | None:
    if found.work is None:
        return None
    per = found.work.time_per_unit
    return quoted(f"{found.work.text}{'' if per is None else f'; time per {found.work.unit} x{per.value:.3g}'}", 200)


def _us(ns: int | None) -> float | None:
    return None if ns is None else microseconds(ns)


def _changes(found: Comparison) -> Iterator[ChangeRow]:
    for change in found.findings:
        text = f"{change.rule}: {change.message}"
        yield ChangeRow(
            "finding", quoted(text, 300), quoted(change.state), _us(change.base_ns), _us(change.candidate_ns)
        )
    for entry in found.ledger.entries if found.ledger else ():
        if entry.base_ns != entry.candidate_ns:
            yield ChangeRow("cause", quoted(entry.id), quoted(""), _us(entry.base_ns), _us(entry.candidate_ns))
    for kind, rows in (("operator", found.operators), ("kernel", found.kernels)):
        for row in rows[:_MOST_ROWS]:
            if row.base_ns != row.candidate_ns:
                name = quoted(f"{row.name} {row.shapes}".rstrip())
                yield ChangeRow(kind, name, quoted(""), _us(row.base_ns), _us(row.candidate_ns))
    for setting in found.settings:
        state = quoted(f"{setting.base or 'unknown'} -> {setting.candidate or 'unknown'}")
        yield ChangeRow("setting", quoted(setting.name), state, None, None)


class FixHead(Head, frozen=True):
    """The finding of a fix.

    Attributes:
        unfixed: why a place has no fix, or why its fix was not written; the first reasons.
        written: number of files written, in answers to `apply_fix`.
        left_out: number of fixes that were not written because they need `reviewed` or `unsafe_fixes`.
    """

    finding: str
    changes: int
    unfixed: list[Quoted] = msgspec.field(default_factory=list)
    written: int | None = None
    left_out: int = 0


class DiffRow(Row, frozen=True):
    """The change of one file; `check` says what to check before it is made, empty if nothing is left to check."""

    file: Quoted
    line: int
    safety: Quoted
    check: Quoted
    diff: Quoted


def propose_fix(folder: Folder, asked: arguments.ProposeFixQuestion) -> WholeAnswer:
    """The diffs of a finding."""
    proposals, unfixed = _proposals(folder, asked.path, asked.finding)
    return _fix(folder, asked.finding, proposals, unfixed)


def apply_fix(folder: Folder, asked: arguments.ApplyFixQuestion) -> WholeAnswer:
    """Writes the diffs of a finding, each file whole or not at all."""
    from tb_tidy_plugin.analysis.fixing import FixRequest, not_written, written

    proposals, unfixed = _proposals(folder, asked.path, asked.finding)
    wanted = FixRequest(asked.reviewed, asked.unsafe_fixes)
    done, failed = written([each for each in proposals if wanted.includes(each)])
    left = [
        not_written(each, f"It needs {wanted.lacks(each, ('reviewed', 'unsafe_fixes'))}.")
        for each in proposals
        if not wanted.includes(each)
    ]
    answer = _fix(folder, asked.finding, done, [*left, *failed, *unfixed])
    head = replace(answer.head, written=len({each.fix.file for each in done}), left_out=len(left))
    return replace(answer, head=head)


def _fix(folder: Folder, finding: str, proposals: Sequence[Proposal], unfixed: Sequence[Unfixed]) -> WholeAnswer:
    names = ShownNames(folder.job)
    shown = [each.shown(names) for each in proposals]
    head = FixHead(
        finding=unquoted(finding),
        changes=len(proposals),
        unfixed=[quoted(f"{names.of(each.file)}:{each.line}: {each.reason}", 300) for each in unfixed[:NOTES]],
    )
    rows = [
        DiffRow(
            quoted(fix.file),
            fix.line,
            quoted(fix.safety, TEXT_LETTERS),
            quoted(fix.check, TEXT_LETTERS),
            quoted_lines(fix.diff),
        )
        for fix in shown
    ]
    return WholeAnswer(head, DiffRow, rows)


def _proposals(folder: Folder, path: str, finding: str) -> tuple[list[Proposal], list[Unfixed]]:
    """The fixes of one finding, each diff once for all ranks, and the places without one."""
    if not has_libcst():
        raise TidyError("Fixes need LibCST.", "Run `pip install 'tb-tidy-plugin[fix]'`.")
    from tb_tidy_plugin.analysis.fixing import Fixer

    job, name = folder.job, unquoted(finding)
    fixer = Fixer(job)
    proposals: dict[str, Proposal] = {}
    unfixed: dict[tuple[str, int], Unfixed] = {}
    is_known = False
    for found in analyse_files(job, folder.traces(path), FIXES):
        if found.answer is None:
            continue
        report = found.answer.report
        chosen = [each for each in report.findings if each.id == name]
        is_known |= bool(chosen)
        only = msgspec.structs.replace(report, findings=chosen)
        for each in fixer.proposals(msgspec.structs.replace(found.answer, report=only)):
            if isinstance(each, Unfixed):
                unfixed.setdefault((each.file, each.line), each)
            else:
                proposals.setdefault(each.fix.diff, each)
    if not is_known:
        advice = "Ask `findings` for ids, with the same `path`. Findings about several ranks have no fix in code."
        raise NotFoundError("No trace has this finding.", advice)
    return list(proposals.values()), list(unfixed.values())


class VerifyHead(Head, frozen=True):
    """Two programs, run in turns: `ratio` is the step time after the change divided by that before."""

    verdict: str
    ratio: float
    low: float
    high: float
    results: Equality
    reason: Quoted
    before_us: float
    after_us: float
    saved: float
    promised: float | None


class PromiseRow(Row, frozen=True):
    """The saving that a fixed finding promised, as a share of the step, 0 to 1."""

    finding: str
    rule: str
    message: Quoted
    expected: float
    low: float
    high: float


def verify_answer(folder: Folder, asked: arguments.VerifyQuestion) -> WholeAnswer:
    """Runs a program before and after a change."""
    if os.name == "nt":
        raise TidyError("Programs cannot be verified on Windows.", "Use Linux, macOS or WSL.")
    for version in (asked.before, asked.after):
        _hold_inside(folder, version)
    with ended_by_signals(), folder_of(asked.before) as before, folder_of(asked.after) as after:
        promises = []
        if asked.promise is not None:
            job = replace(folder.job, source_roots=(before, *folder.job.source_roots), undated=(before,))
            promises = promises_in(analyze_path(folder.place(asked.promise), job), after)
        names, plan = (asked.before, asked.after), Plan(rounds=asked.rounds)
        found = verified(names, (before, after), asked.command, plan, promises)
    head = VerifyHead(
        verdict=found.verdict,
        ratio=round(found.ratio, 4),
        low=round(found.low, 4),
        high=round(found.high, 4),
        results=found.results,
        reason=quoted(found.reason, TEXT_LETTERS),
        before_us=microseconds(found.before.step_ns),
        after_us=microseconds(found.after.step_ns),
        saved=round(found.saved, 4),
        promised=round(found.promised, 4) if found.promised is not None else None,
    )
    rows = [
        PromiseRow(
            each.finding,
            each.rule,
            quoted(each.message, 300),
            *(round(part, 4) for part in (each.expected, each.low, each.high)),
        )
        for each in found.promises
    ]
    return WholeAnswer(head, PromiseRow, rows)


def _hold_inside(folder: Folder, version: str) -> None:
    """Raises OutsideError if a version is a folder other than the served one, those below it, and the current one."""
    if not Path(version).is_dir():
        return
    real = os.path.realpath(version)
    if not any(is_under(real, os.path.realpath(root)) for root in (folder.root, Path.cwd())):
        raise OutsideError(f"`{version}` leads out of the served folder.", "Give a folder below it, or a revision.")
