"""`python -m tests.estimate.pauses`: how much of its time a computation gains without a pause; into docs/estimates.md.

Forward and backward passes of a small network follow each other, or each follows some milliseconds of Python work. The
two kinds run in turns, with one thread and with all cores, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tests.estimate.__main__ import PAGE
from tests.support.page_parts import write_part

PAUSES_MS = (0.3, 1.0, 3.0, 10.0, 30.0)
PASSES = (1, 4, 16)
ROUNDS, STEPS, DISCARDED = 7, 25, 5


class Gain(NamedTuple):
    """What one computation gains without one pause.

    Attributes:
        alone_ms: the computation's median time without pauses.
        shares: by round, the part of its time after a pause that it does not take without; negative if it takes more.
    """

    threads: int
    pause_ms: float
    alone_ms: float
    shares: tuple[float, ...]


def main() -> None:
    """Measures and writes the table; with `--threads`, measures in this process and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.threads:
        json.dump(gains(given.threads), sys.stdout)
        return
    found = [gain for threads in dict.fromkeys((1, os.cpu_count() or 1)) for gain in _in_own_process(threads)]
    write_part(PAGE, "pauses", table(found))


def gains(
    threads: int,
    pauses_ms: Sequence[float] = PAUSES_MS,
    passes: Sequence[int] = PASSES,
    rounds: int = ROUNDS,
    steps: int = STEPS,
) -> list[Gain]:
    """The gain from each pause, by the length of the computation, in turns."""
    computation = _computation(threads)
    found = []
    for repeats in passes:
        times: dict[float, list[float]] = {}
        for _ in range(rounds):
            for pause_ms in (0.0, *pauses_ms):
                times.setdefault(pause_ms, []).append(_after(pause_ms, computation, repeats, steps))
        alone = times.pop(0.0)
        for pause_ms, after in times.items():
            shares = tuple(1 - one / other for one, other in zip(alone, after, strict=True))
            found.append(Gain(threads, pause_ms, 1e3 * statistics.median(alone), shares))
    return found


def table(found: Iterable[Gain]) -> str:
    """A row for each number of threads and length of the computation, a column for each pause."""
    rows: dict[tuple[int, float], dict[float, str]] = {}
    for threads, pause_ms, alone_ms, shares in found:
        middle, least, most = (round(100 * each) for each in (statistics.median(shares), min(shares), max(shares)))
        rows.setdefault((threads, alone_ms), {})[pause_ms] = f"{middle} % ({least} to {most})"
    pauses = list(dict.fromkeys(pause_ms for row in rows.values() for pause_ms in row))
    lines = [
        f"| threads | computation | {' | '.join(f'after {pause_ms:g} ms' for pause_ms in pauses)} |",
        f"|--:|--:|{'--:|' * len(pauses)}",
    ]
    for (threads, alone_ms), row in rows.items():
        lines.append(f"| {threads} | {alone_ms:.1f} ms | {' | '.join(row[pause_ms] for pause_ms in pauses)} |")
    return "".join(f"{line}\n" for line in lines)


def _in_own_process(threads: int) -> list[Gain]:
    command = [sys.executable, "-m", "tests.estimate.pauses", "--threads", str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    answer = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return [Gain(*each) for each in json.loads(answer.stdout)]


def _computation(threads: int) -> Callable[[], object]:
    import torch

    torch.set_num_threads(threads)
    layers = (torch.nn.Linear(100, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU())
    model = torch.nn.Sequential(*layers, torch.nn.Linear(128, 10))
    batch = torch.randn(32, 100)

    def computed() -> None:
        model.zero_grad()
        model(batch).sum().backward()

    return computed


def _after(pause_ms: float, computation: Callable[[], object], repeats: int, steps: int) -> float:
    """Median time of the computation in seconds, each after a pause; the first ones are not counted."""
    times = []
    for _ in range(DISCARDED + steps):
        _work_in_python(pause_ms / 1e3)
        began = time.perf_counter()
        for _ in range(repeats):
            computation()
        times.append(time.perf_counter() - began)
    return statistics.median(times[DISCARDED:])


def _work_in_python(seconds: float) -> None:
    """Makes and reads small Python objects for that long, as code that prepares data does."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum([str(number).count("1") for number in range(100)])


if __name__ == "__main__":
    main()
