"""Small logdirs: traces as a training run leaves them, and broken traces."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from tests.support.written import event, kineto_text, write

STACK = [
    event("train.py(10): main", 0, 1000, cat="python_function", args={"Python id": 1}),
    event("train.py(20): step", 10, 900, cat="python_function", args={"Python id": 2, "Python parent id": 1}),
    event("../../outside.py(1): helper", 15, 880, cat="python_function", args={"Python id": 3, "Python parent id": 2}),
]


def trace_text(operators: int = 3) -> str:
    """A trace of one step: a few multiplications inside Python frames."""
    return kineto_text([event("ProfilerStep#1", 0, 1000, cat="user_annotation"), *STACK, *multiplications(operators)])


def multiplications(number: int) -> list[dict[str, Any]]:
    """Multiplications one after the other, each shorter than the one before."""
    types = ["float", "float"]
    return [
        event("aten::mm", 20 + n, 0.9 - n / 1000, args={"Input Dims": [[4, n + 1], [n + 1, 4]], "Input type": types})
        for n in range(number)
    ]


def trace(path: Path, operators: int = 3) -> Path:
    """Writes such a trace to `path` and creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, trace_text(operators))


def broken_traces(logdir: Path) -> dict[str, str]:
    """Writes one run for each way a trace can be broken; returns a part of the expected message by run."""
    contents: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "empty"),
        "not_json": (b"MZ\x00\x01 this is not a trace", "not"),
        "truncated_at_once": (trace_text().encode()[:60], "not end"),
        "no_events": (kineto_text([]).encode(), "no events"),
        "bad_gz": (b"\x1f\x8b" + b"\x00" * 40, "gz"),
        "truncated": (trace_text().encode()[:-400], "not end"),
        "cut_gz": (gzip.compress(trace_text(400).encode(), mtime=0)[:-800], "gz"),
    }
    for run, (content, _) in contents.items():
        folder = logdir / run
        folder.mkdir(parents=True)
        name = "worker.pt.trace.json" + (".gz" if "gz" in run else "")
        (folder / name).write_bytes(content)
    return {run: words for run, (_, words) in contents.items()}
