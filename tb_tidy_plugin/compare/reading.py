"""Recordings to compare, read from a path."""

from __future__ import annotations

import os
from itertools import groupby

from tb_tidy_plugin.analysis.detailed_answers import COSTS
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.analysis.runs import run_report
from tb_tidy_plugin.compare.compare import Asked
from tb_tidy_plugin.compare.recording import Recording, StepRange
from tb_tidy_plugin.report.model import Finding, Problem


def asked_for(path: str | os.PathLike[str], job: Job, steps: StepRange | None = None) -> Asked:
    """One side of a comparison: a trace file, a run folder or a logdir.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: `Asked.unread` counts them.
        EngineError: the engine cannot be used.
    """
    recordings: list[Recording] = []
    findings: list[Finding] = []
    problems: list[Problem] = []
    without_all = 0
    for run, found in groupby(analyse(job, path, COSTS), key=lambda each: each.file.run):
        of_run = list(found)
        answers = [each.answer for each in of_run if each.answer is not None]
        recordings += [Recording(run=run, report=answer.report, costs=answer.costs) for answer in answers]
        problems += [each.problem for each in of_run if each.problem is not None]
        without_all += sum(not each.is_whole for each in of_run)
        summaries = [summary for answer in answers for summary in answer.summaries]
        findings += run_report(run, (), summaries, job.of_runs, job.ignores).findings
    return Asked(str(path), recordings, steps, len(problems) + without_all, findings, next(iter(problems), None))
