"""The one place where our own failures end: nothing in the capture may break the training job.

`KeyboardInterrupt` and `SystemExit` pass: both are the job's own. Our code raises neither, but a signal's handler
runs wherever the main thread is, and one that ends the job (`SIGTERM` on a cluster) may run in our code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

from tb_tidy_plugin.words.visible import log_called

log = log_called("tb_tidy_plugin.capture")

MOST_ERROR_CHARACTERS = 400  # of an error's message; some libraries put whole tensors in theirs

_Answer = TypeVar("_Answer")


def unless_it_fails(
    what: str, ask: Callable[[], _Answer], then: str = "the trace itself is unaffected"
) -> _Answer | None:
    """The result of `ask`; None if it fails, which is logged.

    Args:
        what: what is then missing, as the subject of a sentence.
        ask: reads something of the job, or writes something beside its trace.
        then: the consequence for the recording.
    """
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - hours of training are worth more than what is captured of them
        logged_once(what, then, reason_of(error))
        return None


@lru_cache(maxsize=256)
def logged_once(what: str, then: str, reason: str) -> None:
    """Logs a failure once: a job may record hundreds of times."""
    log_harmless(logging.WARNING, f"{what} could not be captured, {then}: {reason}")


def log_harmless(level: int, text: str) -> None:
    """Logs `text` without control characters of a terminal. The job's own log handlers cannot break it here."""
    with suppress(Exception):
        log.log(level, "tb-tidy: %s", text)


def reason_of(error: BaseException) -> str:
    """Kind and message of `error` on one line, shortened; its methods may be the job's own, and fail."""
    kind = _text(lambda: type(error).__name__, "error")
    message = _text(lambda: getattr(error, "strerror", None) or error, "its message cannot be read")
    return f"{kind}: {message}" if message else kind


def _text(ask: Callable[[], object], otherwise: str) -> str:
    try:
        text = str.__getitem__(
            str(ask()), slice(MOST_ERROR_CHARACTERS + 1)
        )  # `str` may return an instance of a class of the job's own
    except Exception:  # noqa: BLE001 - see above
        return otherwise
    line = " ".join(text.split())
    return line if len(text) <= MOST_ERROR_CHARACTERS else f"{line[:MOST_ERROR_CHARACTERS]}…"
