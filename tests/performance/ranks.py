"""`python -m tests.performance.ranks`: how long `tb-tidy check` takes for many ranks of one job.

The ranks are hard links of one recording, so all of them are read from memory. All numbers of ranks are measured in
turn, in fresh processes; the page, docs/performance-ranks.md, has medians.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tests.performance.peers import MB, ROOT, TORCHTIDY, Taken, measured
from tests.performance.traces import Trace, recorded

PAGE = ROOT / "docs" / "performance-ranks.md"
ROUNDS = 3
RANKS = (16, 64, 256)
SIZES = ("10 MB", "25 MB")


def main() -> None:
    """Records what is missing, measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("build/performance"), help="where they are, or will be")
    parser.add_argument("--trace", type=Path, help="measure with this recording instead")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    own = [Trace(given.trace.name, given.trace, given.trace.stat().st_size)] if given.trace else []
    text = page(own or [recorded(given.traces, name) for name in SIZES], given.ranks, given.rounds)
    sys.stdout.write(text)
    if not given.no_page:
        PAGE.write_text(text, "utf-8")


def page(traces: Sequence[Trace], ranks: Sequence[int], rounds: int) -> str:
    """The page, in Markdown."""
    return "\n".join(_lines(traces, sorted(ranks), rounds)) + "\n"


def _lines(traces: Sequence[Trace], ranks: Sequence[int], rounds: int) -> Iterator[str]:
    yield HEAD.format(python=platform.python_version(), cores=os.cpu_count(), rounds=rounds)
    for trace in traces:
        taken = dict(zip(ranks, rounds_of(trace, ranks, rounds), strict=True))
        yield f"\n## Ranks of {trace.size / MB:.0f} MB of text\n"
        yield "| ranks | wall-clock, s | range, s | processor time, s | per rank, s | largest process, MB |"
        yield "|--:|--:|--:|--:|--:|--:|"
        for count, each in taken.items():
            cells = (
                f"{median(each.wall):.2f}",
                f"{min(each.wall):.2f}–{max(each.wall):.2f}",
                f"{median(each.cpu):.2f}",
                f"{median(each.cpu) / count:.3f}",
                f"{median(each.memory) / MB:.0f}",
            )
            yield f"| {count} | {' | '.join(cells)} |"
        fewest, most = taken[ranks[0]], taken[ranks[-1]]
        each_s = (median(most.cpu) - median(fewest.cpu)) / max(ranks[-1] - ranks[0], 1)
        yield f"\nBeyond the start of the processes, each rank takes {each_s:.3f} s of processor time."


def rounds_of(trace: Trace, ranks: Sequence[int], rounds: int) -> list[Taken]:
    """What each number of ranks took, so many times in turn."""
    found = [Taken() for _ in ranks]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="torchtidy-ranks-", dir=trace.path.parent) as folder:
        for count in ranks:
            run = Path(folder, str(count))
            run.mkdir()
            for rank in range(count):
                os.link(trace.path, run / f"rank{rank}.pt.trace.json")
        for _ in range(rounds):
            for count, taken in zip(ranks, found, strict=True):
                command = [sys.executable, "-c", TORCHTIDY.program, str(Path(folder, str(count)).absolute())]
                wall, cpu, memory = measured(command, environment)
                taken.wall.append(wall)
                taken.cpu.append(cpu)
                taken.memory.append(memory)
    return found


HEAD = """# Many ranks

This page measures `tb-tidy check --no-cache` on a folder of ranks, from plain Python to the end. The ranks are hard
links of one recording: training steps of a small language model with stacks, shapes and memory.
`python -m tests.performance.ranks`, a part of `make bench`, measures and writes the page; `--trace FILE` measures with
another recording. Medians of {rounds} runs in turn, Python {python}, {cores} cores."""


if __name__ == "__main__":
    main()
