"""One analysis in a worker process, as TensorBoard's process handles it: started, listened to, stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.analysis.remembered import Remembered
from tb_tidy_plugin.configuration.files import read_configuration
from tb_tidy_plugin.configuration.limits import limits_in
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.plugin.analysis_worker import (
    AnalysisMessage,
    AnalysisProgress,
    AnalysisRequest,
    AnalysisResult,
    Failure,
    FirstFindings,
)
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.allowance import limit_of
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.limits import USUAL_LIMITS
from tb_tidy_plugin.words.errors import ConfigurationError
from tb_tidy_plugin.words.visible import Lines, log_called

log = log_called("tensorboard.torchtidy")

AnalysisOutcome: TypeAlias = AnalysisResult | Failure
OnNews: TypeAlias = Callable[[AnalysisProgress | FirstFindings], object]

WORKER = child.command_for("tb_tidy_plugin.plugin.analysis_worker")
"""Command that starts a worker."""

AGAIN = "Starting again, since the first try was killed"
STOPPED = Failure("The analysis was stopped.", "Load the trace again.")
TRY_AGAIN = "See the server's log, then try again."
NOT_STARTED = Failure("The analysis could not be started: the system has no thread left.", "Try again later.")


class AnalysisSettings(msgspec.Struct, frozen=True):
    """Settings of all analyses: rules, folders of sources, the cache, and the device of recordings without its name."""

    configuration: Path | None = None
    source_roots: tuple[Path, ...] = ()
    cache: Cache = NOWHERE
    device: str = ""


UNCONFIGURED = AnalysisSettings()


class FileAnalysis:
    """The analysis of one file. Any thread may stop it, before, during and after its run."""

    def __init__(
        self, file: TraceFile, command: Sequence[str] | child.Spare, asked: AnalysisSettings = UNCONFIGURED
    ) -> None:
        """`command` starts a worker, or is a spare one that already waits."""
        self.file = file
        self.asked = asked
        self._child = child.Child(command)

    def outcome(self, on_news: OnNews) -> AnalysisOutcome:
        """Runs the worker to its end; describes every failure in words.

        A killed worker is started once more, unless it reached a limit, which it would reach again.
        """
        ended = self._attempt(on_news)
        if isinstance(ended, int) and ended < 0 and limit_of(ended) is None:
            on_news(AnalysisProgress("reading", AGAIN, 0.0))
            ended = self._attempt(on_news)
        return died(ended, self.asked.configuration) if isinstance(ended, int) else ended

    def _attempt(self, on_news: OnNews) -> AnalysisOutcome | int:
        """The outcome, or the exit code of a worker that ended without one."""
        last: AnalysisOutcome | None = None
        try:
            with self._child.asked(msgspec.json.encode(self._request())) as lines:
                last = _last(lines, on_news)
        except child.StartError as problem:
            return Failure(f"The analysis could not be started: {problem}.", TRY_AGAIN)
        except msgspec.MsgspecError as problem:
            log.warning("torchtidy: worker for %s: %s", self.file.path, problem)
        ended = self._child.ended
        if ended is None or self._child.is_stopped:
            return STOPPED
        self._log(ended, has_answered=last is not None)
        return last or ended.code

    def stop(self) -> None:
        """Ends the worker, or prevents its start."""
        self._child.stop()

    def _request(self) -> AnalysisRequest:
        configuration, folder = (
            None if path is None else os.fsencode(path) for path in (self.asked.configuration, self.asked.cache.folder)
        )
        roots = tuple(os.fsencode(root) for root in self.asked.source_roots)
        path = os.fsencode(str(self.file.path))
        names = (self.file.run, self.file.worker, self.file.span)
        return AnalysisRequest(*names, path, configuration, roots, folder, self.asked.device)

    def _log(self, ended: child.Ended, *, has_answered: bool) -> None:
        """Writes the worker's stderr to the log: it may name paths and does not help most users."""
        if not has_answered or ended.complaint:
            end = "" if has_answered else f" ended with {ended.code}"
            log.warning("torchtidy: worker for %s%s: %s", self.file.path, end, Lines(ended.complaint))


def _last(lines: Iterable[bytes], on_news: OnNews) -> AnalysisOutcome | None:
    """The last message; None if it never came."""
    for line in lines:
        message: AnalysisMessage = decode(line, AnalysisMessage)
        if not isinstance(message, AnalysisProgress | FirstFindings):
            return message
        on_news(message)
    return None


def died(code: int, configuration: Path | None = None) -> Failure:
    """The failure for a worker that exited with `code` and without a last message."""
    if (limit := limit_of(code)) is not None:
        try:
            reached = limits_in(configuration).reached(limit)
        except ConfigurationError:  # it has changed since the worker read it
            reached = USUAL_LIMITS.reached(limit)
        return Failure(reached.error, reached.advice)
    if code >= 0:
        return Failure("The analysis failed with an internal error.", TRY_AGAIN)
    if -code == getattr(signal, "SIGKILL", None):
        return Failure(
            "The analysis was killed twice, most likely because memory ran out.",
            "Free memory or record fewer steps, then try again.",
        )
    name = next((known.name for known in signal.Signals if known.value == -code), f"signal {-code}")
    return Failure(f"The analysis was ended twice, most recently by {name}.", TRY_AGAIN)


def remembered(analysis: FileAnalysis, on_news: OnNews) -> AnalysisOutcome:
    """The outcome of an analysis: the stored one, else that of a worker, which is then stored."""
    known = _known(analysis.asked)
    key = known.key(analysis.file)
    if (result := known.load(analysis.file, key)) is not None:
        return result
    outcome = analysis.outcome(on_news)
    if isinstance(outcome, AnalysisResult):
        known.keep(analysis.file, key, outcome, outcome.looked_at)
    return outcome


def kept_outcome(file: TraceFile, asked: AnalysisSettings) -> AnalysisResult | None:
    """The stored outcome for the file as it is now; analyses nothing."""
    known = _known(asked)
    return known.load(file, known.key(file))


def _known(asked: AnalysisSettings) -> Remembered[AnalysisResult]:
    return Remembered(asked.cache, "result", AnalysisResult, _settings(asked), asked.source_roots)


def _settings(asked: AnalysisSettings) -> object:
    """The content of the configuration, the named device, and whether code changes can be made.

    None if the configuration cannot be read, or names rules with unknown code.
    """
    if asked.configuration is None:
        return [has_libcst(), asked.device]
    try:
        settings = read_configuration(asked.configuration).settings
    except ConfigurationError:
        return None
    return None if settings.rules else [has_libcst(), asked.device, settings]
