"""Runs, workers and spans, named as the profiler's own tab names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.trace.files import find_traces

NAMES = {
    "host_123.1795229710790778815.pt.trace.json.gz": ("host_123", "1795229710790778815"),
    "worker0.1623143089861.pt.trace.json": ("worker0", "1623143089861"),
    "worker0.pt.trace.json.gz": ("worker0", ""),
    "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": ("rank-0.Apr_03_18_51_38", "1102"),
    "node.example.org_7.17.pt.trace.json": ("node.example.org_7", "17"),
}


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


@pytest.mark.parametrize("name", NAMES)
def test_names(tmp_path: Path, name: str) -> None:
    touch(tmp_path / "run" / name)
    (file,) = find_traces(tmp_path)
    assert (file.run, file.worker, file.span) == ("run", *NAMES[name])


@pytest.mark.parametrize(
    "name", ["trace.json", "a.pt.trace.json.tmp", "a.pt.trace.json.tidy.json.gz", "events.out.tfevents"]
)
def test_other_files_are_no_traces(tmp_path: Path, name: str) -> None:
    touch(tmp_path / name)
    with pytest.raises(NotFoundError, match="No trace"):
        find_traces(tmp_path)


def test_a_run_is_a_folder_and_named_by_its_path(tmp_path: Path) -> None:
    for name in ("b/deep/w.2.pt.trace.json", "b/deep/w.1.pt.trace.json", "a/w.1.pt.trace.json", "w.1.pt.trace.json"):
        touch(tmp_path / "logs" / name)
    assert [(file.run, file.span) for file in find_traces(tmp_path / "logs")] == [
        ("a", "1"), ("b/deep", "1"), ("b/deep", "2"), ("logs", "1"),
    ]  # fmt: skip


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    touch(tmp_path / "run7" / "my trace.json")
    (file,) = find_traces(tmp_path / "run7" / "my trace.json")
    assert (file.run, file.worker, file.span) == ("run7", "my trace", "")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    touch(tmp_path / "run" / "w.1.pt.trace.json")
    (tmp_path / "run" / "again").symlink_to(tmp_path)
    assert len(find_traces(tmp_path)) == 1


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file or folder"):
        find_traces(tmp_path / "nowhere")
