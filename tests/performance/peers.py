"""`python -m tests.performance.peers`: how long whole processes take from a recording to its figures, beside peers.

Each peer is installed into an environment of its own below `build/peers/`, with its version pinned here. Processes are
started from plain Python, one of each tool in turn, so that what else the machine does falls on all of them; the page,
docs/performance-peers.md, has medians and spreads. What each of them does is not the same, and the page says what.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tb_tidy_plugin.system.decoders import decode
from tests.performance.traces import Trace, recorded

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance-peers.md"
ROUNDS = 5
LIMIT_S = 600
MB = 1e6


@dataclass(frozen=True)
class Tool:
    """A program that reads the trace of its last argument.

    Attributes:
        requirement: what pip installs for it; empty for what is installed here.
        does: what a run of it makes, for the page.
        most: the largest traces it is run on, in bytes of text: beyond that it takes minutes a run.
    """

    name: str
    requirement: str
    does: str
    program: str
    most: float = float("inf")


SCRIPT = "import sys; from tb_tidy_plugin.cli.main import script"
TORCHTIDY = Tool(
    "tb-tidy check --no-cache",
    "",
    "all rules, lines, ledger and replayed savings, printed",
    f"{SCRIPT}; sys.argv[:1] = ['tb-tidy', 'check', '--no-cache']; script()",
)
CACHED = Tool(
    "tb-tidy check, from its cache",
    "",
    "the same report, cached by an earlier run",
    f"{SCRIPT}; sys.argv[:1] = ['tb-tidy', 'check']; script()",
)
PEERS = (
    Tool(
        "torch-tb-profiler 0.4.3",
        "torch-tb-profiler==0.4.3",
        "the content of its tab: overview, operators, kernels, memory",
        """
import sys, warnings
warnings.simplefilter("ignore")
from torch_tb_profiler.io import Cache
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
with Cache() as cache:
    data = RunProfileData.parse("worker", None, sys.argv[1], cache.cache_dir)
    data.process()
    RunGenerator("worker", None, data).generate_run_profile()
""",
    ),
    Tool(
        "HolisticTraceAnalysis 0.5.0",
        "HolisticTraceAnalysis==0.5.0",
        "the trace as a data frame; its analyses cover devices",
        """
import sys
from hta.common.trace import Trace
trace = Trace(trace_files={0: sys.argv[1]}, trace_dir="")
trace.parse_traces(use_multiprocessing=False)
assert len(trace.get_trace(0))
""",
        most=200e6,
    ),
)


@dataclass
class Taken:
    """What processes took: seconds on the clock, of processor time, and the most memory that each held, in bytes."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)


def main() -> None:
    """Installs, records and measures what is missing, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("build/performance"), help="where they are, or will be")
    parser.add_argument("--sizes", nargs="+", default=["10 MB", "100 MB", "500 MB"])
    parser.add_argument("--environments", type=Path, default=Path("build/peers"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-page", action="store_true", help="print only")
    given = parser.parse_args()
    pythons = {peer.name: installed(peer, given.environments) for peer in PEERS}
    text = page([recorded(given.traces, name) for name in given.sizes], pythons, given.rounds)
    sys.stdout.write(text)
    if not given.no_page:
        PAGE.write_text(text, "utf-8")


def installed(tool: Tool, environments: Path) -> Path:
    """The Python of the tool's own environment, which is made where it is not there."""
    folder = environments.absolute() / tool.requirement.partition("=")[0].lower()
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", tool.requirement], check=True)
    return python


def page(traces: Sequence[Trace], pythons: dict[str, Path], rounds: int) -> str:
    """The page, in Markdown."""
    return "\n".join(_lines(traces, pythons, rounds)) + "\n"


def _lines(traces: Sequence[Trace], pythons: dict[str, Path], rounds: int) -> Iterator[str]:
    yield HEAD.format(python=platform.python_version(), cores=os.cpu_count(), rounds=rounds)
    for tool in (TORCHTIDY, CACHED, *PEERS):
        yield f"- **{tool.name}**: {tool.does}."
    yield ""
    plain = measured([sys.executable, "-c", ""])
    yield f"Python alone takes {plain[0]:.3f} s and {plain[2] / MB:.0f} MB, which all figures include."
    for trace in traces:
        yield f"\n## {trace.name}: {trace.size / MB:.0f} MB of text\n"
        yield "| | wall-clock, s | range, s | relative to ours | processor time, s | memory, MB | per byte of text |"
        yield "|---|--:|--:|--:|--:|--:|--:|"
        taken = rounds_of(trace, pythons, rounds)
        ours = median(taken[TORCHTIDY.name].wall)
        for name, each in taken.items():
            middle, memory = median(each.wall), median(each.memory)
            cells = (
                f"{middle:.2f}",
                f"{min(each.wall):.2f}–{max(each.wall):.2f}",
                f"{middle / ours:.1f} ×",
                f"{median(each.cpu):.2f}",
                f"{memory / MB:.0f}",
                f"{max(memory - plain[2], 0) / trace.size:.2f}",
            )
            yield f"| {name} | {' | '.join(cells)} |"


def rounds_of(trace: Trace, pythons: dict[str, Path], rounds: int) -> dict[str, Taken]:
    """What each tool took, by its name: one process of each in turn, so many times."""
    tools = [TORCHTIDY, CACHED, *(peer for peer in PEERS if trace.size <= peer.most)]
    found = {tool.name: Taken() for tool in tools}
    with tempfile.TemporaryDirectory(prefix="torchtidy-peers-") as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process would compile what it imports
        commands = {
            tool.name: [str(pythons.get(tool.name, sys.executable)), "-c", tool.program, str(trace.path.absolute())]
            for tool in tools
        }
        measured(commands[CACHED.name], environment)  # keeps the report
        for _ in range(rounds):
            for name, taken in found.items():
                wall, cpu, memory = measured(commands[name], environment)
                taken.wall.append(wall)
                taken.cpu.append(cpu)
                taken.memory.append(memory)
    return found


MEASURED = """
import os, resource, subprocess, sys, time, json
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode:
    sys.exit(done.stderr.decode(errors="replace")[-2000:])
print(json.dumps([wall, used.ru_utime + used.ru_stime, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)]))
"""


def measured(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[float, float, int]:
    """Seconds on the clock and of processor time, and the most memory in bytes, of a process and its children."""
    watched = [sys.executable, "-c", MEASURED, *command]
    done = subprocess.run(watched, check=True, stdout=subprocess.PIPE, timeout=LIMIT_S, env=environment, cwd=ROOT)
    return decode(done.stdout, tuple[float, float, int])


HEAD = """# Comparison with other tools

This page measures whole processes, from plain Python to the end, on recordings of training steps of a small language
model with stacks, shapes and memory. `python -m tests.performance.peers`, a part of `make bench`, installs the other
tools, measures and writes this page. Medians of {rounds} runs in turn, Python {python}, {cores} cores. AMD's TraceLens
is not on a package index (the package of that name belongs to another project), so it is not measured. Each tool
produces something different:
"""


if __name__ == "__main__":
    main()
