"""An exception that nobody expected, a bug: it costs one trace, and all others are answered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin import analyze
from tb_tidy_plugin.analysis.answers import FIXES, FixesAnswer, Question
from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.analysis.engines import Engine
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.errors import unexpected
from tests.support.commands import tidy
from tests.support.environments import same_imports
from tests.support.written import event, kineto_text, write

STEP = event("ProfilerStep#1", 0, 1000, cat="user_annotation")
GOOD = kineto_text([STEP, event("aten::mm", 10, 100)])
TIMELESS = kineto_text([event("aten::mm", 777, 1)]).replace(": 777", ': "NaN"')


def runs(folder: Path) -> Path:
    """Four runs; one of them is called `broken`, and each can be read."""
    for name in ("a", "broken", "c", "d"):
        (folder / name).mkdir()
        write(folder / name / "w.1.pt.trace.json", GOOD)
    return folder


def failing(analysis: Analysis) -> FixesAnswer:
    """The usual answer, and a bug for one run."""
    if analysis.file.run == "broken":
        raise ZeroDivisionError("text of the trace")
    return FIXES.of(analysis)


def out_of_memory(analysis: Analysis) -> FixesAnswer:
    """The usual answer, for one run there is no memory."""
    if analysis.file.run == "broken":
        raise MemoryError
    return FIXES.of(analysis)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("of", "error"),
    [
        (failing, "The analysis failed with an internal error: ZeroDivisionError at analysis/paths.py:"),
        (out_of_memory, "memory"),
    ],
)
def test_it_is_the_problem_of_its_trace(tmp_path: Path, jobs: int, of: object, error: str) -> None:
    question = Question("failing", FixesAnswer, of)  # type: ignore[arg-type]
    found = [*analyse(Job(engine=Engine(jobs=jobs)), runs(tmp_path), question)]
    assert [each.file.run for each in found if each.answer is not None] == ["a", "c", "d"]
    (problem,) = [each.problem for each in found if each.problem is not None]
    assert problem.path == str(tmp_path / "broken" / "w.1.pt.trace.json")
    assert error in problem.error
    assert "text of the trace" not in problem.error
    assert problem.advice


def test_the_place_in_the_package_is_named() -> None:
    with pytest.raises(AttributeError) as caught:
        unexpected(None, "analysis")  # type: ignore[arg-type]
    assert " internal error: AttributeError at words/errors.py:" in unexpected(caught.value, "analysis").error


def test_a_time_that_is_not_a_number_ends_no_command(tmp_path: Path) -> None:
    """Each of these ended with a traceback and exit code 1, without a word about the good trace."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "good").mkdir()
    write(tmp_path / "bad" / "w.1.pt.trace.json", TIMELESS)
    write(tmp_path / "good" / "w.1.pt.trace.json", GOOD)
    for jobs in ("1", "2"):
        done = tidy("check", tmp_path, "--format", "json", "--jobs", jobs, "--no-cache", "--fail-on", "low")
        assert done.returncode != 1, done.stderr
        report = decode(done.stdout, Report)
        assert [run.run for run in report.runs] == ["good"]
        assert [each.error for each in report.problems] == ["None of the trace's events can be read (1 are damaged)."]
    assert [run.run for run in analyze(tmp_path).runs] == ["good"]
    bad = tmp_path / "bad"
    commands: list[tuple[str | Path, ...]] = [
        ("summary", bad), ("compare", bad, tmp_path / "good"), ("fix", bad), ("annotate", bad),
    ]  # fmt: skip
    for command in commands:
        done = tidy(*command)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), command
    asked = tidy("ask", json.dumps({"question": "findings"}), "--path", bad)
    assert asked.returncode == 0, asked.stdout
    assert "damaged" in asked.stdout
    asked = tidy("ask", json.dumps({"question": "ledger"}), "--path", bad)
    assert asked.returncode == 2
    assert "damaged" in json.loads(asked.stdout)["error"]


def test_a_bug_of_a_command_is_not_taken_for_a_limit_that_was_reached() -> None:
    code = "from tb_tidy_plugin.cli import main; main.commands = lambda **_: 1 / 0; main.script()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=same_imports(), check=False, timeout=120
    )
    assert done.returncode == 2
    assert "ZeroDivisionError" in done.stderr
