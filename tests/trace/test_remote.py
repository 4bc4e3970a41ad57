"""Traces on stores: the same report as from the disk, and sentences for what networks do."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import fsspec
import msgspec
import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.benchmarks.store import read_beside, save_beside
from tb_tidy_plugin.report.model import Problem, Report
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX
from tb_tidy_plugin.trace.capture_file import with_capture
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.remote import RemotePath, identity_of, is_file, on_this_machine, path_or_url, size_of
from tb_tidy_plugin.words.errors import NotFoundError, TidyError
from tests.support.logdirs import broken_traces, trace
from tests.support.measurements import measurement
from tests.support.stores import uploaded

HERE = "memory://bucket/runs"


def without_paths(report: Report) -> Report:
    runs = [
        msgspec.structs.replace(run, profiles=[msgspec.structs.replace(each, path="") for each in run.profiles])
        for run in report.runs
    ]
    problems = [msgspec.structs.replace(problem, path=problem.path.rpartition("/")[2]) for problem in report.problems]
    return msgspec.structs.replace(report, runs=runs, problems=problems)


def only_problem(address: str) -> Problem:
    [problem] = analyze_path(address, Job()).problems
    return problem


def test_the_report_is_that_of_the_disk(tmp_path: Path) -> None:
    trace(tmp_path / "one" / "w.5.pt.trace.json")
    trace(tmp_path / "two" / "deep" / "w.pt.trace.json.gz", operators=400)
    broken_traces(tmp_path / "broken")
    uploaded(tmp_path, HERE)
    on_disk, on_store = analyze_path(tmp_path, Job()), analyze_path(HERE, Job())
    assert [run.run for run in on_store.runs] == ["broken/cut_gz", "broken/truncated", "one", "two/deep"]
    assert without_paths(on_store) == without_paths(on_disk)
    assert on_store.runs[2].profiles[0].path == f"{HERE}/one/w.5.pt.trace.json"


@pytest.mark.parametrize("address", [f"{HERE}/one/w.5.pt.trace.json", f"{HERE}/one", f"{HERE}/one/"])
def test_a_file_and_a_run_may_be_named(tmp_path: Path, address: str) -> None:
    trace(tmp_path / "one" / "w.5.pt.trace.json")
    trace(tmp_path / "two" / "w.5.pt.trace.json")
    uploaded(tmp_path, HERE)
    [file] = find_traces(path_or_url(address))
    assert (file.run, file.worker, file.span) == ("one", "w", "5")


def test_files_beside_the_trace_are_read(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    capture = {"version": 1, "sources": [{"file": "train.py", "text": "train()\n"}]}
    path.with_name(path.name + CAPTURE_SUFFIX).write_bytes(gzip.compress(msgspec.json.encode(capture)))
    uploaded(tmp_path, HERE)
    [file] = find_traces(path_or_url(HERE))
    [source] = with_capture(read_trace(file.path), file.path).metadata.captured.sources
    assert (source.file, source.text) == ("train.py", "train()\n")


def test_measurements_are_saved_beside_the_trace(tmp_path: Path) -> None:
    trace(tmp_path / "w.pt.trace.json")
    uploaded(tmp_path, HERE)
    [file] = find_traces(path_or_url(HERE))
    saved = save_beside(file.path, [measurement()])
    assert str(saved) == f"{HERE}/w.pt.trace.json.tidy-bench.json"
    assert read_beside(file.path) == ([measurement()], None)


def test_a_large_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json", operators=40_000)
    uploaded(tmp_path, HERE)
    [file] = find_traces(path_or_url(HERE))
    done: list[int] = []
    table = read_trace(file.path, done.append)
    assert len(done) > 1
    assert done[-1] == size_of(file.path) == path.stat().st_size
    assert len(table) == len(read_trace(path))


def test_what_tells_a_file_from_what_it_was() -> None:
    on_s3 = {"size": 7, "ETag": '"ab"', "LastModified": "2026-01-02T03:04:05+00:00"}
    on_gs = {"size": 7, "etag": "cd", "updated": "2026-01-02T03:04:05.000Z"}
    assert identity_of(on_s3) == (7, 1_767_323_045_000_000_000, '"ab"')
    assert identity_of(on_gs) == (7, 1_767_323_045_000_000_000, "cd")
    assert identity_of({"size": None, "mtime": "yesterday"}) == (0, 0, "")


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("runs/x", "runs/x"),
        ("file:///runs/x", "/runs/x"),
        ("local:///runs/x/", "/runs/x"),
        ("zip://w.json::file:///runs/x.zip", "/runs/x.zip"),
        ("zip://w.json::/runs/x.zip", "/runs/x.zip"),
        ("s3://runs/x", None),
        ("zip://w.json::s3://runs/x.zip", None),
    ],
)
def test_what_an_address_names_on_this_machine(address: str, path: str | None) -> None:
    assert on_this_machine(path_or_url(address)) == (None if path is None else Path(path))


def test_nothing_is_there(tmp_path: Path) -> None:
    uploaded(tmp_path, HERE)
    with pytest.raises(NotFoundError, match="`memory://bucket/other` does not exist"):
        analyze_path("memory://bucket/other", Job())


def test_a_package_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(TidyError) as raised:
        analyze_path("gs://bucket/run", Job())
    assert raised.value.error == "`gs://` cannot be read without fsspec and gcsfs."
    assert raised.value.advice == "Run `pip install fsspec gcsfs` and start again."


def test_an_address_of_no_known_kind() -> None:
    with pytest.raises(TidyError, match=r"`nowhere://x` is not an address for fsspec"):
        analyze_path("nowhere://x", Job())


def test_a_store_that_does_not_answer() -> None:
    with pytest.raises(NotFoundError, match=r"cannot be reached: LookupError: .*no address for host store.example"):
        analyze_path("unreachable://bucket/run", Job())


def test_a_store_that_lets_nobody_in() -> None:
    with pytest.raises(NotFoundError, match=r"for lack of permission: Permission denied\. Set the credentials"):
        analyze_path("guarded://bucket/run", Job())


@pytest.mark.parametrize(("address", "answer"), [("unreachable://b/w", True), ("guarded://b/w", False)])
def test_what_a_store_does_not_tell_may_be_there(address: str, answer: bool) -> None:
    """Whoever reads it then says why not. That it is forbidden is what some stores say of what is not there."""
    assert is_file(RemotePath(address)) == answer


def test_a_network_that_goes_away_in_the_middle(tmp_path: Path) -> None:
    trace(tmp_path / "w.pt.trace.json", operators=400)
    uploaded(tmp_path, HERE)
    problem = only_problem(HERE.replace("memory", "breaking"))
    assert problem.error == "The file could not be read: EOFError: connection reset by peer."
    assert problem.advice == "Check the network and the store, then reload."


def test_a_file_that_went_away_since_it_was_listed(tmp_path: Path) -> None:
    trace(tmp_path / "w.pt.trace.json")
    uploaded(tmp_path, HERE)
    [file] = find_traces(path_or_url(HERE))
    fsspec.filesystem("memory").rm("/bucket/runs/w.pt.trace.json")
    with pytest.raises(TidyError, match=r"The file is no longer there\."):
        read_trace(file.path)


def test_names_of_addresses() -> None:
    path = RemotePath("s3://bucket/run/w.json")
    assert (path.name, str(path.with_name("x")), str(path / "y")) == (
        "w.json",
        "s3://bucket/run/x",
        "s3://bucket/run/w.json/y",
    )
    assert path_or_url("runs/w.json") == Path("runs/w.json")
