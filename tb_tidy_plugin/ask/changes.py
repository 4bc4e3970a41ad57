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
from tb_tidy_plugin.ask.pages import WholeAnswer, columns, if_known, picked
from tb_tidy_plugin.ask.quoted import TEXT_LETTERS, Quoted, quoted, quoted_lines, unquoted
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.model import Comparison, OperatorChange, Ratio
from tb_tidy_plugin.compare.reading import asked_for, named
from tb_tidy_plugin.compare.recording import step_range
from tb_tidy_plugin.compare.steps import is_vague
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.report.code_model import CodeFix
from tb_tidy_plugin.report.fix_model import Unfixed
from tb_tidy_plugin.trace.files import is_under
from tb_tidy_plugin.verify.checkouts import folder_of
from tb_tidy_plugin.verify.model import Kept, Verification
from tb_tidy_plugin.verify.programs import ended_by_signals
from tb_tidy_plugin.verify.verify import Plan, promises_in, verified
from tb_tidy_plugin.words.errors import NotFoundError, TidyError

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.fixing import Proposal

NOTES = 4
_MOST_ROWS = 200
"""Most operators, and most kernels, of a comparison."""

COMPARISON_FIGURES = columns(
    Comparison,
    "verdict base_us=base.median_ns candidate_us=candidate.median_ns base_steps=base.steps "
    "candidate_steps=candidate.steps predicted_us=predicted_ns realised_us=realised_ns",
)
RATIO = columns(Ratio, "ratio=value")
RATIO_WITH_ENDS = columns(Ratio, "ratio=value low high")
CHANGE_COLUMNS = columns(OperatorChange, "kind= name= state= base_us=base_ns candidate_us=candidate_ns")
"""One difference, per step: values of a `setting`, else times; null for a side without it."""

DIFF_COLUMNS = columns(CodeFix, "file line safety= check= diff=")
VERIFICATION_FIGURES = columns(
    Verification,
    "verdict ratio low high results reason= before_us=before.step_ns after_us=after.step_ns saved promised",
)
PROMISE_COLUMNS = columns(Kept, "finding rule message= expected low high")


def compare_answer(folder: Folder, asked: arguments.CompareQuestion) -> WholeAnswer:
    """Differences between two recordings."""
    base = _side(folder, asked.base, asked.base_steps)
    candidate = _side(folder, asked.candidate, asked.candidate_steps)
    found = named(compared(base, candidate), base, candidate, ShownNames(folder.job))
    ratio = found.step_ratio
    head = picked(COMPARISON_FIGURES, found)
    if ratio is not None:
        head |= picked(RATIO if is_vague(ratio) else RATIO_WITH_ENDS, ratio)
    head |= if_known(notes=[quoted(note, 200) for note in found.notes[:NOTES]], work=_work_of(found))
    return WholeAnswer(head, CHANGE_COLUMNS, list(_changes(found)))


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


def _changes(found: Comparison) -> Iterator[dict[str, object]]:
    for change in found.findings:
        text = quoted(f"{change.rule}: {change.message}", 300)
        yield picked(CHANGE_COLUMNS, change, kind="finding", name=text, state=quoted(change.state))
    for entry in found.ledger.entries if found.ledger else ():
        if entry.base_ns != entry.candidate_ns:
            yield picked(CHANGE_COLUMNS, entry, kind="cause", name=quoted(entry.id), state=quoted(""))
    for kind, rows in (("operator", found.operators), ("kernel", found.kernels)):
        for row in rows[:_MOST_ROWS]:
            if row.base_ns != row.candidate_ns:
                name = quoted(f"{row.name} {row.shapes}".rstrip())
                yield picked(CHANGE_COLUMNS, row, kind=kind, name=name, state=quoted(""))
    for setting in found.settings:
        state = quoted(f"{setting.base or 'unknown'} -> {setting.candidate or 'unknown'}")
        yield picked(CHANGE_COLUMNS, None, kind="setting", name=quoted(setting.name), state=state)


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
    head = {**answer.head, "written": len({each.fix.file for each in done})} | if_known(left_out=len(left) or None)
    return replace(answer, head=head)


def _fix(folder: Folder, finding: str, proposals: Sequence[Proposal], unfixed: Sequence[Unfixed]) -> WholeAnswer:
    names = ShownNames(folder.job)
    shown = [each.shown(names) for each in proposals]
    reasons = [quoted(f"{names.of(each.file)}:{each.line}: {each.reason}", 300) for each in unfixed[:NOTES]]
    head = {"finding": unquoted(finding), "changes": len(proposals)} | if_known(unfixed=reasons)
    rows = [
        picked(
            DIFF_COLUMNS,
            fix,
            safety=quoted(fix.safety, TEXT_LETTERS),
            check=quoted(fix.check, TEXT_LETTERS),
            diff=quoted_lines(fix.diff),
        )
        for fix in shown
    ]
    return WholeAnswer(head, DIFF_COLUMNS, rows)


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
    head = picked(VERIFICATION_FIGURES, found, reason=quoted(found.reason, TEXT_LETTERS))
    rows = [picked(PROMISE_COLUMNS, each, message=quoted(each.message, 300)) for each in found.promises]
    return WholeAnswer(head, PROMISE_COLUMNS, rows)


def _hold_inside(folder: Folder, version: str) -> None:
    """Raises OutsideError if a version is a folder other than the served one, those below it, and the current one."""
    if not Path(version).is_dir():
        return
    real = os.path.realpath(version)
    if not any(is_under(real, os.path.realpath(root)) for root in (folder.root, Path.cwd())):
        raise OutsideError(f"`{version}` leads out of the served folder.", "Give a folder below it, or a revision.")
