"""Errors that a user can cause: each says what happened and what to do about it."""

from __future__ import annotations


class TidyError(Exception):
    """Something that the user can fix.

    Attributes:
        error: what happened, one sentence.
        advice: what to do about it, one sentence.
    """

    def __init__(self, error: str, advice: str) -> None:
        super().__init__(f"{error} {advice}")
        self.error = error
        self.advice = advice


class TraceError(TidyError):
    """A trace file that cannot be read, or only in part."""


class UnreadError(TraceError):
    """A file that the system did not allow to be read; the next attempt may succeed."""


class NotFoundError(TidyError):
    """A path, run, rule or finding that does not exist."""


class ConfigurationError(TidyError):
    """A configuration that cannot be used: the file, a key, a rule of the user's own."""
