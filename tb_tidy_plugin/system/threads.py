"""Work on several cores of one process. Only what releases the interpreter's lock runs at the same time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import ClassVar, TypeVar

from tb_tidy_plugin.system.allowance import LimitReachedError, sharing_limits
from tb_tidy_plugin.system.process_setting import ProcessSetting

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MOST_AT_ONCE = 4
"""Most threads for one task: with more, the rest of the work takes longer."""

SWITCH_S = 0.0005
"""Interpreter switch interval in s, a tenth of the default: work on whole columns needs the interpreter only for a
moment between two operations.
"""

_SWITCHES = ProcessSetting(sys.getswitchinterval, sys.setswitchinterval)

PATIENCE_S = 2.0
"""Longest wait for a side thread after a limit was reached: it ends as soon as it runs Python."""

_LOOK_S = 0.5  # between signals' handlers, which run in the main thread only, while that waits for another one


class ThisProcess:
    """This process."""

    most_cores: ClassVar[int | None] = None


def use_cores(count: int) -> None:
    """From now on this process computes on at most `count` cores: others like it compute on the rest."""
    ThisProcess.most_cores = count


def cores() -> int:
    """Number of cores that this process may use; all of them on systems other than Linux, which do not say."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(there, ThisProcess.most_cores or there)


def on_all_cores(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of `work` for `items`, in their order; several at the same time if there are several cores."""
    count = min(cores(), len(items), MOST_AT_ONCE)
    if count < 2:
        return [*map(work, items)]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(count, "torchtidy-columns") as pool:
        return [*pool.map(sharing_limits(work), items)]


@contextmanager
def meanwhile(*tasks: Callable[[], object]) -> Iterator[bool]:
    """Runs `tasks`, one after the other, in a thread beside the block; both end together. Gives whether it does.

    Each task keeps its result where others ask for it. A task that fails stays silent: the caller who asks computes
    the result again and gets the error, as without the thread. With a single core, nothing runs ahead.
    """
    if not tasks or cores() < 2:
        yield False
        return
    work = (sharing_limits(run_ahead), tasks)
    thread = Thread(target=_until_a_limit, args=work, name="torchtidy-meanwhile", daemon=True)
    with _SWITCHES.at(SWITCH_S):
        thread.start()
        try:
            yield True
            _join(thread)
        except LimitReachedError:
            _join_soon(thread)
            raise
        except Exception:  # not for an interrupt, which should end at once
            _join(thread)
            raise


def _until_a_limit(run: Callable[..., None], tasks: Sequence[Callable[[], object]]) -> None:
    with suppress(LimitReachedError):  # the main thread has it, too
        run(*tasks)


def _join(thread: Thread) -> None:
    while thread.is_alive():
        thread.join(_LOOK_S)


def _join_soon(thread: Thread) -> None:
    """Waits for a thread that is about to end, so that it takes no time from what this process does next."""
    last_s = time.monotonic() + PATIENCE_S
    while thread.is_alive() and time.monotonic() < last_s:
        with suppress(LimitReachedError):  # again
            thread.join(_LOOK_S)


def run_ahead(*tasks: Callable[[], object]) -> None:
    """Runs `tasks`, each of which keeps its result, or fails again when somebody asks for it."""
    for task in tasks:
        with suppress(Exception):
            task()
