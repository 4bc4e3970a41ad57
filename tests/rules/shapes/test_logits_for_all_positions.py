"""logits-for-all-positions: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.shapes.logits_for_all_positions import LogitsForAllPositions

LAST = ("select", "1,-1")


def job(
    positions: int = 64, columns: int = 5_000, reads: tuple[tuple[str, str], ...] = (("slice", "0,0"), LAST)
) -> Profile:
    """A step with one layer of 400 µs, and what reads its result."""
    result = f"8x{positions}x{columns}"
    lines = [
        "ProfilerStep#1 0-999",
        "  sample.py(4): generate 1-900",
        f"    aten::linear 10-410 dims=8x{positions}x128,{columns}x128,{columns} types=float,float,float",
    ]
    for at, (name, scalars) in enumerate(reads):
        start = 420 + 10 * at
        lines.append(
            f"    aten::{name} {start}-{start + 5} dims={result},, types=float,Scalar,Scalar scalars=,{scalars}"
        )
    return draw("\n".join(lines))


class TestReports:
    def test_a_layer_of_whose_result_one_position_is_picked(self) -> None:
        (finding,) = findings(LogitsForAllPositions, job())
        assert finding.message == (
            "A linear layer computes 5,000 columns for 64 positions, of which one is used: 400 µs per step"
        )
        assert [place.function for place in finding.places] == ["generate"]

    def test_with_its_backward_pass(self) -> None:
        text = """
            ProfilerStep#1                                              0-999
              aten::linear                                              10-210 dims=8x64x128,5000x128 types=float,float
                aten::mm                                                20-200 dims=512x128,128x5000 types=float,float seq=7
              aten::select                                              300-310 dims=8x64x5000,, types=float,Scalar,Scalar scalars=,1,-1
              autograd::engine::evaluate_function: ViewBackward0        400-410 dims=8x64x5000 types=float
              autograd::engine::evaluate_function: MmBackward0          500-700 seq=7 fwd=1
        """  # noqa: E501 - one event per line
        (finding,) = findings(LogitsForAllPositions, draw(text))
        assert finding.cost_ns == 400_000


class TestSaves:
    @pytest.mark.parametrize(
        ("positions", "saved_ns"), [(64, (120_000, 360_000, 393_750)), (8, (120_000, 200_000, 350_000))]
    )
    def test_more_with_more_positions(self, positions: int, saved_ns: tuple[int, int, int]) -> None:
        low, expected, high = saving_ns(LogitsForAllPositions, job(positions))
        assert (expected, high) == saved_ns[1:]
        assert low <= saved_ns[0]


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "reads",
        [
            pytest.param((LAST, ("view", "0")), id="a loss over all positions"),
            pytest.param((("select", "0,0"),), id="one sample of the batch, with all its positions"),
            pytest.param((), id="nothing that was recorded"),
        ],
    )
    def test_for(self, reads: tuple[tuple[str, str], ...]) -> None:
        assert matches_of(LogitsForAllPositions, job(reads=reads)) == ()

    def test_for_narrow_layers_and_single_positions(self) -> None:
        assert matches_of(LogitsForAllPositions, job(columns=999)) == ()
        assert matches_of(LogitsForAllPositions, job(positions=1)) == ()
