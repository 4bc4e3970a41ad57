"""From findings to changes of the user's own files, made only if the file is as recorded, and written whole.

Needs LibCST, which the extra `fix` installs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.analysis.answers import FixesAnswer
from tb_tidy_plugin.analysis.checker import Failed, unless_broken
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames
from tb_tidy_plugin.fixes.change import (
    SAME_RESULTS,
    SAME_UP_TO_ROUNDING,
    Change,
    Splice,
    Spot,
    Unfixable,
    collide,
    spliced,
)
from tb_tidy_plugin.fixes.python_text import LINE_END, nodes_in
from tb_tidy_plugin.report.code_model import CodeFix, Replacement
from tb_tidy_plugin.report.fix_model import Unfixed
from tb_tidy_plugin.report.model import Finding, Place
from tb_tidy_plugin.sources.align import LONGEST_TEXT
from tb_tidy_plugin.sources.as_recorded import contradiction
from tb_tidy_plugin.sources.files import BOM, OwnFile, RecordedFile, Unavailable, lines_of, own_file
from tb_tidy_plugin.system.files import NotReplaceableError, replace_whole
from tb_tidy_plugin.trace.files import is_under
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.recipe import Recipe

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Code

NOT_AS_RECORDED = "The file was changed since the recording. Record again."
CHANGED_LATER = (
    "The file was written after the recording, which does not hold its text. Record again; "
    "`tb_tidy_plugin.capture` stores the text."
)


class Proposal(msgspec.Struct, frozen=True):
    """A fix, the change, the text to change, and its file; if the file is unavailable, the text is the captured one."""

    fix: CodeFix
    file: OwnFile | Unavailable
    text: str
    change: Change

    @property
    def is_safe(self) -> bool:
        """True if the changed program computes the same, with nothing left to check."""
        return self.change.safety == SAME_RESULTS and not self.change.check

    @property
    def is_unsafe(self) -> bool:
        """True if the changed program behaves in another way."""
        return self.change.safety not in (SAME_RESULTS, SAME_UP_TO_ROUNDING)

    def shown(self, names: ShownNames) -> CodeFix:
        """The fix with a name of the file for readers, and a diff that `git apply` takes in the repository's root."""
        own = self.file.path if isinstance(self.file, OwnFile) else None
        name = names.of(self.fix.file) if own is None else names.of_path(own, self.fix.file)
        return msgspec.structs.replace(self.fix, file=name, diff=self.patch(name, ()))

    def patch(self, name: str, earlier: Collection[Splice]) -> str:
        """The change as a patch of the file with `earlier` changes; empty if these make it already."""
        mark = BOM.decode() if isinstance(self.file, OwnFile) and self.file.content.startswith(BOM) else ""
        before, after = (spliced(self.text, splices) for splices in (earlier, {*earlier, *self.change.splices}))
        return _patch(name, mark + before, mark + after)


class FixRequest(msgspec.Struct, frozen=True):
    """Fixes that may be written: also those that need a review, and those that change behaviour."""

    reviewed: bool = False
    unsafe: bool = False

    def includes(self, proposal: Proposal) -> bool:
        """True if a fix may be written."""
        return (self.reviewed or not proposal.change.check) and (self.unsafe or not proposal.is_unsafe)

    def lacks(self, proposal: Proposal, options: tuple[str, str]) -> str:
        """What a fix that may not be written needs, as the end of a sentence; `options` name both attributes."""
        needs = [f"a review (`{options[0]}`)"] if proposal.change.check and not self.reviewed else []
        if proposal.is_unsafe and not self.unsafe:
            needs.append(f"your consent to a change of behaviour (`{options[1]}`)")
        return " and ".join(needs)


def patches(proposals: Sequence[Proposal], names: ShownNames) -> list[str | None]:
    """The fixes as patches that apply one after the other; empty for one that an earlier one makes as well.

    None for a fix that changes the same characters as an earlier one.
    """
    earlier: dict[str, set[Splice]] = {}
    found: list[str | None] = []
    for each in proposals:
        fix = each.shown(names)
        made = earlier.setdefault(fix.file, set())
        if collide([*{*made, *each.change.splices}]):
            found.append(None)
            continue
        found.append(each.patch(fix.file, made))
        made.update(each.change.splices)
    return found


class Fixer(msgspec.Struct, frozen=True):
    """Makes the fixes of findings; reads each file once.

    Attributes:
        job: settings of the analysis: its rules make the changes, in files below its source roots.
        most_nodes: limit for the syntax trees of all files together; None for no limit.
    """

    job: Job
    most_nodes: int | None = None
    _files: dict[str, OwnFile | Unavailable] = msgspec.field(default_factory=dict)
    _codes: dict[str, Code | Unfixable] = msgspec.field(default_factory=dict)
    _differences: dict[tuple[str, RecordedFile], str] = msgspec.field(default_factory=dict)

    def proposals(self, answer: FixesAnswer) -> Iterator[Proposal | Unfixed]:
        """A fix, or the reason why there is none, for each place of each finding whose rule can change code."""
        made: set[tuple[str, str, tuple[Splice, ...]]] = set()
        for finding in answer.report.findings:
            facts = answer.facts.get(finding.id)
            for place in finding.places if facts is not None else ():
                assert facts is not None
                found = self.proposal(finding, place, facts, answer.known(place.file))
                if isinstance(found, Unfixed):
                    yield found
                    continue
                key = (finding.id, place.file, found.change.splices)
                if key not in made:
                    made.add(key)
                    yield found

    def proposal(self, finding: Finding, place: Place, facts: Recipe, known: str | RecordedFile) -> Proposal | Unfixed:
        """The fix of one place, or the reason why there is none.

        `known` is the text of its file as it ran, else what the recording says about it.
        """
        try:
            return self._proposal(finding, place, facts, known)
        except Unfixable as reason:
            return _unfixed(finding, place, str(reason))

    def state(self, name: str) -> str:
        """A text that changes with the content of a file, or with the reason why it is unavailable."""
        file = self._file(name)
        if isinstance(file, Unavailable):
            return f"unavailable: {file.reason}"
        return f"{file.path} of {file.changed_s if self._is_dated(file) else ''}: {file.text}"

    def _proposal(self, finding: Finding, place: Place, facts: Recipe, known: str | RecordedFile) -> Proposal:
        file = self._file(place.file)
        if isinstance(file, Unavailable):
            if isinstance(known, RecordedFile):
                raise Unfixable(file.reason)
            text = known
        else:
            self._hold_as_recorded(file, place, known)
            text = file.text
        code = self._code(text)
        if (rule := self.job.rule_called(finding.rule)) is None:
            raise Unfixable("The rule was not checked.")
        from tb_tidy_plugin.rulekit.recipe import evidence_of

        spot = Spot(range(place.line, place.end_line + 1), place.function.rpartition(".")[2])

        def change_of() -> Change | Unfixable:
            try:
                return type(rule)(facts.settings).fixer(code, spot, evidence_of(facts, type(rule)))
            except Unfixable as reason:
                return reason

        change = unless_broken(rule, change_of)
        if isinstance(change, Failed):
            raise Unfixable(f"The rule failed: {change.error}")
        if isinstance(change, Unfixable):
            raise change
        changed = spliced(text, change.splices)
        if collide(change.splices) or changed == text:
            raise Unfixable("The change does not match the file.")
        nodes_in(changed)  # even a user's own rule must produce valid Python
        fix = CodeFix(
            finding=finding.id,
            rule=finding.rule,
            file=place.file,
            line=place.line,
            saving_ns=finding.saving.expected_ns if finding.saving else None,
            safety=change.safety,
            needs_review=bool(change.check),
            check=change.check,
            diff=_diff(place.file, text, changed),
            replacements=[_replacement(text, splice) for splice in sorted(change.splices)],
        )
        return Proposal(fix, file, text, change)

    def _file(self, name: str) -> OwnFile | Unavailable:
        if name not in self._files:
            try:
                self._files[name] = own_file(name, self.job.source_roots)
            except OSError as problem:
                reason = problem.strerror or type(problem).__name__
                self._files[name] = Unavailable(f"`{name}` could not be read: {reason}.")
        return self._files[name]

    def _hold_as_recorded(self, file: OwnFile, place: Place, known: str | RecordedFile) -> None:
        """Raises Unfixable unless nothing shows that a file is not as recorded."""
        lines = lines_of(file.text)
        if not isinstance(known, RecordedFile):
            if lines != lines_of(known):
                raise Unfixable(NOT_AS_RECORDED)
            return
        if place.precision == "definition" or not place.text:
            raise Unfixable("The line is not known: the file does not match the recording, or no calls were recorded.")
        if place.line > len(lines) or lines[place.line - 1].strip()[:LONGEST_TEXT].strip() != place.text.strip():
            raise Unfixable(NOT_AS_RECORDED)
        if (key := (file.text, known)) not in self._differences:
            self._differences[key] = contradiction(file.text, known)
        if difference := self._differences[key]:
            raise Unfixable(difference)
        if self._is_dated(file) and known.until_s is not None and file.changed_s > known.until_s:
            raise Unfixable(CHANGED_LATER)

    def _is_dated(self, file: OwnFile) -> bool:
        return not any(is_under(str(file.path), os.path.realpath(folder)) for folder in self.job.undated)

    def _code(self, text: str) -> Code:
        if text not in self._codes:
            from tb_tidy_plugin.fixes.code import Code  # importing LibCST takes 0.2 s: only if there is a text

            try:
                self._hold_to_limit(text)
                self._codes[text] = Code(text)
            except Unfixable as reason:
                self._codes[text] = reason
        found = self._codes[text]
        if isinstance(found, Unfixable):
            raise found
        return found

    def _hold_to_limit(self, text: str) -> None:
        if self.most_nodes is not None:
            known = sum(nodes_in(each) for each, code in self._codes.items() if not isinstance(code, Unfixable))
            if known + nodes_in(text) > self.most_nodes:
                raise Unfixable("The file is too large for a report to include its fixes. Run `tb-tidy fix`.")


def written(proposals: Sequence[Proposal]) -> tuple[list[Proposal], list[Unfixed]]:
    """Writes the proposals into their files, each file whole or not at all; returns those written, and the others.

    Of two that change the same characters, the first is written.
    """
    done: list[Proposal] = []
    others: list[Unfixed] = []
    by_file: dict[Path, tuple[OwnFile, list[Proposal]]] = {}
    for each in proposals:
        if isinstance(each.file, Unavailable):
            others.append(not_written(each, each.file.reason))
            continue
        _, fitting = by_file.setdefault(each.file.path, (each.file, []))
        if collide([*_splices_of([*fitting, each])]):
            others.append(not_written(each, "Another fix changes the same characters. Record again after it."))
        else:
            fitting.append(each)
    for file, fitting in by_file.values():
        try:
            _write(file, fitting)
        except TidyError as problem:
            others += [not_written(each, f"{problem.error} {problem.advice}") for each in fitting]
        else:
            done += fitting
    return done, others


def _splices_of(proposals: Sequence[Proposal]) -> set[Splice]:
    return {splice for each in proposals for splice in each.change.splices}


def _write(file: OwnFile, proposals: Sequence[Proposal]) -> None:
    """Writes changes into a file.

    Raises:
        TidyError: the file has changed since it was read, or cannot be written; it is left unchanged.
    """
    path = file.path
    try:
        text = spliced(file.text, _splices_of(proposals))
        nodes_in(text)
        content = file.written(text)
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or path.read_bytes() != file.content:
            raise TidyError(f"`{path}` changed during the run.", "Try again.")
        replace_whole(path, content)
    except NotReplaceableError as loss:
        advice = "Make it a plain file that you may write, or apply the diff in another way."
        raise TidyError(f"`{path}` {loss}.", advice) from None
    except (Unfixable, UnicodeEncodeError):
        raise TidyError("The changes do not fit together.", "Apply them one by one with `--rule`.") from None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{path}` could not be written: {reason}.", "Check its permissions.") from None


def _unfixed(finding: Finding, place: Place, reason: str) -> Unfixed:
    return Unfixed(finding=finding.id, rule=finding.rule, file=place.file, line=place.line, reason=reason)


def not_written(proposal: Proposal, reason: str) -> Unfixed:
    """A fix as the place that it leaves as it is."""
    fix = proposal.fix
    return Unfixed(finding=fix.finding, rule=fix.rule, file=fix.file, line=fix.line, reason=reason)


def _diff(name: str, before: str, after: str) -> str:
    lines = unified_diff(lines_of(before), lines_of(after), f"a/{name}", f"b/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _patch(name: str, before: str, after: str) -> str:
    """A unified diff, byte for byte: lines end as git has it, with a line feed, and keep everything else."""
    lines = unified_diff(_git_lines(before), _git_lines(after), f"a/{name}", f"b/{name}", lineterm="")
    parts = []
    for at, line in enumerate(lines):
        is_heading = at < 2 or line.startswith("@@")
        parts.append(line if line.endswith("\n") else f"{line}\n")
        if not is_heading and not line.endswith("\n"):
            parts.append("\\ No newline at end of file\n")
    return "".join(parts)


def _git_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _replacement(text: str, splice: Splice) -> Replacement:
    first, column = _position(text, splice.start)
    last, end = _position(text, splice.end)
    return Replacement(start_line=first, start_column=column, end_line=last, end_column=end, text=splice.new)


def _position(text: str, offset: int) -> tuple[int, int]:
    ends = [match.end() for match in LINE_END.finditer(text, 0, offset)]
    return len(ends) + 1, offset - (ends[-1] if ends else 0) + 1
