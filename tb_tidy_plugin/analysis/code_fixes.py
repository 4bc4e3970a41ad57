"""Findings with the changes of the user's own code that fix them; without LibCST, with the extra that installs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.analysis.answers import FixesAnswer
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA, CodeFix, CodeFixes
from tb_tidy_plugin.report.model import Finding, ProfileReport

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.fixing import Fixer, Proposal
    from tb_tidy_plugin.report.fix_model import Unfixed

MOST_PLACES = 10
"""Of one finding, those that cost most."""

MOST_NODES = 8_000
"""Of the syntax trees of all files of a run: LibCST takes up to 2 s for as many, on scripts of 800 lines."""

NO_PLACE = "The recording does not say where in your code this is."
FURTHER = f"A report holds the changes of {MOST_PLACES} places. Run `tb-tidy fix` for the others."


def with_code_fixes(answers: Sequence[FixesAnswer], job: Job) -> list[ProfileReport]:
    """The reports on the traces of one run, whose findings have `code_fixes`.

    Args:
        answers: one for each trace.
        job: by which they were analysed: its rules make the changes, in files below its source roots.
    """
    if not any(answer.facts for answer in answers):
        return [answer.report for answer in answers]
    if not has_libcst():
        return [
            _replaced(answer, [_needing_extra(answer, each) for each in answer.report.findings]) for answer in answers
        ]
    from tb_tidy_plugin.analysis.fixing import Fixer

    fixer = Fixer(job, MOST_NODES)
    made: dict[tuple[object, ...], Proposal | Unfixed] = {}
    return [
        _replaced(answer, [_fixed(answer, each, fixer, made) for each in answer.report.findings]) for answer in answers
    ]


def _replaced(answer: FixesAnswer, findings: list[Finding]) -> ProfileReport:
    return msgspec.structs.replace(answer.report, findings=findings)


def _needing_extra(answer: FixesAnswer, finding: Finding) -> Finding:
    if finding.id not in answer.facts:
        return finding
    return msgspec.structs.replace(finding, code_fixes=CodeFixes([], NEEDS_EXTRA))


def _fixed(
    answer: FixesAnswer, finding: Finding, fixer: Fixer, made: dict[tuple[object, ...], Proposal | Unfixed]
) -> Finding:
    """The finding with its changes; what other ranks have made of the same place is taken from `made`."""
    from tb_tidy_plugin.report.fix_model import Unfixed

    facts = answer.facts.get(finding.id)
    if facts is None:
        return finding
    changes: dict[str, CodeFix] = {}
    reasons = [] if finding.places else [NO_PLACE]
    for place in finding.places[:MOST_PLACES]:
        captured = answer.captured.get(place.file)
        lines = (place.line, place.end_line, place.function, place.precision, place.text)
        key = (finding.id, place.file, *lines, captured)
        if key not in made:
            made[key] = fixer.proposal(finding, place, facts, captured)
        found = made[key]
        if isinstance(found, Unfixed):
            reasons.append(found.reason)
        else:
            saving_ns = finding.saving.expected_ns if finding.saving else None
            changes.setdefault(found.fix.diff, msgspec.structs.replace(found.fix, saving_ns=saving_ns))
    if len(finding.places) > MOST_PLACES:
        reasons.append(FURTHER)
    fixes = CodeFixes(list(changes.values()), reasons[0] if reasons else None)
    return msgspec.structs.replace(finding, code_fixes=fixes)
