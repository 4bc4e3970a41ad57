"""A small training job, recorded with the capture; its lines are found in this file by their text."""

from __future__ import annotations

import gzip
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

FILE = "tests/support/captured_job.py"
SECRET = "hunter2-do-not-tell"


def line_of(code: str) -> int:
    """The line of this file that begins with `code`."""
    (found,) = (at for at, line in enumerate(source().splitlines(), 1) if line.strip().startswith(code))
    return found


def source() -> str:
    return Path(inspect.getfile(line_of)).read_text(encoding="utf-8")


class Job:
    """A few steps of a small model, with a loader and an optimizer that stay alive."""

    def __init__(self) -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=False, weight_decay=0.25)
        self.loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=4)

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        yield from self.loader

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        import torch

        self.optimizer.zero_grad()
        scaled = torch.tanh(inputs)
        logits = self.model(scaled) + 1
        loss = torch.nn.functional.cross_entropy(
            logits,
            labels,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def record(handler: Callable[[torch.profiler.profile], object], steps: int = 2, **arguments: object) -> None:
    """Records `steps` of the job after one unrecorded step."""
    import torch

    job = Job()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        on_trace_ready=handler,
        **{"record_shapes": True, "with_stack": True, **arguments},  # type: ignore[arg-type]
    ) as profiler:
        for number, batch in enumerate(job.batches()):
            job.step(*batch)
            profiler.step()
            if number == steps:
                break


def traces_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith((".pt.trace.json", ".pt.trace.json.gz")))


def side_file_of(trace: Path) -> Path:
    return trace.with_name(trace.name + ".tidy.json.gz")


def document_of(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(side_file_of(trace).read_bytes()))
    return found
