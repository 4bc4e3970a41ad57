"""unfused-attention: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import A100, Gpu, draw
from tb_tidy_plugin.rules.fusion.unfused_attention import UnfusedAttention

SIZES = "2x4x128x96"  # batch, heads, queries, keys
QUERY_KEY = "8x128x32,8x32x96"
WEIGHTS_VALUE = "8x128x96,8x96x32"

PRODUCT = ["aten::matmul", f"  aten::bmm dims={QUERY_KEY} types=float,float"]
SCALE = [f"aten::div dims={SIZES},- types=float,double"]
MASK = [f"aten::masked_fill dims={SIZES},128x96,- types=float,bool,Scalar"]
SOFTMAX = [f"aten::softmax dims={SIZES},-,- types=float,Scalar,- scalars=,-1,"]
OUTPUT = ["aten::matmul", f"  aten::bmm dims={WEIGHTS_VALUE} types=float,float"]
BIAS = f"aten::add dims={SIZES},1x4x128x96,- types=float,float,Scalar"
VIEW = "aten::view dims=8x128x96,- types=float,ScalarList"
CAST = f"aten::to dims={SIZES} types=half"
WHOLE = [*PRODUCT, *SCALE, *MASK, *SOFTMAX, *OUTPUT]

EACH = 100


def timed(calls: Iterable[str], start: int = 100) -> list[str]:
    """One operator every 100 µs, 90 µs long; what is indented runs 20 µs inside of it."""
    lines: list[str] = []
    at = start - EACH
    for call in calls:
        inner = call.startswith("  ")
        at += 0 if inner else EACH
        name, _, attributes = call.strip().partition(" dims=")
        span = f"{at + 10}-{at + 30}" if inner else f"{at}-{at + 90}"
        lines.append(f"    {'  ' if inner else ''}{name}  {span}  " + (f"dims={attributes}" if attributes else ""))
    return lines


def step(calls: Iterable[str], more: Iterable[str] = (), gpu: Gpu | None = None, frame: str = "attend") -> Profile:
    lines = ["ProfilerStep#1 0-10000", f"  model.py(3): {frame} 1-9999", *timed(calls), *more]
    return draw("\n".join(lines), gpu)


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(UnfusedAttention, profile)


class TestReports:
    def test_products_scale_mask_and_softmax(self) -> None:
        (finding,) = findings(UnfusedAttention, step(WHOLE))
        assert finding.message == (
            "Attention of 128 queries over 96 keys is written out: up to 270 µs per call between its products"
        )
        assert finding.fix == "Call `F.scaled_dot_product_attention`"
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "attend")]
        assert finding.confidence == "high"

    @pytest.mark.parametrize(
        ("name", "calls"),
        [
            ("no scale, no mask", [*PRODUCT, *SOFTMAX, *OUTPUT]),
            ("batched products", ["aten::bmm" + PRODUCT[1][11:], *SOFTMAX, "aten::bmm" + OUTPUT[1][11:]]),
            ("einsum", ["aten::einsum", PRODUCT[1], *SCALE, *SOFTMAX, "aten::einsum", OUTPUT[1]]),
            (
                "scale and mask in the product",
                [
                    "aten::baddbmm dims=8x128x96,8x128x32,8x32x96,-,- types=float,float,float,Scalar,Scalar",
                    *(line.replace(SIZES, "8x128x96") for line in SOFTMAX),
                    *OUTPUT,
                ],
            ),
            ("a bias that is added", [*PRODUCT, BIAS, *SOFTMAX, *OUTPUT]),
            ("views and a mask made on the way", [*PRODUCT, VIEW, "aten::tril dims=128x96", *MASK, *SOFTMAX, *OUTPUT]),
            ("dropout", [*WHOLE[:6], f"aten::dropout dims={SIZES},-,- types=float,Scalar,Scalar", *OUTPUT]),
            ("a softmax in more bits", [*PRODUCT, CAST, *SOFTMAX, CAST, *OUTPUT]),
            ("the keys by their number", [*PRODUCT, *(line.replace(",-1,", ",3,") for line in SOFTMAX), *OUTPUT]),
        ],
    )  # fmt: skip
    def test_all_ways_to_write_it(self, name: str, calls: list[str]) -> None:
        assert len(matches(step(calls))) == 1, name

    def test_layers_one_after_the_other(self) -> None:
        (finding,) = findings(UnfusedAttention, step([*WHOLE, *WHOLE]))
        assert finding.matches == 2

    def test_the_module_that_averages_weights_which_nobody_seems_to_use(self) -> None:
        average = [f"aten::mean dims={SIZES},-,-,- types=float,ScalarList,Scalar,-"]
        profile = step([*WHOLE, *average], frame="multi_head_attention_forward")
        (finding,) = findings(UnfusedAttention, profile)
        assert finding.fix == "Pass `need_weights=False` to `nn.MultiheadAttention`"
        assert finding.confidence == "medium"


class TestSaves:
    def test_what_runs_between_the_products_and_a_part_of_these(self) -> None:
        # Three operators of 90 µs; of two products of 90 µs 0.15 is expected to go, and at most 0.3.
        assert saving_ns(UnfusedAttention, step(WHOLE)) == (0, 270_000 + 27_000, 270_000 + 54_000)

    def test_its_gradients_too_and_a_part_of_those_of_the_products(self) -> None:
        lines = timed(WHOLE)
        numbered = [f"{line} seq={at}" for at, line in enumerate(lines, start=3)]
        for name, number, start in (("Bmm", 9, 5000), ("Softmax", 7, 5200), ("MaskedFill", 6, 5400), ("Div", 5, 5600)):
            node = f"{start}-{start + 150} seq={number} fwd=1"
            numbered.append(f"    autograd::engine::evaluate_function: {name}Backward0 {node}")
        profile = step([], numbered)
        gone, products = 270_000 + 3 * 150_000, 2 * 90_000 + 150_000
        assert saving_ns(UnfusedAttention, profile) == (0, gone + 0.15 * products, gone + 0.3 * products)

    def test_the_kernels_of_a_busy_gpu(self) -> None:
        lines = timed(WHOLE)
        kernel = "kernel=softmax_warp_forward"
        for at, begin in ((2, 1000), (3, 1500), (4, 2000)):
            lines[at] += f" {kernel}@{begin}-{begin + 400}"
        profile = step([], lines, A100)
        assert saving_ns(UnfusedAttention, profile) == (0, 1_200_000 + 27_000, 1_200_000 + 54_000)

    def test_products_in_half_precision_as_fast_as_the_device_fuses_them(self) -> None:
        # 4 * 8 * 128 * 96 * 32 operations take 201.6 ns at a fifth of 312 TFLOP/s, of 400,000 ns: next to nothing.
        lines = [line.replace("float,float", "half,half") for line in timed(WHOLE)]
        products = [at for at, line in enumerate(lines) if "aten::bmm" in line]
        for at, begin in zip(products, (1000, 2000), strict=True):
            lines[at] += f" kernel=h16816gemm@{begin}-{begin + 200}"
        saving = saving_ns(UnfusedAttention, step([], lines, A100))
        assert saving[1] == pytest.approx(270_000 + 400_000, rel=0.001)

    def test_a_benchmark_of_the_same_sizes(self) -> None:
        (match,) = matches(step(WHOLE))
        benchmark = UnfusedAttention().benchmark(match.evidence)
        assert benchmark is not None
        assert "query = torch.randn(8, 1, 128, 32, dtype=torch.float32, device=device)" in benchmark.setup
        assert benchmark.after == "result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)"
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)


class TestStaysQuiet:
    def test_few_keys(self) -> None:
        calls = [line.replace("x96", "x63").replace("8x96x32", "8x63x32") for line in WHOLE]
        assert matches(step(calls)) == ()
        assert len(matches_of(UnfusedAttention({"min_length": 63}), step(calls))) == 1

    def test_few_queries(self) -> None:
        assert matches(step([line.replace("128", "1") for line in WHOLE])) == ()

    def test_a_fused_operator(self) -> None:
        fused = "aten::scaled_dot_product_attention dims=2x4x128x32,2x4x96x32,2x4x96x32 types=float,float,float"
        inside = [f"  {line}" for line in timed(WHOLE)]
        assert matches(step([], [f"    {fused.replace(' dims', ' 90-9000 dims')}", *inside])) == ()

    @pytest.mark.parametrize("name", ["tanh", "relu", "cumsum"])
    def test_scores_that_a_fused_operator_cannot_make(self, name: str) -> None:
        assert matches(step([*PRODUCT, f"aten::{name} dims={SIZES} types=float", *SOFTMAX, *OUTPUT])) == ()

    def test_weights_that_are_changed(self) -> None:
        gate = f"aten::mul dims={SIZES},4x1x1 types=float,float"
        assert matches(step([*PRODUCT, *SOFTMAX, gate, *OUTPUT])) == ()

    def test_weights_that_are_used_later(self) -> None:
        use = f"aten::log dims={SIZES} types=float"
        assert matches(step([*WHOLE, use])) == ()

    def test_the_average_of_weights_in_own_code(self) -> None:
        average = [f"aten::mean dims={SIZES},-,-,- types=float,ScalarList,Scalar,-"]
        assert matches(step([*WHOLE, *average])) == ()

    def test_the_modules_average_that_is_used(self) -> None:
        calls = [
            *WHOLE,
            f"aten::mean dims={SIZES},-,-,- types=float,ScalarList,Scalar,-",
            "aten::log dims=2x128x96 types=float",
        ]
        assert matches(step(calls, frame="multi_head_attention_forward")) == ()

    def test_a_softmax_over_queries(self) -> None:
        calls = [*PRODUCT, *(line.replace(",-1,", ",2,") for line in SOFTMAX), *OUTPUT]
        assert matches(step(calls)) == ()

    def test_a_product_of_other_sizes_before(self) -> None:
        calls = ["aten::matmul", "  aten::bmm dims=8x128x32,8x32x48 types=float,float", *SOFTMAX, *OUTPUT]
        assert matches(step(calls)) == ()

    def test_a_product_of_other_sizes_after(self) -> None:
        calls = [*PRODUCT, *SOFTMAX, "aten::matmul", "  aten::bmm dims=8x128x48,8x48x32 types=float,float"]
        assert matches(step(calls)) == ()

    def test_no_product_after(self) -> None:
        assert matches(step([*PRODUCT, *SOFTMAX])) == ()

    def test_the_weights_of_a_layer(self) -> None:
        layer = ["aten::linear", "  aten::addmm dims=96,1024x32,32x96,-,- types=float,float,float,Scalar,Scalar"]
        assert matches(step([*layer, *SOFTMAX, *OUTPUT])) == ()

    def test_heads_that_are_mixed(self) -> None:
        mixed = ["aten::einsum", "  aten::bmm dims=1x4x4,1x4x24576 types=float,float"]
        assert matches(step([*PRODUCT, *SOFTMAX, *mixed, *OUTPUT])) == ()

    def test_a_softmax_of_a_matrix(self) -> None:
        gate = "aten::softmax dims=1024x96,-,- types=float,Scalar,- scalars=,-1,"
        assert matches(step([*PRODUCT, gate, *OUTPUT])) == ()
