"""`make load`: TensorBoard with 200 runs, then with 50 readers while a long recording is analysed; its page."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.load.readers import Read, memory_of, read, write_long
from tests.support.logdirs import trace
from tests.support.served import API, tensorboard

PAGE = Path(__file__).resolve().parents[2] / "docs" / "load.md"
OTHERS = ("torch_profiler",)
RUNS, READERS, PAUSE_S = 200, 50, 1.0
KEY = "run=run&worker=w&span="
OWN = (f"{API}/runs", f"{API}/rules", f"{API}/report?{KEY}")
TENSORBOARDS = ("data/environment", "data/runs")
MB = 1_000_000

HEAD = """# Load

This page measures resources and response times of TensorBoard with the plugin under load. `make load` measures and
writes it. In each test run, `tests/load` checks that nothing fails under a shorter load, or when workers are killed and
files are truncated, replaced or deleted during reading.

Python {python}, {cores} cores, {machine}. Other work on the machine at the start: a load average of {load:.1f}.
"""


def main() -> None:
    """Measures and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of reading")
    parser.add_argument("--megabytes", type=int, default=500, help="of the recording")
    given = parser.parse_args()
    text = "\n".join([*_head(), *_many_runs(), *_many_readers(given.seconds, given.megabytes * MB)]) + "\n"
    sys.stdout.write(text)
    PAGE.write_text(text, "utf-8")


def _head() -> Iterator[str]:
    yield HEAD.format(
        python=platform.python_version(), cores=os.cpu_count(), machine=platform.machine(), load=os.getloadavg()[0]
    )


def _many_runs() -> Iterator[str]:
    yield f"## {RUNS} runs in a logdir\n"
    yield "| | start, s | memory, MB | first list of runs, s | later list of runs, s |"
    yield "|---|--:|--:|--:|--:|"
    with tempfile.TemporaryDirectory(prefix="torchtidy-load-") as name:
        folder = Path(name)
        for number in range(RUNS):
            trace(folder / "logs" / f"run_{number:03}" / "w.pt.trace.json")
        for title, without in (("with the plugin", OTHERS), ("without it", (*OTHERS, "torchtidy"))):
            with tensorboard("--logdir", str(folder / "logs"), folder=folder, without=without) as board:
                times = ["", ""]
                if "torchtidy" not in without:
                    for turn in range(len(times)):
                        began_s = time.monotonic()
                        assert len(board.runs()) == RUNS
                        times[turn] = f"{time.monotonic() - began_s:.3f}"
                memory = memory_of(board.process.pid) / MB
                yield f"| {title} | {board.started_s:.1f} | {memory:.0f} | {times[0]} | {times[1]} |"


def _many_readers(seconds: float, size: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="torchtidy-load-") as name:
        folder = Path(name)
        events = write_long(folder / "logs" / "run" / "w.pt.trace.json", size)
        flags = ("--logdir", str(folder / "logs"))
        with tensorboard(*flags, folder=folder, without=(*OTHERS, "torchtidy")) as board:
            before = read(board.address, TENSORBOARDS, READERS, seconds / 3, PAUSE_S)
        with tensorboard(*flags, "--torchtidy_cache", "off", folder=folder, without=OTHERS) as board:
            board.api(f"report?{KEY}")
            found = read(board.address, (*OWN, *TENSORBOARDS), READERS, seconds, PAUSE_S)
            state = board.analysed(KEY)["states"][0]["state"]
            memory = memory_of(board.process.pid) / MB
    yield f"\n## {READERS} readers for {seconds:.0f} s while a recording of {size / MB:.0f} MB is analysed\n"
    yield f"Each reader sends a request, then waits {PAUSE_S:.0f} s. The recording has {events:,} events."
    yield f"Its analysis ended with `{state}`; TensorBoard's process then held {memory:.0f} MB.\n"
    yield "| request | answers | errors | median, ms | 99th percentile, ms | median, relative to no plugin |"
    yield "|---|--:|--:|--:|--:|--:|"
    for question, each in found.items():
        ratio = f"{each.at(0.5) / before[question].at(0.5):.2f}" if question in before else ""
        yield f"| {_row(question, each)} | {ratio} |"
    for question, each in before.items():
        yield f"| without the plugin: {_row(question, each)} | 1 |"


def _row(question: str, each: Read) -> str:
    shown = question.replace(KEY, "…")
    return (
        f"`{shown}` | {len(each.seconds)} | {len(each.errors)} | {each.at(0.5) * 1e3:.0f} | {each.at(0.99) * 1e3:.0f}"
    )


if __name__ == "__main__":
    main()
