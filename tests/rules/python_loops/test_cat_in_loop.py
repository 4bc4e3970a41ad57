"""cat-in-loop: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop

MAIN = "train.py(3): main"
READ = "aten::relu dims={made} types=float"


def cat(before: int, piece: int = 4, width: int = 8) -> str:
    """One call on `before` rows and a piece of some more."""
    return f"aten::cat dims={before}x{width}+{piece}x{width},- types=TensorList,Scalar scalars=,0"


def body(calls: Iterable[str], indent: str = "    ", start: int = 10) -> str:
    """One call after the other, each 8 µs long, 10 µs apart."""
    lines = []
    for at, call in enumerate(calls):
        name, *attributes = call.split(" ")
        lines.append(" ".join([f"{indent}{name} {start + 10 * at}-{start + 10 * at + 8}", *attributes]))
    return "\n".join(lines)


def growing(count: int, *after: str, first: int = 4, piece: int = 4) -> list[str]:
    """`count` calls on 4, 8, 12 … rows, each followed by the calls `after`."""
    return [
        call.format(made=f"{first + piece * (at + 1)}x8")
        for at in range(count)
        for call in (cat(first + piece * at, piece), *after)
    ]


def step(calls: Iterable[str], function: str = MAIN, end: int = 9000) -> Profile:
    return draw(f"ProfilerStep#1 0-{end}\n  {function} 1-{end - 1}\n{body(calls)}")


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(CatInLoop, profile)


class TestReports:
    def test_a_tensor_that_grows_five_times(self) -> None:
        # 8 + 12 + 16 + 20 + 24 = 80 rows are copied for a result of 24.
        (finding,) = findings(CatInLoop, step(growing(5)))
        assert (
            finding.message == "A tensor grows by 5 × `aten::cat`: 70 % of what they copy is a copy of earlier pieces"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "main")]
        assert (finding.confidence, finding.cost_ns) == ("high", 5 * 8_000)

    def test_one_that_begins_empty(self) -> None:
        empty = "aten::cat dims=0+4x8,- types=TensorList,Scalar scalars=,0"
        (match,) = matches(step([empty, *growing(4)]))
        assert match.evidence.calls == 5

    def test_pieces_put_in_front(self) -> None:
        calls = [f"aten::cat dims=4x8+{4 + 4 * at}x8,- types=TensorList,Scalar scalars=,0" for at in range(5)]
        assert matches(step(calls))

    def test_along_a_last_dimension_that_is_counted_from_the_end(self) -> None:
        calls = [f"aten::cat dims=1x8x{4 + 4 * at}+1x8x4,- types=TensorList,Scalar scalars=,-1" for at in range(5)]
        (match,) = matches(step(calls))
        assert (match.evidence.dim, match.evidence.result) == (2, (1, 8, 24))

    def test_pieces_of_unequal_size(self) -> None:
        rows = [4, 8, 13, 15, 22, 23]
        calls = [cat(before, after - before) for before, after in pairwise(rows)]
        assert matches(step(calls))

    def test_two_tensors_that_grow_in_turns(self) -> None:
        found = matches(step([call for at in range(5) for call in (cat(4 + 4 * at), cat(4 + 4 * at))]))
        assert [match.evidence.calls for match in found] == [5, 5]

    def test_other_work_between_the_calls(self) -> None:
        (match,) = matches(step(growing(5, "aten::linear dims=4x16,8x16 types=float,float")))
        assert match.evidence.calls == 5

    def test_pieces_of_which_one_has_the_size_of_the_tensor(self) -> None:
        assert matches(step(growing(8, "aten::relu dims=8x8 types=float")))

    @pytest.mark.parametrize("outer", ["hstack", "vstack", "concat"])
    def test_what_calls_cat_in_the_end(self, outer: str) -> None:
        lines = [
            f"    aten::{outer} {at * 10}-{at * 10 + 9}\n      aten::cat {at * 10 + 1}-{at * 10 + 8} "
            f"dims={4 * at}x8+4x8,- types=TensorList,Scalar scalars=,0"
            for at in range(1, 6)
        ]
        (match,) = matches(draw("\n".join([f"{MAIN} 0-900", *lines])))
        assert match.evidence.operator == f"aten::{outer}"

    def test_a_list_that_is_stacked_again_with_each_piece(self) -> None:
        calls = [
            f"aten::stack dims={'+'.join(['8'] * count)}{'+' * (count == 1)},- types=TensorList,Scalar scalars=,0"
            for count in range(1, 7)
        ]
        (match,) = matches(step(calls))
        assert (match.evidence.calls, match.evidence.result) == (6, (6, 8))

    def test_a_method_that_is_called_for_each_piece(self) -> None:
        lines = [
            f"  train.py(9): append {10 * at}-{10 * at + 9}\n{body([cat(4 * at)], start=10 * at)}" for at in range(1, 6)
        ]
        (finding,) = findings(CatInLoop, draw("\n".join([f"{MAIN} 0-900", *lines])))
        assert finding.places[0].function == "append"

    def test_without_stacks(self) -> None:
        (finding,) = findings(CatInLoop, draw(f"ProfilerStep#1 0-900\n{body(growing(5), '  ')}"))
        assert finding.places == []

    def test_each_step_by_itself(self) -> None:
        second = body(growing(5), start=1010)
        text = f"ProfilerStep#1 0-999\n{body(growing(5))}\nProfilerStep#2 1000-1999\n{second}"
        assert [match.evidence.calls for match in matches(draw(text))] == [5, 5]

    def test_what_the_device_copies(self) -> None:
        launching = [f"{call} kernel=cat@{500 + 50 * at}-{540 + 50 * at}" for at, call in enumerate(growing(5))]
        (finding,) = findings(CatInLoop, draw(f"{MAIN} 0-900\n{body(launching, '  ')}", A100))
        assert finding.cost_ns == 5 * (8_000 + 40_000)

    def test_benchmarks_of_the_recorded_sizes(self) -> None:
        (match,) = matches(step(growing(5)))
        benchmark = CatInLoop().benchmark(match.evidence)
        assert benchmark is not None
        assert benchmark.setup == "import torch\npieces = [torch.zeros((4, 8), device=device) for _ in range(6)]"
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)


class TestSaves:
    def test_all_that_is_copied_again(self) -> None:
        # 24 of 80 rows are needed, of 40 µs in all; at best one call of five is left.
        assert saving_ns(CatInLoop, step(growing(5))) == (0, 28_000, 32_000)


class TestStaysQuiet:
    def test_below_five_calls(self) -> None:
        assert not matches(step(growing(4)))

    def test_below_a_number_that_the_user_sets(self) -> None:
        assert not matches_of(CatInLoop({"min_calls": 6}), step(growing(5)))
        assert matches_of(CatInLoop({"min_calls": 4}), step(growing(4)))

    def test_for_keys_and_values_that_attention_reads(self) -> None:
        assert not matches(step(growing(12, "aten::bmm dims=1x1,{made} types=float,float")))

    def test_for_keys_and_values_in_a_function_of_their_own(self) -> None:
        lines = [
            f"  train.py(9): attend {20 * at}-{20 * at + 19}\n"
            + body([cat(4 * at), READ.format(made=f"{4 * at + 4}x8")], start=20 * at)
            for at in range(1, 13)
        ]
        assert not matches(draw("\n".join([f"{MAIN} 0-900", *lines])))

    def test_for_features_that_the_next_layer_reads(self) -> None:
        assert not matches(step(growing(8, READ)))

    def test_for_a_tensor_that_is_read_far_behind(self) -> None:
        others = ["aten::mul dims=3x3 types=float"] * 20
        assert not matches(step(growing(6, *others, READ)))

    def test_for_a_tensor_that_grows_once_per_step(self) -> None:
        steps = [
            f"ProfilerStep#{at} {100 * at}-{100 * at + 99}\n  {MAIN} {100 * at + 1}-{100 * at + 98}\n"
            + body([cat(4 * at)], start=100 * at + 10)
            for at in range(1, 9)
        ]
        assert not matches(draw("\n".join(steps)))

    def test_for_pairs_that_are_joined(self) -> None:
        assert not matches(step([cat(4)] * 12))

    def test_for_tensors_of_other_widths(self) -> None:
        assert not matches(step([cat(4 + 4 * at, width=8 + at) for at in range(8)]))

    def test_for_one_call_on_all_pieces(self) -> None:
        assert not matches(step(["aten::cat dims=4x8+4x8+4x8+4x8+4x8+4x8,- types=TensorList,Scalar scalars=,0"]))

    def test_in_libraries(self) -> None:
        assert not matches(step(growing(8), function="transformers/cache_utils.py(9): update"))

    def test_where_two_functions_join_tensors_of_one_size(self) -> None:
        lines = [
            f"  train.py({9 + at % 2}): part{at % 2} {10 * at}-{10 * at + 9}\n{body([cat(4 * at)], start=10 * at)}"
            for at in range(1, 9)
        ]
        assert not matches(draw("\n".join([f"{MAIN} 0-900", *lines])))

    def test_without_shapes_of_the_list(self) -> None:
        # Long lists are recorded as empty.
        assert not matches(step(["aten::cat dims=-,- types=TensorList,Scalar scalars=,0"] * 8 + [cat(4)]))
