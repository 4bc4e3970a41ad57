"""A small run with every file that may lie beside a trace; each of them shows in the report."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.benchmarks.store import save_beside
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.trace.files import find_traces
from tests.support.measurements import measurement
from tests.support.written import event, kineto_text, write

SOURCE = """\
import torch
def main():
    rows = torch.zeros(4, 8)
    for _ in range(6):
        rows = torch.cat([rows, torch.zeros(4, 8)])
    return rows
"""
CONFIGURATION = 'ignore = ["gpu-idle-host-bound"]\n'
CATS = 6


def write_run(folder: Path, name: str = "w.1.pt.trace.json") -> Path:
    """Writes the trace with the sources, two side files, measurements and a configuration beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = write(folder / name, trace_text())
    (folder / "train.py").write_text(SOURCE, encoding="utf-8")
    (folder / "tb-tidy.toml").write_text(CONFIGURATION, encoding="utf-8")
    write(folder / f"{name}.tidy.json.gz", json.dumps(capture_document()))
    write(folder / f"{name}.device_events.json", json.dumps(device_document()))
    save_beside(trace, [measurement(rule, pair) for rule, pair in _pairs_in(trace)])
    return trace


def keep_source(run: Path, text: str) -> None:
    """Stores `text` as the capture would."""
    (side,) = run.glob("*.tidy.json.gz")
    content = side.read_bytes()
    document = json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    document["sources"] = [{"file": "train.py", "text": text}]
    side.write_bytes(gzip.compress(json.dumps(document).encode()))


def trace_text() -> str:
    """A step in which a tensor grows."""
    kinds = ["TensorList", "Scalar"]
    cats = [
        event("aten::cat", 10 + 100 * at, 80, args={
            "External id": at + 1, "Input Dims": [[[4 + 4 * at, 8], [4, 8]], []], "Input type": kinds,
            "Concrete Inputs": ["", "0"]}) for at in range(CATS)
    ]  # fmt: skip
    frames = [
        event("ProfilerStep#1", 0, 700, cat="user_annotation"),
        event("train.py(2): main", 1, 690, cat="python_function", args={"Python id": 1}),
        event("<built-in method cat>", 9, 90, cat="python_function", args={"Python id": 2, "Python parent id": 1}),
    ]
    return kineto_text([*frames, *cats], '"baseTimeNanoseconds": 0')


def capture_document() -> dict[str, object]:
    """The document that the capture would have written."""
    calls = {"start_ns": [9000], "name": [zlib.crc32(b"<built-in method cat>")], "line": [5]}
    settings = {"versions": {"torch": "2.13.0"}}
    return {
        "version": 1,
        "complete": True,
        "calls": calls,
        "settings": settings,
        "steps": {"count": 9, "median_ns": 600_000},
    }


def device_document() -> dict[str, object]:
    """The document of an out-of-tree device."""
    operators = [
        {"name": "aten::cat", "external_id": at + 1, "thread": 1, "device_time_ns": 9000} for at in range(CATS)
    ]
    return {"version": 1, "device": {"kind": "npu", "name": "x"}, "launch_latency_ns": 5000, "operators": operators}


def _pairs_in(trace: Path) -> list[tuple[str, Benchmark]]:
    (file,) = find_traces(trace)
    traced = read_file(file, Job()).traced.values()
    return [(each.finding.rule, each.pair) for each in traced if each.pair]


def contents(folder: Path) -> dict[str, bytes]:
    """All files below `folder`, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
