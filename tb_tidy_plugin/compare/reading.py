"""Recordings to compare, read from a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tb_tidy_plugin.analysis.assemble import NOTHING_IGNORED, Analysis, PathProgress, analyses, problems_of
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.runs import run_report, summaries_of
from tb_tidy_plugin.compare.compare import Asked
from tb_tidy_plugin.compare.recording import Recording, StepRange
from tb_tidy_plugin.profile.run import RankSummary
from tb_tidy_plugin.report.model import Finding, Problem
from tb_tidy_plugin.rulekit import AnyRule, Rule, RunRule
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.trace.cache import UNREAD
from tb_tidy_plugin.trace.limits import USUAL, Limits


def asked_for(  # noqa: PLR0913, PLR0917 - as `analyze_path`
    path: str | os.PathLike[str],
    steps: StepRange | None = None,
    rules: Sequence[AnyRule] | None = None,
    progress: PathProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
    limits: Limits = USUAL,
    *,
    follow_links: bool = False,
) -> Asked:
    """One side of a comparison: a trace file, a run folder or a logdir.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are counted in `Asked.unread`.
    """
    chosen = [rule() for rule in catalogue()] if rules is None else rules
    of_profiles = [rule for rule in chosen if isinstance(rule, Rule)]
    of_runs = [rule for rule in chosen if isinstance(rule, RunRule)]
    recordings: list[Recording] = []
    findings: list[Finding] = []
    problems: list[Problem] = []
    without_all = 0
    found = analyses(path, of_profiles, progress, ignores, source_roots, limits, follow_links=follow_links)
    for run, of_run in groupby(found, key=lambda each: each[0].run):
        summaries: list[RankSummary] = []
        for _, analysis in of_run:
            if isinstance(analysis, Analysis):
                recordings.append(recording_of(run, analysis))
                summaries += summaries_of(analysis.profile, analysis.report)
                without_all += UNREAD in analysis.sources.values()
            problems += problems_of(analysis)
        findings += run_report(run, (), summaries, of_runs, ignores).findings
    return Asked(str(path), recordings, steps, len(problems) + without_all, findings, next(iter(problems), None))


def recording_of(run: str, analysis: Analysis) -> Recording:
    """What a comparison needs of an analysis."""
    return Recording(run=run, report=analysis.report, costs=analysis.step_costs)
