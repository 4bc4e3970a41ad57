"""Trace files written by hand, as Kineto writes them, or broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def event(name: str, ts: float, dur: float, **fields: object) -> dict[str, Any]:
    """One complete operator event; `fields` replace or add to its keys."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}} | fields


def kineto_text(events: list[dict[str, Any]], footer: str = '"traceName": "x.json"') -> str:
    """A trace in Kineto's own layout: one key per line, events separated as Kineto separates them."""
    parts = []
    for entry in events:
        keys = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items())
        parts.append("  {\n" + keys + "\n  }")
    return '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n' + ",\n".join(parts) + "\n  ],\n  " + footer + "\n}\n"


def write(path: Path, text: str | bytes) -> Path:
    """Writes `text` to `path`, compressed if the name ends in `.gz`."""
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path
