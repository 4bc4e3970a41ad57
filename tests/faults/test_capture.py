"""Recordings on a machine whose calls fail: the job goes on, and what is beside a trace is whole and of it."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path

import pytest

from tb_tidy_plugin.capture import guarded, tidy_profile, tidy_trace_handler, write_device_events
from tests.faults.injected import faults, injected
from tests.support.made_up_device import record as record_device
from tests.support.thinned import STEPS
from tests.support.whole_run import contents

pytestmark = pytest.mark.torch


def job(folder: Path) -> int:
    """Four steps, of which the second is recorded; how many were made."""
    import torch

    layer, steps = torch.nn.Linear(2, 2), 0
    with tidy_profile(str(folder), wait=1, warmup=0, active=1) as profiler:
        for _ in range(4):
            layer(torch.ones(1, 2))
            steps += 1
            profiler.step()
    return steps


def beside(folder: Path) -> list[Path]:
    """The traces and the side files, by name; nothing else may be there."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    assert all(path.name.endswith((".pt.trace.json.gz", ".tidy.json.gz")) for path in found), found
    return found


@STEPS
@pytest.mark.filterwarnings("ignore:.*warmup.*:UserWarning")
def test_a_recording_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, every: int
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    kinds = ("open", "write", "close", "fsync", "rename", "mkdir", "unlink")
    reached = set()
    for fault in faults(kinds, every=every):
        run = tmp_path / str(fault)
        guarded.logged_once.cache_clear()
        caplog.clear()
        with injected(fault, tmp_path):
            assert job(run) == 4, str(fault)
        reached |= {fault.kind} if fault.is_reached else set()
        found = beside(run)
        side_files = [path for path in found if path.name.endswith(".tidy.json.gz")]
        documents = [json.loads(gzip.decompress(path.read_bytes())) for path in side_files]
        assert all(document["version"] == 1 for document in documents), str(fault)
        is_all_there = len(found) == 2 and all("steps" in document for document in documents)
        is_said = os.strerror(fault.error) in caplog.text or "Can't create directory" in caplog.text
        assert is_all_there or is_said, f"{fault}: {found} {caplog.text}"
    assert reached == set(kinds)


def test_the_side_file_of_a_device(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was there stays as it was, or is replaced."""
    recorded = record_device(tmp_path / "w.1.pt.trace.json")
    written = write_device_events(recorded.prof, recorded.trace)
    assert written is not None
    new = written.read_bytes()
    written.write_bytes(b"old")
    before = contents(tmp_path)
    for fault in faults(("open", "write", "close", "fsync", "rename", "unlink")):
        written.write_bytes(b"old")
        guarded.logged_once.cache_clear()
        caplog.clear()
        with injected(fault, tmp_path):
            told = write_device_events(recorded.prof, recorded.trace)
        assert contents(tmp_path) == before | {written.name: b"old" if told is None else new}, str(fault)
        assert told is not None or os.strerror(fault.error) in caplog.text, str(fault)


def test_the_handler_raises_what_torch_raises_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own file is the only one that fails."""
    import torch

    for fault in faults(("open", "write", "close", "fsync", "rename", "unlink")):
        run = tmp_path / str(fault)
        guarded.logged_once.cache_clear()
        caplog.clear()
        with torch.profiler.profile() as prof:
            torch.ones(1).add(1)
        export = tidy_trace_handler(str(run))
        with injected(fault, run):
            export(prof)
        (trace,) = [path for path in run.iterdir() if path.name.endswith(".pt.trace.json")]
        assert json.loads(trace.read_bytes())["traceEvents"], str(fault)
        assert len(list(run.iterdir())) == 2 or os.strerror(fault.error) in caplog.text, str(fault)
