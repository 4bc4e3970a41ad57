"""`tb-tidy verify`: what is said of two programs, and what is left behind of them. Most programs here only speak."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.main import commands, main
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop
from tb_tidy_plugin.verify.checkouts import folder_of
from tb_tidy_plugin.verify.verify import promises_in
from tb_tidy_plugin.words.errors import TidyError
from tests.support.waiting import until
from tests.support.whole_run import SOURCE, write_run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="it does not run on Windows")

PROGRAM = """\
import json, os, pathlib, sys, time
told = {"initial": "a", "loss": 1.0, "digest": "d", "sums": [2.0], "ms": 10, "sleeps": False, **TOLD}
orders, answers = map(int, os.environ["TORCHTIDY_VERIFY"].split(","))
out = os.fdopen(answers, "w")
name = pathlib.Path.cwd().name
def say(**answer):
    out.write(json.dumps(answer) + "\\n")
    out.flush()
say(ready=told["initial"])
for line in os.fdopen(orders):
    order = json.loads(line)
    if "results" in order:
        say(losses=[told["loss"]] * int(order["results"]), digest=told["digest"], sums=told["sums"])
        continue
    with open(sys.argv[1], "a") as log:
        log.write(name + "\\n")
    if told["sleeps"]:
        pathlib.Path(sys.argv[1] + ".pid").write_text(str(os.getpid()))
        time.sleep(600)
    say(steps=10, seconds=told["ms"] / 100, peak_bytes=1 << 20)
"""

TRAINING = """\
import torch
from tb_tidy_plugin.capture import tidy_profile
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tidy_profile("recorded") as profiler:
    while True:
        loss = torch.dropout(model(torch.ones(2, 4)), 0.5, True).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def program(folder: str, **told: object) -> None:
    """A program that answers what it is told."""
    Path(folder).mkdir(exist_ok=True)
    Path(folder, "program.py").write_text(PROGRAM.replace("TOLD", repr(told)), encoding="utf-8")


def arguments(*options: str) -> list[str]:
    """Of a short run of `before` and `after`."""
    sides = ["--before", "before", "--after", "after"]
    short = ["--rounds", "2", "--turns", "5", "--turn", "0.01"]
    command = [sys.executable, "program.py", str(Path.cwd() / "order")]
    return ["verify", *sides, *short, *options, "--", *command]


def verify(*options: str) -> Result:
    return CliRunner().invoke(commands, arguments(*options))


def answer(*options: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(verify("--format", "json", *options).stdout)


def test_a_faster_program_with_equal_results_is_proven() -> None:
    program("before", ms=10)
    program("after", ms=5)
    done = verify()
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "faster: a step takes 0.500 times as long (0.500 to 0.500, 95 %)",
        "  before: 10 ms per step over 100 steps, at most 1 MiB of memory (before)",
        "  after: 5 ms per step over 100 steps, at most 1 MiB of memory (after)",
        "results (5 losses and all parameters): equal",
    ]


def test_a_recording_whose_fixes_are_not_in_the_files_promises_nothing_and_that_is_said() -> None:
    program("before", ms=10)
    program("after", ms=5)
    recorded = Path(__file__).parents[2] / "sample_runs" / "text_generation_eval"
    said = verify("--promise", str(recorded), "--isolated").stdout
    assert said.endswith("\npromised: nothing, since no finding of the recording has its fix in the changed files\n")


def test_turns_alternate_and_so_does_who_goes_first() -> None:
    program("before")
    program("after")
    verify()
    order = Path("order").read_text().split()
    warm, first = ["before", "after"], ["before", "after", "after", "before"]
    assert order == [*warm, *first, *first, *warm, *warm, *first[2:], *first, *first[:2], *first[2:]]


@pytest.mark.parametrize(
    ("told", "results", "reason"),
    [
        ({"loss": 1.0001, "digest": "e"}, "up to rounding", "differ by up to 0.0001"),
        ({"loss": 1.5, "digest": "e"}, "different", "differ by up to 0.33"),
        ({"sums": [2.0, 3.0], "digest": "e"}, "different", "different numbers"),
        ({"initial": "b"}, "not comparable", "Set a seed"),
    ],
)
def test_results_are_compared(told: dict[str, object], results: str, reason: str) -> None:
    program("before")
    program("after", **told)
    found = answer()
    assert found["results"] == results
    assert reason in found["reason"]
    assert verify().exit_code == int(results == "different")


def test_a_program_without_parameters_and_losses_cannot_be_compared() -> None:
    for name in ("before", "after"):
        program(name, sums=[])
        text = Path(name, "program.py").read_text()
        Path(name, "program.py").write_text(text.replace('losses=[told["loss"]] * int(order["results"])', "losses=[]"))
    assert answer()["results"] == "not comparable"


def test_a_slower_program_fails() -> None:
    program("before", ms=10)
    program("after", ms=12)
    assert verify().exit_code == 1
    assert answer()["verdict"] == "slower"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError('no such data')", "no such data"),
        ("print('done')", "tidy_profile"),
        ("import time; time.sleep(60)", "finished no step within 1 s"),
    ],
)
def test_a_program_that_makes_no_step_is_an_error_with_its_last_lines(text: str, said: str) -> None:
    program("before")
    program("after")
    Path("after", "program.py").write_text(text, encoding="utf-8")
    with pytest.raises(TidyError) as raised:
        CliRunner().invoke(commands, arguments("--limit", "1"), catch_exceptions=False)
    assert raised.value.error.startswith("The program after ")
    assert said in "\n".join([raised.value.error, raised.value.advice, *raised.value.said])


def test_the_last_lines_of_a_broken_program_stay_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program("before")
    program("after")
    broken = "def load():\n\traise ValueError('\\x1b[31mno such\\tdata\\x1b[0m\\x07')\nload()\n"
    Path("after", "program.py").write_text(broken, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["tb-tidy", *arguments()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "tb-tidy: The program after ended."
    assert said[2] == "    Traceback (most recent call last):"
    assert said[-1] == "    ValueError: no such     data\ufffd"


HANDLER = """\
import signal, threading, queue
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
"""
"""Wants to end at its next step when it is asked to, as jobs on clusters do."""

READER = """\
heard = queue.SimpleQueue()
def read():
    for line in os.fdopen(orders):
        heard.put(line)
    os._exit(0)
threading.Thread(target=read, daemon=True).start()
for line in iter(heard.get, None):"""
"""Reads its orders as the capture does: the process ends with them."""

DEAF = "\nwhile True:\n    time.sleep(1)\n"


@pytest.mark.parametrize("kind", ["ends with its orders", "never ends by itself"])
def test_results_are_kept_of_programs_that_handle_sigterm(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tidy_plugin.verify.programs._ENDS_S", 0.3)
    for name, ms in (("before", 10), ("after", 5)):
        program(name, ms=ms)
        text = HANDLER + Path(name, "program.py").read_text()
        text = f"{text}{DEAF}" if kind.startswith("never") else text.replace("for line in os.fdopen(orders):", READER)
        text += f"\n# {kind}\n"
        text = text.replace("say(ready", "open(sys.argv[1] + '.pids', 'a').write(f'{os.getpid()} ')\nsay(ready")
        Path(name, "program.py").write_text(text, encoding="utf-8")
    done = verify()
    assert done.stdout.startswith("faster: a step takes 0.500 times as long (0.500 to 0.500, 95 %)\n"), done
    assert done.exit_code == 0
    numbers = Path("order.pids").read_text().split()
    assert len(numbers) == 4
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


def git(*arguments: str, folder: str = ".") -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    command = ["git", "-C", folder, *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def committed(folder: str = ".") -> None:
    git("init", "-q", folder=folder)
    git("add", "-A", folder=folder)
    git("commit", "-qm", "One", folder=folder)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time and content of all files below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        found[str(path)] = (about.st_mode, about.st_mtime_ns, content)
    return found


def test_a_revision_is_unpacked_and_its_folder_goes(temporary: Path) -> None:
    Path("project").mkdir()
    os.chdir("project")
    program(".", ms=10)
    committed()
    program(".", ms=5)
    before = state(Path.cwd())
    found = answer("--before", "HEAD", "--after", ".")
    assert (found["verdict"], found["before"]["folder"]) == ("faster", "HEAD")
    assert not [*temporary.iterdir()]
    Path("order").unlink()
    assert state(Path.cwd()) == before


def test_a_revision_has_links_run_bits_attributes_and_the_folder_of_the_command(temporary: Path) -> None:
    Path("work/data").mkdir(parents=True)
    Path("work/sub").mkdir()
    os.chdir("work")
    Path("data/real.txt").write_text("data")
    Path("sub/link.txt").symlink_to("../data/real.txt")
    Path("sub/away").symlink_to("/nowhere/at all")
    Path("run.sh").write_text("#!/bin/sh\n")
    Path("run.sh").chmod(0o755)
    Path("kept.txt").write_text("kept")
    Path("lines.txt").write_text("one\ntwo\n")
    Path(".gitattributes").write_text("kept.txt export-ignore\nlines.txt eol=crlf\n")
    committed()
    Path(".gitattributes").write_text("lines.txt eol=lf\n")
    before = state(Path.cwd())
    os.chdir("sub")
    with folder_of("HEAD") as sub:
        top = sub.parent
        assert sub.name == "sub"
        assert (sub / "link.txt").is_symlink()
        assert (sub / "link.txt").read_text() == "data"
        assert (sub / "away").readlink() == Path("/nowhere/at all")
        assert os.access(top / "run.sh", os.X_OK)
        assert not os.access(top / "kept.txt", os.X_OK)
        assert (top / "kept.txt").read_text() == "kept"
        assert (top / "lines.txt").read_bytes() == b"one\r\ntwo\r\n"
    with folder_of("HEAD:sub") as sub:
        assert sorted(each.name for each in sub.iterdir()) == ["away", "link.txt"]
    os.chdir("..")
    assert state(Path.cwd()) == before
    assert not [*temporary.iterdir()]
    Path("new").mkdir()
    os.chdir("new")
    with pytest.raises(TidyError, match="has no folder `new/`"), folder_of("HEAD"):
        pass


@pytest.mark.parametrize("is_there", [True, False])
def test_submodules_are_at_the_recorded_commit_or_said_to_be_empty(
    is_there: bool, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Path("library").mkdir()
    Path("library/lib.py").write_text("old")
    committed("library")
    Path("work").mkdir()
    git("init", "-q", folder="work")
    git("submodule", "add", str(Path("library").absolute()), "lib", folder="work")
    committed("work")
    Path("work/lib/lib.py").write_text("new")
    git("-C", "lib", "commit", "-qam", "Two", folder="work")
    if not is_there:
        git("submodule", "deinit", "-f", "lib", folder="work")
    os.chdir("work")
    before = state(Path.cwd())
    with folder_of("HEAD") as folder:
        assert [each.read_text() for each in (folder / "lib").iterdir()] == ["old"] * is_there
    assert ("Submodules of `HEAD` that are not checked out here are empty: `lib`." in caplog.text) is not is_there
    assert state(Path.cwd()) == before
    assert not [*temporary.iterdir()]


def test_pointers_of_lfs_are_said(
    temporary: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    Path("model.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    Path(".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    committed()
    with folder_of("HEAD"):
        assert "Files of `HEAD` in Git LFS are pointers" in caplog.text
    caplog.clear()
    git("config", "filter.lfs.smudge", "tr a-z A-Z")
    with folder_of("HEAD") as folder:
        assert (folder / "model.bin").read_text() == "VERSION HTTPS://GIT-LFS.GITHUB.COM/SPEC/V1\n"
    assert "pointers" not in caplog.text
    git("config", "filter.lfs.smudge", "echo no such server >&2; false")
    git("config", "filter.lfs.required", "true")
    with pytest.raises(TidyError, match="Git cannot write the files of `HEAD`") as raised, folder_of("HEAD"):
        pass
    assert "no such server" in raised.value.said
    assert not [*temporary.iterdir()]


def test_a_sparse_checkout_and_hooks_of_the_user_have_no_part_in_it() -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "file.txt").write_text(name)
    committed()
    git("sparse-checkout", "set", "a")
    hook = Path(".git/hooks/post-index-change")
    hook.write_text(f"#!/bin/sh\ntouch {Path.cwd()}/ran\n")
    hook.chmod(0o755)
    for setting in ("core.splitIndex", "core.untrackedCache"):
        git("config", setting, "true")
    Path("ran").unlink(missing_ok=True)
    before = state(Path.cwd())
    with folder_of("HEAD") as folder:
        assert (folder / "b/file.txt").read_text() == "b"
    assert state(Path.cwd()) == before


def test_what_a_killed_command_leaves_is_removed_at_a_later_start_and_nothing_else(
    temporary: Path, tmp_path: Path
) -> None:
    committed_in = tmp_path / "work"
    committed_in.mkdir()
    os.chdir(committed_in)
    Path("file.txt").write_text("a")
    committed()
    before = state(Path.cwd())
    code = (
        "import pathlib, tempfile, time; from tb_tidy_plugin.verify.checkouts import folder_of\n"
        f"tempfile.tempdir = {str(temporary)!r}\n"
        f"with folder_of('HEAD') as folder:\n    pathlib.Path({str(tmp_path / 'ready')!r}).touch(); time.sleep(600)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", code])
    try:
        until((tmp_path / "ready").exists)
        (temporary / "tb-tidy-verify-of another").mkdir()
        (left,) = [each for each in temporary.iterdir() if "another" not in each.name]
        with folder_of("HEAD"):
            assert left.is_dir()  # its process lives
    finally:
        killed.kill()
        killed.wait()
    assert left.is_dir()
    with folder_of("HEAD"):
        assert not left.exists()
    assert [each.name for each in temporary.iterdir()] == ["tb-tidy-verify-of another"]
    assert state(Path.cwd()) == before


@pytest.mark.parametrize("version", ["nowhere", "--output=file"])
def test_what_is_neither_a_folder_nor_a_revision_is_said(version: str) -> None:
    program("after")
    with pytest.raises(TidyError, match="neither a folder nor a git revision"):
        CliRunner().invoke(commands, arguments(f"--before={version}"), catch_exceptions=False)
    assert not Path("file").exists()


def test_why_git_refuses_a_repository_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    program("after")
    committed()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(TidyError, match="neither a folder nor a git revision") as raised, folder_of("HEAD"):
        pass
    assert "dubious ownership" in raised.value.said[0]


def question() -> list[str]:
    """The same as a question of an assistant."""
    command = [sys.executable, "program.py", str(Path.cwd() / "order")]
    asked = {"question": "verify", "before": "before", "after": "after", "command": command, "rounds": 1}
    return ["ask", json.dumps(asked), "--allow-apply", "--isolated"]


def test_a_question_about_a_broken_program_has_its_last_lines() -> None:
    program("before")
    program("after")
    Path("after", "program.py").write_text("print('much ' * 999)\nraise ValueError('no such data')", encoding="utf-8")
    found = json.loads(CliRunner().invoke(commands, question()).stdout)
    assert found["error"] == "«The program after ended.»"
    assert found["said"].endswith("ValueError: no such data»")


def test_a_question_has_the_same_answer() -> None:
    program("before", ms=10)
    program("after", ms=5)
    found = json.loads(CliRunner().invoke(commands, question()).stdout)
    assert (found["verdict"], found["ratio"], found["results"]) == ("faster", 0.5, "equal")
    assert (found["before_us"], found["after_us"], found["rows"]) == (10_000, 5_000, [])


@pytest.mark.parametrize("asked", [arguments, question], ids=["command", "question"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_ends_both_programs(number: signal.Signals, asked: Callable[[], list[str]]) -> None:
    program("before", sleeps=True)
    program("after")
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # tests may run in the background
    start = f"{heard}; from tb_tidy_plugin.cli.main import script; script()"
    command = [sys.executable, "-c", start, *asked()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: Path("order.pid").exists() and Path("order.pid").read_text() != "")
        process.send_signal(number)
        _, errors = process.communicate(timeout=600)
    assert b"Traceback" not in errors
    assert process.returncode == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("order.pid").read_text()), 0)


def test_a_finding_promises_where_its_fix_is_in_the_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run").parent
    report = analyze_path(run, Job([CatInLoop()], source_roots=(run,)))
    (profile,) = report.runs[0].profiles
    (finding,) = profile.findings
    assert finding.saving is not None
    after = tmp_path / "after"
    after.mkdir()
    fixed = (
        SOURCE.replace("rows = torch.zeros(4, 8)", "rows = [torch.zeros(4, 8)]")
        .replace("rows = torch.cat([rows, torch.zeros(4, 8)])", "rows.append(torch.zeros(4, 8))")
        .replace("    return", "    rows = torch.cat(rows)\n    return")
    )
    for text, expected in ((SOURCE, []), (fixed, [finding.saving.expected_ns / (profile.step_ns or 1)])):
        (after / "train.py").write_text(text, encoding="utf-8")
        assert [each.expected for each in promises_in(report, after)] == expected


def test_a_training_is_timed_and_compared_and_nothing_is_recorded() -> None:
    """The dropout of both is the same: seeds are set where the first step begins."""
    for name in ("before", "after"):
        Path(name).mkdir()
        Path(name, "program.py").write_text(TRAINING, encoding="utf-8")
    found = answer("--rounds", "1", "--steps", "3")
    assert (found["results"], found["reason"], found["losses"]) == ("equal", "", 3)
    assert found["before"]["steps"] > 5
    assert found["before"]["peak_bytes"] > 1 << 20
    assert not Path("before", "recorded").exists()
