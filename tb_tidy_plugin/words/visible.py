"""Untrusted text for display: it cannot control a terminal or disguise its content."""

from __future__ import annotations

import logging


def visible(text: str, stand_in: str = "\ufffd") -> str:
    """`text` with a `stand_in` for each invisible character.

    These are control characters, those that change the direction of writing, line and paragraph separators, halves of
    surrogate pairs, and everything else that Unicode calls neither printable nor a space.
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else stand_in for each in text)


class Lines(str):
    """Text of several lines, such as a process's stderr, for a message to a log."""

    __slots__ = ()


def log_called(name: str) -> logging.Logger:
    """The log of this name, whose messages show only visible characters: names of files and folders go into them.

    A line of `Lines` and of a traceback begins with blanks, so that none of it looks like a message of its own.
    """
    log = logging.getLogger(name)
    log.addFilter(_made_visible)  # added only once, however often this is called
    return log


def _made_visible(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(_shown(each) for each in record.args)
    if record.exc_info:
        record.exc_text = _laid_out(logging.Formatter().formatException(record.exc_info)).lstrip("\n")
    return True


def _shown(value: object) -> object:
    if isinstance(value, Lines):
        return _laid_out(value)
    return value if isinstance(value, int | float) else visible(str(value))


def _laid_out(text: str) -> str:
    return "".join(f"\n    {visible(line)}" for line in text.splitlines())
