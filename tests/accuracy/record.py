"""Runs one program of the corpus: `python -m tests.accuracy.record PROGRAM` records it and prints what is found.

A program is a module with `build() -> step`: a function that sets everything up and returns the function that makes one
step. It may define

- `ALSO = {"rule-name": "why it is true of this program"}`: findings besides the one its folder is named after;
- `RANKS = 2`: run in so many processes, joined by gloo, one trace per rank.

Steps are recorded as users record them: wait 1, warm up 2, record 4, with shapes and stacks. Where several ranks run,
8 are recorded: who comes late depends on what else runs on the machine, too, and a habit must show beside that.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn

import msgspec

M_MMAP_THRESHOLD = -3
WAIT, WARMUP, ACTIVE, ACTIVE_TOGETHER = 1, 2, 4, 8
DISCARDED, UNRECORDED = 5, 20


class Conditions(NamedTuple):
    """Under which conditions a program runs.

    Attributes:
        uses_all_cores: torch takes all cores, shared among ranks, instead of one thread.
        maps_always: the C library maps new memory for each large tensor, recorded or not; else by its own threshold.
    """

    uses_all_cores: bool = False
    maps_always: bool = True

    def threads(self, ranks: int) -> int:
        """How many threads each of so many ranks may use."""
        return max((os.cpu_count() or 1) // ranks, 1) if self.uses_all_cores else 1


STEADY = Conditions()
"""What the corpus is counted under: what costs differ by is the program's own doing."""

REAL = {"library": Conditions(maps_always=False), "cores": Conditions(uses_all_cores=True, maps_always=False)}
"""As jobs run: with the C library's own threshold; with all cores as well."""

STEP_TIMES = struct.Struct("=ddd")
"""When a step began and ended, in seconds of `time.perf_counter`; and its CPU time, without that of other processes."""


def main() -> None:
    """Records one program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--into", type=Path, help="folder of the trace; by default a new one")
    parser.add_argument("--no-stack", action="store_true")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    module = loaded(given.program)
    ranks = getattr(module, "RANKS", 1)
    if ranks > 1 and given.rank is None:
        own = [sys.executable, "-m", "tests.accuracy.record", *sys.argv[1:]]
        processes = [subprocess.Popen([*own, "--rank", str(rank)]) for rank in range(ranks)]
        sys.exit(max(process.wait() for process in processes))
    step = prepared(module, given.rank, Path(tempfile.gettempdir(), f"tb-tidy-accuracy-{os.getppid()}"))
    record(step, given.into or Path("trace"), with_stack=not given.no_stack)


def loaded(program: Path) -> ModuleType:
    """The program as a module that can be imported by name, as torch.compile demands."""
    name = f"program_{program.stem}"
    spec = spec_from_file_location(name, program)
    assert spec is not None, program
    assert spec.loader is not None, program
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prepared(
    module: ModuleType, rank: int | None, store: Path, conditions: Conditions = STEADY
) -> Callable[[], object]:
    """The program's step, from a fixed seed; by default one thread, and allocations that cost the same when recorded.

    Args:
        module: the program.
        rank: which of its ranks this process is, None where it has only one.
        store: the file by which the ranks find each other.
        conditions: how many threads it has, and what an allocation costs.
    """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(conditions.threads(getattr(module, "RANKS", 1)))
    if conditions.maps_always and sys.platform == "linux":
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 131_072)
    multiprocessing.set_start_method("fork", force=True)  # loaders' workers: what a path defines cannot be pickled
    if rank is not None:
        address = f"file://{store.absolute()}"
        torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=module.RANKS)
    step: Callable[[], object] = module.build()
    return step


def timed(step: Callable[[], object], into: Path) -> NoReturn:
    """Makes steps without the profiler until the process is ended, and writes the times of each into a file.

    The file appears when the first few steps, whose times do not count, are done.
    """
    for _ in range(DISCARDED):
        step()
    with into.open("wb", buffering=0) as file:
        while True:
            start, cpu_start = time.perf_counter(), time.process_time()
            step()
            file.write(STEP_TIMES.pack(start, time.perf_counter(), time.process_time() - cpu_start))


def capture(step: Callable[[], object], folder: Path) -> None:
    """Records a few steps with `tidy_profile`, as its page says, and makes others around them, which it times."""
    from tb_tidy_plugin.capture import tidy_profile

    rank, active = _rank_and_active()
    with tidy_profile(str(folder), wait=DISCARDED, warmup=WARMUP, active=active, worker_name=rank) as recording:
        for _ in range(DISCARDED + WARMUP + active + UNRECORDED):
            step()
            recording.step()


class Results(msgspec.Struct, frozen=True):
    """What a program computed: the sum of what each step returned, a hash of all parameters, and the sum of each.

    Nothing at all where no step returned anything or changed a parameter.
    """

    losses: list[float]
    digest: str
    sums: list[float]


def results_of(step: Callable[[], object]) -> Results:
    """The results of a few steps, without the profiler."""
    before = _parameters()[0]
    returned = [step() for _ in range(DISCARDED)]
    digest, sums = _parameters()
    if digest == before and all(each is None for each in returned):
        return Results([], "", [])
    return Results([_sum_of(each) for each in returned], digest, sums)


def _parameters() -> tuple[str, list[float]]:
    import torch

    parameters = [each.detach() for each in gc.get_objects() if issubclass(type(each), torch.nn.Parameter)]
    digests = [hashlib.sha256(each.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest() for each in parameters]
    whole = hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    return whole, sorted(_sum_of(each) for each in parameters)


def _sum_of(value: object) -> float:
    import torch

    if isinstance(value, torch.Tensor):
        return float(value.detach().double().sum())
    if isinstance(value, (list, tuple)):
        return sum(map(_sum_of, value))
    return float(value) if isinstance(value, (int, float)) else 0.0


def _rank_and_active() -> tuple[str | None, int]:
    """The name of this process among others, and how many steps to record."""
    from torch import distributed

    return (f"rank{distributed.get_rank()}", ACTIVE_TOGETHER) if distributed.is_initialized() else (None, ACTIVE)


def record(step: Callable[[], object], folder: Path, *, with_stack: bool = True) -> None:
    """Writes one trace of a few steps into `folder`."""
    from torch import profiler

    rank, active = _rank_and_active()
    with profiler.profile(
        schedule=profiler.schedule(wait=WAIT, warmup=WARMUP, active=active),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder), worker_name=rank),
        record_shapes=True,
        with_stack=with_stack,
    ) as recording:
        for _ in range(WAIT + WARMUP + active):
            step()
            recording.step()


if __name__ == "__main__":
    main()
