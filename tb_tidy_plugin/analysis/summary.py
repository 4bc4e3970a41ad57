"""The report with its tables, for all profiles under a path: what `tb-tidy summary` shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.assemble import NOTHING_IGNORED, Analysis, PathProgress, analyses, problems_of
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Problem, ProfileReport
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.rulekit import Rule
from tb_tidy_plugin.trace.limits import USUAL, Limits


class ProfileSummary(Model, frozen=True):
    """One trace file: its report, as `tb-tidy check --format json` prints it, and its tables."""

    run: str
    report: ProfileReport
    figures: Figures


class Summary(Model, frozen=True):
    """`tb-tidy summary --format json`: everything that was found under one path."""

    schema: int
    version: str
    profiles: list[ProfileSummary]
    problems: list[Problem]


def summary_of(  # noqa: PLR0913 - as `analyses`
    path: str | os.PathLike[str],
    rules: Sequence[Rule] | None = None,
    progress: PathProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
    limits: Limits = USUAL,
    *,
    follow_links: bool = False,
) -> Summary:
    """The summary of a trace file, a run folder or a logdir.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are in `Summary.problems`.
    """
    profiles: list[ProfileSummary] = []
    problems: list[Problem] = []
    found = analyses(path, rules, progress, ignores, source_roots, limits, follow_links=follow_links)
    for file, analysis in found:
        if isinstance(analysis, Analysis):
            figures = figures_of(analysis.profile, tuple(analysis.evidence.values()))
            profiles.append(ProfileSummary(run=file.run, report=analysis.report, figures=figures))
        problems += problems_of(analysis)
    return Summary(schema=SCHEMA_VERSION, version=__version__, profiles=profiles, problems=problems)
