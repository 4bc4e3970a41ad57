"""What a child is asked reaches it whole."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

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


def test_what_would_be_imported_in_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("queue.py", "runpy.pyc", "loky.cpython-310-x86_64-linux-gnu.so", "train.py", "tests.py", "numpy.py"):
        (tmp_path / name).touch()
    (tmp_path / "json").mkdir()  # a folder of data
    (tmp_path / "pickle").mkdir()
    (tmp_path / "pickle" / "__init__.py").touch()
    names = ["loky.cpython-310-x86_64-linux-gnu.so", "pickle", "queue.py", "runpy.pyc"]
    assert child.shadowing(["loky"]) == names


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(child.SAFE_PATH, raising=False)
    with child.importing_nothing_here():
        assert os.environ[child.SAFE_PATH]
    assert child.SAFE_PATH not in os.environ
    monkeypatch.setenv(child.SAFE_PATH, "yes")
    with child.importing_nothing_here():
        pass
    assert os.environ[child.SAFE_PATH] == "yes"
