"""Operators of real traces against counts written differently, straight from the JSON."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tidy_plugin.profile.events.nesting import NOT_COUNTED, Nesting
from tb_tidy_plugin.profile.events.operators import kernels_of, totals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, Rows
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import SHARED, shared

PARAMETERS = [
    pytest.param(path, marks=pytest.mark.sampled, id=f"{path.parent.name}/{path.name.split('.')[0]}")
    for path in sorted(SHARED.glob("traces/*/*.gz"))
]


@dataclass(frozen=True)
class Real:
    """A real trace: its profile, its events from the JSON, and what launched which of them."""

    profile: Profile
    events: list[dict[str, Any]]
    causes: dict[int, list[int]]


@pytest.fixture(scope="module", params=PARAMETERS)
def real(request: pytest.FixtureRequest) -> Real:
    events = plain_events(request.param)
    return Real(Profile(read_trace(request.param)), events, causes(events))


def plain_events(path: Path) -> list[dict[str, Any]]:
    data = json.loads(gzip.decompress(path.read_bytes()))
    return [entry for entry in (data["traceEvents"] if isinstance(data, dict) else data) if entry["ph"] == "X"]


def category(entry: dict[str, Any]) -> str:
    return str(entry.get("cat", "")).lower()


def span(entry: dict[str, Any]) -> tuple[int, int]:
    start = round(entry["ts"] * 1000)
    return start, start + round(entry["dur"] * 1000)


CALLS = {"cpu_op", "operator", "user_annotation"}
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def causes(events: list[dict[str, Any]]) -> dict[int, list[int]]:
    """For each piece of device work (by position) the operators and annotations around its launch, by plain search."""
    launches: dict[int, dict[str, Any]] = {}
    calls: dict[str, list[int]] = defaultdict(list)
    by_id: dict[int, int] = {}
    for at, entry in enumerate(events):
        if "runtime" in category(entry) or "driver" in category(entry):
            launches.setdefault(entry["args"].get("correlation", 0), entry)
        if category(entry) in CALLS and entry["name"] not in NOT_COUNTED:
            calls[str(entry["tid"])].append(at)
            by_id[entry["args"].get("External id", entry["args"].get("external id", -1))] = at
    columns = {tid: (rows, np.array([span(events[at]) for at in rows])) for tid, rows in calls.items()}

    def containing(tid: str, start: int, end: int) -> list[int]:
        rows, spans = columns.get(tid, ([], np.zeros((0, 2), np.int64)))
        holds = (spans[:, 0] <= start) & (spans[:, 1] >= end) & (spans[:, 1] > start)
        return [rows[number] for number in np.flatnonzero(holds).tolist()]

    found = {}
    for at, entry in enumerate(events):
        if category(entry) in WORK:
            launch = launches.get(entry["args"].get("correlation", 0))
            named = by_id.get(entry["args"].get("External id", entry["args"].get("external id", 0)))
            if launch is not None:
                found[at] = containing(str(launch["tid"]), *span(launch))
            else:
                found[at] = [] if named is None else containing(str(events[named]["tid"]), *span(events[named]))
    return found


def test_device_time_of_roots_is_that_of_all_work_with_a_known_cause(real: Real) -> None:
    events, profile = real.events, real.profile
    known = {at: calls for at, calls in real.causes.items() if calls}
    operators, nested = profile.operators, profile.nested
    expected = sum(span(events[at])[1] - span(events[at])[0] for at in known)
    roots = nested.parent == ABSENT
    assert int(operators.device_total_ns[roots].sum()) == expected
    assert int(operators.device_self_ns.sum()) == expected
    assert len(operators.work) == len(known)
    assert (operators.device_self_ns <= operators.device_total_ns).all()


def test_operators_and_the_work_below_each_name(real: Real) -> None:
    """Calls, host time and distinct device work of every operator name, from the JSON."""
    events, profile = real.events, real.profile
    annotations = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#")
    is_operator = [
        category(entry) in {"cpu_op", "operator"} and not entry["name"].startswith(annotations) for entry in events
    ]
    work: dict[str, set[int]] = defaultdict(set)
    for at, calls in real.causes.items():
        for call in calls:
            if is_operator[call]:
                work[events[call]["name"]].add(at)
    spans: dict[str, list[tuple[int, int]]] = {
        name: [span(events[at]) for at in sorted(rows)] for name, rows in work.items()
    }
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    operator = profile.table.category[profile.nested.rows] == Category.OPERATOR
    keys = np.where(operator, numbers[profile.nested.rows].astype(np.int64), ABSENT)
    found = {names[entry.group]: entry for entry in totals(profile.operators, keys)}
    ours = {name: (entry.device_work, entry.device_busy_ns) for name, entry in found.items() if entry.device_work}
    assert ours == {name: (len(times), sweep(times)) for name, times in spans.items()}
    host = {entry["name"] for entry, wanted in zip(events, is_operator, strict=True) if wanted} - NOT_COUNTED
    assert set(found) == host


def sweep(spans: list[tuple[int, int]]) -> int:
    total = depth = last = 0
    for moment, change in sorted(edge for start, end in spans for edge in ((start, 1), (end, -1))):
        total += moment - last if depth else 0
        depth += change
        last = moment
    return total


def test_each_moment_of_a_thread_belongs_to_the_innermost_call(real: Real) -> None:
    """Self times by name, by a sweep over the starts and ends of each thread: the last call begun and not ended."""
    profile = real.profile
    table, nested = profile.table, profile.nested
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    expected: dict[str, int] = defaultdict(int)
    threads = defaultdict(list)
    for row in np.flatnonzero(table.is_category((Category.OPERATOR, Category.ANNOTATION, Category.RUNTIME))).tolist():
        if profile.name(row) not in NOT_COUNTED:
            threads[int(table.thread[row])].append((profile.start_ns(row), -profile.end_ns(row), row))
    for calls in threads.values():
        open_calls: list[tuple[int, int]] = []  # end, row
        at = 0
        for start, minus_end, row in [*sorted(calls), (1 << 62, -(1 << 62), ABSENT)]:
            while open_calls and open_calls[-1][0] <= start:
                end, ended = open_calls.pop()
                expected[names[numbers[ended]]] += max(end - at, 0)
                at = max(at, end)
            if open_calls:
                expected[names[numbers[open_calls[-1][1]]]] += max(start - at, 0)
            at = start
            open_calls.append((-minus_end, row))
    entries = totals(profile.operators, numbers[nested.rows].astype(np.int64))
    found = {names[entry.group]: entry.host_self_ns for entry in entries}
    doubtful = same_times(nested, profile)
    assert {name: own for name, own in found.items() if name not in doubtful} == {
        name: own for name, own in expected.items() if name not in doubtful
    }
    assert sum(found.values()) == sum(expected.values())


def same_times(nested: Nesting, profile: Profile) -> set[str]:
    """Names of calls that begin and end with another call of their thread: which one is inside is open."""
    places = defaultdict(set)
    for row in nested.rows.tolist():
        place = (int(profile.table.thread[row]), profile.start_ns(row), profile.end_ns(row))
        places[place].add(profile.plain_name(row))
    return {name for names in places.values() if len(names) > 1 for name in names}


@pytest.mark.slow
def test_totals_of_a_large_trace_count_every_call_and_kernel() -> None:
    (path,) = shared("traces/v100_memory_compile_216k").glob("*.gz")
    profile = Profile(read_trace(path))
    assert len(profile.launched_by) == len(profile.table)
    keys: Rows = profile.plain_number(profile.nested.rows).astype(np.int64)
    found = totals(profile.operators, keys)
    kernels = kernels_of(profile.table, profile.operators, np.ones(len(keys), np.bool_))
    assert sum(entry.calls for entry in found) == len(profile.nested)
    assert (
        sum(use.count for use in kernels) == len(profile.operators.work) <= profile.table.is_category(DEVICE_WORK).sum()
    )
