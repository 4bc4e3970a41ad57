"""One figure in a process of its own: `python -m tests.performance.measured NAME PATH` prints a `Figure` as JSON.

Nothing that another figure imported, cached or freed is there. What is imported before does not count, but for
`process`, which is a whole `tb-tidy check`.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

Task = Callable[[], object]


class Figure(msgspec.Struct):
    """What one task took.

    Attributes:
        wall: seconds. cpu: seconds of all threads and child processes.
        grown: by how many bytes the most memory that the process ever held grew meanwhile.
        events: rows of the trace, 0 where nobody counted.
    """

    wall: float
    cpu: float
    grown: int
    events: int


def columns(path: Path, threads: int | None) -> Task:
    """From the file to an `EventTable`; portably where there are no threads."""
    from tb_tidy_plugin.trace.chunks import ChunkDecoder
    from tb_tidy_plugin.trace.kineto import ahead, decoded
    from tb_tidy_plugin.trace.reader import read_blocks
    from tb_tidy_plugin.trace.scanned import fastest_decoder

    def task() -> object:
        if threads == 0:
            return decoded(read_blocks(path), ChunkDecoder())
        with fastest_decoder(threads) as decoder:
            return decoded(read_blocks(path) if threads == 1 else ahead(read_blocks(path)), decoder)

    return task


def json_objects(path: Path) -> Task:
    """The text as Python objects, by the fastest reader there is, with the collector off: no columns yet."""
    import orjson

    text = path.read_bytes()
    return lambda: orjson.loads(text)


def tree(path: Path, is_compiled: bool) -> Task:
    """From the table to the event tree."""
    from tb_tidy_plugin.profile.events import tree as loops
    from tb_tidy_plugin.trace.kineto import read_trace

    table = read_trace(path)
    loops.IS_COMPILED = is_compiled
    return lambda: loops.build_tree(table)


def report(path: Path) -> Task:
    """From the file to the report: all rules, lines, replayed savings; memory is used as in `tb-tidy check`."""
    from tb_tidy_plugin.analysis import assemble, runs  # noqa: F401 - imported on the way otherwise
    from tb_tidy_plugin.analysis.job import Job
    from tb_tidy_plugin.analysis.paths import analyze_path
    from tb_tidy_plugin.system.allocator import spare_memory

    spare_memory()
    job = Job()
    _ = job.of_profiles  # imports the rules
    return lambda: analyze_path(path, job)


def process(path: Path) -> Task:
    """A whole `tb-tidy check`, imports and all."""
    command = [
        sys.executable,
        "-c",
        "from tb_tidy_plugin.cli.main import script; script()",
        "check",
        "--no-cache",
        str(path),
    ]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


TASKS: dict[str, Callable[[Path], Task]] = {
    "orjson": json_objects,
    "columns": lambda path: columns(path, 1),
    "threads": lambda path: columns(path, None),
    "portable": lambda path: columns(path, 0),
    "tree": lambda path: tree(path, is_compiled=True),
    "plain tree": lambda path: tree(path, is_compiled=False),
    "report": report,
    "process": process,
}


def measured(task: Task) -> Figure:
    """Runs `task` with the collector as it is in use: off while decoding, else on."""
    gc.collect()
    before, wall, cpu = _peak(), time.perf_counter(), _cpu()
    made = task()
    wall, cpu = time.perf_counter() - wall, _cpu() - cpu
    return Figure(
        wall, cpu, _peak() - before, len(made) if hasattr(made, "start_ns") and hasattr(made, "__len__") else 0
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Prints the figure."""
    name, path = sys.argv[1:]
    with ExitStack() as stack:
        if name == "orjson":
            gc.disable()
            stack.callback(gc.enable)
        figure = measured(TASKS[name](Path(path)))
    sys.stdout.write(msgspec.json.encode(figure).decode())


if __name__ == "__main__":
    main()
