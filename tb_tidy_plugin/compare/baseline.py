"""Known findings, so that only new ones fail a check."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.compare.findings import left_out_alike, paired
from tb_tidy_plugin.report.left_out import LeftOutFinding
from tb_tidy_plugin.report.model import Finding, Report
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.words.errors import TidyError

_SCHEMA_VERSION = 1
_MOST_BYTES = 64 << 20


class FindingsBaseline(Model, frozen=True):
    """`tb-tidy check --write-baseline`: the findings of a report.

    `left_out` are those that it leaves out, for example below a limit: they are not new if a later report has them.
    Files of older versions have none.
    """

    schema: int
    version: str
    findings: list[Finding]
    left_out: list[LeftOutFinding] = msgspec.field(default_factory=list)


def baseline_of(report: Report, left_out: Iterable[LeftOutFinding] = ()) -> FindingsBaseline:
    """All findings of a report, and what it leaves out, each once, in a stable order."""
    found = {finding.id: finding for finding in all_findings(report)}
    below: dict[str, LeftOutFinding] = {}
    for each in sorted(left_out, key=lambda each: each.cost_ns):
        if each.id not in found:
            below[each.id] = msgspec.structs.replace(each, ns_by_step=[])
    return FindingsBaseline(
        schema=_SCHEMA_VERSION,
        version=__version__,
        findings=[found[each] for each in sorted(found)],
        left_out=[below[each] for each in sorted(below)],
    )


def read_baseline(path: Path) -> FindingsBaseline:
    """Reads a baseline.

    Raises:
        TidyError: it cannot be read, or is something else.
    """
    try:
        with path.open("rb") as stream:
            return decode(stream.read(_MOST_BYTES), FindingsBaseline)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{path}` cannot be read: {reason}.", "Write it with `--write-baseline`.") from None
    except NOT_JSON as problem:
        raise TidyError(f"`{path}` is not a baseline: {problem}.", "Write it again with `--write-baseline`.") from None


def new_findings(report: Report, baseline: FindingsBaseline) -> set[str]:
    """Ids of findings that the baseline does not know, even if lines have moved; what it left out, it knows."""
    found = {finding.id: finding for finding in all_findings(report)}
    unpaired = [pair.candidate for pair in paired(baseline.findings, list(found.values())) if pair.base is None]
    new = [each for each in unpaired if each is not None and left_out_alike(each, baseline.left_out) is None]
    return {each.id for each in new}


def all_findings(report: Report) -> list[Finding]:
    """The findings of runs, then those of profiles."""
    of_runs = [finding for run in report.runs for finding in run.findings]
    return of_runs + [finding for run in report.runs for profile in run.profiles for finding in profile.findings]
