"""Known findings, so that only new ones fail a check."""

from __future__ import annotations

from pathlib import Path

from tb_tidy_plugin import __version__
from tb_tidy_plugin.compare.findings import paired
from tb_tidy_plugin.decoders import decode
from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.report.model import Finding, Report
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.trace.recover import NOT_JSON

_SCHEMA_VERSION = 1
_MOST_BYTES = 64 << 20


class FindingsBaseline(Model, frozen=True):
    """`tb-tidy check --write-baseline`: the findings of a report."""

    schema: int
    version: str
    findings: list[Finding]


def baseline_of(report: Report) -> FindingsBaseline:
    """All findings of a report, each once, in a stable order."""
    found = {finding.id: finding for finding in all_findings(report)}
    return FindingsBaseline(
        schema=_SCHEMA_VERSION, version=__version__, findings=[found[each] for each in sorted(found)]
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
    """Ids of findings that the baseline does not contain, even if lines have moved."""
    found = {finding.id: finding for finding in all_findings(report)}
    pairs = paired(baseline.findings, list(found.values()))
    return {pair.candidate.id for pair in pairs if pair.base is None and pair.candidate is not None}


def all_findings(report: Report) -> list[Finding]:
    """The findings of runs, then those of profiles."""
    of_runs = [finding for run in report.runs for finding in run.findings]
    return of_runs + [finding for run in report.runs for profile in run.profiles for finding in profile.findings]
