"""One program of a pair in a process of its own, which makes steps when it is asked to.

The process answers each request of
`Request` through its connection with what the request's own line says, until the connection is closed.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tests.accuracy.processes import WARM
from tests.accuracy.record import capture
from tests.gpu_proof.corpus import Kind, Pair

COMPARED_STEPS, WARM_STEPS = 3, 5
MOST_COMPARED = 4096
LEAST_STEPS_IN_A_TURN, MOST_STEPS_IN_A_TURN = 8, 2000
UNTIMED_STEPS = 4
"""First steps of a turn, which are not timed: while the other program ran, a loader's workers filled their queues."""
PR_SET_PDEATHSIG = 1
OUTPUT_CHARACTERS = 1500
ENDING_S = 10

Start: TypeAlias = Literal["forkserver", "spawn"]
"""How processes begin: forked off one that has imported torch, or each by itself, which takes seconds longer."""

_CONTEXTS: dict[Start, ForkServerContext | SpawnContext] = {
    "forkserver": multiprocessing.get_context("forkserver"),
    "spawn": multiprocessing.get_context("spawn"),
}
multiprocessing.set_forkserver_preload(WARM)
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # else asking for a device starts CUDA, which no fork survives


class WorkerError(Exception):
    """A program that broke or did not answer in time."""


class Results(NamedTuple):
    """Asks for the results of the first steps: an array for each, at most `MOST_COMPARED` values of it."""


class Turn(NamedTuple):
    """Asks for steps during about so many seconds: the seconds of one of them, in floats."""

    seconds: float


class Record(NamedTuple):
    """Asks for a recording into a folder: None."""

    folder: str


@dataclass(frozen=True)
class Worker:
    """The process of a program."""

    process: BaseProcess
    connection: Connection
    output: Path
    name: str

    def ask(self, request: Results | Turn | Record, until: float) -> Any:  # noqa: ANN401 - each request has its own answer
        """The answer to a request.

        Raises:
            WorkerError: the program broke, or did not answer until this time of `time.monotonic`.
        """
        with suppress(OSError):  # the process has ended, as the next line finds
            self.connection.send(request)
        try:
            if not self.connection.poll(max(until - time.monotonic(), 0.0)):
                raise WorkerError(f"{self.name} did not answer in time")
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join(ENDING_S)  # its last words are written
            said = self.output.read_text("utf-8", "replace").strip()[-OUTPUT_CHARACTERS:]
            raise WorkerError(f"{self.name} broke: {said or 'without a word'}") from None


@contextmanager
def started(
    pair: Pair, kind: Kind, folder: Path, device: str, size: str, start: Start = "forkserver"
) -> Iterator[Worker]:
    """The process of a program, which ends with the block; `folder` gets its output."""
    processes = _CONTEXTS[start]
    ours, its = processes.Pipe()
    output = folder / f"{kind}.log"
    process = processes.Process(target=_serve, args=(its, pair.module(kind), device, pair.sizes[size], output))
    process.start()
    its.close()
    try:
        yield Worker(process, ours, output, f"{pair.name}/{kind}.py")
    finally:
        ours.close()
        assert process.pid is not None
        with suppress(ProcessLookupError):  # also what it has started, such as workers of loaders
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()


def built(module: str, device: str, size: object) -> Callable[[], Any]:
    """The step of a program, always from the same random numbers."""
    import torch

    torch.manual_seed(0)
    step: Callable[[], Any] = importlib.import_module(module).build(device, size)
    return step


def values(result: Any) -> np.ndarray[Any, np.dtype[np.float64]]:  # noqa: ANN401 - a tensor
    """At most so many values of a tensor, evenly chosen."""
    flat = result.detach().double().cpu().numpy().reshape(-1)
    every = -(-len(flat) // MOST_COMPARED)
    return np.array(flat[:: max(every, 1)])


def difference(first: list[Any], second: list[Any]) -> float:
    """The largest difference of two lists of arrays, by their largest value; infinite where one is not finite."""
    one, other = np.concatenate(first), np.concatenate(second)
    if one.shape != other.shape or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    return float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-12))


def _serve(connection: Connection, module: str, device: str, size: object, output: Path) -> None:
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with output.open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    multiprocessing.set_start_method("fork", force=True)  # of loaders' workers, which never touch the device
    if device == "cpu":
        _keep_to_one_core()
    step, done = built(module, device, size), _waiting(device)
    step_s = 0.0
    while True:
        try:
            request: Results | Turn | Record = connection.recv()
        except EOFError:
            return
        match request:
            case Results():
                connection.send([values(step()) for _ in range(COMPARED_STEPS)])
                _timed(step, done, WARM_STEPS)
                step_s = _timed(step, done, WARM_STEPS)
            case Turn(seconds):
                _timed(step, done, UNTIMED_STEPS)
                steps = min(max(round(seconds / step_s), LEAST_STEPS_IN_A_TURN), MOST_STEPS_IN_A_TURN)
                connection.send(_timed(step, done, steps))
            case Record(folder):
                capture(step, Path(folder))
                connection.send(None)


def _timed(step: Callable[[], Any], done: Callable[[], object], steps: int) -> float:
    """Seconds of a step: of so many in a row, until the device has done them, too."""
    done()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    done()
    return (time.perf_counter() - start) / steps


def _keep_to_one_core() -> None:
    """Two programs whose threads wait for each other's cores would measure the waiting."""
    import torch

    torch.set_num_threads(1)


def _waiting(device: str) -> Callable[[], object]:
    import torch

    return torch.cuda.synchronize if device == "cuda" else lambda: None
