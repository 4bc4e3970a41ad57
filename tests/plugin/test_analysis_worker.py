"""The worker process: what it says, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tb_tidy_plugin.plugin.analysis_worker import (
    AnalysisMessage,
    AnalysisProgress,
    AnalysisRequest,
    AnalysisResult,
    Failure,
    printable,
    throttled,
)
from tb_tidy_plugin.plugin.events import EventColumns
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.logdirs import trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE

LIMIT_S = 240.0


def request(path: Path) -> bytes:
    """The line that asks for a trace."""
    return msgspec.json.encode(AnalysisRequest("run", "worker", "7", os.fsencode(path))) + b"\n"


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        yield process
        process.kill()


def messages(path: Path, *command: str) -> list[AnalysisMessage]:
    with started(*command, *sys.path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(path))
        process.stdin.flush()
        return [decode(line, AnalysisMessage) for line in process.stdout]


def result(path: Path) -> AnalysisResult:
    last = messages(path, *WITH_MADE_UP_RULE)[-1]
    assert isinstance(last, AnalysisResult)
    return last


def test_progress_comes_first_and_the_result_last(tmp_path: Path) -> None:
    *before, last = messages(trace(tmp_path / "w.pt.trace.json"), *WITH_MADE_UP_RULE)
    progress = [each for each in before if isinstance(each, AnalysisProgress)]
    assert [each.state for each in progress] == ["reading", "analysing", "analysing"]
    assert progress[0].stage.startswith("Reading ")
    assert [each.stage for each in progress[1:]] == ["Checking rule 1 of 1", "Adding up operators"]
    assert [each.fraction for each in progress] == sorted(each.fraction for each in progress)
    assert isinstance(last, AnalysisResult)
    assert (last.report.worker, last.report.span) == ("worker", "7")
    assert last.problem is None


def test_the_events_of_a_finding_come_with_it(tmp_path: Path) -> None:
    found = result(trace(tmp_path / "w.pt.trace.json", operators=3))
    [finding] = found.report.findings
    columns = decode(found.events[finding.id], EventColumns)
    assert columns.start_ns == [20_000, 21_000, 22_000]
    assert [columns.texts[number] for number in columns.shapes] == ["4×1, 1×4", "4×2, 2×4", "4×3, 3×4"]


def test_all_files_of_the_stacks_are_named(tmp_path: Path) -> None:
    assert result(trace(tmp_path / "w.pt.trace.json")).source_files == ["../../outside.py", "train.py"]


def test_a_file_that_cannot_be_read_is_a_failure_in_words(tmp_path: Path) -> None:
    empty = tmp_path / "w.pt.trace.json"
    empty.touch()
    assert messages(empty, *WITH_MADE_UP_RULE)[-1] == Failure(
        "The file is empty.", "Record again; the job may have ended while the trace was written."
    )


def test_it_can_be_started_by_hand(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    assert isinstance(messages(path, sys.executable, "-m", "tb_tidy_plugin.plugin.analysis_worker")[-1], AnalysisResult)


def test_it_ends_when_whoever_started_it_does(tmp_path: Path) -> None:
    path = tmp_path / "w.pt.trace.json"
    os.mkfifo(path)  # nobody ever writes into it
    with started(*WITH_MADE_UP_RULE, *sys.path) as process:
        assert process.stdin is not None
        process.stdin.write(request(path))
        process.stdin.close()
        until(lambda: process.poll() is not None, LIMIT_S)


def test_what_a_rule_prints_does_not_come_between_the_messages(tmp_path: Path) -> None:
    *start, code = WITH_MADE_UP_RULE
    noisy = code.replace("lambda: (", "lambda: print('noise') or (")
    assert noisy != code
    assert isinstance(messages(trace(tmp_path / "w.pt.trace.json"), *start, noisy)[-1], AnalysisResult)


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    found = result(trace(tmp_path / os.fsdecode(b"caf\xe9") / "w.pt.trace.json"))
    assert found.report.path.endswith("caf\ufffd/w.pt.trace.json")
    assert printable(os.fsdecode(b"caf\xe9 \xc3\xa9")) == "caf\ufffd é"


def test_progress_is_throttled_but_each_new_stage_is_said(tmp_path: Path) -> None:
    sent: list[AnalysisMessage] = []
    path = trace(tmp_path / "w.pt.trace.json")
    report = throttled(path, sent.append, lambda: 8)
    for n in range(1000):
        report(TraceFile("", "", "", path), "reading", n / 1000)
    report(TraceFile("", "", "", path), "analysing", 0.0)
    progress = [each for each in sent if isinstance(each, AnalysisProgress)]
    assert len(progress) < 10
    assert progress[-1].state == "analysing"
    assert [each.fraction for each in progress] == sorted(each.fraction for each in progress)
