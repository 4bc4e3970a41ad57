"""Work in a separate process, both sides: its start, and its behaviour.

The parent holds the child's input open, and the child ends with it: so a killed parent leaves nothing running, on any
system. A child's messages have an output of their own, separate from anything printed by accident.
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
"""Most bytes kept of a child's stderr, the last ones."""

SPARE_S = 600.0
"""Time that a spare process waits for its question: it holds 60 MB."""


# The parent's side


def command_for(module: str) -> tuple[str, ...]:
    """Command that runs `main` of a module; the folders to import from, `import_folders()`, follow as arguments.

    Not with `-m`, which would let a user's own `queue.py` or `profile.py` in the current folder replace Python's. If it
    crashes, it writes the stack of each thread to its stderr, which is logged.
    """
    code = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import main; main()"
    return (sys.executable, "-X", "faulthandler", "-c", code)


def import_folders() -> list[str]:
    """Folders that this process imports from; a child may start in another folder."""
    return [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - an empty one, too


def start(command: Sequence[str], complaints: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Starts the child, in a session and group of its own, so that Ctrl-C in the terminal does not reach it.

    Its stderr goes to `complaints`, by default to that of this process.

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
    """Sends the child one line. Without Python's buffer, which would raise again on closing if the child is gone.

    Raises:
        BrokenPipeError: it is gone.
    """
    assert process.stdin is not None
    left = memoryview(question + b"\n")
    while left:  # a signal may interrupt a write
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
    """A file for a child's stderr; on a full disk, where no file can be created, the output is dropped.

    Raises:
        OSError: not even that can be opened.
    """
    try:
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    except OSError:
        file = open(os.devnull, "w+b")  # noqa: PTH123, SIM115 - closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # nobody needs it now
            file.close()


def said(complaints: IO[bytes]) -> str:
    """The last output in a child's stderr, or the reason why it is unknown."""
    try:
        complaints.seek(max(complaints.seek(0, os.SEEK_END) - MOST_SAID, 0))
        return complaints.read().decode("utf-8", "replace").strip()
    except OSError as problem:
        return f"what it said cannot be read: {problem.strerror or type(problem).__name__}"


class StartError(Exception):
    """A process could not be started; the text is the system's reason."""


class Ended(NamedTuple):
    """The end of a process: its exit code, negative for a signal, and its last stderr output."""

    code: int
    complaint: str


class Started(NamedTuple):
    """A process, the file for its stderr, and the resources to close when it has ended."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    opened: ExitStack

    def end(self) -> None:
        """Ends the process at once."""
        with self.opened, self.process:
            self.process.kill()


def _started(command: Sequence[str]) -> Started:
    """The process, with its stderr in a file.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as opened:
        errors = opened.enter_context(complaints())
        return Started(start(command, errors), errors, opened.pop_all())


class Spare:
    """Keeps a started process that waits for its question. It answers one; it ends if none comes for long.

    May be used from any thread.
    """

    def __init__(self, command: Sequence[str], idle_s: float = SPARE_S) -> None:
        self.command = command
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._waiting: Started | None = None
        self._idle: threading.Timer | None = None

    def prepare(self) -> None:
        """Starts a process, unless one waits. If that fails, the next question reports it."""
        with self._lock, suppress(OSError):
            if self._waiting is None:
                self._waiting = _started(self.command)
                self._idle = threading.Timer(self._idle_s, self.close)
                self._idle.daemon = True
                self._idle.start()

    def take(self) -> Started:
        """The waiting process, else a new one.

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
        """Ends the waiting process."""
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
    """A process for one question. Any thread may stop it, before, during and after its run.

    Attributes:
        is_stopped: True if somebody has stopped it; it is then not started again.
        is_late: True if it has reached its time limit.
        ended: how it ended; None before that, and if it was not started.
    """

    def __init__(
        self, command: Sequence[str] | Spare, *, limit_s: float | None = None, whole_group: bool = False
    ) -> None:
        """`limit_s` limits its time; with `whole_group` all its own child processes, such as compilers, end with it."""
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
        """The lines that the process answers; empty if it was stopped before. Its input stays open meanwhile.

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
                    self._process = None  # its number may be reused from now on
                self.ended = Ended(process.returncode, said(started.complaints))

    def stop(self) -> None:
        """Ends the process, or prevents its start."""
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
        """Kills the process if it is late, or if its answer is invalid.

        Its group is always killed, before waiting for the process, while its number is its own.
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
            with suppress(ProcessLookupError, PermissionError):  # all are gone; macOS reports that with the second
                if self._whole_group and hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()


# The child's side


def private_output() -> IO[bytes]:
    """The messages' own output; anything else written to stdout goes to stderr."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def question() -> bytes:
    """The question to the child, a single line."""
    with os.fdopen(INPUT, "rb", closefd=False) as stream:
        return stream.readline()


def questions() -> Iterator[bytes]:
    """The questions to the child, one per line; it ends with its input at once, even in the middle of an answer."""
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
    """Calls `end` when the input ends."""
    threading.Thread(target=_wait_for_end, args=(end,), daemon=True).start()


def _wait_for_end(end: Callable[[], object]) -> None:
    """Reads without Python's buffer, whose lock would cause trouble at exit."""
    with suppress(OSError):
        while os.read(INPUT, 1 << 10):
            pass
    end()


def step_back(nice: int = 0) -> None:
    """Gives other processes priority for processor time, and lets Linux end this process first if memory is short."""
    if nice and hasattr(os, "nice"):
        os.nice(nice)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
