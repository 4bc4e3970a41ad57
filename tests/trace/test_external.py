"""Device activity from a side file: placed on one stream, joined to its operators, and said to be inferred."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.capture import write_device_events
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.system.side_files import DEVICE_EVENTS_SUFFIX
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.trace.external import LAUNCH, placed
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.side_file import side_file_of
from tests.support.made_up_device import (
    KERNELS_US,
    LATENCY_NS,
    events_in,
    kernels_of,
    operator,
    read,
    record,
    report_on,
    side_file,
    traced,
)

WORK = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=40)


class TestPlacing:
    @given(WORK)
    def test_like_a_queue_worked_off_by_hand(self, work: list[tuple[int, int]]) -> None:
        work.sort(key=lambda piece: piece[0])
        expected, free = [], 0
        for earliest, duration in work:
            start = max(earliest, free)
            expected.append(start)
            free = start + duration
        columns = np.array(work, np.int64).reshape(-1, 2)
        assert placed(columns[:, 0], columns[:, 1]).tolist() == expected

    @given(WORK)
    def test_nothing_overlaps_starts_early_or_overtakes(self, work: list[tuple[int, int]]) -> None:
        columns = np.array(sorted(work), np.int64).reshape(-1, 2)
        earliest, duration = columns[:, 0], columns[:, 1]
        start = placed(earliest, duration)
        assert (start >= earliest).all()
        assert (start[1:] >= start[:-1] + duration[:-1]).all()
        waits = start[1:] > earliest[1:]
        assert (start[1:] == start[:-1] + duration[:-1])[waits].all(), "work waits for other work only"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recorded = record(tmp_path_factory.mktemp("run") / "w.1.pt.trace.json")
    written = write_device_events(recorded.prof, recorded.trace, "npu", LATENCY_NS, "Acme X1")
    assert written == side_file_of(recorded.trace)
    return recorded.trace


@pytest.fixture(scope="module")
def expected(trace: Path) -> list[tuple[str, int, int, int]]:
    """Name, start, duration in ns and External id of each kernel, worked out from the JSON in plain Python."""
    events = [event for event in events_in(trace) if event["ph"] == "X" and event["cat"] != "Trace"]
    origin = min(map(start_ns, events))
    operators = [event for event in events if event["name"] in KERNELS_US]
    free, kernels = 0, []
    for event in sorted(operators, key=lambda event: float(event["ts"])):
        start = max(start_ns(event) - origin + LATENCY_NS, free)
        duration = round(KERNELS_US[event["name"]] * 1000)
        kernels.append((event["name"], start, duration, event["args"]["External id"]))
        free = start + duration
    return kernels


def start_ns(event: dict[str, Any]) -> int:
    """From the digits: months after Kineto's base, a float of µs times 1000 is no longer exact."""
    return int(Decimal(repr(event["ts"])) * 1000)


@pytest.mark.torch
class TestMadeUpDevice:
    def test_kernels(self, trace: Path, expected: list[tuple[str, int, int, int]]) -> None:
        assert len(expected) >= 2 * 5
        assert kernels_of(Profile(read(trace))) == [kernel[:3] for kernel in expected]

    def test_each_kernel_is_joined_to_its_operator(
        self, trace: Path, expected: list[tuple[str, int, int, int]]
    ) -> None:
        profile = Profile(read(trace))
        external_id = profile.table.external_id
        for row in np.flatnonzero(profile.table.category == Category.KERNEL).tolist():
            cause, launch = int(profile.launched_by[row]), int(profile.launch[row])
            assert profile.name(cause) == profile.name(row)
            assert external_id[cause] == external_id[row] == external_id[launch]
            assert profile.start_ns(launch) == profile.end_ns(launch) == profile.start_ns(cause)
            assert profile.start_ns(row) >= profile.start_ns(launch) + LATENCY_NS
            assert row in profile.device_activity_of(cause)
        linear = profile.named("aten::linear")[0]
        (below,) = profile.device_activity_of(int(linear))
        assert profile.name(below) == "aten::addmm"

    def test_each_kernel_counts_in_the_step_that_launched_it(
        self, trace: Path, expected: list[tuple[str, int, int, int]]
    ) -> None:
        profile = Profile(read(trace))
        rows = np.flatnonzero(profile.table.category == Category.KERNEL)
        per_step = np.bincount(profile.step_of(rows), minlength=2)
        assert per_step.tolist() == [len(expected) // 2, len(expected) // 2]

    def test_report(self, trace: Path, expected: list[tuple[str, int, int, int]]) -> None:
        report = report_on(trace)
        busy = sum(duration for _, _, duration, _ in expected)
        assert sum(step.device_ns for step in report.ledger.steps) == busy
        ends = [start + duration for _, start, duration, _ in expected]
        assert report.duration_ns >= max(ends)
        assert (report.steps.basis, report.steps.count) == ("profiler_step", 2)
        assert report.recorded == ["shapes", "device", "steps"]
        (device,) = report.devices
        assert (device.kind, device.index, device.name) == ("npu", 0, "Acme X1 (inferred)")
        begins = "Device times of npu:0 come from a side file, `w.1.pt.trace.json.device_events.json`; "
        (note,) = [note for note in report.quality.notes if note.startswith(begins)]  # a slow machine has others
        assert note.endswith("start times are inferred: 7 µs after the start of the operator, one after the other.")

    def test_without_the_side_file_there_is_no_device(self, trace: Path, tmp_path: Path) -> None:
        alone = Path(shutil.copy(trace, tmp_path))
        assert report_on(alone).devices == []
        assert not any("device" in note for note in report_on(alone).quality.notes)

    def test_the_host_side_is_as_without_it(self, trace: Path) -> None:
        alone, both = Profile(read_trace(trace)), Profile(read(trace))
        size = alone.tree.size
        assert both.tree.size == size
        assert (alone.tree.parent == both.tree.parent).all()
        assert (alone.table.start_ns[:size] == both.table.start_ns[:size]).all()
        assert alone.inputs_of(np.arange(size)) == both.inputs_of(np.arange(size))


class TestWhichOperators:
    def test_the_innermost_with_device_time(self, tmp_path: Path) -> None:
        trace = traced(
            tmp_path,
            [operator("aten::linear", 0, 100, 1), operator("aten::t", 5, 10, 2), operator("aten::addmm", 20, 90, 3)],
        )
        side_file(trace, [("aten::linear", 1, 1, 50_000), ("aten::addmm", 3, 1, 50_000), ("aten::t", 2, 1, 0)])
        assert kernels_of(Profile(read(trace))) == [("aten::addmm", 21_000, 50_000)]
        assert len(read(trace).metadata.notes) == 1, "nothing was left out"

    def test_neighbours_that_touch_are_not_nested(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1), operator("aten::mm", 10, 20, 2)])
        side_file(trace, [("aten::mm", 1, 1, 30_000), ("aten::mm", 2, 1, 5_000)])
        assert kernels_of(Profile(read(trace))) == [("aten::mm", 1_000, 30_000), ("aten::mm", 31_000, 5_000)]

    def test_time_that_enclosing_operators_have_beyond_those_inside_is_said(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::linear", 0, 100, 1), operator("aten::addmm", 20, 90, 3)])
        side_file(trace, [("aten::linear", 1, 1, 60_000), ("aten::addmm", 3, 1, 50_000)])
        assert read(trace).metadata.notes[1].startswith("10 µs of device time that operators have beyond")

    def test_annotations_are_known_but_no_work(self, tmp_path: Path) -> None:
        backward = operator("## backward ##", 0, 100, 1, cat="user_annotation")
        trace = traced(tmp_path, [backward, operator("aten::mm", 10, 20, 2, tid=2)])
        side_file(trace, [("## backward ##", 1, 1, 90_000), ("aten::mm", 2, 2, 5_000)])
        assert kernels_of(Profile(read(trace))) == [("aten::mm", 11_000, 5_000)]
        assert len(read(trace).metadata.notes) == 1

    def test_one_stream_for_all_threads_in_order_of_launch(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 5, 9, 1), operator("aten::bmm", 2, 9, 2, tid=7)])
        side_file(trace, [("aten::mm", 1, 1, 4_000), ("aten::bmm", 2, 7, 8_000)])
        assert kernels_of(Profile(read(trace))) == [("aten::bmm", 1_000, 8_000), ("aten::mm", 9_000, 4_000)]

    @pytest.mark.parametrize(
        ("in_trace", "in_file"), [("aten::add.Tensor", "aten::add"), ("aten::add", "aten::add.Tensor")]
    )
    def test_with_or_without_overload(self, tmp_path: Path, in_trace: str, in_file: str) -> None:
        trace = traced(tmp_path, [operator(in_trace, 0, 10, 1)])
        side_file(trace, [(in_file, 1, 1, 5_000)])
        assert kernels_of(Profile(read(trace))) == [("aten::add", 1_000, 5_000)]

    def test_threads_by_the_profilers_own_numbers(self, tmp_path: Path) -> None:
        """Both threads use External id 1 and 2, and only the thread tells which is which."""
        first = [operator("aten::mm", 0, 10, 1, tid=4711), operator("aten::relu", 20, 30, 2, tid=4711)]
        second = [operator("aten::mm", 100, 110, 1, tid=4712), operator("aten::bmm", 120, 130, 3, tid=4712)]
        trace = traced(tmp_path, [*first, *second])
        side_file(
            trace,
            [("aten::mm", 1, 1, 1_000), ("aten::relu", 2, 1, 2_000), ("aten::mm", 1, 2, 3_000), ("aten::bmm", 3, 2, 4)],
        )
        found = kernels_of(Profile(read(trace)))
        assert found == [
            ("aten::mm", 1_000, 1_000), ("aten::relu", 21_000, 2_000), ("aten::mm", 101_000, 3_000),
            ("aten::bmm", 121_000, 4),
        ]  # fmt: skip

    def test_threads_by_their_ids_where_numbers_tie(self, tmp_path: Path) -> None:
        trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1, tid=1), operator("aten::mm", 50, 60, 1, tid=2)])
        side_file(trace, [("aten::mm", 1, 2, 5_000)])
        assert kernels_of(Profile(read(trace))) == [("aten::mm", 51_000, 5_000)]

    def test_nothing_twice_where_kineto_sees_the_device(self, tmp_path: Path) -> None:
        launch = operator("cudaLaunchKernel", 2, 3, 1, cat="cuda_runtime", args={"correlation": 9, "External id": 1})
        ids = {"correlation": 9, "External id": 1, "device": 0, "stream": 7}
        kernel = operator("gemm", 5, 9, 1, cat="kernel", pid=0, tid=7, args=ids)
        host = [operator("aten::linear", 0, 5, 3), operator("aten::mm", 1, 4, 1), operator("aten::bmm", 6, 8, 2)]
        trace = traced(tmp_path, [*host, launch, kernel])
        side_file(trace, [("aten::linear", 3, 1, 4_000), ("aten::mm", 1, 1, 4_000), ("aten::bmm", 2, 1, 3_000)])
        profile = Profile(read(trace))
        assert kernels_of(profile) == [("gemm", 5_000, 4_000), ("aten::bmm", 7_000, 3_000)]
        assert (
            "1 of 3 entries in `w.1.pt.trace.json.device_events.json` are left out: the trace itself has"
            in (profile.metadata.notes[1])
        )
        assert [(device.kind, device.index) for device in report_on(trace).devices] == [("cuda", 0), ("npu", 1)]
        correlation = profile.table.correlation[profile.table.correlation != ABSENT].tolist()
        assert sorted(correlation) == [9, 9, 10, 10], "no id of the trace is used again"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    entries=st.lists(
        st.tuples(
            st.sampled_from(["aten::mm", "aten::linear", "aten::relu", "ProfilerStep#1", "", "x"]),
            st.integers(-2, 9) | st.integers(),
            st.integers(0, 3) | st.integers(),
            st.integers(-5, 50_000),
        ),
        max_size=12,
    ),
    latency=st.integers(0, 10**9),
)
def test_whatever_is_in_the_side_file(tmp_path: Path, entries: list[tuple[str, int, int, int]], latency: int) -> None:
    step = operator("ProfilerStep#1", 0, 100, 1, cat="user_annotation")
    first = [operator("aten::linear", 1, 50, 2), operator("aten::mm", 2, 40, 3), operator("aten::relu", 50, 60, 4)]
    second = [operator("aten::mm", 1, 30, 5, tid=2), operator("aten::mm", 40, 45, 3, tid=2)]
    trace = traced(tmp_path, [step, *first, *second])
    side_file(trace, entries, launch_latency_ns=latency)
    profile = Profile(read(trace))
    rows = np.flatnonzero(profile.table.category == Category.KERNEL)
    rows = rows[np.argsort(profile.table.start_ns[rows])]
    starts, ends = profile.table.start_ns[rows], profile.table.end_ns[rows]
    launch = profile.launch[rows]
    assert (launch != ABSENT).all()
    assert (starts[1:] >= ends[:-1]).all()
    assert (starts >= profile.table.start_ns[launch] + latency).all()
    assert profile.covered(rows).total_ns == int((ends - starts).sum())
    given = {(entry[1], entry[3]) for entry in entries}
    for row in rows.tolist():
        assert (int(profile.table.external_id[row]), profile.duration_ns(row)) in given


def test_a_link_away_from_its_trace_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    operators = [operator("aten::mm", 0, 10, 1)]
    theirs = traced(tmp_path / "theirs", operators)
    side_file(theirs, [("aten::mm", 1, 1, 5_000)])
    assert (read(theirs).category == Category.KERNEL).any()
    trace = traced(tmp_path, operators)
    trace.with_name(trace.name + DEVICE_EVENTS_SUFFIX).symlink_to(theirs.with_name(theirs.name + DEVICE_EVENTS_SUFFIX))
    table = read(trace)
    assert not (table.category == Category.KERNEL).any()
    [note] = table.metadata.notes
    assert "It is a link to a folder other than the trace's." in note


def test_a_table_with_activity_is_in_the_order_of_every_table(tmp_path: Path) -> None:
    trace = traced(tmp_path, [operator("aten::mm", 0, 10, 1), operator("aten::bmm", 0, 10, 2, tid=2)])
    side_file(trace, [("aten::mm", 1, 1, 5_000), ("aten::bmm", 2, 2, 5_000)])
    table = read(trace)
    keys = list(zip(table.thread.tolist(), table.start_ns.tolist(), strict=True))
    assert keys == sorted(keys)
    assert [table.names[name] for name in table.name] == [
        "aten::mm",
        LAUNCH,
        "aten::bmm",
        LAUNCH,
        "aten::mm",
        "aten::bmm",
    ]
    assert len(set(table.file_order.tolist())) == len(table)
    kernel: dict[str, Any] = json.loads(table.args.text(4))
    assert kernel == {"inferred": True, "device kind": "npu", "device name": "Acme X1"}
