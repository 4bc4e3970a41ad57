"""What a child is asked reaches it whole."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tidy_plugin.system import child
from tests.support.waiting import until

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
        child.send_line(process, LONG)
        answer, _ = process.communicate()
    assert int(answer) == len(LONG) + 1


def test_what_would_be_imported_in_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    importlib.import_module("pickle")  # in use, as where work is handed to processes
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


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


ANSWERS = "import sys; print(sys.stdin.readline() * 2, end=''); sys.exit('no more')"
WAITS = "import sys; print('here', flush=True); sys.stdin.read()"


class TestChild:
    def test_its_lines_and_how_it_ended(self) -> None:
        process = child.Child(script(ANSWERS))
        with process.asked(b"one") as lines:
            assert process.ended is None
            assert [*lines] == [b"one\n", b"one\n"]
        assert process.ended == child.Ended(1, "no more")

    def test_it_may_be_asked_again(self) -> None:
        process = child.Child(script(ANSWERS))
        for question in (b"one", b"two"):
            with process.asked(question) as lines:
                assert next(iter(lines)) == question + b"\n"

    def test_one_that_was_stopped_is_not_started(self) -> None:
        process = child.Child(script(ANSWERS))
        process.stop()
        with process.asked(b"one") as lines:
            assert [*lines] == []
        assert process.ended is None

    def test_one_that_is_stopped_while_it_runs_is_killed(self) -> None:
        process = child.Child(script(WAITS))
        with process.asked(b"one") as lines:
            for _ in lines:
                process.stop()
        assert process.ended is not None
        assert (process.ended.code, process.is_stopped, process.is_late) == (-signal.SIGKILL, True, False)

    def test_one_that_takes_too_long_is_killed(self) -> None:
        process = child.Child(script(WAITS), limit_s=0.05)
        with process.asked(b"one") as lines:
            assert len([*lines]) <= 1
        assert process.ended is not None
        assert (process.ended.code, process.is_late) == (-signal.SIGKILL, True)

    def test_one_whose_answer_makes_no_sense_is_not_waited_for(self) -> None:
        process = child.Child(script("import time; print('x', flush=True); time.sleep(600)"))
        with pytest.raises(ValueError, match="invalid literal"), process.asked(b"one") as lines:
            int(next(iter(lines)))
        assert process.ended is not None
        assert process.ended.code == -signal.SIGKILL

    def test_one_that_cannot_be_started(self) -> None:
        with pytest.raises(child.StartError, match="No such file"), child.Child(("/nowhere/python",)).asked(b""):
            pytest.fail("it was started")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them")
class TestSpare:
    def test_the_process_that_waits_is_asked(self) -> None:
        spare = child.Spare(script(PLACE))
        spare.prepare()
        spare.prepare()  # one is enough
        first, second = (asked_of(child.Child(spare)) for _ in range(2))
        assert first[0] != second[0], "each answers one question"
        assert first[1:] == second[1:] == ["one", "no more"]

    def test_without_one_a_process_is_started(self) -> None:
        assert asked_of(child.Child(child.Spare(script(PLACE))))[1] == "one"

    def test_one_that_has_ended_meanwhile_is_not_asked(self, tmp_path: Path) -> None:
        begun = tmp_path / "begun"
        ends = f"import pathlib, sys; p = pathlib.Path({str(begun)!r}); p.exists() or (p.touch(), sys.exit()); {PLACE}"
        spare, others = child.Spare(script(ends)), running()
        spare.prepare()
        until(lambda: begun.exists() and running() <= others)
        assert asked_of(child.Child(spare))[1] == "one"

    def test_one_that_nobody_asks_ends(self) -> None:
        spare, others = child.Spare(script(WAITS), idle_s=0.05), running()
        spare.prepare()
        until(lambda: running() <= others)

    def test_one_that_is_stopped_before_is_left_for_the_next(self) -> None:
        spare = child.Spare(script(PLACE))
        spare.prepare()
        stopped = child.Child(spare)
        stopped.stop()
        with stopped.asked(b"one") as lines:
            assert [*lines] == []
        assert asked_of(child.Child(spare))[1] == "one"


PLACE = "import os, sys; print(os.getpid()); print(sys.stdin.readline(), end=''); sys.exit('no more')"


def running() -> set[int]:
    """Children of this process that have not ended; other tests may have left some."""
    found = Path("/proc/self/task").glob("*/children")
    numbers = [number for each in found for number in text_of(each).split()]
    return {int(number) for number in numbers if state_of(number) not in {"", "Z"}}


def state_of(number: str) -> str:
    """The state of a process by its letter, empty if it is gone."""
    return text_of(Path(f"/proc/{number}/stat")).rpartition(")")[2].strip()[:1]


def text_of(file: Path) -> str:
    """The text of a file of `/proc`, empty if its process or thread is gone."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def asked_of(process: child.Child) -> list[str]:
    """Its number, what it was asked, and what it complained of."""
    with process.asked(b"one") as lines:
        number, question = (line.decode().strip() for line in lines)
    assert process.ended is not None
    return [number, question, process.ended.complaint]
