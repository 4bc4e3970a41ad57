"""product-slower-than-sibling: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.product_slower_than_sibling import ProductSlowerThanSibling
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

PAIR = """
    ProfilerStep#1       0-1000
      aten::mm           1-20   dims=1024x1024,1024x1024  types=half,half  kernel=gemm_a@100-300
      aten::mm           21-40  dims=1024x1024,1024x2048  types=half,half  kernel=gemm_b@300-500
      aten::mm           41-60  dims=1024x1024,1024x1024  types=half,half  kernel=gemm_a@500-700
"""


class TestReports:
    def test_a_product_at_half_of_its_siblings_rate(self) -> None:
        matches = matches_of(ProductSlowerThanSibling, draw(PAIR, A100))
        assert len(matches) == 2
        evidence = matches[0].evidence
        assert (evidence.sizes, evidence.sibling) == ("1024×1024 by 1024×1024", "1024×1024 by 1024×2048")
        assert evidence.rate == pytest.approx(2 * 1024**3 / 200e-6)
        assert evidence.share == pytest.approx(0.6)  # of bytes per second; of operations it is a half


class TestSaves:
    def test_at_best_the_siblings_rate_and_most_likely_half_of_the_gain(self) -> None:
        assert saving_ns(ProductSlowerThanSibling, draw(PAIR, A100)) == (0, 80_000, 160_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("gemm_b@300-500", "gemm_b@300-650", id="nearly as fast"),
            pytest.param("1024x2048  types=half,half", "1024x2048  types=float,float", id="another dtype"),
            pytest.param("dims=1024x1024,1024x2048", "dims=8192x8192,8192x8192", id="more operations per byte"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        text = PAIR.replace("41-60  dims=1024x1024,1024x1024  types=half,half  kernel=gemm_a@500-700", "41-60")
        assert matches_of(ProductSlowerThanSibling, draw(text, A100)) != ()
        assert matches_of(ProductSlowerThanSibling, draw(text.replace(old, new), A100)) == ()

    def test_products_that_do_not_fill_a_device(self) -> None:
        assert matches_of(ProductSlowerThanSibling({"min_call_ns": 200_001}), draw(PAIR, A100)) == ()

    def test_a_small_part_of_the_devices_time(self) -> None:
        long = "\n      aten::sum 61-70 kernel=reduce_kernel@1000-9000"
        assert matches_of(ProductSlowerThanSibling, draw(PAIR.replace("0-1000", "0-9000") + long, A100)) == ()


def test_the_prefill_of_sglang() -> None:
    """457 TFLOP/s for half of the time, beside 629 TFLOP/s: counted by hand from the raw JSON."""
    (file,) = find_traces(shared("traces/mi300_sglang_prefill_decode"))
    (finding,) = read_file(file, Job(rules=(ProductSlowerThanSibling(),))).report.findings
    assert "15360×4096 by 4096×24576 in bfloat16 reaches 457 TFLOP/s" in finding.message
    assert "15360×4096 by 4096×4096" in finding.message
    assert finding.matches == 36
