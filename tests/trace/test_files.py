"""Runs, workers and spans, named as the profiler's own tab names them."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tb_tidy_plugin.trace import files, head
from tb_tidy_plugin.trace.files import NAMED_LINKS, find_traces, find_traces_at
from tb_tidy_plugin.trace.head import HEAD_BYTES
from tb_tidy_plugin.trace.names import rank_in_names, reading_order
from tb_tidy_plugin.trace.remote import path_or_url
from tb_tidy_plugin.words.errors import NotFoundError
from tests.faults.injected import Fault, injected

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


class TestSeveralPaths:
    """Their files have the names that the folder around all of them gives them."""

    TREE = ("a/run/w.1.pt.trace.json", "b/run/w.1.pt.trace.json", "b/w.1.pt.trace.json", "job/rank_0/n.1.pt.trace.json",
            "job/rank_1/n.1.pt.trace.json", "x.1.pt.trace.json")  # fmt: skip

    @pytest.mark.parametrize(
        "given",
        [
            ("a", "b"),
            ("a/run", "b/run"),
            ("a/run/w.1.pt.trace.json", "b"),
            ("job/rank_0", "job/rank_1"),
            ("job/rank_0/n.1.pt.trace.json", "job/rank_1/n.1.pt.trace.json"),
            ("b/w.1.pt.trace.json", "b/run"),
            ("x.1.pt.trace.json", "b", "b/run", "b"),
            (".", "job"),
        ],
    )
    def test_names(self, tmp_path: Path, given: tuple[str, ...]) -> None:
        for name in self.TREE:
            touch(tmp_path / "logs" / name)
        paths = [tmp_path / "logs" / each for each in given]
        files, lacking = find_traces_at(paths)
        around = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in paths]))
        wanted = {file.path for path in paths for file in find_traces(path)}
        assert lacking == []
        assert files == [file for file in find_traces(around) if file.path in wanted]

    def test_places_that_have_no_folder_in_common(self, tmp_path: Path) -> None:
        touch(tmp_path / "a.1.pt.trace.json")
        store = fsspec.filesystem("memory")
        store.pipe_file("/bucket/run/b.1.pt.trace.json", b"{}")
        files, _ = find_traces_at([tmp_path, path_or_url("memory://bucket/run")])
        assert {file.worker for file in files} == {"a", "b"}
        assert len({file.run for file in files}) == 2
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "name", ["trace.json", "trace.txt", "a.pt.trace.json.tmp", "a.pt.trace.json.tidy.json.gz", "events.out.tfevents"]
)
def test_other_files_are_no_traces(tmp_path: Path, name: str) -> None:
    touch(tmp_path / name)
    with pytest.raises(NotFoundError, match="no trace"):
        find_traces(tmp_path)


KINETO = (
    '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]}'
)
FRAMEWORKS = {
    "iteration_10/rank0_trace.json": ("iteration_10", "rank0_trace", "", 0),
    "1718000000.25-TP-3.trace.json.gz": ("logs", "TP-3", "1718000000.25", 3),
    "1718000000.25-DP-0-TP-1-PP-0.trace.json.gz": ("logs", "DP-0-TP-1-PP-0", "1718000000.25", 1),
    "1718000000.25-TP-1-PP-1-DECODE.trace.json.gz": ("logs", "TP-1-PP-1", "1718000000.25-DECODE", None),
    "trace.json": ("logs", "trace", "", None),
    "rank_5/trace.json": ("logs", "rank_5/trace", "", 5),
    "job/rank_5/node.17.pt.trace.json.gz": ("job", "rank_5/node", "17", 5),
    "rank2.1718.pt.trace.json.gz": ("logs", "rank2", "1718", 2),
    "dp0_pp0_tp1_dcp0_ep1_rank1.1718.pt.trace.json.gz": ("logs", "dp0_pp0_tp1_dcp0_ep1_rank1", "1718", 1),
    "profile_3.json": ("logs", "profile_3", "", 3),
    "torch_profile/rank-4.json.gz": ("torch_profile", "rank-4", "", 4),
    "iteration_2/r6-2024-6-7-12-30-0.1718.pt.trace.json.gz": ("iteration_2", "r6-2024-6-7-12-30-0", "1718", 6),
    "worker7_step_12.1694128201553.pt.trace.json.gz": ("logs", "worker7_step_12", "1694128201553", None),
    "run.trace": ("logs", "run", "", None),
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_names_of_frameworks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(KINETO.encode()) if name.endswith(".gz") else KINETO.encode())
    (file,) = find_traces(tmp_path / "logs")
    assert (file.run, file.worker, file.span, rank_in_names(file.path)) == FRAMEWORKS[name]


def test_folders_of_ranks_are_one_run(tmp_path: Path) -> None:
    for name in ("rank_0/a.json", "rank_1/a.json", "rank_1/deep/a.json", "old/rank0/a.json"):
        (tmp_path / "job" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "job" / name).write_text(KINETO)
    assert [(file.run, file.worker) for file in find_traces(tmp_path / "job")] == [
        ("job", "rank_0/a"), ("job", "rank_1/a"), ("old", "rank0/a"), ("rank_1/deep", "a"),
    ]  # fmt: skip
    assert [file.run for file in find_traces(tmp_path / "job" / "rank_0")] == ["rank_0"]


class TestContent:
    """JSON of any name: a trace if it begins as one."""

    @pytest.mark.parametrize(
        "text",
        [
            KINETO,
            "\ufeff \n" + KINETO,
            '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k"}], "baseTimeNanoseconds": 1}',
            '[{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]',
            '{"metadata": "' + "x" * 30_000 + '", "traceEvents": [{"cat": "python_function"}]}',
            '{"schemaVersion": 1, "distributedInfo": {"pg_config": "' + "x" * HEAD_BYTES + '"}, "traceEvents": []}',
        ],
    )
    def test_traces(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "any name.json").write_text(text)
        (tmp_path / "packed.json.gz").write_bytes(gzip.compress(text.encode()))
        assert len(find_traces(tmp_path)) == 2

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{}",
            b"\x00\x80\xff" * 1000,
            b'{"schemaVersion": 2, "layers": []}',
            b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X", "name": "jit_step", "args": {}}]}',  # of JAX
            b'{"traceEvents": [{"ph": "X", "cat": "FEE", "name": "main"}]}',
            b'"schemaVersion" "deviceProperties" "traceEvents": [',
            b"\x1f\x8b broken",
            b'{"schemaVersion"' * (HEAD_BYTES // 16),
            gzip.compress(b"\x00" * (HEAD_BYTES + 1), mtime=0),
        ],
    )
    def test_others(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "trace.json").write_bytes(content)
        (tmp_path / "trace.json.gz").write_bytes(content)
        touch(tmp_path / "own.pt.trace.json")
        assert [file.worker for file in find_traces(tmp_path)] == ["own"]

    def test_no_more_than_the_head_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []

        def begins(found: bytes) -> bool:
            asked.append(len(found))
            return False

        monkeypatch.setattr(head, "begins_as_trace", begins)
        with (tmp_path / "huge.json").open("wb") as stream:
            stream.truncate(1 << 40)
        touch(tmp_path / "own.pt.trace.json")
        assert [file.worker for _ in range(3) for file in find_traces(tmp_path)] == ["own"] * 3
        assert asked == [HEAD_BYTES], "what it said is remembered"

    def test_one_that_becomes_a_trace(self, tmp_path: Path) -> None:
        touch(tmp_path / "own.pt.trace.json")
        touch(tmp_path / "trace.json")
        assert len(find_traces(tmp_path)) == 1
        (tmp_path / "trace.json").write_text(KINETO)
        assert len(find_traces(tmp_path)) == 2

    def test_pipes_and_links_away_are_not_opened(self, tmp_path: Path) -> None:
        touch(tmp_path / "logs" / "own.pt.trace.json")
        (tmp_path / "elsewhere.json").write_text(KINETO)
        (tmp_path / "logs" / "other.json").symlink_to(tmp_path / "elsewhere.json")
        (tmp_path / "logs" / "gone.json").symlink_to(tmp_path / "logs" / "nothing")
        (tmp_path / "logs" / "config.json").symlink_to("/dev/zero")
        os.mkfifo(tmp_path / "logs" / "trace.json")
        assert [file.worker for file in find_traces(tmp_path / "logs")] == ["own"]
        assert [file.worker for file in find_traces(tmp_path / "logs", follow_links=True)] == ["other", "own"]

    def test_a_pipe_that_takes_a_files_place_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "trace.json")
        assert head._head_of(str(tmp_path / "trace.json")) == b""  # noqa: SLF001 - the moment between look and open

    def test_one_that_may_not_be_read_is_passed_over(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        touch(tmp_path / "own.pt.trace.json")
        (tmp_path / "trace.json").write_text(KINETO)
        with injected(Fault("open", 1, errno.EACCES, lasts=True), tmp_path / "trace.json"):
            assert [file.worker for file in find_traces(tmp_path)] == ["own"]
        assert caplog.messages == []


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


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        find_traces(tmp_path / "nowhere")


def named(path: Path, *, follow_links: bool = False) -> list[tuple[str, str]]:
    return [(file.run, file.worker) for file in find_traces(path, follow_links=follow_links)]


class TestLinks:
    """What lies in `logs` is looked at; links lead where they like."""

    @pytest.fixture(autouse=True)
    def _every_link_is_said_again(self) -> Iterator[None]:
        files.log_once.cache_clear()
        yield
        files.log_once.cache_clear()

    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        touch(tmp_path / "logs" / "run" / "own.1.pt.trace.json")
        touch(tmp_path / "elsewhere" / "deep" / "other.1.pt.trace.json")
        return tmp_path / "logs"

    def test_out_of_the_folder(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        folder, file = logs / "folder", logs / "run" / "linked.1.pt.trace.json"
        folder.symlink_to(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere" / "deep" / "other.1.pt.trace.json")
        (logs / "relative").symlink_to(Path("..", "elsewhere"))
        assert named(logs) == [("run", "own")]
        links = f"`{folder}`, `{logs / 'relative'}`, `{file}`"
        advice = "`--follow-links` follows them, if you trust everything there."
        assert caplog.messages == [f"Skipped links that lead out of `{logs}`: {links}. {advice}"]

    def test_out_of_the_folder_and_followed(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (logs / "folder").symlink_to(tmp_path / "elsewhere")
        (logs / "run" / "linked.1.pt.trace.json").symlink_to(tmp_path / "elsewhere" / "deep" / "other.1.pt.trace.json")
        assert named(logs, follow_links=True) == [("folder/deep", "other"), ("run", "linked"), ("run", "own")]
        assert caplog.messages == []

    def test_out_of_the_folder_to_one_whose_name_begins_like_it(self, logs: Path, tmp_path: Path) -> None:
        touch(tmp_path / "logs-of-others" / "other.1.pt.trace.json")
        (logs / "others").symlink_to(tmp_path / "logs-of-others")
        assert named(logs) == [("run", "own")]

    def test_by_a_link_in_the_folder_out_of_it(self, logs: Path, tmp_path: Path) -> None:
        (logs / "first").symlink_to(logs / "second")
        (logs / "second").symlink_to(tmp_path / "elsewhere")
        assert named(logs) == [("run", "own")]
        assert len(named(logs, follow_links=True)) == 2

    def test_within_the_folder(self, logs: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A folder that is reached twice is shown once, under its own name whatever the disk lists first."""
        (logs / "a-latest").symlink_to(logs / "run")
        (logs / "z-latest").symlink_to("run")
        touch(logs / "pool" / "data")
        (logs / "pool" / "pooled.1.pt.trace.json").symlink_to("data")
        assert named(logs) == [("pool", "pooled"), ("run", "own")]
        assert caplog.messages == []

    def test_the_folder_itself_may_be_one(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "mine").symlink_to(logs)
        (logs / "latest").symlink_to(logs / "run")
        (logs / "run" / "linked.1.pt.trace.json").symlink_to(logs / "run" / "own.1.pt.trace.json")
        assert named(tmp_path / "mine") == [("run", "linked"), ("run", "own")]

    def test_a_file_that_is_named_may_be_one(
        self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        link = logs / "run" / "linked.1.pt.trace.json"
        link.symlink_to(tmp_path / "elsewhere" / "deep" / "other.1.pt.trace.json")
        assert named(link) == [("run", "linked")]
        assert caplog.messages == []

    @pytest.mark.parametrize("follow_links", [False, True])
    def test_in_a_circle(self, logs: Path, caplog: pytest.LogCaptureFixture, follow_links: bool) -> None:
        up, itself = logs / "run" / "up", logs / "run" / "itself.1.pt.trace.json"
        up.symlink_to(logs)
        itself.symlink_to(itself)
        (logs / "ring").symlink_to(logs / "other-ring")
        (logs / "other-ring").symlink_to(logs / "ring")
        assert named(logs, follow_links=follow_links) == [("run", "own")]
        assert caplog.messages == [f"Skipped links that lead back to a folder that contains them: `{itself}`, `{up}`."]

    def test_in_a_circle_through_elsewhere(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (logs / "folder").symlink_to(tmp_path / "elsewhere")
        back = tmp_path / "elsewhere" / "back"
        back.symlink_to(logs)
        assert named(logs, follow_links=True) == [("folder/deep", "other"), ("run", "own")]
        [said] = caplog.messages
        assert said.endswith(f"that contains them: `{logs / 'folder' / 'back'}`.")

    def test_many_that_meet(self, logs: Path) -> None:
        """Each of thirty folders holds links to all: there are more ways through them than can be gone."""
        for number in range(30):
            (logs / f"{number}").mkdir()
        for number in range(900):
            (logs / f"{number // 30}" / f"to-{number % 30}").symlink_to(logs / f"{number % 30}")
        assert named(logs) == named(logs, follow_links=True) == [("run", "own")]

    def test_to_nowhere(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Where it lies in the folder, reading it says so, as of a file that is gone; where not, nobody looks."""
        (logs / "inside.1.pt.trace.json").symlink_to(logs / "gone")
        (logs / "outside.1.pt.trace.json").symlink_to(tmp_path / "gone")
        (logs / "no-trace").symlink_to(tmp_path / "gone")
        assert named(logs) == [("logs", "inside"), ("run", "own")]
        [said] = caplog.messages
        assert f"`{logs / 'outside.1.pt.trace.json'}`." in said
        assert "no-trace" not in said

    def test_other_files_are_no_concern(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        touch(tmp_path / "train.py")
        (logs / "run" / "train.py").symlink_to(tmp_path / "train.py")
        assert named(logs) == [("run", "own")]
        assert caplog.messages == []

    def test_they_are_said_once(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (logs / "folder").symlink_to(tmp_path / "elsewhere")
        for _ in range(3):
            find_traces(logs)
        assert len(caplog.messages) == 1

    def test_of_many_some_are_named(self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        for number in range(NAMED_LINKS + 2):
            (logs / f"{number}").symlink_to(tmp_path / "elsewhere")
        find_traces(logs)
        [said] = caplog.messages
        assert f"`{logs / str(NAMED_LINKS - 1)}` and 2 more. " in said

    def test_names_cannot_drive_the_terminal(
        self, logs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (logs / "\x1b]0;\n").symlink_to(tmp_path / "elsewhere")
        find_traces(logs)
        [said] = caplog.messages
        assert said.isprintable()

    def test_nothing_else_is_there(self, tmp_path: Path) -> None:
        touch(tmp_path / "elsewhere" / "other.1.pt.trace.json")
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs" / "folder").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(NotFoundError, match=r"contain no trace .*\. Skipped links .*`--follow-links` follows"):
            find_traces(tmp_path / "logs")


def test_a_name_that_no_disk_takes(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="File name too long"):
        find_traces(tmp_path / ("x" * 300))


class TestFoldersThatCannotBeListed:
    """The only one, and one of several."""

    def test_nothing_is_found_and_it_is_said_why(self, tmp_path: Path) -> None:
        touch(tmp_path / "run" / "w.1.pt.trace.json")
        with (
            injected(Fault("list", 1, errno.EIO, lasts=True), tmp_path / "run"),
            pytest.raises(NotFoundError, match="run` cannot be accessed: Input/output error"),
        ):
            find_traces(tmp_path)

    def test_the_others_are_found_with_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        touch(tmp_path / "one" / "w.1.pt.trace.json")
        touch(tmp_path / "two" / "w.1.pt.trace.json")
        with injected(Fault("list", 1, errno.EIO, lasts=True), tmp_path / "one"):
            (found,) = find_traces(tmp_path)
        assert found.run == "two"
        assert caplog.messages == [f"`{tmp_path / 'one'}` is skipped: Input/output error."]


def test_numbers_in_names_are_compared_as_numbers_however_long_they_are() -> None:
    names = ["b1", f"a{'9' * 5000}", "a10", "a02b", "a2", "a"]
    assert sorted(names, key=reading_order) == names[::-1]
    assert reading_order("x", "") < reading_order("x", "2") < reading_order("x", "10") < reading_order("x1", "0")
