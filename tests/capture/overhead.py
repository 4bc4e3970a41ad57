"""What the capture costs beside torch's own export: `python -m tests.capture.overhead`, printed as a table."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tb_tidy_plugin.capture import compiled
from tb_tidy_plugin.capture.handler import CaptureOptions, capturing
from tests.lines.compiled_truth import PROGRAMS

REPEATED = (2, 40, 400)
"""Steps of each recording: the last one has more than 200,000 events."""


def main() -> None:
    """Records each size once and times the export and the capture after it, in the order in which a job pays them."""
    print("| events | torch's export | capture | share | with tensors | side file |\n|---|---|---|---|---|---|")  # noqa: T201
    for steps in REPEATED:
        print(measured(steps))  # noqa: T201
    print("\n| kernels | compiling | noting | share | writing |\n|---|---|---|---|---|")  # noqa: T201
    print(compiling())  # noqa: T201
    print("\n| recorded steps | a step | of ours in its mark | between two marks |\n|---|---|---|---|")  # noqa: T201
    print(beside_steps())  # noqa: T201


def measured(steps: int) -> str:
    """One row of the table."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "w.1.pt.trace.json.gz")
        took: dict[str, float] = {}

        def export(prof: torch.profiler.profile) -> None:
            began = time.process_time()
            prof.export_chrome_trace(str(trace))
            took["export"] = time.process_time() - began

        def only_named(prof: torch.profiler.profile) -> None:
            prof.paths.append(str(trace))  # type: ignore[attr-defined] # as if the trace had been exported again

        recording = record(steps)
        began = time.process_time()
        capturing(export, CaptureOptions())(recording)
        took["capture"] = time.process_time() - began - took["export"]
        size = trace.with_name(trace.name + ".tidy.json.gz").stat().st_size
        began = time.process_time()
        capturing(only_named, CaptureOptions(tensors=True))(recording)
        took["tensors"] = time.process_time() - began
        share = took["capture"] / took["export"]
        events = count(recording)
        return (
            f"| {events:,} | {took['export']:.2f} s | {took['capture']:.2f} s | {share:.1%} | {took['tensors']:.2f} s "
            f"| {size / 1000:,.0f} kB |"
        )


def compiling() -> str:
    """What noting costs while the programs of `docs/lines.md` are compiled, the C++ compiler's time counted."""
    took = 0.0

    def timed(note: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(note)
        def run(*arguments: object) -> Callable[..., Any] | None:
            nonlocal took
            began = time.process_time()
            after = note(*arguments)
            took += time.process_time() - began
            return timed(after) if callable(after) else None

        return run

    for name in ("_begin", "_note", "_replacing", "_finish"):
        setattr(compiled, name, timed(getattr(compiled, name)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        sys.path.insert(0, str(PROGRAMS))
        import programs  # type: ignore[import-not-found]

        began = sum(os.times()[:4])
        programs.step(*programs.steps())
        compile_s = sum(os.times()[:4]) - began
    began = time.process_time()
    code = compiled.compiled_code(lambda file: file)
    write_s = time.process_time() - began
    kernels = sum(len(graph["launches"]) for region in code["regions"] for graph in region["graphs"]) if code else 0
    return f"| {kernels} | {compile_s:.1f} s | {took:.3f} s | {took / compile_s:.2%} | {write_s:.3f} s |"


def beside_steps() -> str:
    """The work of `tidy_profile` beside its recorded steps, by the events in the file: least, median and most."""
    import torch
    from torch import nn

    from tb_tidy_plugin.capture import tidy_profile

    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(20)])
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    with tempfile.TemporaryDirectory() as folder:
        with tidy_profile(folder) as profiler:
            for _ in range(14):
                optimizer.zero_grad()
                model(torch.randn(32, 64)).square().mean().backward()
                optimizer.step()
                profiler.step()
        (trace,) = Path(folder).glob("*.pt.trace.json.gz")
        events = [each for each in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if "dur" in each]
    spans = sorted(
        (each["ts"], each["ts"] + each["dur"]) for each in events if each["name"].startswith("ProfilerStep#")
    )
    calls = [
        (each["ts"], each["ts"] + each["dur"])
        for each in events
        if "tb_tidy_plugin/capture/profiling.py" in each["name"]
    ]
    inside = [
        sum(max(min(end, stop) - max(begin, start), 0) for begin, end in calls if begin <= start or end >= stop)
        for start, stop in spans
    ]
    columns = (
        [stop - start for start, stop in spans],
        inside,
        [after[0] - before[1] for before, after in pairwise(spans)],
    )
    shown = (f"{min(each) / 1e3:.2f}, {median(each) / 1e3:.2f}, {max(each) / 1e3:.2f} ms" for each in columns)
    return f"| {len(spans)} | {' | '.join(shown)} |"


def record(steps: int) -> torch.profiler.profile:  # type: ignore[name-defined] # noqa: F821 - torch is imported late
    """A small convolutional model, trained for `steps` steps with stacks, shapes and memory."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.LayerNorm(16)) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.profiler.profile(record_shapes=True, with_stack=True, profile_memory=True) as recording:
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(4, 16)).square().mean().backward()
            optimizer.step()
    return recording


def count(recording: object) -> int:
    """Events of the live tree."""
    waiting = list(recording.profiler.kineto_results.experimental_event_tree())  # type: ignore[attr-defined]
    found = 0
    while waiting:
        event = waiting.pop()
        found += 1
        waiting += event.children
    return found


if __name__ == "__main__":
    main()
