"""Recordings of a few steps with one operator in each, for comparisons."""

from __future__ import annotations

from pathlib import Path

from tests.support.written import event, kineto_text, write


def recording(
    folder: Path, operators_us: int, steps: int = 6, name: str = "aten::mm", worker: str = "w", slow_step: int = -1
) -> Path:
    """Steps of 1 ms with an operator in each; step `n` is `n` µs longer, `slow_step` also by the operator's time."""
    events, end = [], 10_000
    for step in range(steps):
        start, calls = end, 2 if step == slow_step else 1
        end = start + 1000 + calls * operators_us + step
        events.append(event(f"ProfilerStep#{step}", start, end - start, cat="user_annotation"))
        events += [
            event(name, start + 10 + call * (operators_us + 1), operators_us, args={"External id": 2 * step + call})
            for call in range(calls)
        ]
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"{worker}.7.pt.trace.json", kineto_text(events))
    return folder
