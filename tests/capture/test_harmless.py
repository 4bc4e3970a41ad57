"""Nothing that goes wrong while a side file is made reaches the job, and no half file stays."""

from __future__ import annotations

import gc
import gzip
import json
import logging
from pathlib import Path

import pytest

from tb_tidy_plugin.capture import guarded, handler, live_tree, settings, tidy_trace_handler
from tb_tidy_plugin.capture.live_tree import walk
from tb_tidy_plugin.capture.own_files import OwnFiles
from tests.support.captured_job import document_of, record, traces_in
from tests.support.full_disk import filling_disk

pytestmark = pytest.mark.torch


class BrokenError(Exception):
    """What goes wrong in these tests."""


def fail(*_arguments: object, **_named: object) -> None:
    raise BrokenError("on purpose")


STAGES: dict[str, tuple[object, str, set[str]]] = {
    "the settings": (handler, "settings", {"settings"}),
    "one topic": (settings, "_numerics", set()),
    "the objects of the job": (gc, "get_objects", set()),
    "the walk": (handler, "walk", {"calls", "sources", "complete"}),
    "own files": (handler, "OwnFiles", {"calls", "sources", "complete"}),
    "the names of frames": (live_tree, "checksum", {"calls", "sources", "complete"}),
    "the sources": (handler, "sources_of", {"sources"}),
}


class TestNothingBreaksTheJob:
    @pytest.mark.parametrize("stage", STAGES)
    def test_the_rest_is_captured(
        self, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        owner, name, missing = STAGES[stage]
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            record(tidy_trace_handler(str(tmp_path)))
        (trace,) = traces_in(tmp_path)
        found = {key for key, value in document_of(trace).items() if value is not None}
        assert found == {"version", "settings", "complete", "calls", "sources"} - missing
        assert [entry.getMessage() for entry in caplog.records if "BrokenError: on purpose" in entry.getMessage()]

    @pytest.mark.parametrize("name", ["_document", "write_document", "write_whole"])
    def test_a_side_file_that_cannot_be_made(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(handler, name, fail)
            record(tidy_trace_handler(str(tmp_path)))
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
        (entry,) = caplog.records
        assert (entry.levelno, "the side file could not be captured" in entry.getMessage()) == (logging.WARNING, True)

    def test_a_disk_that_is_full_leaves_no_half_file(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with filling_disk():
            record(tidy_trace_handler(str(tmp_path)))
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
        assert "No space left" in caplog.text

    def test_a_file_that_is_read_meanwhile_is_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Under its name there is the old content, or the new one."""
        path = tmp_path / "t.pt.trace.json"
        handler.write_document(path, {"settings": None})
        seen = []
        replace = Path.replace

        def watched(self: Path, target: Path) -> Path:
            seen.append(json.loads(gzip.decompress(Path(target).read_bytes())))
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", watched)
            handler.write_document(path, {"settings": {"threads": {}}})
        assert seen == [{"version": 1, "settings": None}]
        assert document_of(path)["settings"] == {"threads": {}}
        assert len(list(tmp_path.iterdir())) == 1

    def test_the_same_failure_is_said_once(self, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(5):
            assert guarded.unless_it_fails("it", fail) is None
        guarded.unless_it_fails("something else", fail)
        assert len(caplog.records) == 2

    def test_what_stops_a_job_stops_it(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            guarded.unless_it_fails("it", interrupt)


def test_a_damaged_name_is_passed_over() -> None:
    from torch._C._profiler import _EventType

    class Damaged:
        tag, children = _EventType.PyCall, ()

        @property
        def name(self) -> str:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "gone")

    found = walk([Damaged()], OwnFiles(), tensors=False)  # type: ignore[list-item]
    assert (found.complete, found.calls, found.files) == (True, [], frozenset())
