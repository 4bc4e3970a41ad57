"""One look at the logdirs: names, numbers, and what is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.scan import Catalog, Key, look
from tb_tidy_plugin.trace.side_file import SUFFIX
from tests.support.logdirs import trace


def looked(folder: Path, name: str = "") -> Catalog:
    return look([Logdir(str(folder), name)])


def test_runs_workers_and_spans(tmp_path: Path) -> None:
    for name in ("a/w1.200.pt.trace.json", "a/w1.100.pt.trace.json.gz", "a/w2.pt.trace.json", "b/c/w.7.pt.trace.json"):
        trace(tmp_path / name)
    assert {key: found.span_index for key, found in looked(tmp_path).items()} == {
        ("a", "w1", "100"): 1,
        ("a", "w1", "200"): 2,
        ("a", "w2", ""): None,
        ("b/c", "w", "7"): 1,
    }


def test_a_span_without_a_name_has_no_number_and_takes_none(tmp_path: Path) -> None:
    for name in ("w.pt.trace.json", "w.5.pt.trace.json", "w.6.pt.trace.json"):
        trace(tmp_path / "run" / name)
    assert [found.span_index for found in looked(tmp_path).values()] == [None, 1, 2]


def test_the_order_is_the_same_whatever_the_disk_says(tmp_path: Path) -> None:
    for run in ("b", "a", "c"):
        trace(tmp_path / run / "w.pt.trace.json")
    assert [key.run for key in looked(tmp_path)] == ["a", "b", "c"]


def test_names_of_the_logdir_spec_come_first(tmp_path: Path) -> None:
    trace(tmp_path / "x" / "run" / "w.pt.trace.json")
    trace(tmp_path / "y" / "w.pt.trace.json")
    logdirs = [Logdir(str(tmp_path / "x"), "left"), Logdir(str(tmp_path / "y"), "right")]
    assert [key.run for key in look(logdirs)] == ["left/run", "right/y"]


@pytest.mark.parametrize(
    "name", ["w.pt.trace.json.tmp", "w.pt.trace.json.gz.tmp", "w.json", "events.out.tfevents.1", "w.pt.trace.json.tidy"]
)
def test_what_is_no_trace_or_not_finished(tmp_path: Path, name: str) -> None:
    trace(tmp_path / name)
    assert looked(tmp_path) == {}


def test_a_folder_that_is_named_like_a_trace(tmp_path: Path) -> None:
    (tmp_path / "run" / "w.pt.trace.json").mkdir(parents=True)
    assert looked(tmp_path) == {}


def test_a_pipe_that_is_named_like_a_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.pt.trace.json")
    assert looked(tmp_path) == {}


def test_a_logdir_that_is_not_there(tmp_path: Path) -> None:
    assert looked(tmp_path / "later") == {}


def test_a_link_to_nowhere_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "w.pt.trace.json").symlink_to(tmp_path / "gone")
    trace(tmp_path / "v.pt.trace.json")
    assert [key.worker for key in looked(tmp_path)] == ["v"]


def test_of_two_files_with_one_name_the_newer_counts(tmp_path: Path) -> None:
    plain, packed = trace(tmp_path / "w.1.pt.trace.json"), trace(tmp_path / "w.1.pt.trace.json.gz")
    os.utime(plain, (1000, 1000))
    [found] = looked(tmp_path).values()
    assert found.file.path == packed


def test_the_stamp_changes_with_contents_time_and_permissions(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    stamps = [found.stamp for found in looked(tmp_path).values()]
    trace(path, operators=4)
    stamps += [found.stamp for found in looked(tmp_path).values()]
    os.utime(path, (1000, 1000))
    stamps += [found.stamp for found in looked(tmp_path).values()]
    path.chmod(0o600)
    stamps += [found.stamp for found in looked(tmp_path).values()]
    assert len(set(stamps)) == 4


def test_the_stamp_changes_with_the_side_file(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    side_file = path.with_name(path.name + SUFFIX)
    stamps = [found.stamp for found in looked(tmp_path).values()]
    side_file.write_text("{}")
    stamps += [found.stamp for found in looked(tmp_path).values()]
    side_file.unlink()
    stamps += [found.stamp for found in looked(tmp_path).values()]
    assert stamps[0] == stamps[2] != stamps[1]


def test_names_that_are_no_text_are_shown_as_far_as_they_are(tmp_path: Path) -> None:
    path = trace(tmp_path / os.fsdecode(b"caf\xe9") / "w.pt.trace.json")
    [(key, found)] = looked(tmp_path).items()
    assert key == Key("caf\ufffd", "w", "")
    assert found.file.path == path
