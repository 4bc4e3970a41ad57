"""The memory snapshot beside a trace: where it lies, what is shown of it, and that a bad one costs nothing."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.answers import TABLES_OF_REPORT
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.report.figures import DeviceMemoryRow, Figures
from tb_tidy_plugin.trace import memory_snapshot
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.memory_snapshot import memory_snapshot_of
from tests.support.made_up_device import operator, traced
from tests.support.memory_snapshots import MIB, DrawnSnapshot, training, write_snapshot

TRACE = "w.1.pt.trace.json.gz"
NAMES = [f"{TRACE}.memory_snapshot.pickle", "w.1.pt.trace.json.memory_snapshot.pickle", "w.memory_snapshot.pickle"]
NAMES += ["memory_snapshot.pickle"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return traced(tmp_path, [operator("aten::mm", 0, 10, 1)], TRACE)


def figures(trace: Path) -> Figures:
    (found,) = analyse(Job(), trace, TABLES_OF_REPORT)
    assert found.answer is not None
    return found.answer.figures


def rows(trace: Path) -> list[DeviceMemoryRow]:
    return [row for row in figures(trace).memory if row.basis == "snapshot"]


def test_the_nearest_name_comes_first(trace: Path) -> None:
    for name in reversed(NAMES):
        written = write_snapshot(trace.parent, {}, name)
        assert memory_snapshot_of(trace) == written


@pytest.mark.parametrize("name", NAMES)
def test_it_is_shown_with_its_trace(trace: Path, name: str) -> None:
    write_snapshot(trace.parent, training().snapshot(), name)
    (row,) = rows(trace)
    assert (row.device, row.peak_bytes, row.peak_reserved_bytes) == ("cuda:0, memory snapshot", 144 * MIB, 256 * MIB)
    assert [(each.file, each.line, each.function, each.kind) for each in row.holders] == [
        ("/home/u/train.py", 40, "<module>", "optimizer_state"),
        ("/home/u/model.py", 12, "__init__", "parameter"),
        ("/home/u/model.py", 21, "forward", "activation"),
    ]
    assert row.holders[2].stack == ["gelu (functional.py:200)", "forward (model.py:21)", "<module> (train.py:40)"]
    assert sum(each.bytes for each in row.holders) + (row.other_bytes or 0) == row.peak_bytes
    assert sum(each.peak_bytes for each in row.kinds) == row.peak_bytes
    assert "snapshot" not in figures(trace).missing


def test_each_device_that_has_memory(trace: Path) -> None:
    snapshot = training().snapshot()
    second = DrawnSnapshot(reserved=2 * MIB)
    second.had(MIB, [])
    (segment,) = second.snapshot()["segments"]
    snapshot["segments"].append(segment | {"device": 2})
    write_snapshot(trace.parent, snapshot)
    assert [(row.device, row.peak_bytes) for row in rows(trace)] == [
        ("cuda:0, memory snapshot", 144 * MIB),
        ("cuda:2, memory snapshot", MIB),
    ]


def test_allocations_that_failed_are_counted(trace: Path) -> None:
    drawn = training()
    drawn.fails(1 << 40)
    write_snapshot(trace.parent, drawn.snapshot())
    assert [row.failures for row in rows(trace)] == [1]


def test_the_form_of_older_versions(trace: Path) -> None:
    """Without times, devices, addresses of blocks, and what was asked for."""
    snapshot = training().snapshot()
    for action in snapshot["device_traces"][0]:
        del action["time_us"]
    for segment in snapshot["segments"]:
        del segment["device"]
        segment["blocks"] = [{"size": each["size"], "state": each["state"]} for each in segment["blocks"]]
    write_snapshot(trace.parent, snapshot)
    (row,) = rows(trace)
    assert set(row.time_ns) == {0}
    assert row.allocations == sum(each["action"] == "alloc" for each in snapshot["device_traces"][0])


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (str(self.path),))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a class": (lambda path: path.write_bytes(pickle.dumps(Runs(path.parent / "ran"))), "object of a class"),
    "cut": (lambda path: path.write_bytes(pickle.dumps(training().snapshot())[:-40]), "not a complete pickle"),
    "empty": (lambda path: path.write_bytes(b""), "not a complete pickle"),
    "a list": (lambda path: path.write_bytes(pickle.dumps([1])), "does not match the format"),
    "a negative size": (
        lambda path: path.write_bytes(pickle.dumps({"segments": [{"total_size": -1}]})),
        "does not match the format",
    ),
    "sizes that add up to too much": (
        lambda path: path.write_bytes(pickle.dumps({"segments": [{"total_size": 1 << 70}]})),
        "does not match the format",
    ),
    "a device of a high number": (
        lambda path: path.write_bytes(pickle.dumps({"segments": [{"total_size": 1, "device": 1 << 40}]})),
        "does not match the format",
    ),
    "a circle": (lambda path: path.write_bytes(b"\x80\x04}\x94\x8c\x08segmentsh\x00s."), "does not match the format"),
}


@pytest.mark.parametrize("what", BAD)
def test_one_that_cannot_be_used_says_why_and_runs_nothing(trace: Path, what: str) -> None:
    made, reason = BAD[what]
    made(trace.with_name("memory_snapshot.pickle"))
    found = figures(trace)
    assert found.missing["snapshot"].startswith("The memory snapshot `memory_snapshot.pickle` is not used. ")
    assert reason in found.missing["snapshot"]
    assert not [row for row in found.memory if row.basis == "snapshot"]
    assert not (trace.parent / "ran").exists()


def test_one_that_is_too_large_is_not_read(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshot, "MOST_SNAPSHOT_BYTES", 1 << 20)
    trace.with_name("memory_snapshot.pickle").write_bytes(b"x" * (1 << 21))
    assert "It is larger than 1 MiB." in figures(trace).missing["snapshot"]


def test_a_link_that_leads_away_is_not_followed(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = write_snapshot(tmp_path_factory.mktemp("away"), training().snapshot())
    trace.with_name("memory_snapshot.pickle").symlink_to(away)
    assert rows(trace) == []
    notes = read_with_side_files(trace).metadata.notes
    assert any("It is a link to a folder other than the trace's." in note for note in notes)


def test_reports_do_not_read_it(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tables show it, and it may be large."""
    monkeypatch.setattr(memory_snapshot, "plain_object", None)
    write_snapshot(trace.parent, training().snapshot())
    assert read_with_side_files(trace).memory_snapshot is not None
