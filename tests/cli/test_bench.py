"""`tb-tidy bench` as a user meets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.benchmarks.store import read_beside
from tb_tidy_plugin.report.model import Finding, Report
from tb_tidy_plugin.system.decoders import convert, decode
from tests.support.measurements import MEASURED_AT_ONCE
from tests.support.recordings import ROOT

UNTIDY = ROOT / "sample_runs" / "image_classifier_untidy"
RULE = "python-loop-tensor-indexing"

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"


def tidy(cache: Path, *arguments: str | Path, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{before}\nfrom tb_tidy_plugin.cli.main import script; script()"
    environment = {
        "COLUMNS": "120",
        "PATH": os.environ["PATH"],
        "PYTHONIOENCODING": "utf-8",
        "XDG_CACHE_HOME": str(cache),
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=environment,
    )  # fmt: skip


def findings(done: subprocess.CompletedProcess[str]) -> list[Finding]:
    report = decode(done.stdout, Report)
    return [finding for run in report.runs for profile in run.profiles for finding in profile.findings]


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of its own, to write beside."""
    return Path(shutil.copytree(UNTIDY, tmp_path / "run"))


@pytest.mark.slow
@pytest.mark.torch
def test_measures_saves_and_is_shown_on_another_machine(tmp_path: Path, run: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    options = ("--rule", RULE, "--budget", "0.05", "--device", "cpu", "--format", "json")
    done = tidy(here, "bench", run, *options, "--save")
    assert done.returncode == 0, done.stderr
    (row,) = rows(done)
    measurement = convert(row["measurement"], Measurement)
    assert (row["rule"], measurement.rule, measurement.on.kind) == (RULE, RULE, "cpu")
    (trace,) = map(Path, row["findings"])
    assert read_beside(trace) == ([measurement], None)
    for cache in (here, elsewhere):
        shown = [each.measurement for each in findings(tidy(cache, "check", run, "--rule", RULE, "--format", "json"))]
        assert measurement in shown
    assert "micro-benchmark: " in tidy(elsewhere, "check", run, "--rule", RULE).stdout


def test_a_finding_that_is_not_there(tmp_path: Path, run: Path) -> None:
    done = tidy(tmp_path, "bench", run, "--finding", "0123456789ab")
    assert done.returncode == 2
    assert done.stderr.startswith("tb-tidy: The finding `0123456789ab` has no statements to measure in ")


def test_without_torch_it_says_how_to_get_it(tmp_path: Path, run: Path) -> None:
    done = tidy(tmp_path, "bench", run, before=WITHOUT_TORCH)
    assert done.returncode == 2
    assert "PyTorch is not installed here." in done.stderr
    assert "tb-tidy-plugin[bench]" in done.stderr


ON_A_FULL_DISK = f"""
import resource
from tb_tidy_plugin.benchmarks import runner
runner.COMMAND = {MEASURED_AT_ONCE!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # of files; writing into any fails
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(os.name == "nt", reason="this system has no limit on the size of files")
def test_on_a_full_disk_results_are_shown_and_said_not_to_be_kept(tmp_path: Path, run: Path) -> None:
    options = ("--rule", RULE, "--budget", "0.01", "--device", "cpu", "--format", "json", "--save")
    done = tidy(tmp_path / "cache", "bench", run, *options, before=ON_A_FULL_DISK)
    assert [row["error"] for row in rows(done)] == [None]
    assert (done.returncode, "could not be written: File too large.\nFree disk space there" in done.stderr) == (2, True)
    assert sorted(run.iterdir()) == sorted(run.parent / "run" / each.name for each in UNTIDY.iterdir())


def test_a_file_beside_the_trace_that_is_none_of_ours_costs_a_note(tmp_path: Path, run: Path) -> None:
    (trace,) = run.glob("*.pt.trace.json*")
    trace.with_name(trace.name + ".tidy-bench.json").write_text("[]")
    done = tidy(tmp_path, "check", run)
    assert done.returncode == 0
    assert "tidy-bench.json` is not used: it does not match the format." in " ".join(done.stdout.split())
