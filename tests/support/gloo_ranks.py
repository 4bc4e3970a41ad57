"""Real jobs of eight ranks on the CPU, recorded as users record them: `python -m tests.support.gloo_ranks FOLDER`.

All jobs run one after the other in the same processes, forked from one that has imported torch: importing it eight
times would take longer than all recordings together. Ranks are slowed by sleeping, which takes the same time on a
busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.environments import same_imports
from tests.support.waiting import until

WORLD = 8
STEPS, WAIT, WARMUP = 8, 1, 2
SLOWED_RANK, SLOW_S = 3, 0.2
LOADING_RANK, LOADING_S = 5, 0.15
WIDTH, BATCH = 64, 16
LIMIT_S = 300.0  # usually 20 s to 30 s


class Job(NamedTuple):
    """The differences between jobs: how long one rank sleeps in each step, and while loading each batch."""

    name: str
    rank: int = 0
    sleeps_s: float = 0.0
    loads_s: float = 0.0


JOBS = (
    Job("balanced"),
    Job("slowed", SLOWED_RANK, sleeps_s=SLOW_S),
    Job("loading", LOADING_RANK, loads_s=LOADING_S),
)


def recorded(folder: Path) -> Path:
    """The folder with all jobs; the first test process records them, the others wait."""
    jobs, done = folder / "gloo_ranks", folder / "gloo_ranks.done"
    try:
        jobs.mkdir()
    except FileExistsError:
        until(done.exists, LIMIT_S)
        return jobs
    own = [sys.executable, "-m", "tests.support.gloo_ranks", str(jobs)]
    environment = same_imports(OMP_NUM_THREADS="1")
    finished = subprocess.run(own, env=environment, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    done.touch()
    return jobs


def main() -> None:
    """Records each job into a folder of its name."""
    folder = Path(sys.argv[1])
    import torch

    torch.set_num_threads(1)
    children = [_forked(folder, rank) for rank in range(WORLD)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))


def _forked(folder: Path, rank: int) -> int:
    """Forks the process of one rank; returns its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _record(folder, rank)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _record(folder: Path, rank: int) -> None:
    from torch import distributed

    address = f"file://{(folder / 'meeting').absolute()}"
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=WORLD)
    for job in JOBS:
        _train(job, folder / job.name, rank)
        distributed.barrier()
    distributed.destroy_process_group()


def _train(job: Job, folder: Path, rank: int) -> None:
    import torch
    from torch import nn, profiler
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    mine = rank == job.rank
    model = DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = WAIT + WARMUP + STEPS
    samples = TensorDataset(torch.randn(BATCH * total, WIDTH))

    def collate(batch: list[tuple[torch.Tensor, ...]]) -> torch.Tensor:
        time.sleep(job.loads_s if mine else 0)
        return torch.stack([sample for (sample,) in batch])

    with profiler.profile(
        schedule=profiler.schedule(wait=WAIT, warmup=WARMUP, active=STEPS),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder), worker_name=f"rank{rank}"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as recording:
        for batch in DataLoader(samples, batch_size=BATCH, collate_fn=collate):
            time.sleep(job.sleeps_s if mine else 0)
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            recording.step()


if __name__ == "__main__":
    main()
