"""The steps of two programs, timed in turns, without the profiler.

Machines get faster and slower within seconds: other guests, clocks, caches. So both programs are there at once, each in
fresh processes of its own, and each is held while the other one runs, a fraction of a second at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from statistics import median
from typing import NamedTuple

import numpy as np

from tests.accuracy.corpus import Program
from tests.accuracy.processes import LIMIT_S, STEPS, Processes, failure, signal_to, started
from tests.accuracy.record import STEADY, STEP_TIMES, Conditions

TURNS, TURN_S = 8, 0.25
POLL_S = 0.005


class StepSeconds(NamedTuple):
    """The median step of a program; CPU time is that of all threads of a process, without what it started."""

    wall: float
    cpu: float


class Timed(NamedTuple):
    """A program whose processes make steps when it is its turn; otherwise they are held, with all that they started."""

    program: Program
    folder: Path
    processes: Processes

    def turn(self, seconds: float) -> StepSeconds:
        """The median step of one turn, of the slowest rank; a turn is longer where no step is done so soon.

        Raises:
            ProgramError: it broke, or made no step in time.
        """
        start = time.perf_counter()
        signal_to(self.processes, SIGCONT)
        time.sleep(seconds)
        return self._held_after_a_step(start)

    def ready(self) -> Timed:
        """Held after the steps that do not count.

        Raises:
            ProgramError: it broke, or made no step in time.
        """
        self._held_after_a_step(time.perf_counter())
        return self

    def _held_after_a_step(self, start: float) -> StepSeconds:
        while not (steps := self.steps_since(start)):
            if any(process.exitcode for process in self.processes) or time.perf_counter() > start + LIMIT_S:
                raise failure(self.processes, self.folder, self.program, LIMIT_S)
            time.sleep(POLL_S)
        signal_to(self.processes, SIGSTOP)
        return max(steps)

    def steps_since(self, start: float) -> list[StepSeconds]:
        """The median step of each rank since then; nothing where one of them has made none."""
        found = []
        for path in self.folder.glob(f"{STEPS}*"):
            data = path.read_bytes()
            times = np.frombuffer(data[: len(data) // STEP_TIMES.size * STEP_TIMES.size]).reshape(-1, 3)
            starts, ends, cpu = times[times[:, 0] >= start].T
            if len(starts):
                found.append(StepSeconds(float(np.median(ends - starts)), float(np.median(cpu))))
        return found if len(found) == len(self.processes) else []


def in_turns(folder: Path, *programs: Program, conditions: Conditions = STEADY) -> list[StepSeconds]:
    """The steps of programs in fresh processes, which work below `folder`: of each the median over its turns.

    Raises:
        ProgramError: one broke, or made no step in time.
    """
    with ExitStack() as stack:
        running = [_ready(stack, folder / str(number), program, conditions) for number, program in enumerate(programs)]
        turns = [one_turn_each(running, number) for number in range(TURNS)]
    return [StepSeconds(*map(median, zip(*steps, strict=True))) for steps in zip(*turns, strict=True)]


def one_turn_each(running: Sequence[Timed], first: int) -> list[StepSeconds]:
    """A turn of each, in their order; another one comes first each time, so that none always follows the same one."""
    at = first % len(running)
    steps = [each.turn(TURN_S) for each in (*running[at:], *running[:at])]
    return steps[len(running) - at :] + steps[: len(running) - at]


def _ready(stack: ExitStack, folder: Path, program: Program, conditions: Conditions) -> Timed:
    folder.mkdir()
    return Timed(program, folder, stack.enter_context(started("time", folder, program, conditions))).ready()
