"""Replayed kernels have the operator, module, line and shapes of the graph's capture."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.trace.columns import EventTable, GraphCapture
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.replays import inputs_of, module_of, operator_name

PAIRS = {
    "mi300_sglang_graph_decode": ("mi300_sglang_graph_capture", "exact", 544),
    "mi300_xdit_flux_profile": ("mi300_xdit_flux_capture", "unique", 4 * 1566),
}


def file_of(name: str) -> Path:
    return next(shared(f"traces/{name}").glob("*.json.gz"))


@lru_cache(maxsize=4)
def table_of(name: str) -> EventTable:
    return read_trace(file_of(name))


@lru_cache(maxsize=4)
def replayed(run: str, capture: str) -> Profile:
    return Profile(with_replayed(replace(table_of(run), graphs=(GraphCapture(capture, table_of(capture)),))))


@lru_cache(maxsize=4)
def events_of(name: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(gzip.decompress(file_of(name).read_bytes()))["traceEvents"] if "dur" in event]


def innermost_operators(capture: str) -> list[str]:
    """Of each launch of the only capture, in order: the shortest operator around it, from the raw JSON."""
    events = events_of(capture)
    [begin] = [event for event in events if event["name"] == "hipStreamBeginCapture"]
    [end] = [event for event in events if event["name"] == "hipStreamEndCapture"]
    operators = sorted((event["ts"], event["dur"], event["name"]) for event in events if event.get("cat") == "cpu_op")
    launches = sorted(
        event["ts"] for event in events if "kernel" in event.get("args", {}) and begin["ts"] < event["ts"] < end["ts"]
    )
    found, open_, at = [], [], 0
    for launch in launches:
        while at < len(operators) and operators[at][0] <= launch:
            open_.append(operators[at])
            at += 1
        open_ = [each for each in open_ if each[0] + each[1] >= launch]
        found.append(min(open_, key=lambda each: each[1])[2])
    return found


def test_every_kernel_of_the_shared_pairs_is_attributed_as_counted_from_the_json() -> None:
    for run, (capture, known_by, kernels) in PAIRS.items():
        profile = replayed(run, capture)
        table, found = profile.table, profile.replayed
        rows = [row for row in range(len(table)) if found.known_by(row) and row >= profile.tree.size]
        assert Counter(found.known_by(row) for row in rows) == {known_by: kernels}
        launches = [event for event in events_of(run) if event["name"] == "hipGraphLaunch"]
        ids = {event["args"]["correlation"] for event in launches}
        replayed_ns = sum(
            round(event["dur"] * 1000)
            for event in events_of(run)
            if event.get("cat") == "kernel" and event["args"]["correlation"] in ids
        )
        assert sum(profile.duration_ns(row) for row in rows) == pytest.approx(replayed_ns, abs=len(rows))
        expected: Counter[str | None] = Counter(innermost_operators(capture)[:kernels])
        counted = Counter(operator_name(profile, row) for row in rows)
        if known_by == "exact":
            assert counted == expected
        else:  # one launch of the capture is missing in each of four replays
            assert sum((expected - Counter({name: count // 4 for name, count in counted.items()})).values()) <= 1
        assert all(module_of(profile, row) and place_of(profile, row) for row in rows)


def test_an_operator_has_the_device_time_of_its_kernels_and_hardly_any_on_the_host() -> None:
    profile = replayed("mi300_sglang_graph_decode", "mi300_sglang_graph_capture")
    found, operators = profile.replayed, profile.operators
    rows = [row for row in range(len(profile.table)) if operator_name(profile, row) == "aten::mm"]
    assert len(rows) == 145
    calls = [
        at
        for at, row in enumerate(profile.nested.rows.tolist())
        if found.inserted[row] and profile.name(row) == "aten::mm"
    ]
    assert sum(operators.device_self_ns[calls].tolist()) == sum(map(profile.duration_ns, rows))
    assert operators.host_total_ns[calls].sum() < 10_000
    assert {inputs_of(profile, row).dims[1] for row in rows} >= {(4096, 6144), (4096, 24576)}


def test_an_eager_prefill_tells_modules_and_weights_of_the_decode_graph(tmp_path: Path) -> None:
    """Both files are of one recording: together they hold an eager iteration, and the capture tells what is right."""
    document = json.loads(gzip.decompress(file_of("mi300_sglang_prefill_decode").read_bytes()))
    decode = json.loads(gzip.decompress(file_of("mi300_sglang_graph_decode").read_bytes()))
    document["traceEvents"] += decode["traceEvents"]
    (tmp_path / "both.json").write_text(json.dumps(document))
    found = Profile(with_replayed(read_trace(tmp_path / "both.json")))
    true = replayed("mi300_sglang_graph_decode", "mi300_sglang_graph_capture")
    pairs = list(zip(replayed_rows(found), replayed_rows(true), strict=True))
    total = sum(true.duration_ns(row) for _, row in pairs)
    known = [(at, row) for at, row in pairs if found.replayed.known_by(at)]
    assert {found.replayed.known_by(at) for at, _ in known} == {"donor"}
    assert sum(true.duration_ns(row) for _, row in known) > 0.97 * total
    for at, row in known:
        assert module_of(found, at) == module_of(true, row)
        operators = operator_name(found, at), operator_name(true, row)
        if "aten::mm" in operators:
            assert operators == ("aten::mm", "aten::mm")
            assert inputs_of(found, at).dims[1] == inputs_of(true, row).dims[1]


def replayed_rows(profile: Profile) -> list[int]:
    """Kernels of the only graph launch, in order of their starts."""
    table = profile.table
    [call] = np.flatnonzero(table.is_named(lambda name: name == "hipGraphLaunch"))
    return sorted(np.flatnonzero(profile.launch == call).tolist(), key=profile.start_ns)


def test_a_foreign_capture_is_refused() -> None:
    profile = replayed("mi300_vllm_graph_decode", "mi300_sglang_graph_capture")
    assert not (profile.replayed.operator >= 0).any()
    [note] = profile.metadata.notes
    assert note == (
        "The graph capture in `mi300_sglang_graph_capture` is not used: only 0 % of the replayed time surely comes "
        "from it."
    )
