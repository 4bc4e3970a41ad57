"""The one place where a failure of ours ends: nothing that is captured may break the training job."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

log = logging.getLogger("tb_tidy_plugin.capture")

_Answer = TypeVar("_Answer")


def unless_it_fails(what: str, ask: Callable[[], _Answer]) -> _Answer | None:
    """What `ask` answers; None where it fails, which is logged.

    Args:
        what: what is missing then, as the subject of a sentence.
        ask: reads something of the job, or writes something beside its trace.
    """
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - hours of training are worth more than what is captured of them
        logged_once(what, f"{type(error).__name__}: {error}")
        return None


@lru_cache(maxsize=256)
def logged_once(what: str, reason: str) -> None:
    """A job may record hundreds of times: the same failure is said once."""
    log.warning("tb-tidy: %s could not be captured, the trace is as good as without: %s", what, reason)
