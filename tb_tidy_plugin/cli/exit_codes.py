"""Exit codes of commands, for all commands alike: docs/ci.md has the table."""

from __future__ import annotations

DONE = 0
FOUND = 1
"""What the command looks for is there: a limit was reached, a part is missing, a fix could not be written."""
NOT_READ = 2
"""The call, the configuration or a recording cannot be used. What could be read is printed."""
INTERRUPTED = 130
"""Ctrl-C, as in a shell; earlier measurements are stored."""
READER_GONE = 141
"""The reader of the output ended first, as `head` does; a shell reports the same of other commands."""


def code_of(*, found: bool, unread: bool) -> int:
    """The exit code; what was found counts, whatever could not be read."""
    return FOUND if found else NOT_READ if unread else DONE
