"""eager-decode-beside-graphs: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.eager_decode_beside_graphs import EagerDecodeBesideGraphs

MIXED = """
    execute_context_0(0)_generation_8(8)       0-100
      aten::mm      1-20     graph=gemm@10-50 graph=gemm@50-90
    execute_context_0(0)_generation_9(9)       200-400
      aten::mm      201-220  kernel=gemm@210-250
      aten::mm      341-360  kernel=gemm@350-390
    execute_context_0(0)_generation_8(8)       500-600
      aten::mm      501-520  graph=gemm@510-550 graph=gemm@550-590
"""


class TestReports:
    def test_batches_larger_than_all_graphs(self) -> None:
        (finding,) = findings(EagerDecodeBesideGraphs, draw(MIXED, A100))
        assert finding.message == (
            "1 of the decode iterations (batch 9) run without a graph and take 180 µs; with one they take 80 µs"
        )
        assert finding.cost_ns == round(100_000 / 3)


class TestSaves:
    def test_half_of_the_difference(self) -> None:
        low, expected, high = saving_ns(EagerDecodeBesideGraphs, draw(MIXED, A100))
        assert low == 0
        assert 0 < expected < high <= 100_000


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("kernel=", "graph=", id="all replay a graph"),
            pytest.param("graph=", "kernel=", id="none does"),
            pytest.param("context_0(0)_generation_9(9)", "context_1(9)_generation_8(8)", id="a mixed batch"),
            pytest.param("@350-390", "@250-290", id="as fast"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        assert matches_of(EagerDecodeBesideGraphs, draw(MIXED.replace(old, new), A100)) == ()
