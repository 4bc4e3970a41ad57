"""What the alignment may read: a trace names files as it likes, and none outside the opened folders is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.sources.files import MAX_BYTES
from tb_tidy_plugin.sources.lookup import sources_of
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.errors import NotFoundError
from tests.support.written import event, kineto_text, write

SOURCE = "def step(x):\n    return x.relu()\n"


def recorded(folder: Path, *files: str) -> Path:
    """A folder with a trace that names these files."""
    folder.mkdir(parents=True, exist_ok=True)
    events = []
    for number, file in enumerate(files):
        start = 1000 + 1000 * number
        numbered = {"Python id": 2 * number + 1}, {"Python id": 2 * number + 2, "Python parent id": 2 * number + 1}
        call = "<built-in method relu of Tensor object at 0x1>"
        events += [
            event(f"{file}(1): step", start, 900, cat="python_function", args=numbered[0]),
            event(call, start + 100, 200, cat="python_function", args=numbered[1]),
            event("aten::relu", start + 110, 180, args={"External id": number + 1}),
        ]
    write(folder / "w.7.pt.trace.json", kineto_text(events))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run beside files that it must not reach."""
    folder = recorded(tmp_path / "logs" / "run", "train.py")
    (tmp_path / "outside.py").write_text(SOURCE)
    (tmp_path / "logs" / "other").mkdir()
    (tmp_path / "logs" / "other" / "theirs.py").write_text(SOURCE)
    (folder / "notes.txt").write_text(SOURCE)
    (folder / "linked.py").symlink_to(tmp_path / "outside.py")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "disguised.py").symlink_to(folder / "notes.txt")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "device.py").symlink_to("/dev/zero")
    (folder / "huge.py").write_bytes(b"#" * (MAX_BYTES + 1))
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    return folder


FORBIDDEN = [
    "../../outside.py",
    "./.././../outside.py",
    "linked/../../../outside.py",
    "{outside}",
    "linked.py",
    "linked/outside.py",
    "disguised.py",
    "notes.txt",
    "../other/theirs.py",
    "loop.py",
    "device.py",
    "/dev/zero",
    "/dev/stdin.py",
    "/proc/self/environ",
    "/etc/passwd",
    "huge.py",
    "folder.py",
    "pipe.py",
    "..\\..\\outside.py",
    "C:\\outside.py",
    "\\\\host\\share\\outside.py",
    "file:///outside.py",
    "~/outside.py",
    "outside.py\0",
    "\0",
    "",
    "a" * 5000 + ".py",
]


def lines(run: Path, name: str, *roots: Path) -> object:
    (trace,) = find_traces(run)
    return sources_of(trace, roots)(name)


@pytest.mark.parametrize("name", FORBIDDEN, ids=lambda name: ascii(name[:40]))
def test_nothing_is_read_outside_the_opened_folders(run: Path, tmp_path: Path, name: str) -> None:
    assert lines(run, name.format(outside=tmp_path / "outside.py")) is None


AUDITED = """
import os, sys
from tb_tidy_plugin.cli.main import commands
outside = set(map(os.path.realpath, sys.argv[1:3]))
def audit(name, arguments):
    if name == "open" and isinstance(arguments[0], (str, os.PathLike)) and os.path.realpath(arguments[0]) in outside:
        os.write(1, b"READ " + os.fsencode(arguments[0]) + b"\\n")
sys.addaudithook(audit)
commands(sys.argv[3:])
"""


@pytest.mark.parametrize("command", ["check", "annotate"])
def test_no_command_opens_what_a_trace_names_outside(run: Path, tmp_path: Path, command: str) -> None:
    outside, theirs = tmp_path / "outside.py", tmp_path / "logs" / "other" / "theirs.py"
    names = [name.format(outside=outside) for name in FORBIDDEN if name.strip("\0")]
    recorded(run, *names)
    script = [sys.executable, "-c", AUDITED, str(outside), str(theirs), command, str(run), "--format", "json"]
    found = subprocess.run(script, cwd=run, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode in {0, 1}, found.stderr
    assert "READ" not in found.stdout
    assert "relu()" not in found.stdout


def test_the_audit_would_have_seen_it(run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    recorded(run, str(outside))
    arguments = ["annotate", str(run), "--format", "json", "--source-root", str(tmp_path)]
    script = [sys.executable, "-c", AUDITED, str(outside), str(outside), *arguments]
    assert "READ" in subprocess.run(script, cwd=run, capture_output=True, text=True, timeout=240, check=True).stdout


# The folders that commands open


def place(*arguments: str | Path) -> tuple[str, int, str]:
    """File, line and precision of the operator, as `tb-tidy annotate` tells them."""
    result = CliRunner().invoke(commands, ["annotate", *map(str, arguments), "--format", "json"])
    assert result.exit_code == 0, result.output
    (operator,) = json.loads(result.output)["operators"]
    return operator["file"], operator["line"], operator["precision"]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is neither the trace's nor the current one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text(SOURCE)
    return tmp_path / "job"


def test_the_traces_folder_and_the_current_one_are_open(run: Path, elsewhere: Path) -> None:
    assert place(run) == ("train.py", 1, "definition")
    Path("train.py").write_text(SOURCE)
    assert place(run) == ("train.py", 2, "aligned")
    (run / "train.py").write_text("#\n" + SOURCE)
    assert place(run) == ("train.py", 1, "definition")  # the one beside the trace comes first


def test_others_are_named(run: Path, elsewhere: Path) -> None:
    assert place(run, "--source-root", elsewhere) == ("train.py", 2, "aligned")
    assert place(run, "--source-root", "../job") == ("train.py", 2, "aligned")


def test_an_absolute_name_below_a_named_folder_is_read(run: Path, elsewhere: Path) -> None:
    name = str(elsewhere / "train.py")
    recorded(run, name)
    assert place(run) == (name, 1, "definition")
    assert place(run, "--source-root", elsewhere) == (name, 2, "aligned")


def test_without_any_source_the_text_says_how_to_give_one(run: Path, elsewhere: Path) -> None:
    result = CliRunner().invoke(commands, ["annotate", str(run)])
    assert isinstance(result.exception, NotFoundError)
    assert "--source-root" in result.exception.advice
