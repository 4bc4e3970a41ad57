"""normalisation-written-out: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.fusion.normalisation_written_out import NormalisationWrittenOut

X, LAST, CHANNELS, BATCH = "16x64x32", "16x64x1", "16x1x32", "1x64x32"


def chain(*operators: str, reduced: str = LAST) -> Profile:
    """A step of 1 ms in which a function runs these operators, each 20 µs, on x, its statistics (m) and a gain (g)."""
    shapes = {"x": X, "m": reduced, "g": "32", "s": ""}
    lines = ["ProfilerStep#1 0-999", "  model.py(5): norm 1-900"]
    for at, operator in enumerate(operators):
        name, *given = operator.split()
        dims, types = ",".join(shapes[each] for each in given), ",".join("float" for _ in given)
        lines.append(f"    aten::{name} {10 + 20 * at}-{30 + 20 * at - 1} dims={dims} types={types} seq={at + 1}")
    return draw("\n".join(lines))


SQUARES = ("mean x", "sub x m", "pow x s", "mean x", "sub x m", "add m s", "sqrt m", "div x m", "mul x g", "add x g")
PRODUCT = ("mean x", "sub x m", "mul x x", "mean x", "add m s", "rsqrt m", "mul x m")
VARIANCE = ("mean x", "var x", "sub x m", "add m s", "sqrt m", "div x m", "mul x g", "add x g")
DEVIATION = ("mean x", "std x", "sub x m", "mul x g", "add m s", "div x m", "add x g")
"""As in annotated transformers, which scale before they divide."""


class TestReports:
    @pytest.mark.parametrize("form", [SQUARES, PRODUCT, VARIANCE, DEVIATION])
    def test_each_form(self, form: tuple[str, ...]) -> None:
        (finding,) = findings(NormalisationWrittenOut, chain(*form, "relu x"))
        assert finding.message.startswith(
            f"A norm of 16×64×32 is written out as {len(form)} operators, which take {19 * len(form)} µs a call: `mean`"
        )
        assert [place.function for place in finding.places] == ["norm"]

    @pytest.mark.parametrize(
        ("reduced", "instead"),
        [
            (LAST, "F.layer_norm`, or"),
            (CHANNELS, "on the transposed tensor"),
            (BATCH, "F.batch_norm"),
            ("16x1x1", "F.layer_norm`, or"),
        ],
    )
    def test_the_operator_for_its_dimensions(self, reduced: str, instead: str) -> None:
        (finding,) = findings(NormalisationWrittenOut, chain(*SQUARES, reduced=reduced))
        assert instead in (finding.fix or "")

    def test_two_in_a_row_by_themselves(self) -> None:
        (finding,) = findings(NormalisationWrittenOut, chain(*PRODUCT, *PRODUCT))
        assert finding.matches == 2


class TestSaves:
    def test_all_but_what_one_operator_takes(self) -> None:
        low, expected, high = saving_ns(NormalisationWrittenOut, chain(*SQUARES))
        assert (expected, high) == (161_500, 174_800)  # 0.85 and 0.92 of ten times 19 µs
        assert low <= 0.6 * 190_000

    def test_half_where_copies_are_needed(self) -> None:
        _, expected, high = saving_ns(NormalisationWrittenOut, chain(*SQUARES, reduced=CHANNELS))
        assert (expected, high) == (95_000, 142_500)


class TestStaysQuiet:
    def test_for_a_root_mean_square_norm(self) -> None:
        assert not matches_of(NormalisationWrittenOut, chain("pow x s", "mean x", "add m s", "rsqrt m", "mul x m"))

    def test_for_a_mean_that_is_only_taken_off(self) -> None:
        assert not matches_of(NormalisationWrittenOut, chain("mean x", "sub x m", "mul x g", "add x g"))

    def test_for_other_measures_of_spread(self) -> None:
        assert not matches_of(NormalisationWrittenOut, chain("mean x", "sub x m", "abs x", "mean x", "div x m"))

    def test_for_a_variance_without_its_root(self) -> None:
        assert not matches_of(NormalisationWrittenOut, chain("mean x", "sub x m", "pow x s", "mean x", "div x m"))

    def test_for_statistics_of_the_whole_tensor(self) -> None:
        assert not matches_of(NormalisationWrittenOut, chain(*SQUARES, reduced="1x1x1"))
        assert not matches_of(NormalisationWrittenOut, chain(*SQUARES, reduced=""))

    def test_where_other_work_stands_between(self) -> None:
        broken = (*SQUARES[:5], "softmax x", *SQUARES[5:])
        assert not matches_of(NormalisationWrittenOut, chain(*broken))
