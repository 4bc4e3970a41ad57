"""How soon findings are there: `python -m tests.performance.serving` opens recordings in real TensorBoards.

Each recording is opened three times, each time with an empty cache, three times more by another TensorBoard with the
first one's cache, and once by torch-tb-profiler where that is installed. Figures are medians; times are of the clock,
from the moment at which TensorBoard listens: a busy machine makes all of them longer. `--check` compares ratios of them
with `ratios.json` and fails where one is worse by more than a factor of two; without it the page
docs/performance-tensorboard.md and that file are written.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import msgspec

from tb_tidy_plugin.system.decoders import decode
from tests.load.readers import children_of
from tests.performance.traces import recorded
from tests.support.served import Served, tensorboard

HERE = Path(__file__).resolve().parent
OPENINGS = 5
PAGE = HERE.parents[1] / "docs" / "performance-tensorboard.md"
RATIOS = HERE / "ratios.json"
MARGIN = 2.0
LIMIT_S = 600.0
OURS, THEIRS = "torchtidy", "torch_profiler"
PERIOD_S = 0.005
LOOK_S = 0.02  # between looks at the memory of workers
MB = 1e6

HEAD = """This page measures the wall-clock time in seconds from when TensorBoard starts to listen until it serves a
recording's findings. `python -m tests.performance.serving`, a part of `make bench`, measures and writes the page. A
second TensorBoard process opens the recording again from the cache. Medians of five openings, measured on {cores}
cores with a load of {load:.0f}: a busy machine lengthens all times.
"""

START = """
import argparse, time
import tensorboard.main, tensorboard.default
from tensorboard.plugins import base_plugin
began = time.process_time()
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.plugin.loader import Loader
loader = Loader()
loader.define_flags(argparse.ArgumentParser())
flags = argparse.Namespace(logdir=".", logdir_spec="", host="", bind_all=False, torchtidy_cache="off")
plugin = loader.load(base_plugin.TBContext(flags=flags, logdir="."))
plugin.get_plugin_apps(), plugin.is_active(), plugin.frontend_metadata()
print(time.process_time() - began)
"""


class Opening(msgspec.Struct, frozen=True):
    """Seconds until the findings, and until all is there; the most bytes that a worker held, 0 where none ran."""

    findings_s: float
    all_s: float
    worker_bytes: int


class Recording(msgspec.Struct, frozen=True):
    """What was measured of one file; `theirs_s` is None where torch-tb-profiler is not installed."""

    name: str
    size: int
    first: Opening
    again: Opening
    theirs_s: float | None

    @property
    def ratios(self) -> dict[str, float]:
        """Larger is better."""
        found = {f"{self.name}: first opening / second": self.first.findings_s / self.again.findings_s}
        if self.theirs_s is not None:
            found[f"{self.name}: torch-tb-profiler / first opening"] = self.theirs_s / self.first.findings_s
        return found


def main() -> None:
    """Measures, then checks or writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("build/performance"), help="where they are, or will be")
    parser.add_argument("--only", nargs="*", default=["10 MB", "100 MB", "500 MB", "1 GB"], metavar="SIZE")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    recordings = [measured(name, recorded(given.traces, name).path) for name in given.only]
    delay_s = min(start_delay_s() for _ in range(3))
    text = page(recordings, delay_s)
    sys.stdout.write(text)
    ratios = {name: round(ratio, 2) for each in recordings for name, ratio in each.ratios.items()}
    if given.check:
        sys.exit("\n".join(worse(ratios, decode(RATIOS.read_bytes(), dict[str, float]))) or 0)
    PAGE.write_text(text, "utf-8")
    RATIOS.write_bytes(msgspec.json.format(msgspec.json.encode(ratios), indent=2) + b"\n")


def worse(now: dict[str, float], before: dict[str, float]) -> list[str]:
    """A sentence for each ratio that got worse by more than the margin."""
    return [
        f"{name} was {before[name]:.1f} and is {now[name]:.1f}."
        for name in before.keys() & now.keys()
        if now[name] * MARGIN < before[name]
    ]


def measured(name: str, path: Path) -> Recording:
    """Opens a recording."""
    with tempfile.TemporaryDirectory(prefix="torchtidy-bench-") as folder:
        logdir = Path(folder, "logs")
        (logdir / "run").mkdir(parents=True)
        (logdir / "run" / path.name).symlink_to(path.resolve())
        first = middle([opened(logdir, Path(folder, f"cache-{number}")) for number in range(OPENINGS)])
        again = middle([opened(logdir, Path(folder, "cache-0")) for _ in range(OPENINGS)])
        theirs_s = opened_by_them(logdir) if entry_points(group="tensorboard_plugins", name=THEIRS) else None
    return Recording(name, path.stat().st_size, first, again, theirs_s)


def middle(openings: Sequence[Opening]) -> Opening:
    """The median of each figure: one opening differs from the next by up to a third."""
    return Opening(
        median(each.findings_s for each in openings),
        median(each.all_s for each in openings),
        round(median(each.worker_bytes for each in openings)),
    )


def opened(logdir: Path, cache: Path) -> Opening:
    """TensorBoard with this plugin alone, asked as the page asks: polls would take the cores that the worker needs."""
    arguments = ("--logdir", str(logdir), "--torchtidy_cache", str(cache), "--torchtidy_follow_links")
    with tensorboard(*arguments, folder=logdir.parent, without=(THEIRS,)) as served, peak_of_children(served) as peak:
        began = time.monotonic()
        until(lambda: served.api("runs")["runs"])
        (profile,) = served.api("runs")["runs"][0]["profiles"]
        key = urlencode({"run": "run", "worker": profile["worker"], "span": profile["span"]})
        findings_s = None
        if served.api(f"report?{key}")["states"][0]["state"] != "done":
            for state in served.progress(key):
                if state["reported"] and findings_s is None:
                    served.api(f"report?{key}")
                    findings_s = time.monotonic() - began
            (state,) = served.api(f"report?{key}")["states"]
            assert state["state"] == "done", state
        all_s = time.monotonic() - began
        return Opening(all_s if findings_s is None else findings_s, all_s, peak())


@contextmanager
def peak_of_children(served: Served) -> Iterator[Callable[[], int]]:
    """Gives the most memory that any child of the server has held so far, looked at all the time in between."""
    peak, is_over = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not is_over.wait(LOOK_S):
            peak = max(peak, worker_bytes(served.process.pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: peak
    finally:
        is_over.set()
        thread.join()


def opened_by_them(logdir: Path) -> float:
    """Seconds until torch-tb-profiler serves the run."""
    with tensorboard("--logdir", str(logdir), folder=logdir.parent, without=(OURS,)) as served:
        began = time.monotonic()
        until(lambda: is_served_by_them(served))
        return time.monotonic() - began


def is_served_by_them(served: Served) -> bool:
    """Whether the run is in their list."""
    answer = served.get("data/plugin/pytorch_profiler/runs").json()
    return bool(answer["runs"]) and not answer["loading"]


def until(condition: Callable[[], object]) -> None:
    """Waits until it is true."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"Nothing came within {LIMIT_S:.0f} s.")
        time.sleep(PERIOD_S)


def worker_bytes(parent: int) -> int:
    """The most memory that any child of a process has held until now; 0 where there is none, or no /proc."""
    return max(map(_peak, children_of(parent)), default=0)


def _peak(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def start_delay_s() -> float:
    """Seconds of processor time that TensorBoard's start takes longer with the plugin."""
    ended = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True)
    return float(ended.stdout.split()[-1])


def page(recordings: list[Recording], delay_s: float) -> str:
    """The page, in Markdown."""
    return "\n".join(_lines(recordings, delay_s)) + "\n"


def _lines(recordings: list[Recording], delay_s: float) -> Iterator[str]:
    yield "# Performance in TensorBoard\n"
    yield HEAD.format(cores=os.cpu_count(), load=os.getloadavg()[0])
    yield "| | MB | first: findings | first: all | second: findings | worker, GB | per byte | torch-tb-profiler |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for each in recordings:
        theirs = "not installed" if each.theirs_s is None else f"{each.theirs_s:.1f}"
        worker = each.first.worker_bytes
        cells = (f"{each.first.findings_s:.2f}", f"{each.first.all_s:.2f}", f"{each.again.findings_s:.2f}")
        memory = (f"{worker / 1e9:.2f}", f"{worker / each.size:.1f}")
        yield f"| {each.name} | {each.size / MB:.0f} | {' | '.join((*cells, *memory, theirs))} |"
    yield "\n| figure | limit | target | measured |"
    yield "|---|--:|--:|--:|"
    yield f"| added to TensorBoard's start | 0.1 s | 0.03 s | {delay_s:.3f} s |"
    slowest = max(each.again.findings_s for each in recordings)
    yield f"| slowest second opening | 0.5 s | 0.2 s | {slowest:.2f} s |"
    largest = max(recordings, key=lambda each: each.size)
    held = f"{largest.first.worker_bytes / 1e9:.2f} GB for {largest.size / 1e9:.2f} GB"
    yield f"| memory of the worker for a trace of 1 GB | 1.5 GB | 0.5 GB | {held} |"
    yield "\nHolisticTraceAnalysis is not a TensorBoard plugin, so it is not measured here."


if __name__ == "__main__":
    main()
