"""`tb-tidy record`: a program as it is, with a recording of some of its steps."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType

import click

from tb_tidy_plugin.capture.bootstrap import sitecustomize
from tb_tidy_plugin.capture.recording import RANKS, ProcessNote, RecordingPlan
from tb_tidy_plugin.trace.names import is_trace_name
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.visible import visible

RUNS = "runs"
BY_SIGNAL = 128
"""Added to a signal's number: the exit code of a program that it has ended, as in a shell."""

PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to the program as well."""

_UNNAMED = re.compile(r"[^\w.-]+")
_NO_STEPS = (
    "no optimizer made a step in the main thread of the program. Without an optimizer, as in inference, mark the steps "
    "with `tidy_profile` (docs/capture.md)"
)
_NO_PYTHON = "it started no Python, or one that ignores PYTHONPATH (`python -E`, `-I`, `-S`)"


@click.command(short_help="Record a program without changing it.", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@click.option("-m", "is_module", is_flag=True, help="COMMAND is a module and its arguments, as for `python -m`.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder of the run; by default a new one, {RUNS}/<program>-<number>.",
)
@click.option("--steps", type=click.IntRange(1), default=5, show_default=True, help="Record this many steps.")
@click.option(
    "--wait",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Let this many steps pass before the profiler.",
)
@click.option(
    "--warmup", type=click.IntRange(0), default=2, show_default=True, help="Warm the profiler up for this many steps."
)
@click.option("--stacks/--no-stacks", default=True, show_default=True, help="Record the functions of your code.")
def record(
    command: tuple[str, ...], is_module: bool, output: Path | None, steps: int, wait: int, warmup: int, stacks: bool
) -> None:
    """Run COMMAND, and record some of its training steps with shapes, stacks and exact lines.

    A step lasts from one `step` of an optimizer to the next. COMMAND is a program with its arguments, such as `python
    train.py` or `torchrun train.py`, or a Python script. Each rank writes its own recording.

    The exit code is that of COMMAND; 128 plus the signal's number if a signal has ended it.
    """
    words = _words(command, is_module)
    folder = _new_folder(words) if output is None else output
    had = _traces(folder)
    with tempfile.TemporaryDirectory(prefix="tb-tidy-record-") as notes:
        plan = RecordingPlan(str(folder.absolute()), wait, warmup, steps, stacks)
        code = _run(words, {**os.environ, **_settings(plan, Path(notes))})
        written = len(_traces(folder) - had)
        told = [*(_recorded(folder, written, plan, Path(notes)) if written else _not_recorded(plan, Path(notes)))]
    if output is None:
        with suppress(OSError):
            folder.rmdir()  # if it is empty
    for line in told:
        click.echo(f"tb-tidy: {visible(line)}", err=True)
    sys.exit(code)


def _words(command: Sequence[str], is_module: bool) -> list[str]:
    if is_module:
        return [sys.executable, "-m", *command]
    if command[0] == "-m" or command[0].endswith(".py"):
        return [sys.executable, *command]
    return [*command]


def _new_folder(words: Sequence[str]) -> Path:
    """A new folder that is named after the program."""
    if set(RANKS) & os.environ.keys():
        raise TidyError(
            "`tb-tidy record` runs once for each rank, and all ranks belong into one folder.",
            "Name it with `-o FOLDER`.",
        )
    scripts = [Path(word).stem for word in words if word.endswith(".py")]
    modules = [after.rpartition(".")[2] for word, after in pairwise(words) if word == "-m"]
    name = _UNNAMED.sub("_", next(iter((*scripts, *modules, Path(words[0]).stem)))) or "program"
    number = 1
    while True:
        folder = Path(RUNS, f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        except OSError as problem:
            raise TidyError(f"{folder} cannot be created: {problem.strerror}.", "Name a folder with `-o`.") from None
        else:
            return folder


def _traces(folder: Path) -> set[str]:
    with suppress(OSError):
        return {path.name for path in folder.iterdir() if is_trace_name(path.name)}
    return set()


def _settings(plan: RecordingPlan, notes: Path) -> Mapping[str, str]:
    """Variables of the environment with which each Python of the program watches its optimizers."""
    places = [str(Path(sitecustomize.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(places),
        sitecustomize.SETTINGS: plan.to_text(),
        sitecustomize.NOTES_FOLDER: str(notes),
    }


def _run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the program in the place of this one, and returns its exit code.

    Raises:
        TidyError: it cannot be started.
    """
    started: list[subprocess.Popen[bytes]] = []
    with _signals_for(started):
        try:
            started.append(subprocess.Popen(words, env=environment))
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise TidyError(f"`{words[0]}` cannot be started: {reason}.", "Check the command after `--`.") from None
        code = started[0].wait()
    return BY_SIGNAL - code if code < 0 else code


@contextmanager
def _signals_for(started: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Meanwhile, the program gets the signals that this process gets; only it decides what they mean."""

    def pass_on(number: int, _: FrameType | None) -> None:
        is_known = signal.Signals(number).name in FROM_TERMINAL and _is_in_foreground()
        if started and not is_known:
            with suppress(OSError):
                started[0].send_signal(number)

    numbers = [getattr(signal, name) for name in (*PASSED_ON, *FROM_TERMINAL) if hasattr(signal, name)]
    known = {number: signal.getsignal(number) for number in numbers}
    for number, handler in known.items():
        if handler != signal.SIG_IGN:  # the program inherits that
            signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """True if Ctrl-C reaches the program without our help: the terminal sends it to each process of its group."""
    if os.name == "nt":
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


# The outcome


def _notes_in(folder: Path) -> list[ProcessNote]:
    found = []
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, TypeError):
            found.append(ProcessNote(**json.loads(path.read_text(encoding="utf-8"))))
    return found


def _recorded(folder: Path, traces: int, plan: RecordingPlan, notes: Path) -> Iterator[str]:
    found = [note for note in _notes_in(notes) if note.recorded] or [ProcessNote()]
    steps = max(note.recorded for note in found)
    counted = "1 step" if steps == 1 else f"{steps} steps"
    part = (
        counted
        if steps >= plan.steps
        else f"{steps} of {plan.steps} steps, since the program ended or uses a profiler,"
    )
    ranks = f", {traces} files" if traces > 1 else ""
    yield f"recorded {part} of {found[0].optimizer or 'the program'}: {folder}{ranks}"
    yield f"next: tb-tidy check {shlex.quote(str(folder))}"


def _not_recorded(plan: RecordingPlan, notes: Path) -> Iterator[str]:
    yield f"nothing was recorded: {_reason(plan, _notes_in(notes), notes)}."


def _reason(plan: RecordingPlan, found: Sequence[ProcessNote], notes: Path) -> str:
    met = {path.name for path in notes.iterdir()}
    ended_by = {note.ended_by for note in found}
    seen = max((note.seen for note in found), default=0)
    steps = "1 step was seen" if seen == 1 else f"{seen} steps were seen"
    needed = plan.wait + plan.warmup + plan.steps
    reasons = (
        ("failed" in met, f"watching the program failed: {_text_of(notes / 'failed')}"),
        ("python" not in met, _NO_PYTHON),
        ("torch" not in met, "the program did not import torch"),
        ("profiler" in ended_by, "the program uses a profiler of its own. Open what it writes, or switch it off"),
        ("failed" in ended_by, "recording failed, as the program's log says"),
        (not seen, _NO_STEPS),
        (all(not note.ended_by for note in found), "the program was killed, or ended with `os._exit`, before its end"),
        (seen < needed, f"{steps}, and a recording takes {needed}. Run more steps, or lower `--wait` and `--steps`"),
    )
    return next(
        (reason for is_so, reason in reasons if is_so), "the program ended too early, or its log has the reason"
    )


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
