"""`python -m tests.accuracy.mapped PROGRAM.py`: the pages that a program maps in each step, in several processes.

The C library returns freed memory at the end of the heap to the system. Where large tensors lie there, each step maps
their pages again. Whether they do differs from process to process, and with it the time of a step.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.accuracy.record import DISCARDED, REAL, loaded, prepared
from tests.support.environments import same_imports

PROCESSES, STEPS = 6, 200


class MappedSteps(NamedTuple):
    """The median step of one process, and the median of the pages that a step maps."""

    step_ms: float
    pages: float


def main() -> None:
    """Prints a line for each process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--conditions", choices=sorted(REAL), default="cores")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        json.dump(mapped(given.program, given.conditions, given.steps), sys.stdout)
        return
    command = [sys.executable, "-m", __spec__.name, str(given.program), "--conditions", given.conditions]
    command += ["--steps", str(given.steps), "--here"]
    for _ in range(given.processes):
        done = subprocess.run(command, env=same_imports(), check=True, capture_output=True)
        found = MappedSteps(*json.loads(done.stdout))
        sys.stdout.write(f"{found.step_ms:.2f} ms, {found.pages:.0f} pages\n")


def mapped(program: Path, conditions: str, steps: int) -> MappedSteps:
    """Measures the program's steps in this process."""
    times, pages = [], []
    with TemporaryDirectory() as folder:
        step = prepared(loaded(program), None, Path(folder, "store"), REAL[conditions])
        for number in range(DISCARDED + steps):
            before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
            step()
            took_s = time.perf_counter() - start
            if number >= DISCARDED:
                times.append(took_s)
                pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return MappedSteps(1e3 * median(times), median(pages))


if __name__ == "__main__":
    main()
