"""The process that holds timelines, as TensorBoard's handles it: started on first use, queried, ended when idle."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import ExitStack
from typing import IO

import msgspec

from tb_tidy_plugin.configuration.limits import limits_in
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.record import KeptResult
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.timeline_worker import TIMELINE_WORK, About, FileQuestion, Reply, Unreadable
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.allowance import limit_of
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.remote import changed_at, size_of
from tb_tidy_plugin.words.errors import NotFoundError, TidyError, TraceError
from tb_tidy_plugin.words.visible import Lines, log_called

log = log_called("tensorboard.torchtidy")

TIMELINE_COMMAND = child.command_for("tb_tidy_plugin.plugin.timeline_worker")
IDLE_S = 600.0
NO_IDS = msgspec.Raw(b"[]")


class TimelineError(TidyError):
    """The timeline could not be made."""


class _Ids(msgspec.Struct, frozen=True):
    """The ids of `events.EventColumns`, left as text."""

    id: msgspec.Raw


class Timelines:
    """May be called from any thread; questions wait for each other."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._open = ExitStack()  # holds the file for the process's stderr, while it runs
        self._idle: threading.Timer | None = None

    def answer(self, key: Key, about: About, patience_s: float) -> bytes | None:
        """The answer as JSON; None if there is no such event.

        Raises:
            NotFoundError: there is no such trace.
            TraceError: it could not be read.
            StillAnalysingError: its analysis takes longer than `patience_s`.
            TimelineError: the process could not be started, broke, or reached a limit.
        """
        kept = self._profiles.kept(key, patience_s)
        asked = self._profiles.asked
        cache, configuration = (
            None if path is None else os.fsencode(path) for path in (asked.cache.folder, asked.configuration)
        )
        question = FileQuestion(os.fsencode(kept.file.path), _stamp(kept), about, cache, configuration)
        with self._lock:
            reply = self._asked(msgspec.json.encode(question))
        if isinstance(reply, Unreadable):
            raise TraceError(reply.error, reply.advice)
        answer = bytes(reply.answer)
        return None if answer == b"null" else answer

    def marked(self, key: Key, finding: str, patience_s: float) -> msgspec.Raw:
        """The ids of a finding's events; empty if `finding` is empty.

        Raises:
            NotFoundError: there is no such finding.
        """
        if not finding:
            return NO_IDS
        columns = self._profiles.kept(key, patience_s).result.events.get(finding)
        if columns is None:
            raise NotFoundError(f"This profile has no finding `{finding}`.", "Reload the report.")
        return decode(columns, _Ids).id

    def _asked(self, question: bytes) -> Reply:
        process = self._running()
        assert process.stdout is not None
        try:
            child.send_line(process, question)
            reply: Reply = decode(process.stdout.readline(), Reply)
        except (BrokenPipeError, msgspec.MsgspecError) as problem:
            process.kill()
            code = process.wait()
            log.warning("torchtidy: timeline: %s; the process ended with %s", problem, code)
            self.close()
            raise self._ended_with(code) from None
        finally:
            self._end_when_idle()
        return reply

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            errors = self._open.enter_context(child.complaints())
            self._open.callback(_log, errors)
            try:
                self._process = child.start(TIMELINE_COMMAND, errors)
            except OSError as problem:
                raise TimelineError(f"The timeline could not be drawn: {problem.strerror}.", "Try again.") from None
        return self._process

    def _ended_with(self, code: int) -> TimelineError:
        if (limit := limit_of(code)) is not None:
            reached = limits_in(self._profiles.configuration).reached(limit, TIMELINE_WORK)
            return TimelineError(reached.error, reached.advice)
        return TimelineError("The timeline could not be drawn: its process ended.", "See the server's log; ask again.")

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(IDLE_S, self._end)
        self._idle.daemon = True
        self._idle.start()

    def _end(self) -> None:
        with self._lock:
            self.close()

    def close(self) -> None:
        """Closes the process's input, which ends it; another question starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        self._open.close()


def _log(errors: IO[bytes]) -> None:
    if complaint := child.said(errors):
        log.warning("torchtidy: timeline: %s", Lines(complaint))


def _stamp(kept: KeptResult) -> str:
    """A text that differs between two states of the file.

    Raises:
        TraceError: the file is gone.
    """
    try:
        return f"{size_of(kept.file.path)} {changed_at(kept.file.path)}"
    except OSError:
        raise TraceError("The trace was deleted.", "Reload the list of runs.") from None
