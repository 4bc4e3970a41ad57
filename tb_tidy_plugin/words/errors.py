"""Errors that a user can cause: each says what happened and what to do about it."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


class TidyError(Exception):
    """Something that the user can fix.

    Attributes:
        error: what happened, one sentence.
        advice: what to do about it, one sentence.
        said: last lines of output of the program that failed, shown below both.
    """

    def __init__(self, error: str, advice: str, said: Sequence[str] = ()) -> None:
        super().__init__("\n".join([f"{error} {advice}", *said]))
        self.error = error
        self.advice = advice
        self.said = tuple(said)


class TraceError(TidyError):
    """A trace file that cannot be read, or only in part."""


class UnreadError(TraceError):
    """A file that the system did not allow to be read; the next attempt may succeed."""


class NotFoundError(TidyError):
    """A path, run, rule or finding that does not exist."""


class ConfigurationError(TidyError):
    """A configuration that cannot be used: the file, a key, a rule of the user's own."""


def unexpected(error: BaseException, work: str) -> TraceError:
    """The error for `work` on one trace that ended with an exception nobody expected, which is a bug.

    It names the type and the place in this package, but not the exception's text, which may quote the trace.
    """
    frames = [(Path(each.filename).resolve(), each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    ours = [(file.relative_to(_PACKAGE), line) for file, line in frames if file.is_relative_to(_PACKAGE)]
    place = f" at {ours[-1][0].as_posix()}:{ours[-1][1]}" if ours else ""
    return TraceError(
        f"The {work} failed with an internal error: {type(error).__name__}{place}.",
        "This is a bug in TorchTidy. Report it with this line, and with the trace if you may share it.",
    )
