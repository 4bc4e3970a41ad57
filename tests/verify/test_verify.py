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
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop
from tb_tidy_plugin.verify.verify import promises_in
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
    assert said in f"{raised.value.error}\n{raised.value.advice}"


def test_a_revision_is_unpacked_and_its_folder_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(Path("temporary").absolute()))
    program(".", ms=10)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments_of_git in (["init", "-q"], ["add", "program.py"], [*identity, "commit", "-qm", "One"]):
        subprocess.run(["git", *arguments_of_git], check=True, capture_output=True)
    program(".", ms=5)
    found = answer("--before", "HEAD", "--after", ".")
    assert (found["verdict"], found["before"]["folder"]) == ("faster", "HEAD")
    assert not [*Path("temporary").iterdir()]
    worktrees = subprocess.run(["git", "worktree", "list"], check=True, capture_output=True, text=True).stdout
    assert len(worktrees.splitlines()) == 1


@pytest.mark.parametrize("version", ["nowhere", "--output=file"])
def test_what_is_neither_a_folder_nor_a_revision_is_said(version: str) -> None:
    program("after")
    with pytest.raises(TidyError, match="neither a folder nor a git revision"):
        CliRunner().invoke(commands, arguments(f"--before={version}"), catch_exceptions=False)
    assert not Path("file").exists()


def question() -> list[str]:
    """The same as a question of an assistant."""
    command = [sys.executable, "program.py", str(Path.cwd() / "order")]
    asked = {"question": "verify", "before": "before", "after": "after", "command": command, "rounds": 1}
    return ["ask", json.dumps(asked), "--allow-apply", "--isolated"]


def test_a_question_has_the_same_answer() -> None:
    program("before", ms=10)
    program("after", ms=5)
    found = json.loads(CliRunner().invoke(commands, question()).stdout)
    assert (found["verdict"], found["ratio"], found["results"]) == ("faster", 0.5, "equal")
    assert (found["before_us"], found["after_us"], found["rows"]) == (10_000, 5_000, [])


@pytest.mark.parametrize("asked", [arguments, question], ids=["command", "question"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
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
