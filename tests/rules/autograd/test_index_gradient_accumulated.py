"""index-gradient-accumulated: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.autograd.index_gradient_accumulated import IndexGradientAccumulated
from tests.support.known import with_settings


def job(table: str = "500x16", picked: str = "64x16", inner: str = "reshape", switch: str = "True") -> Profile:
    """A step of 1 ms, of which accumulating takes 200 µs."""
    given = f"dims={table},,{picked},, types=float,,float,Scalar,Scalar scalars=,,,{switch},True"
    return draw(
        f"""
        ProfilerStep#1 0-1000
          graph.py(9): forward 1-600
            aten::index 10-50 dims={table}, types=float, seq=7
              aten::{inner} 20-30 dims=64, types=long,ScalarList
          autograd::engine::evaluate_function: IndexBackward0 610-900 seq=7 fwd=1
            IndexBackward0 611-899 dims={picked} types=float seq=7 fwd=1
              aten::_index_put_impl_ 650-850 {given}
        """
    )


class TestReports:
    @pytest.mark.parametrize("picked", ["64x16", "4x8x16"])
    def test_at_the_place_where_rows_are_picked(self, picked: str) -> None:
        (finding,) = findings(IndexGradientAccumulated, job(picked=picked))
        said = picked.replace("x", "×")
        assert (
            finding.message == f"The gradient of selecting rows by an index takes 200 µs per step: {said} from 500×16"
        )
        assert [(place.file, place.function) for place in finding.places] == [("graph.py", "forward")]


class TestSaves:
    def test_what_adding_rows_takes_less(self) -> None:
        _, expected, high = saving_ns(IndexGradientAccumulated, job())
        assert (expected, high) == pytest.approx((80_000, 140_000), rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(inner="nonzero"), id="a mask"),
            pytest.param(job(picked="64"), id="two indices"),
            pytest.param(job(switch="False"), id="no accumulation"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(IndexGradientAccumulated, profile) == ()

    def test_for_one_thread_which_adds_rows_more_slowly(self) -> None:
        assert matches_of(IndexGradientAccumulated, with_settings(job(), threads={"intra_op": 2}))
        assert not matches_of(IndexGradientAccumulated, with_settings(job(), threads={"intra_op": 1}))
