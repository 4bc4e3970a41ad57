"""How every command ends: its exit code, and the encoding of what it has printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tb_tidy_plugin.cli.main import COMMANDS
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.system.decoders import decode
from tests.support import commands
from tests.support.environments import same_imports
from tests.support.recordings import ROOT
from tests.support.written import event, kineto_text, write

UNTIDY, TIDY = (str(ROOT / "sample_runs" / f"image_classifier_{kind}") for kind in ("untidy", "tidy"))
CALLS: dict[str, Sequence[str]] = {
    "annotate": ("annotate", UNTIDY),
    "ask": ("ask", '{"question": "findings"}', "--path", UNTIDY),
    "bench": ("bench", UNTIDY, "--budget", "0.01", "--finding", "none"),
    "cache": ("cache", "info"),
    "check": ("check", UNTIDY, "-v"),
    "check as Markdown": ("check", UNTIDY, "--format", "markdown"),
    "check as HTML": ("check", UNTIDY, "--format", "html"),
    "check as JSON": ("check", UNTIDY, "--format", "json"),
    "check as SARIF": ("check", UNTIDY, "--format", "sarif"),
    "compare": ("compare", UNTIDY, TIDY),
    "compare as Markdown": ("compare", UNTIDY, TIDY, "--format", "markdown"),
    "compare as JSON": ("compare", UNTIDY, TIDY, "--format", "json"),
    "doctor": ("doctor",),
    "explain": ("explain", "TT302"),
    "fix": ("fix", UNTIDY),
    "mcp": ("mcp", "no such folder: →"),
    "merge-device-events": ("merge-device-events", "no such file: →", "−", "-o", "out"),
    "record": ("record", "--", "no such program: →"),
    "rules": ("rules",),
    "serve": ("serve", "no such folder: →"),
    "skill": ("skill",),
    "summary": ("summary", UNTIDY),
    "summary as JSON": ("summary", UNTIDY, "--format", "json"),
    "verify": ("verify", "--before", "no such revision: →", "--", "true"),
}
"""A call of each command; those that need a server or a program say that something is not there."""


def test_each_command_is_called() -> None:
    assert {call[0] for call in CALLS.values()} == set(COMMANDS)


class TestEncodings:
    """Pipes and files are UTF-8, whatever the system's encoding: cp1252 is that of Windows in Western Europe.

    What one of these encodings cannot write, ASCII cannot write either, so that each command has that one.
    """

    @pytest.mark.parametrize(("name", "encoding"), [*((name, "ascii") for name in CALLS), ("check", "cp1252")])
    def test_no_output_depends_on_the_encoding(self, name: str, encoding: str) -> None:
        usual = printed(name)
        other = commands.tidy(*CALLS[name], environment={"PYTHONIOENCODING": encoding})
        assert "Traceback" not in other.stderr
        assert (other.returncode, other.stderr) == (usual.returncode, usual.stderr)
        assert _without_free_space(other.stdout) == _without_free_space(usual.stdout)

    def test_some_of_these_outputs_need_utf8(self) -> None:
        """Else the test above could not fail."""
        needing = {name for name in CALLS if not (printed(name).stdout + printed(name).stderr).isascii()}
        assert {"annotate", "check", "check as Markdown", "compare", "explain", "mcp", "serve"} <= needing

    @pytest.mark.parametrize("form", ["text", "json", "markdown", "sarif", "html"])
    def test_files_are_utf8(self, tmp_path: Path, form: str) -> None:
        out = tmp_path / "out"
        environment = {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}
        done = commands.tidy("check", UNTIDY, "--format", form, "-o", out, environment=environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert out.read_text("utf-8") == commands.tidy("check", UNTIDY, "--format", form).stdout

    def test_a_question_on_stdin_is_utf8(self, tmp_path: Path) -> None:
        """As a program on Windows sends it."""
        question = json.dumps({"question": "findings", "größer →": 1}, ensure_ascii=False)
        command = [sys.executable, "-m", "tb_tidy_plugin", "ask", "--path", UNTIDY]
        environment = same_imports() | {"PYTHONIOENCODING": "cp1252"}
        done = subprocess.run(
            command, input=question.encode(), capture_output=True, cwd=tmp_path, env=environment, check=False
        )
        assert "größer →" in json.loads(done.stdout)["error"]


@cache
def printed(name: str) -> subprocess.CompletedProcess[str]:
    """The usual output, in UTF-8."""
    return commands.tidy(*CALLS[name])


def _without_free_space(text: str) -> str:
    """`doctor` prints how much of the disk is free, which changes."""
    return re.sub(r"where \S+ \S+ are free", "", text)


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
what, wanted = sys.argv[1:3]
def look(event, details):
    if event == what and wanted in str(details[0]) and not seen:
        seen.append(True)
        os.kill(os.getpid(), signal.SIGINT)
seen = []
sys.addaudithook(look)
sys.argv[:] = ["tb-tidy", *sys.argv[3:]]
from tb_tidy_plugin.cli.main import script
script()
"""
"""Presses Ctrl-C when the process opens a file, such as that of a module."""


class TestCtrlC:
    @pytest.mark.parametrize("name", sorted({call[0] for call in CALLS.values()}))
    def test_ends_every_command_with_130(self, name: str) -> None:
        """While its module is imported, of which every command has one."""
        module = Path("cli", "__pycache__", name.replace("-", "_"))
        done = interrupted("open", f"{module}.", *CALLS[name])
        assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "Interrupted.")

    @pytest.mark.parametrize("name", ["annotate", "ask", "bench", "check", "compare", "fix", "summary"])
    def test_while_a_trace_is_read(self, tmp_path: Path, name: str) -> None:
        """Not with results in the cache, where no trace would be opened."""
        run = tmp_path / "run"
        shutil.copytree(UNTIDY, run)
        call = [str(run) if each == UNTIDY else each for each in CALLS[name]]
        done = interrupted("open", ".pt.trace.json", *call, "--no-cache")
        assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "Interrupted.")


def interrupted(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=same_imports(), capture_output=True, encoding="utf-8", timeout=300, check=False
    )


@pytest.fixture
def half_read(tmp_path: Path) -> Path:
    """A logdir with a trace and a file that is not one."""
    step = event("ProfilerStep#1", 0, 1000, cat="user_annotation")
    for name, text in (("good", kineto_text([step, event("aten::mm", 10, 100)])), ("bad", "not a trace")):
        (tmp_path / "logs" / name).mkdir(parents=True)
        write(tmp_path / "logs" / name / "w.1.pt.trace.json", text)
    return tmp_path / "logs"


class TestUnread:
    """2 where a trace could not be read, though others were."""

    @pytest.mark.parametrize("call", ["check", "summary", "fix", "compare"])
    def test_one_of_two(self, half_read: Path, call: str) -> None:
        others = [half_read / "good"] if call == "compare" else []
        done = commands.tidy(call, half_read, *others)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert done.stdout, "the other one is reported"

    def test_a_side_of_a_comparison(self, half_read: Path) -> None:
        assert commands.tidy("compare", half_read / "good", half_read).returncode == 2
        assert commands.tidy("compare", half_read / "good", half_read / "good").returncode == 0

    def test_a_finding_counts_whatever_else_is_unread(self, tmp_path: Path) -> None:
        shutil.copytree(UNTIDY, tmp_path / "good")
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "w.1.pt.trace.json").write_bytes(b"not a trace")
        assert commands.tidy("check", tmp_path, "--fail-on", "high").returncode == 1
        assert commands.tidy("check", tmp_path).returncode == 2

    def test_a_truncated_trace_was_read(self, half_read: Path) -> None:
        path = half_read / "bad" / "w.1.pt.trace.json"
        text = (half_read / "good" / "w.1.pt.trace.json").read_text()
        path.write_text(text[: text.index("aten::mm")])
        done = commands.tidy("check", half_read, "--format", "json")
        assert [each.recovered_events for each in decode(done.stdout, Report).problems] == [1]
        assert done.returncode == 0


def test_output_that_nobody_reads_is_not_a_limit_that_was_reached(tmp_path: Path) -> None:
    """With 141, as a shell says of `yes | head -1`; not with 1, which is `--fail-on`."""
    command = f"{sys.executable} -m tb_tidy_plugin check {UNTIDY} --format html; echo $? > {tmp_path}/code"
    subprocess.run(["bash", "-c", f"{{ {command}; }} | true"], cwd=ROOT, env=same_imports(), check=True)
    assert (tmp_path / "code").read_text() == "141\n"


def test_the_docs_have_a_row_for_each_code() -> None:
    from tb_tidy_plugin.cli import exit_codes

    documented = set(map(int, re.findall(r"^\| (\d+) \|", (ROOT / "docs/ci.md").read_text(), re.MULTILINE)))
    assert documented == {value for name, value in vars(exit_codes).items() if name.isupper()}
