"""Recorded traces, field by field against an independent reading: the standard library, decimal times, no blocks."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import LEFT_OUT, SHARED, STANDS_FOR, shared

REAL_TRACES = sorted(SHARED.glob("traces/*/*.gz")) + sorted(SHARED.glob("parity/*/*.pt.trace.json.gz"))
ID_KEYS = {
    "External id": "external_id", "correlation": "correlation", "Ev Idx": "event_index", "Sequence number": "sequence",
    "Fwd thread id": "forward_thread", "Python id": "python_id", "Python parent id": "python_parent_id",
    "device": "device", "stream": "stream", "bytes": "bytes",
}  # fmt: skip
INPUTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
IN_COLUMNS = frozenset({*ID_KEYS, *INPUTS, "external id"})


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("path", REAL_TRACES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_agrees_with_the_json_module_on_real_traces(path: Path) -> None:
    data = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events = data["traceEvents"] if isinstance(data, dict) else data
    table = read_trace(path)
    wanted = [
        (order, entry) for order, entry in enumerate(events)
        if (entry["ph"] == "X" and entry.get("cat") != "Trace") or (entry["ph"] == "i" and entry["name"] == "[memory]")
    ]  # fmt: skip
    origin = min(round(entry["ts"] * 1000) for _, entry in wanted)
    expected = {order: _plain(entry, origin) for order, entry in wanted}
    found = {
        int(table.file_order[row]): (
            table.names[table.name[row]],
            int(table.start_ns[row]),
            int(table.duration_ns[row]),
            table.threads[table.thread[row]].pid,
            table.threads[table.thread[row]].tid,
            tuple(int(getattr(table, field)[row]) for field in ID_KEYS.values()),
            json.loads(table.input_texts[table.inputs[row]]),
            {key: value for key, value in json.loads(table.args.text(row)).items() if key not in IN_COLUMNS},
        )
        for row in range(len(table))
    }
    assert table.origin_ns == origin
    assert found == expected


def _plain(entry: dict[str, Any], origin: int) -> tuple[Any, ...]:
    args = entry.get("args", {})
    duration = round(entry.get("dur", 0) * 1000) if entry["ph"] == "X" else 0
    return (
        entry["name"],
        round(entry["ts"] * 1000) - origin,
        duration,
        str(entry["pid"]),
        str(entry["tid"]),
        tuple(_id(args, key) for key in ID_KEYS),
        {key: args[key] for key in INPUTS if key in args},
        {key: value for key, value in json.loads(json.dumps(args, default=float)).items() if key not in IN_COLUMNS},
    )


def _id(args: dict[str, Any], key: str) -> int:
    absent = 0 if key == "Fwd thread id" else ABSENT
    value = args.get(key.lower() if key == "External id" and key not in args else key, absent)
    return int(value) if str(value).removeprefix("-").isdigit() else absent


def test_shared_traces_are_known() -> None:
    shared("traces")
    assert len(REAL_TRACES) >= 40
    assert {*STANDS_FOR, *LEFT_OUT} <= {path.parent.name for path in REAL_TRACES}
