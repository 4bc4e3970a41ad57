"""Recordings to compare, read from a path."""

from __future__ import annotations

from itertools import groupby

from msgspec.structs import replace

from tb_tidy_plugin.analysis.detailed_answers import COSTS
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.paths import TracePaths, analyse
from tb_tidy_plugin.analysis.runs import about_run, run_report
from tb_tidy_plugin.compare.compare import Asked
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.compare.recording import Recording, StepRange
from tb_tidy_plugin.report.left_out import AboutRun, LeftOutFinding
from tb_tidy_plugin.report.model import Problem


def left_out_at(path: TracePaths, job: Job) -> list[LeftOutFinding]:
    """What the reports on all traces at `path` leave out; raises as `asked_for`."""
    asked = asked_for(path, job)
    of_profiles = [each for recording in asked.recordings for each in recording.costs.left_out]
    return of_profiles + [each for run in asked.of_runs for each in run.left_out]


def named(found: Comparison, base: Asked, candidate: Asked, names: ShownNames) -> Comparison:
    """The comparison with the names of source files that the reports of its sides have.

    A finding names the files of the side whose places it has: the baseline's if it is gone.
    """
    sides = [names.beside(*(each.report.path for each in side.recordings)) for side in (base, candidate)]
    findings = [renamed(each, sides[each.candidate_ns is not None and each.only != "base"]) for each in found.findings]
    return renamed(replace(found, findings=findings), sides[1])


def asked_for(path: TracePaths, job: Job, steps: StepRange | None = None) -> Asked:
    """One side of a comparison: trace files, run folders or logdirs.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: `Asked.unread` counts them.
        EngineError: the engine cannot be used.
    """
    recordings: list[Recording] = []
    of_runs: list[AboutRun] = []
    problems: list[Problem] = []
    without_all = 0
    for run, found in groupby(analyse(job, path, COSTS), key=lambda each: each.file.run):
        of_run = list(found)
        answers = [each.answer for each in of_run if each.answer is not None]
        recordings += [Recording(run=run, report=answer.report, costs=answer.costs) for answer in answers]
        problems += [each.problem for each in of_run if each.problem is not None]
        without_all += sum(not each.is_whole for each in of_run)
        summaries = [summary for answer in answers for summary in answer.summaries]
        about = run_report(run, (), summaries, job.of_runs, job.ignores)
        of_runs.append(about_run(about, summaries, job.of_runs, job.ignores))
    first, lost = next(iter(problems), None), sum(not each.recovered_events for each in problems)
    return Asked(str(path), recordings, steps, len(problems) + without_all, of_runs, first, lost)
