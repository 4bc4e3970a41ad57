"""graph-larger-than-batch: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.graph_larger_than_batch import GraphLargerThanBatch

PADDED = """
    decode[bs=65/128 tok=65]     0-100
      aten::mm      1-20     graph=gemm@10-50 graph=gemm@50-90
    decode[bs=63/128 tok=63]     200-300
      aten::mm      201-220  graph=gemm@210-250 graph=gemm@250-290
"""


class TestReports:
    def test_batches_of_half_the_graph(self) -> None:
        (finding,) = findings(GraphLargerThanBatch, draw(PADDED, A100))
        assert (
            finding.message == "Decode iterations of 63 to 65 requests replay a graph for 128, 2 times: 50 % is padding"
        )

    def test_each_size_by_itself(self) -> None:
        other = PADDED.replace("bs=63/128", "bs=63/256")
        messages = {each.message for each in findings(GraphLargerThanBatch, draw(other, A100))}
        assert messages == {
            "Decode iterations of 65 requests replay a graph for 128, once: 49.2 % is padding",
            "Decode iterations of 63 requests replay a graph for 256, once: 75.4 % is padding",
        }


class TestSaves:
    def test_the_padded_part_at_most(self) -> None:
        low, expected, high = saving_ns(GraphLargerThanBatch, draw(PADDED, A100))
        assert low == 0
        assert 0 < expected < high <= 100_000


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("/128", "", id="nothing is padded"),
            pytest.param("/128", "/72", id="a little is"),
            pytest.param("graph=", "kernel=", id="no graph"),
            pytest.param(" tok=", " p=1 tok=", id="a mixed batch"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        assert matches_of(GraphLargerThanBatch, draw(PADDED.replace(old, new), A100)) == ()
