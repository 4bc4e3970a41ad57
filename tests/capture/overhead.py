"""What the capture costs beside torch's own export: `python -m tests.capture.overhead`, printed as a table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tb_tidy_plugin.capture.handler import Wanted, capturing

REPEATED = (2, 40, 400)
"""Steps of each recording: the last one has more than 200,000 events."""


def main() -> None:
    """Records each size once and times the export and the capture after it, in the order in which a job pays them."""
    print("| events | torch's export | capture | share | with tensors | side file |\n|---|---|---|---|---|---|")  # noqa: T201
    for steps in REPEATED:
        print(measured(steps))  # noqa: T201


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
        capturing(export, Wanted())(recording)
        took["capture"] = time.process_time() - began - took["export"]
        size = trace.with_name(trace.name + ".tidy.json.gz").stat().st_size
        began = time.process_time()
        capturing(only_named, Wanted(tensors=True))(recording)
        took["tensors"] = time.process_time() - began
        share = took["capture"] / took["export"]
        events = count(recording)
        return (
            f"| {events:,} | {took['export']:.2f} s | {took['capture']:.2f} s | {share:.1%} | {took['tensors']:.2f} s "
            f"| {size / 1000:,.0f} kB |"
        )


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
