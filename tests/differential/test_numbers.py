"""Our figures of real traces equal the true ones, and the page that says so is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.peer_comparison import PAGE, figures, text_of, trace_name, traces
from tests.support.recordings import shared

TRACES = traces()


@pytest.mark.parametrize("path", TRACES, ids=trace_name)
def test_ours_equals_true(path: Path) -> None:
    page = PAGE.read_text()
    for figure in figures(path):
        if figure.true is None:
            assert figure.ours is None, figure.name
        else:
            assert figure.ours == pytest.approx(figure.true, rel=0.005), figure.name
        shown = f"| {text_of(figure.true, figure.unit)} | {text_of(figure.ours, figure.unit)} |\n"
        (row,) = [
            line
            for line in page.splitlines(keepends=True)
            if line.startswith(f"| {trace_name(path)} | {figure.name} |")
        ]
        assert row.endswith(shown), "docs/numbers.md is stale: make numbers"


def test_the_shared_traces_are_there() -> None:
    shared("traces")
    assert len(TRACES) == 17
