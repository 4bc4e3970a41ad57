"""Traces of several ranks that meet in one all_reduce per step, as a distributed job would leave them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.support.written import event, kineto_text, write

STEP_US = 20_000
LAST_US = 8_000


def steps_of(comes_us: int, clock_us: int, steps: int = 4) -> Iterator[dict[str, object]]:
    """Steps in which this rank comes to an all_reduce at `comes_us`, and all leave it 1 ms after the last has come."""
    for number in range(steps):
        at = clock_us + number * STEP_US
        frame = {"Python id": number + 1, "Ev Idx": 5 * number + 1}
        yield event(f"ProfilerStep#{number}", at, STEP_US - 1, cat="user_annotation", args={"Ev Idx": 5 * number})
        yield event("train.py(7): train", at + 1, STEP_US - 3, cat="python_function", args=frame)
        yield event("aten::mm", at + 10, comes_us - 10, args={"Ev Idx": 5 * number + 2})
        yield event("c10d::allreduce_", at + comes_us, 20, args={"Ev Idx": 5 * number + 3})
        waits = {"Python id": 100 + number, "Ev Idx": 5 * number + 4}
        took = LAST_US + 1000 - comes_us
        yield event("<built-in method wait of Work>", at + comes_us + 30, took, cat="python_function", args=waits)
        sent = {"Input Dims": [[1024]], "Input type": ["float"], "Ev Idx": 1000 + number}
        yield event("gloo:all_reduce", at + comes_us + 10, took - 10, cat="user_annotation", tid=2, args=sent)
        yield event("aten::add_", at + LAST_US + 2000, 5000, args={"Ev Idx": 500 + number})


def record(folder: Path, rank: int, comes_us: int, clock_us: int = 0, span: int = 1, world: int = 2) -> Path:
    """Writes one rank's trace."""
    folder.mkdir(parents=True, exist_ok=True)
    footer = f'"distributedInfo": {{"rank": {rank}, "world_size": {world}, "backend": "gloo"}}'
    text = kineto_text(list(steps_of(comes_us, clock_us)), footer)
    return write(folder / f"host_{rank}.{span}{rank}.pt.trace.json", text)
