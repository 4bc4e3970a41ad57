"""One look at the logdirs: names, numbers, and what is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.scan import Catalog, Key, look
from tb_tidy_plugin.system.side_files import DEVICE_EVENTS_SUFFIX
from tb_tidy_plugin.trace import files
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


def test_numbers_in_names_are_in_their_order(tmp_path: Path) -> None:
    for rank in (10, 9, 0):
        trace(tmp_path / "run" / f"rank{rank}.pt.trace.json")
    assert [key.worker for key in looked(tmp_path)] == ["rank0", "rank9", "rank10"]
    assert [file.worker for file in files.find_traces(tmp_path)] == ["rank0", "rank9", "rank10"]


def test_names_of_the_logdir_spec_come_first(tmp_path: Path) -> None:
    trace(tmp_path / "x" / "run" / "w.pt.trace.json")
    trace(tmp_path / "y" / "w.pt.trace.json")
    logdirs = [Logdir(str(tmp_path / "x"), "left"), Logdir(str(tmp_path / "y"), "right")]
    assert [key.run for key in look(logdirs)] == ["left/run", "right/y"]


@pytest.mark.parametrize(
    "name",
    ["w.pt.trace.json.tmp", "w.pt.trace.json.gz.tmp", "w.json.part", "events.out.tfevents.1", "w.pt.trace.json.tidy"],
)
def test_what_is_no_trace_or_not_finished(tmp_path: Path, name: str) -> None:
    trace(tmp_path / name)
    assert looked(tmp_path) == {}


def test_a_trace_by_its_content_alone(tmp_path: Path) -> None:
    path = trace(tmp_path / "iteration_10" / "rank0_trace.json")
    (tmp_path / "iteration_10" / "config.json").write_text("{}")
    [(key, found)] = looked(tmp_path).items()
    assert key == Key("iteration_10", "rank0_trace", "")
    assert found.file.path == path


def test_a_folder_that_is_named_like_a_trace(tmp_path: Path) -> None:
    (tmp_path / "run" / "w.pt.trace.json").mkdir(parents=True)
    assert looked(tmp_path) == {}


def test_a_pipe_that_is_named_like_a_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.pt.trace.json")
    assert looked(tmp_path) == {}


def test_a_logdir_that_is_not_there(tmp_path: Path) -> None:
    assert looked(tmp_path / "later") == {}


class TestLinks:
    """A link that leads out of the logdir is where its run would be, and says why it is not followed."""

    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        trace(tmp_path / "logs" / "run" / "own.pt.trace.json")
        trace(tmp_path / "elsewhere" / "other.7.pt.trace.json")
        return tmp_path / "logs"

    def test_to_a_folder(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        files.log_once.cache_clear()
        (logs / "linked").symlink_to(tmp_path / "elsewhere")
        found = [looked(logs) for _ in range(3)][-1]
        assert list(found) == [("linked", "", ""), ("run", "own", "")]
        link = found[Key("linked", "", "")]
        assert link.is_link
        assert link.problem is not None
        assert link.problem.path == str(logs / "linked")
        assert "leads out of the logdir" in link.problem.error
        assert "`--torchtidy_follow_links`" in link.problem.advice
        [said] = caplog.messages
        assert said.startswith(f"torchtidy: Skipped links that lead out of `{logs}`: `{logs / 'linked'}`. ")
        assert "`--torchtidy_follow_links` follows them" in said

    def test_to_a_trace(self, logs: Path, tmp_path: Path) -> None:
        (logs / "run" / "linked.7.pt.trace.json").symlink_to(tmp_path / "elsewhere" / "other.7.pt.trace.json")
        found = looked(logs)
        assert [(key, entry.is_link) for key, entry in found.items()] == [
            (("run", "linked", "7"), True), (("run", "own", ""), False),
        ]  # fmt: skip

    def test_followed(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (logs / "linked").symlink_to(tmp_path / "elsewhere")
        (logs / "run" / "linked.7.pt.trace.json").symlink_to(tmp_path / "elsewhere" / "other.7.pt.trace.json")
        found = look([Logdir(str(logs), "name", follow_links=True)])
        assert list(found) == [("name/linked", "other", "7"), ("name/run", "linked", "7"), ("name/run", "own", "")]
        assert not any(entry.problem for entry in found.values())
        assert caplog.messages == []

    def test_within_the_logdir(self, logs: Path) -> None:
        (logs / "latest").symlink_to("run")
        (logs / "run" / "again.pt.trace.json").symlink_to("own.pt.trace.json")
        assert [(key, entry.problem) for key, entry in looked(logs).items()] == [
            (("run", "again", ""), None), (("run", "own", ""), None),
        ]  # fmt: skip

    def test_in_a_circle(self, logs: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Nothing is missing then, so no run says so."""
        files.log_once.cache_clear()
        (logs / "run" / "up").symlink_to(logs)
        for _ in range(3):
            assert list(looked(logs)) == [("run", "own", "")]
        [said] = caplog.messages
        assert said.endswith(f" lead back to a folder that contains them: `{logs / 'run' / 'up'}`.")

    def test_that_becomes_a_trace(self, logs: Path, tmp_path: Path) -> None:
        link = logs / "run" / "linked.7.pt.trace.json"
        link.symlink_to(tmp_path / "elsewhere" / "other.7.pt.trace.json")
        before = looked(logs)[Key("run", "linked", "7")]
        link.unlink()
        trace(link)
        after = looked(logs)[Key("run", "linked", "7")]
        assert (after.problem, after.is_link) == (None, False)
        assert before.stamp != after.stamp


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


@pytest.mark.parametrize(
    "name", [f"w.pt.trace.json{DEVICE_EVENTS_SUFFIX}", "memory_snapshot.pickle", "w.memory_snapshot.pickle"]
)
def test_the_stamp_changes_with_a_file_beside(tmp_path: Path, name: str) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    side_file = path.with_name(name)
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
