"""What the library knows of one trace."""

from __future__ import annotations

from dataclasses import dataclass

from tb_tidy_plugin.plugin.payloads import LoadState, ProfileState
from tb_tidy_plugin.plugin.scan import Found
from tb_tidy_plugin.plugin.worker import Result
from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.trace.files import TraceFile


@dataclass(frozen=True, slots=True)
class Entry:
    """One trace and how far its analysis is.

    `recording` is the version in which the file was as it is now; `reported` says that its findings are known.
    """

    found: Found
    version: int
    recording: int
    state: LoadState = "queued"
    fraction: float = 0.0
    stage: str = ""
    problem: Problem | None = None
    reported: bool = False

    @property
    def is_over(self) -> bool:
        """Whether waiting is of no use."""
        return self.state in {"done", "error"}

    def described(self) -> ProfileState:
        """The state as it is answered."""
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
            reported=self.reported,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A result, the file it is of, and the memory it takes."""

    file: TraceFile
    result: Result
    size: int
