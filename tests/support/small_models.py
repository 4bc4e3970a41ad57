"""Records small models with torch, with what their own hooks and the live profiler say about them.

Run as a program: `python small_models.py FOLDER` writes one trace per program and `truth.json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._C._profiler import _EventType
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.checkpoint import checkpoint

WIDTH, BATCH, KEPT = 64, 8, 250_000


class Block(nn.Module):
    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.reentrant = reentrant

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.linear(x)))  # type: ignore[no-any-return]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.reentrant is None:
            return self.body(x)
        return checkpoint(self.body, x, use_reentrant=self.reentrant)  # type: ignore[no-any-return]


class Net(nn.Module):
    """Two blocks and a head; the first block's norm is used a second time, outside the block."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        blocks = [Block(reentrant), Block(reentrant)]
        self.blocks = nn.ModuleList(blocks)
        self.shared = blocks[0].norm
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(self.shared(x))  # type: ignore[no-any-return]


class Calls:
    """Counts calls of modules by path, numbered as the profiler does; those in the backward pass by name."""

    def __init__(self) -> None:
        self.forward: Counter[str] = Counter()
        self.repeated: Counter[str] = Counter()
        self.in_backward = False
        self._numbers: dict[int, str] = {}
        self._classes: Counter[str] = Counter()
        self._stack: list[str] = []
        self._hooks = [
            register_module_forward_pre_hook(lambda module, _: self._enter(module)),
            register_module_forward_hook(lambda *_: self._leave()),
        ]

    def _enter(self, module: nn.Module) -> None:
        kind = type(module).__name__
        if id(module) not in self._numbers:
            self._numbers[id(module)] = f"{kind}_{self._classes[kind]}"
            self._classes[kind] += 1
        name = self._numbers[id(module)]
        self._stack.append(name)
        if self.in_backward:
            self.repeated[name] += 1
        else:
            self.forward["/".join(self._stack)] += 1

    def _leave(self) -> None:
        self._stack.pop()

    def turn(self, *, in_backward: bool) -> None:
        """Switches between the passes; a repeated call that stops early leaves its hooks behind."""
        self.in_backward = in_backward
        self._stack.clear()

    def close(self) -> dict[str, dict[str, int]]:
        for hook in self._hooks:
            hook.remove()
        return {"calls": dict(self.forward), "repeated": dict(self.repeated)}


def train(model: nn.Module, calls: Calls, penalty: bool = False) -> None:
    x = torch.ones(BATCH, WIDTH, requires_grad=True)
    loss = model(x).sum()
    if penalty:
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        loss = loss + slope.square().sum()
    calls.turn(in_backward=True)
    loss.backward()
    calls.turn(in_backward=False)
    model.zero_grad()


def record_model(folder: Path, name: str, model: nn.Module, penalty: bool = False) -> dict[str, Any]:
    warm = Calls()
    train(model, warm, penalty)
    warm.close()
    calls = Calls()
    with profile(
        activities=[ProfilerActivity.CPU], with_stack=True, record_shapes=True, profile_memory=True
    ) as recording:
        for _ in range(2):
            train(model, calls, penalty)
    recording.export_chrome_trace(str(folder / f"{name}.pt.trace.json"))
    return calls.close() | {"memory": live_memory(recording), "modules": live_modules(recording)}


def record_growth(folder: Path) -> None:
    """Each step keeps one tensor for good and one until the next step."""
    kept = []
    with profile(
        activities=[ProfilerActivity.CPU],
        profile_memory=True,
        schedule=schedule(wait=0, warmup=1, active=3),
        on_trace_ready=lambda done: done.export_chrome_trace(str(folder / "growth.pt.trace.json")),
    ) as recording:
        last = None
        for _ in range(4):
            last = torch.zeros(KEPT // 2)
            kept.append(torch.ones(KEPT))
            torch.ones(2 * KEPT).mul(2)
            recording.step()
        del last


def live_memory(recording: Any) -> dict[str, Any]:  # noqa: ANN401 - torch's own class is untyped
    """Net bytes of each operator, and all events with the number by which the live profiler pairs them."""
    stack = list(recording.profiler.kineto_results.experimental_event_tree())
    events = []
    while stack:
        event = stack.pop()
        stack += event.children
        if event.typed[0] == _EventType.Allocation and event.extra_fields.allocation_id is not None:
            fields = event.extra_fields
            events.append((event.start_time_ns, fields.allocation_id, fields.alloc_size))
    return {
        "net_bytes": {entry.key: entry.self_cpu_memory_usage for entry in recording.key_averages()},
        "events": sorted(events),
    }


def live_modules(recording: Any) -> dict[str, tuple[int, float, int]]:  # noqa: ANN401 - torch's own class is untyped
    """Calls, host time in µs and net bytes of each module, from torch's own table."""
    return {
        entry.key.removeprefix("nn.Module: "): (entry.count, entry.cpu_time_total, entry.cpu_memory_usage)
        for entry in recording.key_averages()
        if entry.key.startswith("nn.Module: ")
    }


def main(folder: Path) -> None:
    truth = {
        "plain": record_model(folder, "plain", Net()),
        "reentrant": record_model(folder, "reentrant", Net(reentrant=True)),
        "not_reentrant": record_model(folder, "not_reentrant", Net(reentrant=False)),
        "penalty": record_model(folder, "penalty", Net(), penalty=True),
    }
    record_growth(folder)
    (folder / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
