"""Work that each report needs, done on a second core while the rules run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from tb_tidy_plugin.trace.scanned import cores

SWITCH_S = 0.0005
"""Interpreter switch interval in s, a tenth of the default: work on whole columns needs the interpreter only for a
moment between two operations.
"""


@contextmanager
def meanwhile(*tasks: Callable[[], object]) -> Iterator[None]:
    """Runs `tasks`, one after the other, in a thread beside the block; both end together.

    Each task caches its result where others ask for it. A task that fails stays silent: the caller who asks computes
    the result again and gets the error, as without the thread. With a single core, nothing runs ahead.
    """
    if not tasks or cores() < 2:
        yield
        return
    usual_s = sys.getswitchinterval()
    thread = Thread(target=_run, args=(tasks,), name="torchtidy-meanwhile", daemon=True)
    sys.setswitchinterval(SWITCH_S)
    thread.start()
    try:
        yield
        thread.join()
    finally:
        sys.setswitchinterval(usual_s)


def _run(tasks: tuple[Callable[[], object], ...]) -> None:
    for task in tasks:
        with suppress(Exception):
            task()
