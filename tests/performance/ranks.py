"""`python -m tests.performance.ranks`: how long `tb-tidy check` takes for many ranks of one job.

The ranks are hard links of one recording, so all of them are read from memory. All numbers of ranks are measured in
turn, in fresh processes; the page, docs/performance-ranks.md, has medians, and where the time of one rank goes.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from tb_tidy_plugin.system.decoders import decode
from tests.performance.peers import MB, ROOT, TORCHTIDY, Taken, measured
from tests.performance.traces import Trace, recorded

PAGE = ROOT / "docs" / "performance-ranks.md"
ROUNDS = 3
RANKS = (16, 64, 256)
SIZES = ("10 MB", "25 MB")
WARM, TIMES = 2, 10
STAGES = ("text to columns", "tree and profile", "ledger", "rules, savings and report")


def main() -> None:
    """Records what is missing, measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("build/performance"), help="where they are, or will be")
    parser.add_argument("--trace", type=Path, help="measure with this recording instead")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-page", action="store_true", help="print only")
    parser.add_argument("--stages", type=Path, help="print only the seconds of each stage of this recording, as JSON")
    given = parser.parse_args()
    if given.stages:
        sys.stdout.write(msgspec.json.encode(stages(given.stages)).decode())
        return
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
        yield f"\nBeyond the start of the processes, each rank takes {each_s:.3f} s of processor time. In a worker that"
        yield "has read others before:\n"
        command = [sys.executable, "-m", "tests.performance.ranks", "--stages", str(trace.path)]
        found = decode(subprocess.run(command, check=True, capture_output=True).stdout, list[float])
        yield "| stage of a rank | processor time, ms | share |"
        yield "|---|--:|--:|"
        for name, stage_s in zip(STAGES, found, strict=True):
            yield f"| {name} | {1e3 * stage_s:.1f} | {100 * stage_s / sum(found):.0f} % |"


def stages(path: Path) -> list[float]:
    """Processor time of each of `STAGES` in s, the mean of some ranks after the first ones."""
    from tb_tidy_plugin.analysis.answers import FIXES
    from tb_tidy_plugin.analysis.assemble import analysis_of
    from tb_tidy_plugin.analysis.job import Job
    from tb_tidy_plugin.analysis.reading import trace_in
    from tb_tidy_plugin.ledger.account import account_of
    from tb_tidy_plugin.system.allocator import spare_memory
    from tb_tidy_plugin.system.collector import held_off
    from tb_tidy_plugin.system.threads import use_cores
    from tb_tidy_plugin.trace.files import find_traces
    from tb_tidy_plugin.trace.strings import remember_answers

    spare_memory()
    use_cores(1)
    remember_answers()
    [file], job, sums = find_traces(path), Job(), [0.0] * len(STAGES)
    for number in range(WARM + TIMES):
        with held_off():
            times = [time.process_time()]
            read = trace_in(file, job)
            times.append(time.process_time())
            analysis = analysis_of(file, job, read)
            times.append(time.process_time())
            account_of(analysis.profile)
            times.append(time.process_time())
            FIXES.of(analysis)
            times.append(time.process_time())
        if number >= WARM:
            sums = [before + end - start for before, start, end in zip(sums, times[:-1], times[1:], strict=True)]
    return [each / TIMES for each in sums]


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
