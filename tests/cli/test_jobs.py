"""What all commands that analyse traces have in common: their options, and answers from the cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.analysis import reading
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.reading import trace_in
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.trace.beside import ReadTrace
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.whole_run import write_run

RULES = {"--rule", "--select", "--ignore"}
CONFIGURATION = {"--config", "--isolated"}
ENGINE = {"--engine", "--jobs", "--no-cache"}
TRACES = {"--source-root", "--follow-links"}
LIMITS = {"--max-text-gb", "--max-inflation", "--max-processor-s", "--max-wall-s", "--max-memory-gb"}

FOUND = "cat-in-loop"
"""The rule that finds something in the run."""


def tidy(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, [*map(str, arguments)])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of its own, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_run(tmp_path / "run").parent


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many traces were read until now."""
    files: list[TraceFile] = []

    def counted(file: TraceFile, job: Job) -> ReadTrace:
        files.append(file)
        return trace_in(file, job)

    monkeypatch.setattr(reading, "trace_in", counted)
    return lambda: len(files)


@pytest.mark.parametrize("command", ["annotate", "ask", "bench", "check", "compare", "fix", "mcp", "summary"])
def test_every_command_has_every_group_of_options(command: str) -> None:
    help_text = tidy(command, "--help").output.split()
    wanted = CONFIGURATION | ENGINE | TRACES | LIMITS | (set() if command == "annotate" else RULES)
    assert wanted - set(help_text) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("annotate", "RUN"),
        ("annotate", "RUN", "--format", "json"),
        ("ask", '{"question": "findings"}', "--path", "RUN"),
        ("ask", '{"question": "operators"}', "--path", "RUN"),
        ("check", "RUN"),
        ("compare", "RUN", "RUN"),
        ("fix", "RUN"),
        ("summary", "RUN"),
    ],
    ids=" ".join,
)
def test_the_second_time_no_trace_is_read(command: tuple[str, ...], run: Path, read: Callable[[], int]) -> None:
    given = [str(run) if each == "RUN" else each for each in command]
    first, second = tidy(*given), tidy(*given)
    assert (first.exit_code, second.exit_code, second.output) == (0, 0, first.output)
    assert read() == 1


@pytest.mark.parametrize("command", ["check", "summary"])
def test_without_the_cache_each_time_is_the_first(command: str, run: Path, read: Callable[[], int]) -> None:
    assert tidy(command, run).output == tidy(command, run, "--no-cache").output
    assert read() == 2


def test_bench_finds_what_to_measure_without_reading_a_trace_again(
    run: Path, read: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_tidy_plugin.cli.bench.has_torch", lambda: True)
    monkeypatch.setattr("tb_tidy_plugin.cli.bench.measured", lambda pairs, _how, _show: iter(()))
    assert [tidy("bench", run).exit_code for _ in range(2)] == [2, 2]  # nothing was measured
    assert read() == 1


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names of files are text on this system")
@pytest.mark.parametrize(("name", "times"), [(b"caf\xe9", 6), (b"caf\xe9/run", 5)], ids=["the run's", "one above it"])
def test_what_lies_in_a_folder_whose_name_is_not_text_is_shown_all_the_same(
    name: bytes, times: int, run: Path, tmp_path: Path, read: Callable[[], int]
) -> None:
    moved = tmp_path / os.fsdecode(name)
    moved.parent.mkdir(exist_ok=True)
    run.rename(moved)
    for command in ("annotate", "check", "summary"):
        assert [tidy(command, moved).exit_code for _ in range(2)] == [0, 0]
    assert read() == times  # an answer about lines names no path


def test_a_trace_that_changed_is_read_again(run: Path, read: Callable[[], int]) -> None:
    (trace,) = run.glob("*.pt.trace.json")
    for _ in range(2):
        tidy("summary", run)
        trace.write_bytes(trace.read_bytes())
    tidy("summary", run)
    assert read() == 3


@pytest.mark.parametrize("command", [("summary", "RUN"), ("compare", "RUN", "RUN")], ids=" ".join)
def test_rules_are_chosen_on_the_command_line(command: tuple[str, ...], run: Path) -> None:
    given = [str(run) if each == "RUN" else each for each in command]
    found = [tidy(*given, "--format", "json", "--rule", rule).output for rule in (FOUND, "zero-grad-memset")]
    assert [f'"rule": "{FOUND}"' in output for output in found] == [True, False]
