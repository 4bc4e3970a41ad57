"""The table of residuals in docs/estimates.md."""

from __future__ import annotations

from pathlib import Path

from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tests.estimate.__main__ import Residual, residual_of, row


def test_figures_of_a_drawn_recording(tmp_path: Path) -> None:
    draw_into(tmp_path, "ProfilerStep#1  0-1000\n  aten::mm  100-200  dims=4x4,4x4  types=float,float")
    (trace,) = tmp_path.glob("*.json*")
    found = residual_of(trace)
    assert found is not None
    assert (found.events, found.nodes, found.waits) == (2, 4, 0)  # both events begin and end at a time of their own
    assert (found.residual, found.unexplained) == (0, 0)


def test_a_line_of_the_table() -> None:
    found = Residual(74_936, 90_000, 290, 0.00012, 0.324, 0.0061, 0.08, 0.2)
    assert row("a100", found) == "| `a100` | 74,936 | 90,000 | 290 | 0.01 % | 32.4 % | 6.1 ms | 80.0 ms | 200.0 ms |\n"
