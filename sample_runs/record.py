"""Record sample runs again, free of everything that names the machine they were recorded on.

`python sample_runs/record.py --all` records every run that needs no GPU; name one or more folders for those only.
"""

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent
HOST_NAME = "workstation"
ON_A_GPU = "_gpu_"  # in the names of runs that need one
ABSOLUTE_PATH = re.compile(r"(?:^|[\s(<'\"=:])(?:/\w[^/]*/|[A-Za-z]:[\\/])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", help="folders below sample_runs")
    parser.add_argument("--all", action="store_true", help="record every run that needs no GPU")
    parser.add_argument("--attempts", type=int, default=5, help="recordings of a run, of which the fastest is kept")
    arguments = parser.parse_args()
    every = [script.parent.name for script in SAMPLES.glob("*/*.py") if ON_A_GPU not in script.parent.name]
    names = story(every if arguments.all else arguments.runs)
    if not names:
        parser.error("name a run, or give --all")
    for name in names:
        record(SAMPLES / name, arguments.attempts)


def story(names: Sequence[str]) -> list[str]:
    """The runs in the order in which a user would record them: each job untidy first, then tidy.

    The page takes the older of two runs for the one before the change.
    """
    return sorted(names, key=lambda name: (name.removesuffix("_untidy").removesuffix("_tidy"), name.endswith("_tidy")))


def record(run: Path, attempts: int, options: Sequence[str] = ()) -> None:
    """Replace the trace of one run with a new one; `options` are further ones of its script.

    The fastest of several recordings is kept, because other work on the machine can only make steps longer. They are
    made beside a copy of the script: frames keep the same names (`train.py(12): main`), and no trace that still names
    the machine ever lies in the run's folder.
    """
    (script,) = run.glob("*.py")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(script, folder)
        for _ in range(attempts):
            subprocess.run([sys.executable, "-B", script.name, "--profile", *options], cwd=folder, check=True)
        fastest = min(Path(folder).glob("*.pt.trace.json.gz"), key=lambda trace: sum(step_durations_ms(read(trace))))
        name, text = fastest.name, anonymised(read(fastest), fastest.name)
    for old in run.glob("*.pt.trace.json.gz"):
        old.unlink()
    compressed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (run / name).write_bytes(compressed)
    steps = ", ".join(f"{duration:.1f}" for duration in step_durations_ms(text))
    print(f"{run.name}/{name}: {len(compressed):,} bytes, steps of {steps} ms")


def read(trace: Path) -> str:
    return gzip.decompress(trace.read_bytes()).decode()


def step_durations_ms(trace: str) -> list[float]:
    events = json.loads(trace)["traceEvents"]
    return [event["dur"] / 1000 for event in events if event["name"].startswith("ProfilerStep#")]


def anonymised(trace: str, name: str) -> str:
    """Replace the two top-level values that name the machine; all other text stays as the profiler wrote it.

    Raises ValueError if the trace's name is missing, if one of the two is there twice, or if an absolute path is left
    anywhere in the trace. Before 2.13, PyTorch wrote no name of the host.
    """
    for key, value, counts in (("host_name", HOST_NAME, {0, 1}), ("traceName", name, {1})):
        trace, count = re.subn(rf'("{key}": )"[^"]*"', rf'\1"{value}"', trace)
        if count not in counts:
            raise ValueError(f"{name}: expected one {key}, found {count}")
    paths = sorted({string for string in strings_in(json.loads(trace)) if ABSOLUTE_PATH.search(string)})
    if paths:
        raise ValueError(f"{name}: absolute paths in the trace: {paths[:5]}")
    return trace


def strings_in(value: object) -> Iterator[str]:
    """Every key and every text at any depth of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_in(item)


if __name__ == "__main__":
    main()
