"""The pieces of a run, each of which takes seconds: pairs by size, benchmarks by rule, sample runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sample_runs.record import ON_A_GPU, SAMPLES, record, story
from tb_tidy_plugin.benchmarks.measurement import NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import PairMeasurement
from tests.accuracy.corpus import Program
from tests.accuracy.processes import ProgramError
from tests.accuracy.statements import OF_RULES, pairs_of
from tests.gpu_proof.corpus import KINDS, Pair, pairs
from tests.gpu_proof.state import Result, State
from tests.gpu_proof.worker import Record, Results, Start, Turn, Worker, WorkerError, difference, started

LIMIT_S = 120.0
"""No piece takes longer; compiling one pair takes half of it."""

LEAST_LEFT_S = 15.0
"""No piece is begun with less time left."""

GPU_SAMPLES = [SAMPLES / name for name in story([script.parent.name for script in SAMPLES.glob(f"*{ON_A_GPU}*/*.py")])]
"""Folders of the sample runs that need a GPU, in the order of recording."""


class OutOfTimeError(Exception):
    """The run's time ended during a piece, which has to be run again."""


@dataclass(frozen=True)
class Plan:
    """How a run is made: on which device (`cuda` or `cpu`), which sizes, how many turns of how many seconds."""

    device: str
    sizes: Sequence[str]
    turns: int = 6
    turn_s: float = 0.25
    benchmark_s: float = 2.0
    attempts: int = 3
    start: Start = "forkserver"


@dataclass(frozen=True)
class Piece:
    """A part of the run with a result of its own.

    Attributes:
        name: its folder (`pair/sync_readback/small`).
        run: makes it in a folder until a time of `time.monotonic`.
    """

    name: str
    run: Callable[[Path, float], Result]


def pieces(plan: Plan) -> Iterator[Piece]:
    """All pieces, those first that say most: pairs at their middle size, benchmarks, samples, then the other sizes."""
    first, *others = sorted(plan.sizes, key=lambda each: each != "middle")
    yield from _of_pairs(first, plan)
    yield from (Piece(f"benchmark/{name_of(each)}", _of_rule(each, plan)) for each in OF_RULES)
    for sample in GPU_SAMPLES:
        yield Piece(f"sample/{sample.name}", _of_sample(sample, plan))
    for size in others:
        yield from _of_pairs(size, plan)


def _of_pairs(size: str, plan: Plan) -> Iterator[Piece]:
    return (Piece(f"pair/{pair.name}/{size}", _of_pair(pair, size, plan)) for pair in pairs())


def name_of(program: Program) -> str:
    """A rule's name, with that of the program's kind of file: some rules have a recorded and a drawn one."""
    return program.rule + (".drawn" if program.is_drawn else "")


def run(
    state: State, chosen: Sequence[Piece], seconds: float, clocks: Callable[[], str], say: Callable[[str], object]
) -> bool:
    """Runs what is not done, as long as the time allows; whether everything is done then.

    Args:
        state, chosen: where results go, and the pieces in order.
        seconds: the time.
        clocks: reads the device's clocks.
        say: is called with a line after each piece.
    """
    ends = time.monotonic() + seconds
    for number, piece in enumerate(chosen, start=1):
        if state.result(piece.name) is not None:
            continue
        began = time.monotonic()
        if ends - began < LEAST_LEFT_S:
            return False
        folder, before = state.begin(piece.name), clocks()
        until = min(began + LIMIT_S, ends)
        try:
            result = piece.run(folder, until)
        except (WorkerError, ProgramError, OSError, ValueError) as problem:
            if time.monotonic() >= until < began + LIMIT_S:
                return False  # it had less time than its own: not its fault
            result = Result(error=str(problem)[:4000] or type(problem).__name__)
        state.end(piece.name, _with_clocks(result, [before, clocks()]))
        say(f"{number} of {len(chosen)}  {piece.name}  {time.monotonic() - began:.1f} s  {_said(result)}")
    return True


def _with_clocks(result: Result, clocks: list[str]) -> Result:
    import msgspec

    return msgspec.structs.replace(result, clocks=clocks)


def _said(result: Result) -> str:
    if result.error:
        return f"failed: {result.error.splitlines()[-1]}"
    if result.slow and result.fixed:
        ratio = sorted(result.slow)[len(result.slow) // 2] / sorted(result.fixed)[len(result.fixed) // 2]
        return f"{ratio:.2f} times faster"
    return f"{1 / result.benchmark.ratio:.2f} times faster" if result.benchmark else "done"


def _of_pair(pair: Pair, size: str, plan: Plan) -> Callable[[Path, float], Result]:
    """Equal results first; then steps in turns without the profiler; then a recording of each."""

    def run(folder: Path, until: float) -> Result:
        with (
            started(pair, "slow", folder, plan.device, size, plan.start) as slow,
            started(pair, "fixed", folder, plan.device, size, plan.start) as fixed,
        ):
            both: tuple[Worker, Worker] = slow, fixed
            apart = difference(*(worker.ask(Results(), until) for worker in both))
            turns = [[worker.ask(Turn(plan.turn_s), until) for worker in both] for _ in range(plan.turns)]
            for kind, worker in zip(KINDS, both, strict=True):
                worker.ask(Record(str(folder / kind)), until)
        seconds = [list(each) for each in zip(*turns, strict=True)]
        return Result(slow=seconds[0], fixed=seconds[1], difference=apart, tolerance=pair.tolerance)

    return run


def _of_rule(program: Program, plan: Plan) -> Callable[[Path, float], Result]:
    """The statements of the corpus' program of a rule, measured on the device."""

    def run(folder: Path, until: float) -> Result:
        (statements, *_) = pairs_of(program)
        request = MeasuringRequest(rule=program.rule, pair=statements, asked=plan.device, budget_s=plan.benchmark_s)
        found = PairMeasurement(request).result()
        return (
            Result(error=f"{found.error} {found.advice}") if isinstance(found, NotMeasured) else Result(benchmark=found)
        )

    return run


def _of_sample(sample: Path, plan: Plan) -> Callable[[Path, float], Result]:
    """A sample run's script and its trace, which names nothing of the machine."""

    def run(folder: Path, until: float) -> Result:
        for script in sample.glob("*.py"):
            shutil.copy(script, folder)
        record(folder, plan.attempts, ["--device", plan.device])
        return Result()

    return run
