"""The report with its tables, for all profiles under a path: what `tb-tidy summary` shows."""

from __future__ import annotations

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.answers import TABLES_BY_LINE, TABLES_OF_REPORT
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import TracePaths, analyse
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Problem, ProfileReport
from tb_tidy_plugin.report.value import Model


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


def summary_of(path: TracePaths, job: Job, *, by_line: bool = False) -> Summary:
    """The summary of a trace file, a run folder or a logdir, or of several.

    With `by_line`, operators by line are on the line inside each function that calls them, else on its definition.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are in `Summary.problems`.
        EngineError: the engine cannot be used.
    """
    found = list(analyse(job, path, TABLES_BY_LINE if by_line else TABLES_OF_REPORT))
    return Summary(
        schema=SCHEMA_VERSION,
        version=__version__,
        profiles=[
            ProfileSummary(run=each.file.run, report=each.answer.report, figures=each.answer.figures)
            for each in found
            if each.answer is not None
        ],
        problems=[each.problem for each in found if each.problem is not None],
    )
