"""All that the server knows of one trace: the progress of its analysis, and the results."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.plugin.analysis import STOPPED, AnalysisOutcome, FileAnalysis
from tb_tidy_plugin.plugin.analysis_worker import AnalysisProgress, AnalysisResult, Failure, FirstFindings, printable
from tb_tidy_plugin.plugin.board import Glance, glance_of
from tb_tidy_plugin.plugin.models import LoadState, ProfileState
from tb_tidy_plugin.plugin.run_findings import RunPart
from tb_tidy_plugin.plugin.scan import FoundFile
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.trace.files import TraceFile


class KeptResult(msgspec.Struct, frozen=True):
    """A result, its file, and its size in memory."""

    file: TraceFile
    result: AnalysisResult
    size: int


class TraceRecord(msgspec.Struct, eq=False):
    """One trace file in one state. If the file changes, a new record takes this one's place, so nothing stale is left.

    The lock of `Profiles` guards every field: only its holder reads or changes a record. The values in a record are
    frozen and may leave it.

    Attributes:
        version: changes with each new analysis; `recording` is the first one.
        problem: why there is no result, or what of the file could not be read.
        analysis: the one that runs for this record; None while it waits for its turn, and when it is over.
        early: the report of an analysis whose tables are still made.
        result: None before the first analysis, and after `evict`; the earlier one while an analysis is repeated.
        part: the trace's part of its run; stays if the result is evicted, as does `glance`.
        used: number of the result's last use; larger is later.
        is_looked_up: True if the cache was searched for a report, or will be.
        renewed: reason for the last renewal.
    """

    found: FoundFile
    version: int
    recording: int
    state: LoadState
    problem: Problem | None
    fraction: float = 0.0
    stage: str = ""
    analysis: FileAnalysis | None = None
    early: ProfileReport | None = None
    result: KeptResult | None = None
    part: RunPart | None = None
    glance: Glance | None = None
    used: int = 0
    is_looked_up: bool = False
    renewed: str = ""

    @classmethod
    def of(cls, found: FoundFile, version: int) -> TraceRecord:
        """The record of a file that was just found."""
        return cls(found, version, version, "error" if found.problem else "queued", found.problem)

    @property
    def is_over(self) -> bool:
        """True if there is nothing to wait for."""
        return self.state in {"done", "error"}

    @property
    def report(self) -> ProfileReport | None:
        """The newest known report."""
        return self.result.result.report if self.early is None and self.result is not None else self.early

    def described(self) -> ProfileState:
        """The state as the API answers it."""
        return ProfileState(
            worker=self.found.file.worker,
            span=self.found.file.span,
            span_index=self.found.span_index,
            state=self.state,
            size=self.found.stamp.size,
            fraction=self.fraction,
            stage=self.stage,
            problem=self.problem,
            version=self.version,
            recording=self.recording,
            reported=self.report is not None,
        )

    def note(self, news: AnalysisProgress | FirstFindings) -> None:
        """Takes over a message of the running analysis."""
        if isinstance(news, FirstFindings):
            self.early, self.problem = news.report, news.problem
        else:
            self.state, self.stage, self.fraction = news.state, news.stage, news.fraction

    def finish(self, outcome: AnalysisOutcome) -> None:
        """Takes over the outcome. A failure leaves the result of an earlier analysis."""
        self.analysis, self.early, self.stage = None, None, ""
        if isinstance(outcome, Failure):
            path = printable(str(self.found.file.path))
            self.state = "error"
            self.problem = Problem(path=path, error=outcome.error, advice=outcome.advice, recovered_events=0)
            return
        self.state, self.fraction, self.problem = "done", 1.0, outcome.problem
        self.result = KeptResult(self.found.file, outcome, _size_of(outcome))
        self.part = RunPart(self.version, outcome.summaries)
        self.glance = glance_of(outcome.report, outcome.problem)

    def cancel(self) -> None:
        """Ends an analysis that waits or runs."""
        self.abandon()
        self.finish(STOPPED)

    def abandon(self) -> None:
        """Stops the running analysis, if there is one; its outcome will be ignored."""
        if self.analysis is not None:
            self.analysis.stop()
            self.analysis = None

    def repeat(self, version: int) -> None:
        """Returns to the state before the analysis, as a new version; keeps the result until it is over."""
        self.version, self.state, self.fraction, self.stage = version, "queued", 0.0, ""

    def evict(self) -> None:
        """Drops the result; a request for it repeats the analysis."""
        self.result = None
        if self.state == "done":
            self.state, self.fraction, self.problem = "queued", 0.0, None


def _size_of(result: AnalysisResult) -> int:
    """Bytes of the parts that grow with the trace."""
    texts = (*result.events.values(), result.step_costs)
    return sum(memoryview(text).nbytes for text in texts) + result.tables.size
