"""Reports that are kept: found while all that they depend on is the same, made again as soon as it is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import NoneType

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis import code_fixes, paths, reading
from tb_tidy_plugin.analysis.answers import FIXES, RECIPES, TABLES_OF_REPORT, Answer, FixesAnswer, Question
from tb_tidy_plugin.analysis.detailed_answers import COSTS, LINES, PLACES
from tb_tidy_plugin.analysis.engines import Engine
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyse, analyse_files, analyze_path, remembered_by
from tb_tidy_plugin.analysis.reading import trace_in
from tb_tidy_plugin.benchmarks import store
from tb_tidy_plugin.configuration.checks import job_of
from tb_tidy_plugin.configuration.files import Configuration, ConfigurationSettings, read_configuration
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.trace.beside import ReadTrace
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.logdirs import trace
from tests.support.user_rule import write_rule

SAMPLE = Path(__file__).resolve().parents[2] / "sample_runs" / "image_classifier_untidy"
TRACE = "workstation.1795242331722230743.pt.trace.json.gz"
DEFAULTS = ConfigurationSettings()

Count = Callable[[], int]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with findings in `train.py`, which is beside its trace."""
    return shutil.copytree(SAMPLE, tmp_path / "run")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(cache=Cache(tmp_path / "cache"))


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How many traces were really analysed until now."""
    made: list[object] = []

    def counted(file: TraceFile, job: Job) -> ReadTrace:
        made.append(file)
        return trace_in(file, job)

    monkeypatch.setattr(reading, "trace_in", counted)
    return lambda: len(made)


def report(run: Path, job: Job, settings: ConfigurationSettings = DEFAULTS) -> Report:
    return analyze_path(run, replace(job, rules=job_of(Configuration(settings)).rules))


def test_the_second_time_nothing_is_analysed_and_the_report_is_the_same(run: Path, job: Job, analysed: Count) -> None:
    first = report(run, job)
    assert report(run, job) == first
    assert analysed() == 1


@pytest.mark.parametrize(
    "question", [FIXES, TABLES_OF_REPORT, COSTS, RECIPES, LINES, PLACES], ids=lambda each: each.kind
)
def test_every_answer_is_kept_and_comes_back_as_it_was(
    run: Path, job: Job, analysed: Count, question: Question[Answer]
) -> None:
    (first,) = analyse(job, run, question)
    (second,) = analyse(job, run, question)
    assert first.answer is not None
    assert (second, analysed()) == (first, 1)


@pytest.mark.parametrize("question", [RECIPES, LINES, PLACES], ids=lambda each: each.kind)
def test_what_no_measurement_changes_outlives_one(
    run: Path, job: Job, analysed: Count, question: Question[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `bench` would read its traces each time, since it measures each time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(run.parent / "user"))
    list(analyse(job, run, question))
    measured_here(run)
    (run / f"{TRACE}.tidy-bench.json").write_text("{}")
    list(analyse(job, run, question))
    assert analysed() == 1


def test_ranks_that_are_known_need_no_worker(run: Path, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(run / TRACE, run / f"second.{TRACE}")
    parallel = replace(job, engine=Engine(jobs=2))
    first = analyze_path(run, parallel)
    monkeypatch.setattr(paths, "each", None)
    assert analyze_path(run, parallel) == first


def test_without_a_cache_it_is_analysed_each_time(run: Path, analysed: Count) -> None:
    assert report(run, Job()) == report(run, Job())
    assert analysed() == 2


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda run: (run / name).write_text(text)


def measured_here(run: Path) -> None:
    (store.cache_folder() / "a").mkdir(parents=True)
    (store.cache_folder() / "a" / "b.json").write_text("{}")


@pytest.mark.parametrize(
    "change",
    [
        lambda run: trace(run / TRACE),
        lambda run: os.utime(run / TRACE),
        os.chdir,
        write(f"{TRACE}.tidy.json.gz", "no side file"),
        write(f"{TRACE}.device_events.json", "{}"),
        write(f"{TRACE}.tidy-bench.json", "{}"),
        write("memory_snapshot.pickle", ""),
        write("train.py", "# another one\n"),
        lambda run: (run / "train.py").unlink(),
        measured_here,
    ],
    ids=[
        "trace",
        "time",
        "nothing",
        "captured",
        "device",
        "measured beside",
        "snapshot",
        "source",
        "no source",
        "measured here",
    ],
)
def test_what_it_depends_on_makes_it_anew(
    run: Path, job: Job, analysed: Count, change: Callable[[Path], object], request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(run.parent / "user"))
    monkeypatch.chdir(run.parent)
    report(run, job)
    change(run)
    report(run, job)
    assert analysed() == (1 if request.node.callspec.id == "nothing" else 2)


def test_another_question_has_another_answer(run: Path, job: Job, analysed: Count) -> None:
    report(run, job)
    report(run, job, ConfigurationSettings(ignore=["TT101"]))
    report(run, job, ConfigurationSettings(thresholds={"zero-grad-memset": {"min-share": 0.5}}))
    report(run, replace(job, ignores=PathIgnores({"*.py": frozenset({"zero-grad-memset"})})))
    report(run, replace(job, source_roots=(run.parent,)))
    assert analysed() == 5


def test_a_report_of_ones_own_rules_is_not_kept(run: Path, job: Job, analysed: Count, tmp_path: Path) -> None:
    """What such a rule looks at, nobody knows."""
    write_rule(tmp_path / "checks")
    (tmp_path / "tb-tidy.toml").write_text('rules = ["checks/slow_multiplication.py"]')
    rules = job_of(read_configuration(tmp_path / "tb-tidy.toml")).rules
    for _ in range(2):
        analyze_path(run, replace(job, rules=rules))
    assert analysed() == 2


def test_a_damaged_entry_is_made_again(run: Path, job: Job, analysed: Count) -> None:
    first = report(run, job)
    for entry in job.cache.entries():
        entry.path.write_bytes(b"nonsense")
    assert report(run, job) == first
    assert analysed() == 2


def test_whatever_an_entry_holds_it_is_an_answer_or_none(job: Job, tmp_path: Path) -> None:
    """Somebody has written it who knows how, with a checksum that fits."""
    file = TraceFile("run", "w", "", trace(tmp_path / "run" / "w.pt.trace.json"))
    job = replace(job, rules=[rule() for rule in all_rules()[:3]])
    list(analyse_files(job, [file], FIXES))
    remembered = remembered_by(job, FIXES)
    key = remembered.key(file)
    assert key is not None
    whole = bytes(job.cache.load("report", key) or b"")
    nested = b"[" * 100_000 + b"]" * 100_000
    forged = [whole[:at] for at in range(0, len(whole), 29)]
    forged += [
        whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at in range(0, len(whole), 7) for bit in (1, 128)
    ]
    forged += [nested, b'{"sources": {}, "answer": %b}' % nested, b'{"sources": %b, "answer": {}}' % nested, b"null"]
    found = []
    for content in [whole, *forged]:
        job.cache.keep("report", key, [content])
        found.append(remembered.load(file, key))
    assert isinstance(found[0], FixesAnswer)
    assert {type(each) for each in found} == {FixesAnswer, NoneType}


def test_a_trace_that_changes_while_it_is_read_is_not_kept(
    run: Path, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(file: TraceFile, job: Job) -> ReadTrace:
        found = trace_in(file, job)
        os.utime(run / TRACE)
        return found

    monkeypatch.setattr(reading, "trace_in", changing)
    report(run, job)
    assert [entry for entry in job.cache.entries() if entry.kind != code_fixes.CODE_CHANGES] == []


def test_what_is_kept_holds_nothing_that_the_report_does_not(run: Path, job: Job) -> None:
    """No line of a source but those of a change: only the name and the state of its file."""
    shown = [
        change.diff
        for profile in report(run, job).runs[0].profiles
        for finding in profile.findings
        for change in (finding.code_fixes.changes if finding.code_fixes else ())
    ]
    lines = [line for line in (run / "train.py").read_text().splitlines() if len(line) > 40]
    kept = {entry.kind: entry.path.read_text("utf-8", "replace") for entry in job.cache.entries()}
    changes = kept.pop(code_fixes.CODE_CHANGES)
    assert all("train.py" in content for content in kept.values())
    assert not [line for content in kept.values() for line in lines if line in content]
    assert not [line for line in lines if line in changes and not any(line in diff for diff in shown)]
