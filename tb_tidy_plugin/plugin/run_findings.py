"""Findings of rules over several ranks, computed again whenever another rank is done."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.report.model import RunReport
from tb_tidy_plugin.system.decoders import decode

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.job import Job
    from tb_tidy_plugin.profile.ranks.summary import RankSummary


class RunPart(msgspec.Struct, frozen=True):
    """One trace's part of its run: the version of its analysis, and its `RankSummary`s as text.

    As text a rank takes about 40 kB, as values ten times that.
    """

    version: int
    summaries: msgspec.Raw


class RunFindings:
    """The last answer for each run, kept while its parts are the same. May be called from any thread.

    Calls about different runs wait for each other: an answer takes a fraction of a second, 0.6 s for 256 ranks.
    """

    def __init__(self, configuration: Path | None) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()
        self._known: dict[str, tuple[frozenset[tuple[Key, int]], RunReport, list[int]]] = {}

    def about(self, run: str, parts: Mapping[Key, RunPart]) -> tuple[RunReport, list[int]]:
        """The run's report without its profiles, and its known ranks.

        Raises:
            ConfigurationError: the rules to check cannot be read.
        """
        versions = frozenset((key, part.version) for key, part in parts.items())
        with self._lock:
            known = self._known.get(run)
            if known is None or known[0] != versions:
                known = self._known[run] = (versions, *self._worked_out(run, parts.values()))
            return known[1:]

    def compared(self, run: str, parts: Mapping[Key, RunPart]) -> AboutRun:
        """What a comparison needs of the run's report; not kept, since `Comparisons` keeps its answers.

        Raises:
            ConfigurationError: the rules to check cannot be read.
        """
        from tb_tidy_plugin.analysis.runs import about_run

        report, ranks = self.about(run, parts)
        if len(ranks) < 2:
            return AboutRun()
        job = self._job()
        return about_run(report, _summaries(parts.values()), job.of_runs, job.ignores)

    def _worked_out(self, run: str, parts: Iterable[RunPart]) -> tuple[RunReport, list[int]]:
        from tb_tidy_plugin.analysis.runs import run_report

        summaries = _summaries(parts)
        ranks = sorted({summary.rank for summary in summaries})
        if len(ranks) < 2:  # as in nearly all runs; there is nothing to check
            return RunReport(run=run, profiles=[]), ranks
        job = self._job()
        return run_report(run, (), summaries, job.of_runs, job.ignores), ranks

    def _job(self) -> Job:
        from tb_tidy_plugin.configuration.checks import job_of
        from tb_tidy_plugin.configuration.files import Configuration, read_configuration

        file = self._configuration
        return job_of(Configuration() if file is None else read_configuration(file))


def _summaries(parts: Iterable[RunPart]) -> list[RankSummary]:
    from tb_tidy_plugin.profile.ranks.summary import RankSummary

    return [summary for part in parts for summary in decode(part.summaries, list[RankSummary])]
