"""Nothing outside the served folder is answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.folder import Folder, OutsideError
from tb_tidy_plugin.words.errors import NotFoundError
from tests.support.logdirs import trace

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need a privilege here")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two runs, a link to one outside, and a link to one inside."""
    trace(tmp_path / "logs" / "a" / "w.pt.trace.json")
    trace(tmp_path / "logs" / "b" / "w.pt.trace.json")
    trace(tmp_path / "elsewhere" / "w.pt.trace.json")
    (tmp_path / "logs" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "logs" / "in").symlink_to("a")
    return tmp_path / "logs"


OUTSIDE = ["..", "../elsewhere", "/", "out", "out/w.pt.trace.json", "a/../../elsewhere", "in/../../elsewhere", "«..»"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_leads_out_is_refused(path: str, root: Path) -> None:
    with pytest.raises(OutsideError, match="leads out of the served folder"):
        Folder(root, Job()).place(path)


def test_an_absolute_path_counts_by_where_it_lies(root: Path) -> None:
    assert Folder(root, Job()).place(str(root / "a")) == root / "a"
    with pytest.raises(OutsideError):
        Folder(root, Job()).place(str(root.parent / "elsewhere"))


def test_links_are_followed_where_that_is_asked_for(root: Path) -> None:
    folder = Folder(root, Job(follow_links=True))
    assert folder.place("out") == root / "out"
    with pytest.raises(OutsideError):
        folder.place("../elsewhere")


@pytest.mark.parametrize("path", ["in", "a/../b", "./a", "«a»"])
def test_what_stays_inside_is_answered(path: str, root: Path) -> None:
    assert len(Folder(root, Job()).traces(path)) == 1


@pytest.mark.parametrize("path", ["none", "a\0b", "t-00000000", "a/w.pt.trace.json/x"])
def test_what_does_not_exist_is_said(path: str, root: Path) -> None:
    with pytest.raises(NotFoundError):
        Folder(root, Job()).traces(path)


def test_each_trace_has_an_id_that_does_not_depend_on_where_the_folder_is(root: Path, tmp_path: Path) -> None:
    folder = Folder(root, Job())
    ids = [folder.id_of(file) for file in folder.traces("")]
    assert len(set(ids)) == 2
    assert [folder.trace(each).path for each in ids] == [file.path for file in folder.traces("")]
    moved = Folder(root.rename(tmp_path / "moved"), Job())
    assert [moved.id_of(file) for file in moved.traces("")] == ids


def test_one_of_several_traces_has_to_be_named(root: Path) -> None:
    folder = Folder(root, Job())
    with pytest.raises(NotFoundError) as problem:
        folder.trace("")
    assert all(folder.id_of(file) in problem.value.advice for file in folder.traces(""))


def test_the_folder_may_be_a_trace_itself(root: Path) -> None:
    file = root / "a" / "w.pt.trace.json"
    folder = Folder(file, Job())
    assert folder.trace("").path == file
    assert folder.trace(folder.id_of(folder.trace(""))).path == file
    with pytest.raises(OutsideError):
        folder.place("../b")
