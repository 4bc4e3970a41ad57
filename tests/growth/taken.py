"""What a run takes from its file to every output: processor time and memory, in a process that does nothing else.

Started as a program, it imports everything, takes one run through it, and then each run that it is asked for in a fork
of its own: so no measurement has the imports in it, or what another run has left.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


MOST_S = 120  # of processor time, after which a fork is ended
STATUS, PEAK = Path("/proc/self/status"), re.compile(r"VmHWM:\s*(\d+) kB")
RESET = Path("/proc/self/clear_refs")
NEW_PEAK = "5"
FIRST_RUNS = 3


@dataclass(frozen=True)
class Taken:
    """Processor time in s, the most memory in bytes, how much of that came after the start, and what failed."""

    seconds: float
    peak_bytes: int
    grown_bytes: int
    fault: str


class Taker:
    """Takes runs through everything, or through what the worker of TensorBoard does."""

    def __init__(self, what: str, first: Path) -> None:
        """`first` is a small run, which takes what every run takes (`fixed`)."""
        command = [sys.executable, "-m", __name__, what, str(first)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.fixed = min((self.of(first) for _ in range(FIRST_RUNS)), key=lambda taken: taken.seconds)

    def of(self, run: Path) -> Taken:
        """What one run takes."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{run}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that measures has ended"
        return Taken(**json.loads(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


# In the process


def _everything() -> Callable[[Path], object]:
    from tests.fuzz.pipeline import check_file

    return check_file


def _worker() -> Callable[[Path], object]:
    import msgspec

    from tb_tidy_plugin.plugin.analysis_worker import AnalysisMessage, AnalysisRequest, send_analysis
    from tb_tidy_plugin.trace.files import find_traces

    def send(message: AnalysisMessage) -> None:
        msgspec.json.encode(message)

    def work(run: Path) -> None:
        (file,) = find_traces(run)
        send_analysis(AnalysisRequest(file.run, file.worker, file.span, os.fsencode(file.path)), send)

    return work


KINDS: Mapping[str, Callable[[], Callable[[Path], object]]] = {"everything": _everything, "worker": _worker}


def main() -> None:
    """`python -m tests.growth.taken KIND RUN`; the runs to measure are lines of its input."""
    what, first = sys.argv[1:]
    take = KINDS[what]()
    take(Path(first))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(f"{_forked(take, Path(line.rstrip()))}\n")
        sys.stdout.flush()


def _forked(take: Callable[[Path], object], run: Path) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, json.dumps(_taken(take, run)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    ended = {"seconds": float(MOST_S), "peak_bytes": 0, "grown_bytes": 0, "fault": f"no answer in {MOST_S} s"}
    return answer or json.dumps(ended)


def _taken(take: Callable[[Path], object], run: Path) -> dict[str, object]:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (MOST_S, MOST_S))
    RESET.write_text(NEW_PEAK)
    before, began, fault = _peak(), time.process_time(), ""
    try:
        take(run)
    except BaseException:  # noqa: BLE001 (whatever it is, it is said)
        fault = traceback.format_exc(limit=-3)[-2000:]
    took = time.process_time() - began
    return {"seconds": took, "peak_bytes": _peak(), "grown_bytes": _peak() - before, "fault": fault}


def _peak() -> int:
    found = PEAK.search(STATUS.read_text())
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
