"""Lines that the capture calls exact are the true ones, instruction by instruction."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.corpus import Program
from tests.accuracy.processes import record_step_in
from tests.lines.corpus import HARD
from tests.lines.judged import aligned, counted, marked_recording


@pytest.mark.torch
@pytest.mark.parametrize("path", sorted(HARD.glob("*.py")), ids=lambda path: path.stem)
def test_exact_lines_are_true(path: Path, tmp_path: Path) -> None:
    marked = record_step_in(tmp_path, Program(path, "clean", ""), is_marked=True)
    without = marked_recording(path, marked).judged(aligned)
    captured = marked_recording(path, marked, is_captured=True).judged(aligned)
    exact = [each for each in captured if each.place is not None and each.place.precision == "exact"]
    assert len(exact) > 0.1 * len(captured)
    assert [each for each in exact if not each.line <= (each.place.line if each.place else 0) <= each.end_line] == []
    assert counted(captured)["wrong"] <= counted(without)["wrong"]
