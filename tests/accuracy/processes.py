"""Runs a program of the corpus in a fresh process that has torch imported already, within a limit of time.

Each process is forked off one that did nothing but import torch, so that no program sees what another one left, and
none pays for the import: 1 s instead of 4 s.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import Measured, MeasuringProgress, MeasuringRequest, Message, measured_answer
from tb_tidy_plugin.system.decoders import decode
from tests.accuracy.corpus import Program
from tests.accuracy.record import STEADY, Conditions, Results, capture, loaded, prepared, record, results_of, timed
from tests.lines.marked import record_step

Work: TypeAlias = Literal["record", "time", "capture", "mark", "record step", "results"]
Processes: TypeAlias = Sequence[ForkServerProcess]

LIMIT_S = 240.0
"""No program takes longer; compiling one takes half a minute on a busy machine."""

OUTPUT_LINES = 30
PR_SET_PDEATHSIG = 1
STEP_TRACE = "step.pt.trace.json"
RESULTS = "results.json"
MEASURED = "measured.json"
STEPS = "steps-"
"""Files with the times of steps, one per rank, begin like this."""
WARM = ["torch", "torch._dynamo", "torch.profiler", "torch.utils.checkpoint", "torch.utils.data"]

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(WARM)


class ProgramError(Exception):
    """A program that broke or did not end."""


def record_in(folder: Path, program: Program, limit_s: float = LIMIT_S) -> None:
    """Records the program, one trace per rank, into `folder`.

    Raises:
        ProgramError: it broke or did not end in time.
    """
    _run("record", folder, program, limit_s)


def capture_in(folder: Path, program: Program, limit_s: float = LIMIT_S, conditions: Conditions = STEADY) -> None:
    """Records the program with the side file, one trace per rank, into `folder`, as users do with `tidy_profile`.

    Raises:
        ProgramError: it broke or did not end in time.
    """
    _run("capture", folder, program, limit_s, conditions)


def record_step_in(folder: Path, program: Program, *, is_marked: bool, limit_s: float = LIMIT_S) -> Path:
    """The trace of one step of the program, with the true line of each instruction where it is to be marked.

    Raises:
        ProgramError: it broke or did not end in time.
    """
    _run("mark" if is_marked else "record step", folder, program, limit_s)
    return folder / STEP_TRACE


def results_in(folder: Path, program: Program, limit_s: float = LIMIT_S) -> Results:
    """What the program computes in a few steps from a fixed seed, in one process that works in `folder`.

    Raises:
        ProgramError: it broke or did not end in time.
    """
    _run("results", folder, program, limit_s)
    return decode((folder / RESULTS).read_bytes(), Results)


def measured_in(folder: Path, request: MeasuringRequest, limit_s: float = LIMIT_S) -> Measurement | NotMeasured:
    """The measurement of a pair of statements, which work in `folder`.

    Raises:
        TimeoutError: it did not end in time.
    """
    answer = folder / MEASURED
    process = _forks.Process(target=_measure, args=(msgspec.json.encode(request), answer))
    process.start()
    try:
        process.join(limit_s)
        if not answer.exists():
            raise TimeoutError(f"{request.rule} ended with {process.exitcode}, and without an answer")
    finally:
        _end(process)
    message: Message = decode(answer.read_bytes(), Message)
    assert not isinstance(message, MeasuringProgress)
    return message.measurement if isinstance(message, Measured) else message


@contextmanager
def started(work: Work, folder: Path, program: Program, conditions: Conditions = STEADY) -> Iterator[Processes]:
    """A process per rank of the program, all of which are ended at the end of the block."""
    ranks = [None] if program.ranks == 1 else list(range(program.ranks))
    given = (work, program.path, folder, conditions)
    processes = [_forks.Process(target=_in_child, args=(*given, rank)) for rank in ranks]
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            _end(process)


def signal_to(processes: Processes, number: signal.Signals) -> None:
    """Sends a signal to the processes and all that they have started, such as workers of loaders."""
    for process in processes:
        assert process.pid is not None
        with suppress(ProcessLookupError):  # it has ended, or has no group of its own yet
            os.killpg(process.pid, number)


def failure(processes: Processes, folder: Path, program: Program, limit_s: float) -> ProgramError:
    """What is to be said of processes of which one has broken, or that were not done in time."""
    broken = [process.exitcode for process in processes if process.exitcode]
    what = f"ended with exit status {broken[0]}" if broken else f"did not end within {limit_s:g} s"
    said = [line for path in sorted(folder.glob("output-*.txt")) for line in path.read_text().splitlines()]
    return ProgramError("\n".join([f"{program} {what}", *said[-OUTPUT_LINES:]]))


def _run(work: Work, folder: Path, program: Program, limit_s: float, conditions: Conditions = STEADY) -> None:
    with started(work, folder, program, conditions) as processes:
        _until_all_ended(processes, limit_s)
        if any(process.exitcode != 0 for process in processes):
            raise failure(processes, folder, program, limit_s)


def _until_all_ended(processes: Processes, limit_s: float) -> None:
    """Returns early where one breaks, since the other ranks then wait for it forever."""
    deadline = time.monotonic() + limit_s
    while running := [process for process in processes if process.exitcode is None]:
        if any(process.exitcode for process in processes) or time.monotonic() >= deadline:
            return
        wait([process.sentinel for process in running], max(deadline - time.monotonic(), 0.0))


def _end(process: ForkServerProcess) -> None:
    """Ends the process and what it has started, such as workers of its loaders."""
    if process.exitcode is None:
        signal_to([process], signal.SIGKILL)
        process.kill()
        process.join()
    process.close()


def _measure(request: bytes, answer: Path) -> None:
    _stand_alone()
    multiprocessing.set_start_method("fork", force=True)  # loaders' workers: what statements define cannot be pickled
    os.chdir(answer.parent)
    found = measured_answer(decode(request, MeasuringRequest), lambda _: None)
    answer.write_bytes(msgspec.json.encode(found))


def _stand_alone() -> None:
    """Makes this process the head of a group, which ends where the tests are killed."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # also where this process is held


def _in_child(work: Work, path: Path, folder: Path, conditions: Conditions, rank: int | None) -> None:
    _stand_alone()
    with (folder / f"output-{rank}.txt").open("wb") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    gc.freeze()  # what was imported is not looked at again, which would copy all its pages, in the middle of a step
    step = prepared(loaded(path), rank, folder / "store", conditions)
    match work:
        case "record":
            record(step, folder)
        case "time":
            timed(step, folder / f"{STEPS}{rank}")
        case "capture":
            capture(step, folder)
        case "results":
            (folder / RESULTS).write_bytes(msgspec.json.encode(results_of(step)))
        case "mark" | "record step":
            record_step(step, path, folder / STEP_TRACE, is_marked=work == "mark")
