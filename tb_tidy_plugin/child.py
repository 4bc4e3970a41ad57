"""Work in a process of its own, both sides: how it is started, and how it behaves.

Whoever starts a child holds its input open, and the child ends with it: so one that is killed leaves nothing running,
on any system. A child's messages have a way of their own, which nothing that is printed by accident gets into.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

INPUT = 0
SAFE_PATH = "PYTHONSAFEPATH"
MOST_SAID = 4000
"""Bytes of a child's complaints, the last ones, that are kept."""

SPARE_S = 600.0
"""How long a spare process waits for its question: it holds 60 MB."""


# The side that starts it


def command_for(module: str) -> tuple[str, ...]:
    """Runs `main` of a module; the folders to import from, `import_folders()`, follow as arguments.

    Not with `-m`, which would let a user's own `queue.py` or `profile.py` in the current folder stand in for Python's.
    """
    code = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import main; main()"
    return (sys.executable, "-c", code)


def import_folders() -> list[str]:
    """Where this process imports from; a child may begin in another folder."""
    return [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100


def start(command: Sequence[str], complaints: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """The child, in a session and group of its own, so that Ctrl-C in the terminal is not its.

    It complains into `complaints`, by default where this process does.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        [*command, *import_folders()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        close_fds=True,
        start_new_session=True,
    )


def send_line(process: subprocess.Popen[bytes], question: bytes) -> None:
    """One line for the child. Without Python's buffer, which would complain again on closing should the child be gone.

    Raises:
        BrokenPipeError: it is gone.
    """
    assert process.stdin is not None
    left = memoryview(question + b"\n")
    while left:  # a signal may end a write in the middle
        left = left[os.write(process.stdin.fileno(), left) :]


@contextmanager
def importing_nothing_here() -> Iterator[None]:
    """Meanwhile, a Python that any package starts with `-m` or `-c` imports nothing from the current folder.

    That may be the folder of somebody else's run, with a `queue.py` in it. Python 3.10 has no such switch: `shadowing`.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def shadowing(packages: Iterable[str]) -> list[str]:
    """Files and folders here that a child would import instead of `packages`, or of Python's own modules in use."""
    used = {name.partition(".")[0] for name in sys.modules} | {"runpy"}
    names = {*packages, *(used & sys.stdlib_module_names)}
    with suppress(OSError):  # the folder is gone, or cannot be listed; then nothing is imported from it either
        here = [each for each in Path.cwd().iterdir() if each.name.partition(".")[0] in names]
        return sorted(each.name for each in here if each.is_file() or any(each.glob("__init__.*")))
    return []


@contextmanager
def complaints() -> Iterator[IO[bytes]]:
    """What a child complains into; on a full disk, where no file can be made, nothing of it is kept.

    Raises:
        OSError: not even that can be opened.
    """
    try:
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    except OSError:
        file = open(os.devnull, "w+b")  # noqa: PTH123, SIM115
    try:
        yield file
    finally:
        with suppress(OSError):  # nobody needs it now
            file.close()


def said(complaints: IO[bytes]) -> str:
    """The last that a child complained of, or why that is not known."""
    try:
        complaints.seek(max(complaints.seek(0, os.SEEK_END) - MOST_SAID, 0))
        return complaints.read().decode("utf-8", "replace").strip()
    except OSError as problem:
        return f"what it said cannot be read: {problem.strerror or type(problem).__name__}"


class StartError(Exception):
    """A process could not be started; the text is the system's reason."""


class Ended(NamedTuple):
    """How a process ended: its exit code, negative for a signal, and the last that it complained of."""

    code: int
    complaint: str


class Started(NamedTuple):
    """A process, what it complains into, and what to close when it has ended."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    opened: ExitStack

    def end(self) -> None:
        """Ends the process at once."""
        with self.opened, self.process:
            self.process.kill()


def _started(command: Sequence[str]) -> Started:
    """The process, with its complaints in a file.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as opened:
        errors = opened.enter_context(complaints())
        return Started(start(command, errors), errors, opened.pop_all())


class Spare:
    """Keeps a process that has started and waits for its question. It answers one; it ends where none comes for long.

    May be used from any thread.
    """

    def __init__(self, command: Sequence[str], idle_s: float = SPARE_S) -> None:
        self.command = command
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._waiting: Started | None = None
        self._idle: threading.Timer | None = None

    def prepare(self) -> None:
        """Starts a process, unless one waits. Where none can be started, whoever asks a question is told so."""
        with self._lock, suppress(OSError):
            if self._waiting is None:
                self._waiting = _started(self.command)
                self._idle = threading.Timer(self._idle_s, self.close)
                self._idle.daemon = True
                self._idle.start()

    def take(self) -> Started:
        """The process that waits, else a new one.

        Raises:
            OSError: none can be started.
        """
        waiting = self._given_up()
        if waiting is not None and waiting.process.poll() is None:
            return waiting
        if waiting is not None:
            waiting.end()
        return _started(self.command)

    def close(self) -> None:
        """Ends the process that waits."""
        waiting = self._given_up()
        if waiting is not None:
            waiting.end()

    def _given_up(self) -> Started | None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
            if self._idle is not None:
                self._idle.cancel()
            return waiting


class Child:
    """A process for one question. May be stopped from any thread, before, while and after it runs.

    Attributes:
        is_stopped: whether somebody has stopped it; it is not started again then.
        is_late: whether it has reached its limit of time.
        ended: how it ended; None before that, and where it was not started.
    """

    def __init__(
        self, command: Sequence[str] | Spare, *, limit_s: float | None = None, whole_group: bool = False
    ) -> None:
        """`limit_s` bounds its time; with `whole_group` all ends with it that it has started, such as compilers."""
        self.is_stopped = False
        self.is_late = False
        self.ended: Ended | None = None
        self._spare = command if isinstance(command, Spare) else Spare(command)
        self._limit_s = limit_s
        self._whole_group = whole_group
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def asked(self, question: bytes) -> Iterator[Iterable[bytes]]:
        """The lines that the process answers; none where it was stopped before. Its input stays open meanwhile.

        Raises:
            StartError: it cannot be started.
        """
        self.ended = None
        with ExitStack() as opened:
            try:
                started = self._start()
            except OSError as problem:
                raise StartError(problem.strerror or type(problem).__name__) from None
            if started is None:
                yield ()
                return
            opened.enter_context(started.opened)
            process = started.process
            try:
                with process, self._bounded():
                    with suppress(BrokenPipeError):  # it is gone, which its exit code tells
                        send_line(process, question)
                    assert process.stdout is not None
                    yield process.stdout
            finally:
                with self._lock:
                    self._process = None  # its number may be another's from now on
                self.ended = Ended(process.returncode, said(started.complaints))

    def stop(self) -> None:
        """Ends the process, or keeps it from starting."""
        with self._lock:
            self.is_stopped = True
        self._kill()

    def _start(self) -> Started | None:
        with self._lock:
            if self.is_stopped:
                return None
            started = self._spare.take()
            self._process = started.process
            return started

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Kills the process where it is late, or where its answer is not understood.

        Its group is killed in any case, before the process is waited for, while its number is its own.
        """
        timer = threading.Timer(self._limit_s or 0, self._end_late)
        if self._limit_s is not None:
            timer.start()
        try:
            yield
        except BaseException:
            self._kill()
            raise
        finally:
            if self._whole_group:
                self._kill()
            timer.cancel()

    def _end_late(self) -> None:
        self.is_late = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            if self._process is None:
                return
            with suppress(ProcessLookupError, PermissionError):  # all are gone; macOS says so by the second
                if self._whole_group and hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()


# The child's side


def private_output() -> IO[bytes]:
    """The messages' own way out; whatever else writes to the standard output goes where complaints go."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def question() -> bytes:
    """The line that the child was asked with; nothing comes after it."""
    with os.fdopen(INPUT, "rb", closefd=False) as stream:
        return stream.readline()


def questions() -> Iterator[bytes]:
    """The lines that the child is asked with; it ends with its input at once, in the middle of an answer, too."""
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_fill, args=(lines,), daemon=True).start()
    while True:
        yield lines.get()


def _fill(lines: SimpleQueue[bytes]) -> None:
    with os.fdopen(INPUT, "rb", closefd=False) as stream:
        for line in stream:
            lines.put(line)
        os._exit(0)


def end_with_input(end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """From now on `end` is called when the input ends."""
    threading.Thread(target=_wait_for_end, args=(end,), daemon=True).start()


def _wait_for_end(end: Callable[[], object]) -> None:
    """Reads without Python's buffer, whose lock would be missed at exit."""
    with suppress(OSError):
        while os.read(INPUT, 1 << 10):
            pass
    end()


def step_back(nice: int = 0) -> None:
    """Lets others go first where processor time is short, and lets Linux end this process first if memory is."""
    if nice and hasattr(os, "nice"):
        os.nice(nice)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
