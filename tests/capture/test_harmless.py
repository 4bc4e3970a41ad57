"""Nothing that goes wrong while a side file is made reaches the job, and no half file stays."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tb_tidy_plugin.capture import guarded, handler, live_tree, settings, tidy_trace_handler
from tb_tidy_plugin.capture.live_tree import walk
from tb_tidy_plugin.capture.own_files import OwnFiles
from tests.support.captured_job import document_of, record, traces_in
from tests.support.full_disk import filling_disk
from tests.support.recordings import ROOT

pytestmark = pytest.mark.torch


def test_a_job_imports_little() -> None:
    unwanted = {"msgspec", "numpy", "rich", "click"}
    program = f"import sys; import tb_tidy_plugin.capture; print(*{unwanted} & sys.modules.keys())"
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)
    assert not answer.stdout.split()


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
    "the sources": (handler, "own_sources", {"sources"}),
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

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_what_ends_a_job_ends_it(
        self,
        kind: type[BaseException],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A signal's handler runs wherever the main thread is, and it may be ours that is interrupted."""

        def interrupted(*_: object) -> None:
            raise kind

        monkeypatch.setattr(handler, "settings", interrupted)
        with pytest.raises(kind):
            record(tidy_trace_handler(str(tmp_path)))
        assert caplog.records == []
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"], "the trace, and no half side file"

    def test_a_job_that_is_interrupted_before_the_next_cycle_can_end(self, tmp_path: Path) -> None:
        """To stop the profiler then would be its end by a signal of the system's."""
        job = """
            import sys, torch
            from tb_tidy_plugin.capture import handler, tidy_profile

            def interrupted(*_):
                raise KeyboardInterrupt

            handler.settings = interrupted
            try:
                with tidy_profile(sys.argv[1], wait=0, warmup=1, active=1, repeat=2) as profile:
                    for _ in range(4):
                        torch.ones(4).add(1)
                        profile.step()
            except KeyboardInterrupt:
                print("interrupted, and alive")
        """
        command = [sys.executable, "-c", dedent(job), str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "interrupted, and alive\n"), done.stderr


class Text(str):
    """A text that cannot be used."""

    __slots__ = ()

    def __getitem__(self, _: object) -> str:
        raise BrokenError

    split = isprintable = __len__ = __format__ = __str__ = __getitem__  # type: ignore[assignment]


class SilentError(Exception):
    def __str__(self) -> str:
        raise BrokenError


class DeepError(Exception):
    def __str__(self) -> str:
        return str(self)


class WordedError(Exception):
    def __str__(self) -> str:
        return Text("words")


class HoldingError(Exception):
    """Shows what it holds, which cannot be shown."""

    def __init__(self) -> None:
        super().__init__(self, 1)

    def __repr__(self) -> str:
        raise BrokenError


class ReasonlessError(OSError):
    @property
    def strerror(self) -> str:  # type: ignore[override]
        raise BrokenError


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise BrokenError


class UnnamedError(Exception, metaclass=Nameless):
    pass


UNREAD = "its message cannot be read"
SAID: list[tuple[Exception, str]] = [
    (SilentError(), f"SilentError: {UNREAD}"),
    (DeepError(), f"DeepError: {UNREAD}"),
    (HoldingError(), f"HoldingError: {UNREAD}"),
    (ReasonlessError(), f"ReasonlessError: {UNREAD}"),
    (WordedError(), "WordedError: words"),
    (UnnamedError("words"), "error: words"),
    (ValueError(), "ValueError"),
    (ValueError("two\n  lines"), "ValueError: two lines"),
    (ValueError("\x1b]0;title\x07\u202e"), "ValueError: \ufffd]0;title\ufffd\ufffd"),
    (ValueError("\ud800"), "ValueError: \ufffd"),
    (ValueError("x" * 10_000_000), f"ValueError: {'x' * guarded.MOST_ERROR_CHARACTERS}…"),
    (OSError(28, "No space left on device", "/a/draft"), "OSError: No space left on device"),
]


class TestErrorsOfTheJobsOwn:
    """What raises them may be an object of the job's, whose methods run where the error is put into words."""

    @pytest.mark.parametrize(("error", "said"), SAID, ids=[said[:20] for _, said in SAID])
    def test_their_words(self, error: Exception, said: str, caplog: pytest.LogCaptureFixture) -> None:
        def fail_so() -> None:
            raise error

        assert guarded.unless_it_fails("it", fail_so) is None
        [entry] = caplog.records
        assert entry.getMessage() == f"tb-tidy: it could not be captured, the trace itself is unaffected: {said}"

    def test_none_reaches_the_job(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail_silently() -> None:
            raise SilentError

        with monkeypatch.context() as patch:
            patch.setattr(handler, "settings", fail_silently)
            record(tidy_trace_handler(str(tmp_path)))
        [trace] = traces_in(tmp_path)
        assert document_of(trace)["settings"] is None

    def test_nor_does_one_of_its_log(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken(logging.Handler):
            emit = fail

        monkeypatch.setattr(guarded.log, "handlers", [Broken()])
        assert guarded.unless_it_fails("it", fail) is None


def test_a_damaged_name_is_passed_over() -> None:
    from torch._C._profiler import _EventType

    class Damaged:
        tag, children = _EventType.PyCall, ()

        @property
        def name(self) -> str:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "gone")

    found = walk([Damaged()], OwnFiles(), tensors=False)  # type: ignore[list-item]
    assert (found.complete, found.calls, found.files) == (True, [], frozenset())
