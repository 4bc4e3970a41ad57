"""small-batch-product-below-bandwidth: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit.testing import MI300, draw, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.serving.small_batch_product_below_bandwidth import SmallBatchProductBelowBandwidth
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

MOVED = 2 * (32 * 4096 + 4096 * 8192 + 32 * 8192)

SLOW = """
    ProfilerStep#1                       0-1000
      serve/model.py(3): forward         1-900
        serve/tuned.py(395): fallback    2-800
          aten::mm           3-20   dims=32x4096,4096x8192  types=half,half  kernel=gemm_a@100-140
          aten::mm           21-40  dims=32x4096,4096x8192  types=half,half  kernel=gemm_a@140-180
"""


class TestReports:
    def test_the_rate_and_the_function_that_calls_the_library(self) -> None:
        evidence = matches_of(SmallBatchProductBelowBandwidth, draw(SLOW, MI300))[0].evidence
        assert (evidence.calls, evidence.rows, evidence.caller) == (2, 32, "`fallback` (serve/tuned.py:395)")
        assert evidence.rate == pytest.approx(MOVED / 40e-6)
        assert evidence.share == pytest.approx(MOVED / 40e-6 / 5.3e12)


class TestSaves:
    def test_up_to_eighty_per_cent_of_the_bandwidth(self) -> None:
        low, expected, high = saving_ns(SmallBatchProductBelowBandwidth, draw(SLOW, MI300))
        assert (low, expected) == (0, 0)  # no faster product beside it
        assert high == pytest.approx(80_000 - 2 * MOVED / (0.8 * 5.3e12) * 1e9, abs=2)

    def test_most_likely_the_rate_of_the_fastest_one(self) -> None:
        more = "          aten::mm           41-60  dims=32x4096,4096x8192  types=bfloat16,bfloat16  kernel=g@180-200\n"
        _, expected, _ = saving_ns(SmallBatchProductBelowBandwidth, draw(SLOW + more, MI300))
        assert expected == pytest.approx(40_000, abs=2)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("@100-140", "@100-115", id="near the bandwidth"),
            pytest.param("32x4096", "128x4096", id="many rows"),
            pytest.param("32x4096,4096x8192", "32x64,64x64", id="a small matrix"),
            pytest.param("32x4096,4096x8192 ", "32x4096,4096x1024 ", id="as short as a launch"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        text = "\n".join(SLOW.splitlines()[:-1]).replace(old, new)
        if "1024" in new:
            text = text.replace("@100-140", "@100-109")
        assert matches_of(SmallBatchProductBelowBandwidth, draw(text, MI300)) == ()

    def test_a_device_that_is_not_known(self) -> None:
        assert "not known" in reason_not_checked(SmallBatchProductBelowBandwidth, draw(SLOW))


def test_the_decode_step_of_sglang() -> None:
    """144 products of the layers and the head run in aiter's fallback, at 2.64 of 5.3 TB/s."""
    (file,) = find_traces(shared("traces/mi300_sglang_graph_decode"))
    (capture,) = find_traces(shared("traces/mi300_sglang_graph_capture"))
    job = Job(rules=(SmallBatchProductBelowBandwidth(),), graph_captures=(Path(str(capture.path)),))
    finding = read_file(file, job).report.findings[0]
    assert "144 products of up to 32 rows in `torch_gemm`" in finding.message
    assert "tuned_gemm.py:395" in finding.message
    assert "TB/s, 49" in finding.message
    assert finding.saving is not None
    assert finding.saving.high_ns == pytest.approx(0.2 * 10.45e6, rel=0.1)
