"""Work that each report needs, done on a second core while the rules look."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from tb_tidy_plugin.trace.scanned import cores

SWITCH_S = 0.0005
"""After so long a thread that runs Python lets another one go on, a tenth of the usual time: work on whole columns
needs the interpreter for a moment between two operations."""


@contextmanager
def meanwhile(*tasks: Callable[[], object]) -> Iterator[None]:
    """Runs `tasks`, one after the other, in a thread beside the block, which ends when they are done.

    Each keeps what it works out where others ask for it. One that fails says nothing: whoever asks works it out again,
    and the error is theirs, as without the thread. Where this process has one core, nothing is done ahead.
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
