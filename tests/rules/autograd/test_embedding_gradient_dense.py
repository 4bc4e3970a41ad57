"""embedding-gradient-dense: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.autograd.embedding_gradient_dense import EmbeddingGradientDense


def job(rows: int = 50_000, used: str = "32x16", product: str = "", took_us: int = 400) -> Profile:
    """A step of 1 ms with the gradient of one table of 64 columns."""
    inputs = f"dims={used}x64,{used},,, types=float,long,Scalar,Scalar,Scalar scalars=,,{rows},-1,False"
    lines = [
        "ProfilerStep#1 0-999",
        "  train.py(4): train 1-400",
        f"    aten::embedding 10-20 dims={rows}x64,{used} types=float,long seq=7",
        *([f"    aten::linear 30-90 dims=512x64,{product} types=float,float"] if product else []),
        f"  autograd::engine::evaluate_function: EmbeddingBackward0 410-{430 + took_us} seq=7 fwd=1",
        f"    aten::embedding_dense_backward 420-{420 + took_us} {inputs}",
    ]
    return draw("\n".join(lines))


class TestReports:
    def test_a_table_of_which_a_batch_uses_little(self) -> None:
        (finding,) = findings(EmbeddingGradientDense, job())
        assert finding.message == (
            "The gradient of an embedding has 50,000 rows, of which a batch uses at most 512: 400 µs per step"
        )
        assert [place.function for place in finding.places] == ["train"]

    def test_a_table_whose_rows_are_summed_into_bags(self) -> None:
        inputs = "dims=32x64,512,512,32,32,,,,,, types=float,long,long,long,long,Scalar scalars=,,,,,50000,False,0,,-1"
        profile = draw(
            "ProfilerStep#1 0-999\n"
            "  train.py(4): train 1-400\n"
            "    aten::embedding_bag 10-20 dims=50000x64,512,32 types=float,long,long seq=7\n"
            "  autograd::engine::evaluate_function: EmbeddingBagBackward0 410-830 seq=7 fwd=1\n"
            f"    aten::_embedding_bag_dense_backward 420-820 {inputs}"
        )
        (finding,) = findings(EmbeddingGradientDense, profile)
        assert "has 50,000 rows, of which a batch uses at most 512: 400 µs" in finding.message


class TestSaves:
    def test_most_of_the_gradient_and_nothing_of_the_optimizer(self) -> None:
        low, expected, high = saving_ns(EmbeddingGradientDense, job())
        assert (expected, high) == (360_000, 400_000)
        assert low == 0


class TestStaysQuiet:
    def test_for_small_tables(self) -> None:
        assert matches_of(EmbeddingGradientDense, job(rows=10_000, used="32x4"))
        assert not matches_of(EmbeddingGradientDense, job(rows=9_999, used="32x4"))

    def test_for_batches_that_use_more_than_a_tenth(self) -> None:
        assert matches_of(EmbeddingGradientDense, job(used="32x156"))
        assert not matches_of(EmbeddingGradientDense, job(used="32x157"))

    def test_for_a_table_that_the_output_layer_shares(self) -> None:
        assert matches_of(EmbeddingGradientDense, job(product="50000x128"))
        assert not matches_of(EmbeddingGradientDense, job(product="50000x64"))
