"""Lines that the capture calls exact are the true ones, instruction by instruction."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lines.judged import counted, judged
from tests.support.recordings import ROOT

PROGRAMS = sorted((ROOT / "tests/lines/programs").glob("*.py"))


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_exact_lines_are_true(program: Path, tmp_path: Path) -> None:
    marked, plain = tmp_path / "marked.pt.trace.json", tmp_path / "plain.pt.trace.json"
    command = [sys.executable, "-m", "tests.lines.marked", str(program), str(marked)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    without = judged(program, marked, plain)
    shutil.copy(f"{marked}.tidy.json.gz", f"{plain}.tidy.json.gz")
    captured = judged(program, marked, plain)
    exact = [each for each in captured if each.place is not None and each.place.precision == "exact"]
    assert len(exact) > 0.1 * len(captured)
    assert [each for each in exact if not each.line <= (each.place.line if each.place else 0) <= each.end_line] == []
    assert counted(captured)["wrong"] <= counted(without)["wrong"]
