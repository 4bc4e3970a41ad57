"""hidden-contiguous-copy: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.memory.hidden_contiguous_copy import HiddenContiguousCopy

FORWARD = "train.py(7): forward"
ADD = "aten::add dims=512x256,- types=float,Scalar scalars=,1"
TRANSPOSED, SLICED, EXPANDED, ROWS = "1x512", "512x1", "0x1", "256x1"


def copy(
    name: str = "contiguous",
    shape: str = "512x256",
    strides: str = TRANSPOSED,
    made: str = ROWS,
    scalar: str = "0",
    *,
    work: str = "",
    kind: str = "float",
) -> str:
    """A call from 100 to 200 µs that copies, as torch runs it."""
    own = f"dims={shape},- strides={strides},- types={kind},Scalar scalars=,{scalar}"
    copied = f"dims={shape},{shape},- strides={made},{strides},- types={kind},{kind},Scalar {work}"
    return f"    aten::{name} 100-200 {own}\n      aten::clone 101-199 {own}\n        aten::copy_ 110-198 {copied}"


def step(call: str, *after: str, end: int = 1000, function: str = FORWARD) -> Profile:
    """The call, then operators of 10 µs."""
    later = []
    for at, text in enumerate(after):
        name, *attributes = text.split(" ")
        later.append(" ".join([f"    {name} {210 + 20 * at}-{220 + 20 * at}", *attributes]))
    return draw("\n".join([f"ProfilerStep#1 0-{end}", f"  {function} 1-{end - 1}", call, *later]))


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(HiddenContiguousCopy, profile)


class TestReports:
    def test_a_transposed_tensor_that_is_copied_to_be_added_to(self) -> None:
        (finding,) = findings(HiddenContiguousCopy, step(copy(), ADD))
        assert (
            finding.message
            == "`aten::contiguous` copies 512 KiB only to change their memory layout, then `aten::add` reads them"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "forward")]
        assert (finding.confidence, finding.cost_ns) == ("high", 100_000)

    @pytest.mark.parametrize(
        ("strides", "kind"), [(TRANSPOSED, "transposed"), (SLICED, "sliced"), (EXPANDED, "expanded")]
    )
    def test_in_what_way_the_tensor_lies_in_memory(self, strides: str, kind: str) -> None:
        (match,) = matches(step(copy(strides=strides), ADD))
        assert match.evidence.kind == kind

    def test_a_clone_that_is_asked_to_be_contiguous(self) -> None:
        assert matches(step(copy("clone"), ADD))

    def test_views_between_the_copy_and_its_reader(self) -> None:
        unsqueeze = "aten::unsqueeze dims=512x256,- types=float,Scalar scalars=,0"
        (match,) = matches(step(copy(), unsqueeze, ADD))
        assert match.evidence.reader == "aten::add"

    @pytest.mark.parametrize("reader", ["mm", "sum", "scaled_dot_product_attention", "to", "matmul"])
    def test_readers_that_take_any_layout(self, reader: str) -> None:
        (match,) = matches(step(copy(), f"aten::{reader} dims=512x256 types=float scalars="))
        assert match.confidence == "high"

    def test_less_surely_without_strides(self) -> None:
        text = "\n".join(" ".join(w for w in line.split(" ") if "strides" not in w) for line in copy().splitlines())
        (match,) = matches(step(text, ADD))
        assert (match.confidence, match.evidence.kind) == ("medium", "not recorded")

    def test_least_surely_a_large_copy_that_its_reader_may_need(self) -> None:
        (match,) = matches(step(copy(), "aten::view dims=512x256,- types=float,ScalarList scalars=,[131072]"))
        assert (match.confidence, match.evidence.reader) == ("low", "aten::view")

    @pytest.mark.parametrize("name", ["reshape", "flatten"])
    def test_least_surely_one_that_merges_dimensions(self, name: str) -> None:
        (match,) = matches(step(copy(name, scalar=""), ADD))
        assert match.confidence == "low"

    def test_least_surely_one_whose_reader_is_not_near(self) -> None:
        (match,) = matches(step(copy()))
        assert (match.confidence, match.evidence.reader) == ("low", "a later operator")

    def test_what_the_device_copies(self) -> None:
        call = copy(work="kernel=elementwise@300-390")
        (finding,) = findings(HiddenContiguousCopy, draw(f"{FORWARD} 0-900\n{call}\n    {_at(ADD)}", A100))
        assert finding.cost_ns == 100_000 + 90_000

    def test_benchmarks_a_tensor_laid_out_the_same(self) -> None:
        (match,) = matches(step(copy(), ADD))
        benchmark = HiddenContiguousCopy().benchmark(match.evidence)
        assert benchmark is not None
        assert "shape, strides = (512, 256), (1, 512)\n" in benchmark.setup
        assert (benchmark.before, benchmark.after) == ("result = x.contiguous() + 1", "result = x + 1")
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)

    def test_benchmarks_nothing_that_may_be_needed(self) -> None:
        (match,) = matches(step(copy("reshape", scalar=""), ADD))
        assert HiddenContiguousCopy().benchmark(match.evidence) is None


def _at(call: str) -> str:
    name, *attributes = call.split(" ")
    return " ".join([f"{name} 210-220", *attributes])


class TestSaves:
    def test_all_but_a_tenth_of_the_copy(self) -> None:
        assert saving_ns(HiddenContiguousCopy, step(copy(), ADD)) == (0, 90_000, 100_000)

    def test_half_of_one_that_may_be_needed(self) -> None:
        assert saving_ns(HiddenContiguousCopy, step(copy("reshape", scalar=""), ADD)) == (0, 50_000, 100_000)


class TestStaysQuiet:
    def test_below_256_kib(self) -> None:
        assert matches(step(copy(shape="256x256", strides="1x256"), ADD.replace("512x256", "256x256")))
        assert not matches(step(copy(shape="255x256", strides="1x255"), ADD.replace("512x256", "255x256")))

    def test_below_numbers_that_the_user_sets(self) -> None:
        assert not matches_of(HiddenContiguousCopy({"min_bytes": 524_289}), step(copy(), ADD))
        needed = step(copy("reshape", scalar=""), ADD)
        assert not matches_of(HiddenContiguousCopy({"min_needed_share": 0.11}), needed)

    def test_below_a_tenth_of_the_step_where_the_reader_may_need_it(self) -> None:
        view = "aten::view dims=512x256,- types=float,ScalarList scalars=,[131072]"
        assert matches(step(copy(), view, end=1000))
        assert not matches(step(copy(), view, end=1001))

    def test_without_a_copy(self) -> None:
        assert not matches(step("    aten::contiguous 100-101 dims=512x256 types=float scalars=", ADD))
        view = "    aten::reshape 100-110 dims=512x256 types=float\n      aten::view 101-109 dims=512x256 types=float"
        assert not matches(step(view, ADD))

    def test_for_a_plain_clone(self) -> None:
        assert not matches(step(copy("clone", scalar="", made=TRANSPOSED), ADD))

    def test_for_a_copy_that_keeps_the_layout(self) -> None:
        assert not matches(step(copy("clone", strides=ROWS), ADD))

    def test_for_a_copy_that_is_written_to(self) -> None:
        assert not matches(step(copy(), ADD.replace("aten::add", "aten::add_")))

    def test_for_channels_last(self) -> None:
        channels_last = "65536x1x512x2"  # 8 images of 2 channels, 128 × 256
        shape, rows = "8x2x128x256", "65536x32768x256x1"
        reader = f"aten::add dims={shape},- types=float,Scalar scalars=,1"
        to = copy(shape=shape, strides="65536x32768x1x128", made=channels_last, scalar="2")
        assert not matches(step(to, reader))
        assert not matches(step(copy(shape=shape, strides=channels_last, made=rows), reader))
        assert matches(step(copy(shape=shape, strides="65536x32768x1x128", made=rows), reader))

    @pytest.mark.parametrize("around", ["aten::linear", "aten::conv2d", "aten::einsum"])
    def test_inside_an_operator(self, around: str) -> None:
        inside = "\n".join(f"  {line}" for line in copy().splitlines())
        assert not matches(step(f"    {around} 90-205 dims=512x256 types=float\n{inside}", ADD))

    @pytest.mark.parametrize(
        "function", ["torch/utils/data/_utils/fetch.py(54): fetch", "enumerate(DataLoader)#_Iter.__next__"]
    )
    def test_in_a_data_loader(self, function: str) -> None:
        assert not matches(step(copy(), ADD, function=function))

    def test_for_a_change_of_dtype(self) -> None:
        changed = copy().replace("types=float,float,Scalar", "types=half,float,Scalar")
        assert not matches(step(changed, ADD))
