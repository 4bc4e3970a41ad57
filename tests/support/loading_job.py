"""`python -m tests.support.loading_job FOLDER`: records a job that waits for its loader's workers, with `tidy_profile`.

Into FOLDER/sleeping, whose workers sleep, FOLDER/computing, whose workers compute, and FOLDER/beside, where another
loader's workers wait to be asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

from tb_tidy_plugin.capture import tidy_profile

BATCH_S = 0.02
WORKERS, RECORDED = 2, 12
AHEAD = 2 * WORKERS  # batches that workers have or make before they are asked for, by PyTorch's default


def compute(seconds: float) -> None:
    """Takes as much processor time, however busy the machine is."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class Batches(Dataset[int]):
    def __init__(self, load: Callable[[float], None]) -> None:
        self.load = load

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        self.load(BATCH_S)
        return index


def record(folder: Path, load: Callable[[float], None]) -> None:
    batches = iter(DataLoader(Batches(load), batch_size=None, num_workers=WORKERS))
    with tidy_profile(str(folder), wait=1, warmup=1, active=RECORDED) as profiler:
        for _ in range(RECORDED + 3):
            next(batches)
            profiler.step()


def main() -> None:
    into = Path(sys.argv[1])
    record(into / "sleeping", time.sleep)
    record(into / "computing", compute)
    validation = iter(DataLoader(Batches(compute), batch_size=None, num_workers=1))
    next(validation)
    record(into / "beside", compute)
    next(validation)


if __name__ == "__main__":
    main()
