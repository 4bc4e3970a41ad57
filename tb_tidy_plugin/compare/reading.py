"""Recordings to compare, read from a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tb_tidy_plugin.compare.compare import Asked
from tb_tidy_plugin.compare.recording import Recording, StepRange
from tb_tidy_plugin.report.assemble import NOTHING_IGNORED, Analysis, PathProgress, analyses, problems_of
from tb_tidy_plugin.report.ignores import PathIgnores
from tb_tidy_plugin.rulekit import Rule


def asked_for(
    path: str | os.PathLike[str],
    steps: StepRange | None = None,
    rules: Sequence[Rule] | None = None,
    progress: PathProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
) -> Asked:
    """One side of a comparison: a trace file, a run folder or a logdir.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are counted in `Asked.unread`.
    """
    recordings: list[Recording] = []
    unread = 0
    for file, analysis in analyses(path, rules, progress, ignores, source_roots):
        if isinstance(analysis, Analysis):
            recordings.append(recording_of(file.run, analysis))
        unread += len(problems_of(analysis))
    return Asked(str(path), recordings, steps, unread)


def recording_of(run: str, analysis: Analysis) -> Recording:
    """What a comparison needs of an analysis."""
    return Recording(run=run, report=analysis.report, costs=analysis.step_costs)
