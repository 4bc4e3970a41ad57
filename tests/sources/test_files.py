"""Which source files may be shown, and whether they are still those that were recorded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tb_tidy_plugin.sources.files import (
    MAX_BYTES,
    SourceText,
    Unavailable,
    read_source,
    recorded_at,
    source_roots,
)
from tb_tidy_plugin.trace.files import TraceFile

NOW_S = int(time.time())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    return folder


def trace_in(run: Path, span: str = "") -> TraceFile:
    path = run / ".".join(filter(None, ("worker", span, "pt.trace.json")))
    path.touch()
    return TraceFile("run", "worker", span, path)


def write(path: Path, text: str | bytes = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(name: str, run: Path, *roots: Path) -> list[str]:
    found = read_source(name, {name}, trace_in(run), roots)
    assert isinstance(found, SourceText), found
    return found.lines


def reason(name: str, run: Path, *roots: Path, named: set[str] | None = None) -> str:
    found = read_source(name, {name} if named is None else named, trace_in(run), roots)
    assert isinstance(found, Unavailable), "this file should not have been read"
    return found.reason


# What is found


def test_a_file_beside_its_trace(run: Path) -> None:
    write(run / "train.py", "a\nb\n")
    assert lines("train.py", run) == ["a", "b"]


def test_a_file_in_a_folder_below_a_root(run: Path, tmp_path: Path) -> None:
    write(tmp_path / "project" / "lib" / "model.py", "m")
    assert lines("lib/model.py", run, tmp_path / "project") == ["m"]


def test_the_traces_own_folder_comes_before_the_roots_and_these_in_their_order(run: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(second / "train.py", "second")
    assert lines("train.py", run, first, second) == ["second"]
    write(first / "train.py", "first")
    assert lines("train.py", run, first, second) == ["first"]
    write(run / "train.py", "run")
    assert lines("train.py", run, first, second) == ["run"]


def test_an_absolute_name_below_a_root(run: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "project" / "train.py", "p")
    assert lines(str(path), run, tmp_path / "project") == ["p"]


def test_a_root_that_is_a_link(run: Path, tmp_path: Path) -> None:
    write(tmp_path / "real" / "train.py", "r")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert lines("train.py", run, tmp_path / "link") == ["r"]


def test_a_link_from_one_root_into_another(run: Path, tmp_path: Path) -> None:
    write(tmp_path / "project" / "train.py", "p")
    (run / "train.py").symlink_to(tmp_path / "project" / "train.py")
    assert lines("train.py", run, tmp_path / "project") == ["p"]


def test_a_name_that_leaves_one_root_for_another(run: Path, tmp_path: Path) -> None:
    write(tmp_path / "project" / "train.py", "p")
    assert lines("../../project/train.py", run, tmp_path / "project") == ["p"]


# What is not


def test_a_name_that_is_not_in_the_trace(run: Path) -> None:
    write(run / "secret.py")
    assert "does not name this one" in reason("secret.py", run, named={"train.py"})


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.py",
        "../run/../../outside.py",
        "{outside}",
        "./../.././outside.py",
        "lib/../../../outside.py",
        "linked.py",
        "linked/outside.py",
        "missing.py",
        "",
        "..",
        "outside.py\0",
        "\0.py",
        "a" * 5000 + ".py",
        "loop.py",
        "folder.py",
        "..\\..\\outside.py",
        "~/outside.py",
        "file:///outside.py",
    ],
)
def test_a_file_under_no_root_is_answered_like_one_that_is_not_there(name: str, run: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.py", "secret")
    (run / "linked.py").symlink_to(outside)
    (run / "linked").symlink_to(tmp_path)
    (run / "loop.py").symlink_to(run / "loop.py")
    (run / "folder.py").mkdir()
    name = name.format(outside=outside)
    text = reason(name, run)
    if name.endswith(".py"):
        assert text.replace(name, "missing.py") == reason("missing.py", run)
        assert "--torchtidy_source_roots=FOLDER" in text


def test_beside_a_trace_of_a_run_that_is_a_link(run: Path, tmp_path: Path) -> None:
    """The folder that the link leads to is the trace's own, and nothing around it is."""
    outside, beside_the_link = (
        write(tmp_path / "outside.py", "secret"),
        write(tmp_path / "links" / "other.py", "secret"),
    )
    link = beside_the_link.with_name("run")
    link.symlink_to(write(run / "train.py", "a\n").parent)
    (run / "linked.py").symlink_to(outside)
    assert lines("train.py", link) == ["a"]
    for name in ("../outside.py", "../../outside.py", "linked.py", "../other.py", str(outside), str(beside_the_link)):
        assert "in none of the folders" in reason(name, link)


def test_a_folder_whose_name_only_begins_like_a_root(run: Path, tmp_path: Path) -> None:
    write(tmp_path / "project-secret" / "x.py")
    assert "in none of the folders" in reason("../project-secret/x.py", run, tmp_path / "project")


@pytest.mark.parametrize("name", ["notes.txt", "train.pyc", ".env", "id_rsa", "<string>"])
def test_what_is_no_python_source(name: str, run: Path) -> None:
    if name[0] != "<":
        write(run / name)
    assert "Only Python source files" in reason(name, run)


def test_a_python_name_that_is_a_link_to_something_else(run: Path) -> None:
    (run / "train.py").symlink_to(write(run / ".env", "TOKEN=1"))
    assert "in none of the folders" in reason("train.py", run)


def test_a_file_that_is_too_large(run: Path) -> None:
    write(run / "data.py", b"#" * (MAX_BYTES + 1))
    assert "larger than 512 KiB" in reason("data.py", run)


def test_a_pipe_is_not_waited_for(run: Path) -> None:
    os.mkfifo(run / "pipe.py")
    assert "in none of the folders" in reason("pipe.py", run)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said_to_be_so(run: Path) -> None:
    write(run / "train.py").chmod(0)
    assert "permission" in reason("train.py", run)


# Text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\rc\n", ["a", "b", "c"]),
        (b"a\x0c\nb\x1cc\xe2\x80\xa8d\n", ["a\x0c", "b\x1cc\u2028d"]),
        (b"\xef\xbb\xbfa = '\xc3\xa4'\n", ["a = 'ä'"]),
        (b"# coding: latin-1\n'\xe4'\n", ["# coding: latin-1", "'ä'"]),
        (b"#!/usr/bin/python\n# -*- coding: ISO_8859-1-unix -*-\n'\xe4'\n",
         ["#!/usr/bin/python", "# -*- coding: ISO_8859-1-unix -*-", "'ä'"]),
        (b"# vim: set fileencoding=ascii :\n'\xe4'\n", ["# vim: set fileencoding=ascii :", "'�'"]),
        (b"x = 1\n# coding: latin-1\n'\xc3\xa4'\n", ["x = 1", "# coding: latin-1", "'ä'"]),
        (b"\n\n# coding: latin-1\n'\xc3\xa4'\n", ["", "", "# coding: latin-1", "'ä'"]),
        (b"'\xe4'\n", ["'�'"]),
        (b"\x00\x01\xff\n", ["\x00\x01�"]),
    ],
)  # fmt: skip
def test_lines_are_those_that_python_reads(content: bytes, expected: list[str], run: Path) -> None:
    write(run / "train.py", content)
    assert lines("train.py", run) == expected


@pytest.mark.parametrize(
    "encoding", ["punycode", "rot13", "utf-7", "idna", "unicode_escape", "cp1252", "no-such-thing"]
)
def test_other_encodings_are_not_obeyed(encoding: str, run: Path) -> None:
    write(run / "train.py", f"# coding: {encoding}\nx = 1\n")
    text = reason("train.py", run)
    assert f"`{encoding.replace('_', '-')}`" in text
    assert "save it as UTF-8" in text


def test_a_captured_source_is_text_already(run: Path) -> None:
    text = "# coding: punycode\nname = 'ä'\n"
    found = read_source("train.py", {"train.py"}, trace_in(run), (), {"train.py": text})
    assert isinstance(found, SourceText)
    assert found.lines == text.splitlines()


# Changed since the recording


def changed(run: Path, span: str, trace_s: float, source_s: float) -> bool:
    source, trace = write(run / "train.py"), trace_in(run, span)
    os.utime(trace.path, (trace_s, trace_s))
    os.utime(source, (source_s, source_s))
    found = read_source("train.py", {"train.py"}, trace, ())
    assert isinstance(found, SourceText)
    return found.changed


RECORDED = f"{NOW_S - 86400}123456789"  # a day ago, in ns
IN_PLACE_S = NOW_S - 86400 + 5.0


def test_a_source_older_than_its_trace_is_unchanged(run: Path) -> None:
    assert not changed(run, RECORDED, trace_s=IN_PLACE_S, source_s=IN_PLACE_S - 600)


def test_a_source_edited_soon_after_the_recording_is_changed(run: Path) -> None:
    assert changed(run, RECORDED, trace_s=IN_PLACE_S, source_s=IN_PLACE_S + 60)


def test_a_checkout_gives_trace_and_source_a_new_time_and_changes_neither(run: Path) -> None:
    assert not changed(run, RECORDED, trace_s=NOW_S - 300, source_s=NOW_S - 290)


def test_a_source_edited_a_day_after_the_checkout_is_changed(run: Path) -> None:
    assert changed(run, f"{NOW_S - 10 * 86400}123456789", trace_s=NOW_S - 86400, source_s=NOW_S)


def test_without_a_time_in_the_name_only_a_much_later_source_is_changed(run: Path) -> None:
    assert not changed(run, "", trace_s=NOW_S - 600, source_s=NOW_S)
    assert changed(run, "", trace_s=NOW_S - 86400, source_s=NOW_S)


def test_a_trace_that_has_gone_says_nothing_of_its_source(run: Path) -> None:
    write(run / "train.py")
    gone = TraceFile("run", "worker", "", run / "worker.pt.trace.json")
    assert read_source("train.py", {"train.py"}, gone, ()) == SourceText(
        ["x = 1"], changed=False, path=run / "train.py"
    )


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ("1795242331722230743", 1795242331.72223),
        ("1619499959628", 1619499959.628),
        ("1619499959", 1619499959.0),
        ("1", None),
        ("", None),
        ("not a number!", None),
    ],
)
def test_the_time_in_a_span(span: str, seconds: float | None) -> None:
    assert recorded_at(span) == (None if seconds is None else pytest.approx(seconds))


# Roots


def test_roots_are_those_of_the_flag_and_the_current_folder() -> None:
    text = f"/src, lib{os.pathsep}~/x"
    assert source_roots(text, Path("/srv/job")) == (
        Path("/src"),
        Path("/srv/job/lib"),
        Path("~/x").expanduser(),
        Path("/srv/job"),
    )


def test_each_root_is_there_once() -> None:
    assert source_roots("/srv/job,/srv/job", Path("/srv/job")) == (Path("/srv/job"),)


def test_a_service_started_in_the_root_of_the_disk_does_not_open_the_disk() -> None:
    assert source_roots("", Path("/")) == ()
    assert source_roots("/", Path("/")) == (Path("/"),)


class TestCaptured:
    """Texts that were kept with the trace come first: they are what ran."""

    def test_they_need_no_file(self, tmp_path: Path) -> None:
        found = read_source("train.py", {"train.py"}, trace_in(tmp_path), (), {"train.py": "a\rb\n"})
        assert found == SourceText(["a", "b"], changed=False)

    def test_they_come_before_the_disk(self, tmp_path: Path) -> None:
        trace = trace_in(tmp_path)
        source = Path(trace.path).parent / "train.py"
        source.write_text("now = 1\n")
        assert read_source("train.py", {"train.py"}, trace, (), {"train.py": "then = 1\n"}) == SourceText(
            ["then = 1"], changed=False, path=source
        )

    def test_only_of_files_that_the_trace_names(self, tmp_path: Path) -> None:
        found = read_source("other.py", {"train.py"}, trace_in(tmp_path), (), {"other.py": "x"})
        assert isinstance(found, Unavailable)

    def test_only_python(self, tmp_path: Path) -> None:
        found = read_source("key.pem", {"key.pem"}, trace_in(tmp_path), (), {"key.pem": "x"})
        assert isinstance(found, Unavailable)
