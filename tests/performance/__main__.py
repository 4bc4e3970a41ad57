"""`make bench`: how fast traces are read and judged, in figures and ratios; writes docs/performance.md.

The traces are recorded here, by torch: training steps of a small language model with stacks, shapes and memory. Each
figure is the best of some fresh processes, in seconds of processor time, which other work disturbs least.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tb_tidy_plugin.system.compiled import DECODER, is_usable
from tb_tidy_plugin.system.decoders import decode
from tests.performance.measured import Figure
from tests.performance.traces import STEPS, Trace, recorded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
SIZES = ("10 MB", "100 MB", "500 MB")
MB = 1e6
LARGE_BYTES = 100e6


def main() -> None:
    """Records what is not there yet, measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("build/performance"), help="where they are, or will be")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest process counts")
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    if not is_usable(DECODER):
        sys.exit("The compiled decoder is missing: `tb-tidy doctor` says how to get it.")
    text = page({name: recorded(given.traces, name) for name in STEPS}, given.rounds)
    sys.stdout.write(text)
    if not given.no_page:
        PAGE.write_text(text, "utf-8")


def page(traces: dict[str, Trace], rounds: int) -> str:
    """The page, in Markdown, of the traces by their names."""
    return "\n".join(_sections(traces, rounds)) + "\n"


def _sections(traces: dict[str, Trace], rounds: int) -> Iterator[str]:
    small, middle, large = (traces[name] for name in SIZES)
    yield HEAD.format(python=platform.python_version(), numpy=np.__version__, machine=platform.machine(), rounds=rounds)
    yield "\n## Text to columns\n"
    yield "| | MB of text | decoder | s | MB/s | against orjson | memory per byte of text |"
    yield "|---|--:|---|--:|--:|--:|--:|"
    for trace in (middle, large):
        objects = best("orjson", trace.path, rounds)
        yield _decoding(trace, "orjson, objects only", objects, objects)
        yield _decoding(trace, "compiled, one thread", best("columns", trace.path, rounds), objects)
        yield _decoding(trace, "portable", best("portable", trace.path, rounds), objects)
    yield from _packed(middle, rounds)
    yield "\n## Columns to report\n"
    yield "| | task | processor time, s | wall-clock time, s |"
    yield "|---|---|--:|--:|"
    rows = [(middle, "tree"), (large, "tree"), (middle, "plain tree"), (large, "plain tree")]
    rows += [(middle, "report"), (large, "report"), (small, "process")]
    for trace, task in rows:
        figure = best(task, trace.path, rounds)
        yield f"| {trace.name} | {TITLES[task]} | {figure.cpu:.3f} | {figure.wall:.3f} |"
    yield from _growth(traces, rounds)


def _growth(traces: dict[str, Trace], rounds: int) -> Iterator[str]:
    tasks = [(trace.path, task) for trace in traces.values() for task in ("columns", "report")]
    in_turn = [[_figure(task, path) for path, task in tasks] for _ in range(rounds)]
    fastest = iter([_fastest(figures) for figures in zip(*in_turn, strict=True)])
    pairs = [(trace, next(fastest), next(fastest)) for trace in traces.values()]
    each_us = [1e6 * whole.cpu / read.events for trace, read, whole in pairs if trace.size >= LARGE_BYTES]
    yield "\n## Growth\n"
    yield "All sizes are measured in turn, since the machine's speed changes within minutes. From 100 MB on, the time"
    yield f"per event differs by a factor of {max(each_us) / min(each_us):.1f} at most. The memory per byte of text"
    yield "falls at first, then stays the same.\n"
    yield "| | MB of text | events | reading, s | file to report, s | µs per event | memory, MB | per byte of text |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for trace, read, whole in pairs:
        cells = (
            f"{trace.size / MB:.0f}",
            f"{read.events:,}",
            f"{read.cpu:.2f}",
            f"{whole.cpu:.2f}",
            f"{1e6 * whole.cpu / read.events:.2f}",
            f"{whole.grown / MB:.0f}",
            f"{whole.grown / trace.size:.2f}",
        )
        yield f"| {trace.name} | {' | '.join(cells)} |"


TITLES = {
    "tree": "the event tree, compiled",
    "plain tree": "the event tree, in Python",
    "report": "file to report: all rules, lines, replayed savings",
    "process": "a whole `tb-tidy check`, imports included",
}

HEAD = """# Performance

This page measures the speed of reading and analysing traces. `make bench` records the traces, measures and writes this
page: training steps of a small language model with stacks, shapes and memory. Python {python}, numpy {numpy},
{machine}.

- Each figure is the best of {rounds} fresh processes.
- Seconds are processor time, summed over threads, since wall-clock time includes other work on the machine.
- orjson builds Python objects with the garbage collector off, the first step of other tools.
- Memory is the process' peak beyond its initial memory, and includes the columns."""


def _decoding(trace: Trace, decoder: str, figure: Figure, objects: Figure) -> str:
    speed = trace.size / MB / figure.cpu
    share, memory = objects.cpu / figure.cpu, figure.grown / trace.size
    cells = (f"{figure.cpu:.3f}", f"{speed:.0f}", f"{share:.1f} ×", f"{memory:.2f}")
    return f"| {trace.name} | {trace.size / MB:.1f} | {decoder} | {' | '.join(cells)} |"


def _packed(trace: Trace, rounds: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="torchtidy-bench-") as folder:
        packed = Path(folder, f"{trace.path.name}.gz")
        with trace.path.open("rb") as text, gzip.open(packed, "wb", compresslevel=6) as file:
            shutil.copyfileobj(text, file)
        plain, figure = (best("threads", path, rounds) for path in (trace.path, packed))
    yield "\nFrom gz, with all threads:\n"
    yield "| | from | processor time, s | wall-clock time, s |"
    yield "|---|---|--:|--:|"
    for name, each in (("text", plain), ("gz", figure)):
        yield f"| {trace.name} | {name} | {each.cpu:.3f} | {each.wall:.3f} |"


def best(name: str, path: Path, rounds: int) -> Figure:
    """The one of some fresh processes that took least processor time, with the least time on the clock of all."""
    return _fastest([_figure(name, path) for _ in range(rounds)])


def _figure(name: str, path: Path) -> Figure:
    command = [sys.executable, "-m", "tests.performance.measured", name, str(path)]
    return decode(subprocess.run(command, check=True, capture_output=True).stdout, Figure)


def _fastest(figures: Sequence[Figure]) -> Figure:
    fastest = min(figures, key=lambda each: each.cpu)
    fastest.wall = min(each.wall for each in figures)
    return fastest


if __name__ == "__main__":
    main()
