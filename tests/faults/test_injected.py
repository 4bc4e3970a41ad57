"""Calls fail as they are told to: in the folders that are named, and nowhere else."""

from __future__ import annotations

import errno
import gzip
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.injected import ERRORS, Fault, faults, injected


def listed(folder: Path) -> None:
    list(os.scandir(folder))


def mapped(folder: Path) -> None:
    with (folder / "file").open("rb") as file:
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def synced(folder: Path) -> None:
    with (folder / "file").open("rb+") as file:
        os.fsync(file.fileno())


CALLS: dict[str, tuple[Callable[[Path], object], ...]] = {
    "open": (
        lambda folder: (folder / "file").open("rb"),
        lambda folder: os.open(folder / "file", os.O_RDONLY),
        lambda folder: tempfile.mkstemp(dir=folder),
        lambda folder: os.open("file", os.O_RDONLY, dir_fd=os.open(folder.parent / "inside", os.O_RDONLY)),
    ),
    "read": (
        lambda folder: (folder / "file").read_bytes(),
        lambda folder: (folder / "file").read_text(),
        lambda folder: os.fdopen(os.open(folder / "file", os.O_RDONLY), "rb").read(),
        lambda folder: os.read(os.open(folder / "file", os.O_RDONLY), 1),
        lambda folder: gzip.GzipFile(folder / "file").read(),
    ),
    "write": (
        lambda folder: (folder / "new").write_bytes(b"text"),
        lambda folder: os.write(os.open(folder / "new", os.O_WRONLY | os.O_CREAT), b"text"),
    ),
    "close": (lambda folder: (folder / "new").write_bytes(b"text"),),
    "fsync": (synced,),
    "rename": (lambda folder: (folder / "file").rename(folder / "new"), lambda folder: (folder / "file").replace("x")),
    "mmap": (mapped,),
    "fork": (lambda folder: subprocess.Popen([sys.executable, "-c", ""]),),
    "stat": (lambda folder: (folder / "file").stat(), lambda folder: next(os.scandir(folder)).stat()),
    "list": (listed, lambda folder: list(folder.iterdir())),
    "unlink": (lambda folder: (folder / "file").unlink(),),
    "mkdir": (lambda folder: (folder / "new").mkdir(),),
    "mark": (lambda folder: os.utime(folder / "file"), lambda folder: (folder / "file").chmod(0o600)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file").write_bytes(b"text")
    return tmp_path / "inside"


def test_there_is_a_way_for_each_kind() -> None:
    assert set(CALLS) == set(ERRORS)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind, ways in CALLS.items() for way in range(len(ways))])
def test_each_way_fails(folder: Path, kind: str, way: int) -> None:
    fault = Fault(kind, 1, ERRORS[kind][0], lasts=False)
    with injected(fault, folder), pytest.raises(OSError, match="Errno") as caught:
        CALLS[kind][way](folder)
    assert (caught.value.errno, fault.is_reached) == (ERRORS[kind][0], True)
    assert [path.name for path in folder.iterdir() if path.name != "new"] == ["file"]


def test_what_is_elsewhere_works(folder: Path, tmp_path: Path) -> None:
    fault = Fault("open", 1, errno.EMFILE, lasts=True)
    with injected(fault, folder):
        (tmp_path / "inside-too").write_bytes(b"text")
        assert (tmp_path / "inside-too").read_bytes() == b"text"
    assert not fault.is_reached


def test_a_disk_that_fills_takes_a_part(folder: Path) -> None:
    with injected(Fault("write", 2, errno.ENOSPC, lasts=False), folder):
        (folder / "one").write_bytes(b"text")
        with pytest.raises(OSError, match="No space left"):
            (folder / "two").write_bytes(b"text")
        (folder / "three").write_bytes(b"text")
    assert [(folder / name).read_bytes() for name in ("one", "two", "three")] == [b"text", b"te", b"text"]


def test_files_behave_as_usual_where_nothing_fails(folder: Path) -> None:
    with injected(Fault("read", 99, errno.EIO, lasts=False), folder):
        with (folder / "lines").open("w", encoding="utf-8", newline="\n") as file:
            file.write("é\nb\n")
        with (folder / "lines").open("r+b") as both:
            both.seek(0, os.SEEK_END)
            both.write(b"c\n")
            both.seek(0)
            assert both.readlines() == ["é\n".encode(), b"b\n", b"c\n"]
        with (folder / "lines").open(encoding="utf-8") as text:
            assert list(text) == ["é\n", "b\n", "c\n"]
        with (folder / "lines").open("ab", buffering=0) as raw:
            assert raw.write(b"d") == 1
    assert (folder / "lines").read_bytes() == "é\nb\nc\nd".encode()


def test_every_call_is_made_to_fail_once(folder: Path) -> None:
    tried = []
    for fault in faults(["stat"]):
        with injected(fault, folder):
            for _ in range(3):
                try:
                    (folder / "file").stat()
                except OSError:
                    tried.append(str(fault))
    assert tried == [*["stat 1 and later: EIO"] * 3, "stat 1: EIO", "stat 2: EIO", "stat 3: EIO"]
