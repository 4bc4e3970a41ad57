"""A trace that is not whole is said loudly, with the reason; the job goes on as with torch alone."""

from __future__ import annotations

import gzip
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.capture import tidy_profile, tidy_trace_handler
from tb_tidy_plugin.capture.losses import loss_said
from tb_tidy_plugin.trace.files import find_traces
from tests.support.captured_job import document_of, record, traces_in
from tests.support.full_disk import filling_disk, full_disk

if TYPE_CHECKING:
    import torch

PATIENTLY_S = 600.0
TEXT = b'{"traceEvents": [' + b'{"ph": "X", "args": {"Sequence": 7}},\n' * 4000 + b'{}], "traceName": "t"\n}\n'
SOUND = gzip.compress(TEXT, mtime=0)
EMPTY = gzip.compress(b"", mtime=0)

WHOLE = {
    "t.json": [TEXT, TEXT.rstrip(), b"{}"],
    "t.json.gz": [SOUND, gzip.compress(TEXT.rstrip(), mtime=0)],
}
DAMAGED: dict[str, tuple[str, bytes, str]] = {
    "no bytes": ("t.json", b"", "is empty"),
    "no bytes of gz": ("t.json.gz", b"", "is empty"),
    "gz of no text": ("t.json.gz", EMPTY, "is empty"),
    "cut in an event": ("t.json", TEXT[:20_000], "breaks off"),
    "cut after the list": ("t.json", TEXT.rstrip()[:-1], "breaks off"),
    "cut behind an event": ("t.json", TEXT[: TEXT.index(b",\n", 20_000)], "breaks off"),
    "cut behind the args of an event": ("t.json", TEXT[: TEXT.index(b"},\n", 20_000)], "breaks off"),
    "gz of a text that is cut behind an event": (
        "t.json.gz",
        gzip.compress(TEXT[: TEXT.index(b",\n", 20_000)], mtime=0),
        "breaks off",
    ),
    "gz of a text that is cut": ("t.json.gz", gzip.compress(TEXT[:20_000], mtime=0), "breaks off"),
    "gz without its last byte": ("t.json.gz", SOUND[:-1], "breaks off"),
    "gz without its trailer": ("t.json.gz", SOUND[:-8], "breaks off"),
    "half a gz": ("t.json.gz", SOUND[: len(SOUND) // 2], "breaks off"),
    "the head of a gz": ("t.json.gz", SOUND[:5], "breaks off"),
    "gz with another checksum": ("t.json.gz", SOUND[:-8] + bytes(4) + SOUND[-4:], "breaks off"),
    "gz with another length": ("t.json.gz", SOUND[:-4] + bytes(4), "breaks off"),
}


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said as an error; nothing else may have been."""
    assert {entry.levelno for entry in caplog.records} <= {logging.ERROR}
    return [entry.getMessage() for entry in caplog.records]


class TestLook:
    @pytest.mark.parametrize(("name", "content"), [(name, each) for name, them in WHOLE.items() for each in them])
    def test_whole(self, name: str, content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / name).write_bytes(content)
        assert loss_said(str(tmp_path / name), PATIENTLY_S) is None
        assert caplog.records == []

    @pytest.mark.parametrize("damage", DAMAGED)
    def test_damaged(self, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        name, content, how = DAMAGED[damage]
        (tmp_path / name).write_bytes(content)
        loss = loss_said(str(tmp_path / name), PATIENTLY_S)
        assert loss is not None
        assert (loss.how, loss.is_total) == (how, how == "is empty")
        [said] = errors(caplog)
        assert said.startswith(f"tb-tidy: the trace {tmp_path / name} {how}: ")
        assert f"free in {tmp_path}" in said, "no reason is made up: a file can be written there"
        assert [path.name for path in tmp_path.iterdir()] == [name], "nothing is left of looking for the reason"

    def test_a_trace_that_takes_too_long_is_believed(self, tmp_path: Path) -> None:
        path = tmp_path / "t.json.gz"
        path.write_bytes(gzip.compress(bytes(1 << 20), mtime=0))
        assert loss_said(str(path), 0.0) is None
        assert loss_said(str(path), PATIENTLY_S) is not None

    def test_names_cannot_drive_the_terminal(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        loss_said(str(tmp_path / "run\x1b]0;\n" / "t.json"), PATIENTLY_S)
        [said] = errors(caplog)
        assert said.isprintable()


def by_profile(folder: Path, use_gzip: bool, worker: str = "w") -> None:
    import torch

    with tidy_profile(str(folder), wait=0, warmup=1, active=2, worker_name=worker, use_gzip=use_gzip) as profile:
        for _ in range(4):
            torch.ones(4).add(1)
            profile.step()


def by_handler(folder: Path, use_gzip: bool, worker: str = "w") -> None:
    record(tidy_trace_handler(str(folder), worker, use_gzip))


Way = Callable[..., None]
WAYS = [by_profile, by_handler]


@pytest.mark.torch
class TestRecording:
    @pytest.mark.parametrize("use_gzip", [False, True])
    @pytest.mark.parametrize("way", WAYS)
    def test_a_whole_trace_is_no_news(
        self, way: Way, use_gzip: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        way(tmp_path, use_gzip)
        assert caplog.records == []
        assert len(list(tmp_path.iterdir())) == 2

    @pytest.mark.parametrize("way", WAYS)
    def test_a_full_disk_where_torch_leaves_an_empty_gz(
        self, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with full_disk(1000):
            way(tmp_path, use_gzip=True)
        [trace] = tmp_path.iterdir()
        assert gzip.decompress(trace.read_bytes()) == b"", "torch's, and no side file beside it"
        [said] = errors(caplog)
        assert said == (
            f"tb-tidy: the trace {trace} is empty: OSError: File too large, in {tempfile.gettempdir()}, where torch "
            "writes it first. No side file was written."
        )

    @pytest.mark.parametrize("way", WAYS)
    def test_a_full_disk_where_torch_leaves_a_part(
        self, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with full_disk(16 << 10):
            way(tmp_path, use_gzip=False)
        [part] = tmp_path.iterdir()
        [said] = errors(caplog)
        assert said == (
            f"tb-tidy: the trace {part.with_suffix('')} was not written: OSError: File too large, in {tmp_path}. "
            f"The 16 KiB that torch had written are in {part}, which `tb-tidy check` reads. No side file was written."
        )
        analysis = read_file(find_traces(part)[0], Job())
        assert analysis.problem is not None
        assert analysis.problem.recovered_events > 10

    @pytest.mark.parametrize("way", WAYS)
    def test_a_folder_in_which_nothing_can_be_written(
        self, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """That it is not there stands for all reasons, since whoever runs the tests may be allowed everything."""
        way(tmp_path, use_gzip=False, worker="gone/w")
        [said] = errors(caplog)
        assert said.startswith(f"tb-tidy: the trace {tmp_path / 'gone' / 'w'}.")
        assert said.endswith(
            f" was not written: FileNotFoundError: No such file or directory, in {tmp_path / 'gone'}. "
            "No side file was written."
        )

    if hasattr(os, "geteuid") and os.geteuid() != 0:  # root may write everywhere; CI takes a skip for a failure

        @pytest.mark.parametrize("way", WAYS)
        def test_a_folder_that_is_somebody_elses(
            self, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
        ) -> None:
            tmp_path.chmod(0o500)
            way(tmp_path, use_gzip=False)
            tmp_path.chmod(0o700)
            assert f" was not written: PermissionError: Permission denied, in {tmp_path}." in caplog.text

    def test_what_torch_raises_is_logged_and_raised(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with full_disk(), pytest.raises(OSError, match="File too large"):
            by_handler(tmp_path, use_gzip=True)
        [trace] = traces_in(tmp_path)
        [said] = errors(caplog)
        assert said == (
            f"tb-tidy: the trace {trace} could not be written: OSError: File too large. No side file was written."
        )

    def test_the_job_goes_on_where_the_profiler_is_ours(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with full_disk():
            by_profile(tmp_path, use_gzip=True)
        [said] = errors(caplog)
        assert " could not be written: OSError: File too large." in said

    @pytest.mark.parametrize("way", WAYS)
    def test_a_folder_that_cannot_be_made(self, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").touch()
        folder = tmp_path / "file" / "runs"
        if way is by_handler:
            with pytest.raises(RuntimeError, match="Can't create directory"):
                way(folder, use_gzip=True)
        else:
            way(folder, use_gzip=True)
        [said] = errors(caplog)
        assert said == (
            f"tb-tidy: no trace was written: RuntimeError: Can't create directory: {folder} "
            "(NotADirectoryError: Not a directory)."
        )

    def test_every_trace_that_is_lost_is_named(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        for worker in ("first", "second"):
            by_profile(tmp_path, use_gzip=False, worker=f"gone/{worker}")
        assert ["first" in said for said in errors(caplog)] == [True, False]

    def test_a_side_file_that_is_lost_alone(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with filling_disk():
            by_profile(tmp_path, use_gzip=True)
        assert len(traces_in(tmp_path)) == 1
        [entry] = caplog.records
        said = "the side file could not be captured, the trace itself is unaffected: OSError: No space left on device"
        assert (entry.levelno, entry.getMessage()) == (logging.WARNING, f"tb-tidy: {said}")

    def test_what_can_be_read_of_a_trace_gets_its_side_file(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Older versions of torch leave a sound gz of a text that breaks off."""
        handle = tidy_trace_handler(str(tmp_path), "w", use_gzip=True)

        def breaking_off(prof: torch.profiler.profile) -> None:
            export = prof.export_chrome_trace

            def export_a_part(path: str, use_python_export: bool = False) -> None:
                export(path, use_python_export)
                text = gzip.decompress(Path(path).read_bytes())
                Path(path).write_bytes(gzip.compress(text[: text.rindex(b'"name"', 0, len(text) // 2)]))

            prof.export_chrome_trace = export_a_part  # type: ignore[method-assign]
            handle(prof)

        record(breaking_off)
        [trace] = traces_in(tmp_path)
        [said] = errors(caplog)
        assert f"{trace} breaks off: " in said
        assert document_of(trace)["version"] == 1
