"""What a child is asked reaches it whole."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from tb_tidy_plugin import child

LONG = b"x" * 1_000_000  # more than a pipe holds
COUNTS = "import sys, time; time.sleep(0.2); print(len(sys.stdin.buffer.readline()))"


@pytest.fixture
def interrupted() -> Iterator[None]:
    """A signal that comes while the child does not read yet."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals here")
@pytest.mark.usefixtures("interrupted")
def test_a_question_that_a_signal_interrupts() -> None:
    with child.start((sys.executable, "-c", COUNTS)) as process:
        child.ask(process, LONG)
        answer, _ = process.communicate()
    assert int(answer) == len(LONG) + 1
