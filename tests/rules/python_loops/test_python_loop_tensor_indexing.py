"""python-loop-tensor-indexing: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.python_loops.python_loop_tensor_indexing import PythonLoopTensorIndexing

SELECT = "aten::select 2 dims=64x16,-,- types=float,Scalar,Scalar scalars=,0,{index}"
SLICE = "aten::slice 2 dims=640x16,-,-,-,- types=float,Scalar,Scalar,Scalar,Scalar scalars=,0,{index},{end},1"
FILL = "aten::fill_ 2 dims=16,- types=float,Scalar"
MAIN, EACH = "train.py(3): main", "train.py(5): <listcomp>"


def calls(templates: Iterable[str], at: int, indent: str, index: int = 0) -> list[str]:
    """One call after the other, 1 µs apart: `name duration attributes` with the index filled in."""
    lines = []
    for template in templates:
        name, duration, *attributes = template.format(index=index, end=index + 16, at=at, later=at + 1).split(" ")
        lines.append(" ".join([f"{indent}{name} {at}-{at + int(duration)}", *attributes]))
        at += int(duration) + 1
    return lines


def loop(
    count: int, *body: str, function: str = MAIN, indices: Iterable[int] | None = None, start: int = 10, every: int = 50
) -> str:
    """`for i in range(count)` in `function`, one iteration `every` 50 µs."""
    numbers = range(count) if indices is None else indices
    lines = [call for at, index in enumerate(numbers) for call in calls(body, start + every * at, "    ", index)]
    return "\n".join([f"  {function} {start - 1}-{start + every * count}", *lines])


def mixed(*body: str) -> str:
    """12 iterations, of which every second one runs another operator where `{odd}` stands."""
    both = [[each.replace("{odd}", odd) for each in body] for odd in ("6", "_")]
    lines = [call for at in range(12) for call in calls(both[at % 2], 10 + 50 * at, "    ", at)]
    return "\n".join([f"  {MAIN} 9-610", *lines])


def items(count: int, *body: str, caller: str = EACH, function: str = "losses.py(9): loss_of", every: int = 50) -> str:
    """A list comprehension in `caller` that calls `function` for each item."""
    lines = [f"  {caller} 8-{every * (count + 1)}"]
    for at in range(count):
        begin = 10 + every * at
        lines += [f"    {function} {begin}-{begin + every - 5}", *calls(body, begin + 1, "      ", at)]
    return "\n".join(lines)


def step(*texts: str, end: int = 20_000) -> Profile:
    return draw("\n".join([f"ProfilerStep#1 0-{end}", *texts]))


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(PythonLoopTensorIndexing, profile)


class TestReports:
    def test_ten_iterations_that_pick_and_fill(self) -> None:
        profile = step(loop(10, SELECT, FILL))
        (finding,) = findings(PythonLoopTensorIndexing, profile)
        assert finding.message == "A Python loop picks 10 pieces of a tensor one by one: 20 operators, 455 µs"
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "main")]
        assert finding.confidence == "high"

    def test_iterations_whose_body_begins_before_it_picks(self) -> None:
        # Upstream splits at each pick, so the last group is cut short and does not count.
        (match,) = matches(step(loop(10, "aten::arange 2", "aten::add 2", SELECT, "aten::copy_ 2")))
        assert match.evidence.iterations == 10

    def test_nested_loops(self) -> None:
        cell = SELECT.replace("64x16", "16")
        body = [
            line
            for number in range(12 * 10)
            for at, pick, index in [(20 * number, SELECT, number // 10), (20 * number + 5, cell, number % 10)]
            for line in calls([pick, FILL][: 1 + (pick is cell)], 10 + at, "  ", index)
        ]
        (match,) = matches(draw("\n".join([f"{MAIN} 0-9000", *body])))
        assert (match.evidence.iterations, match.confidence) == (120, "high")

    def test_a_condition_in_the_body(self) -> None:
        body = [
            line
            for index in range(20)
            for line in calls([SELECT, "aten::exp 2" if index % 3 else FILL], 10 + 20 * index, "  ", index)
        ]
        (match,) = matches(draw("\n".join([f"{MAIN} 0-9000", *body])))
        assert match.evidence.iterations == 20

    def test_picks_under_a_condition_leave_places_out(self) -> None:
        (match,) = matches(step(loop(12, SELECT, FILL, indices=[1, 2, 4, 8, 9, 11, 15, 16, 18, 22, 23, 25])))
        assert match.evidence.stride == "; the step of the index is irregular"
        assert match.confidence == "medium"

    def test_picks_inside_a_function_that_the_loop_calls(self) -> None:
        body = [
            line
            for index in range(12)
            for at in [10 + 20 * index]
            for line in [f"  train.py(9): one {at}-{at + 15}", *calls([SELECT, FILL], at + 1, "    ", index)]
        ]
        (finding,) = findings(PythonLoopTensorIndexing, draw("\n".join([f"{MAIN} 0-9000", *body])))
        assert finding.places[0].function == "main", "the loop is in the caller"
        assert finding.message.startswith("A Python loop picks 12 pieces")

    def test_iterating_over_a_tensor(self) -> None:
        head = ["  torch/_tensor.py(1142): __iter__ 1-9", "    aten::unbind 2-8"]
        body = [line for number in range(10) for line in calls(["aten::mul 2", "aten::add 2"], 10 + 20 * number, "  ")]
        (match,) = matches(draw("\n".join([f"{MAIN} 0-9000", *head, *body])))
        assert (match.evidence.iterations, match.confidence) == (10, "high")

    def test_a_list_comprehension_over_a_tensor(self) -> None:
        body = [line for number in range(10) for line in calls(["aten::softmax 2"], 10 + 20 * number, "    ")]
        text = "\n".join([f"{MAIN} 0-9000", "  aten::unbind 2-8", "  train.py(4): <listcomp> 9-800", *body])
        (finding,) = findings(PythonLoopTensorIndexing, draw(text))
        assert finding.message.startswith("A Python loop picks 10 pieces")

    def test_without_stacks(self) -> None:
        body = [line for index in range(10) for line in calls([SELECT, FILL], 10 + 20 * index, "  ", index)]
        (finding,) = findings(PythonLoopTensorIndexing, draw("\n".join(["ProfilerStep#1 0-9000", *body])))
        assert finding.places == []
        assert finding.confidence == "high"

    def test_less_surely_without_the_index(self) -> None:
        (match,) = matches(step(loop(10, "aten::select 2", "aten::fill_ 2")))
        assert match.confidence == "medium"
        assert match.evidence.stride == "; the step of the index is not recorded"

    def test_less_surely_with_a_matrix_product_in_the_body(self) -> None:
        (match,) = matches(step(loop(12, SELECT, "aten::linear 2", "aten::tanh 2")))
        assert match.confidence == "medium"

    def test_picks_from_equal_tensors_in_turns(self) -> None:
        body = [
            line
            for number in range(24)
            for index in [number // 2 if number % 2 else 63 - number // 2]
            for line in calls([SELECT, FILL][: 1 + number % 2], 10 + 20 * number, "  ", index)
        ]
        (match,) = matches(draw("\n".join([f"{MAIN} 0-9000", *body])))
        assert match.evidence.iterations == 12

    def test_every_loop_of_a_function_is_in_one_finding(self) -> None:
        first, second = (loop(10, SELECT, FILL, start=10 + 1000 * number) for number in range(2))
        other = loop(10, SELECT, FILL, function="train.py(30): other", start=3010)
        found = findings(PythonLoopTensorIndexing, step(first, second, other))
        assert [(finding.places[0].function, finding.matches) for finding in found] == [("main", 2), ("other", 1)]

    def test_loops_of_launches_whose_time_on_the_host_is_no_work(self) -> None:
        launch = "aten::mul 30 kernel=mul@{at}-{later}"
        assert not matches(step(loop(10, SELECT, "aten::mul 30")))
        text = "\n".join(["ProfilerStep#1 0-20000", loop(10, SELECT, launch)])
        assert matches(draw(text, A100))

    def test_benchmarks_of_the_recorded_sizes(self) -> None:
        (match,) = matches(step(loop(10, SELECT, FILL)))
        benchmark = PythonLoopTensorIndexing().benchmark(match.evidence)
        assert benchmark is not None
        assert benchmark.setup == "import torch\nx = torch.zeros(10, 16, device=device)"
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)


class TestSaves:
    def test_all_iterations_but_one(self) -> None:
        # 455 µs from the first operator to the last, with the Python in between; a tenth is left, at best 0.4 of that.
        profile = step(loop(10, SELECT, FILL))
        assert saving_ns(PythonLoopTensorIndexing, profile) == (0, 409_500, 436_800)

    def test_without_the_python_in_between_where_a_device_may_hide_it(self) -> None:
        text = "\n".join(["ProfilerStep#1 0-20000", loop(10, SELECT, FILL + " kernel=fill@{at}-{later}")])
        (finding,) = findings(PythonLoopTensorIndexing, draw(text, A100))
        assert finding.cost_ns == 10 * (2 + 2) * 1000

    def test_the_gradients_of_its_operators_too(self) -> None:
        lines = loop(10, SELECT, "aten::mul 2 seq={at}")
        node = "    autograd::engine::evaluate_function: MulBackward0 {0}-{1} seq=13 fwd=1"
        profile, twin = step(lines, "  " + node.format(5000, 5100).strip()), step(lines)
        assert saving_ns(PythonLoopTensorIndexing, profile)[1] == saving_ns(PythonLoopTensorIndexing, twin)[1] + 90_000

    def test_nothing_of_the_time_that_operators_work(self) -> None:
        # A pick takes 2 µs, so that any operator takes up to 8: of mul's 12 µs, 4 are work, 160 of the loop's 1965 µs.
        profile = step(loop(40, SELECT, "aten::mul 12"))
        assert saving_ns(PythonLoopTensorIndexing, profile)[1] == pytest.approx(1_965_000 - 160_000, abs=20)


LINEAR = "aten::linear 2 dims=1x16,4x16,4 types=float,float,float"
MUL = "aten::mul 1 dims=16,16 types=float,float"


class TestItems:
    """Equal iterations, whatever index they pick by."""

    def test_a_function_for_each_item_of_a_list(self) -> None:
        (finding,) = findings(PythonLoopTensorIndexing, step(items(8, *[MUL] * 16)))
        assert finding.message == "A Python loop runs the same operators for 8 items one by one: 128 operators, 395 µs"
        assert [(place.file, place.line) for place in finding.places] == [("train.py", 5)]
        assert "the step of the index" not in str(finding.details)

    def test_rows_of_a_tensor_of_which_the_same_part_is_picked(self) -> None:
        part = "aten::slice 1 dims=60,-,-,-,- types=float,Scalar,Scalar,Scalar,Scalar scalars=,0,0,48,1"
        lines = loop(12, part, MUL).split("\n")
        assert not matches(step(*lines))
        (match,) = matches(step(lines[0].replace(" 9-", " 5-"), "    aten::unbind 6-8", *lines[1:]))
        assert (match.evidence.iterations, match.evidence.is_of_items) == (12, True)

    def test_a_model_for_each_row(self) -> None:
        (match,) = matches(draw("\n".join([f"{MAIN} 0-9000", *each_row(1, *[LINEAR, MUL] * 8)])))
        assert (match.evidence.iterations, match.confidence) == (8, "medium")
        assert not matches(draw("\n".join([f"{MAIN} 0-9000", *each_row(16, *[LINEAR, MUL] * 8)]))), "batches"
        assert not matches(step(loop(12, *[LINEAR, MUL] * 8))), "a decoder reads its own words"

    def test_not_for_a_loop_that_may_need_what_came_before(self) -> None:
        assert not matches(step(items(12, *[MUL] * 16, caller=MAIN)))

    def test_not_for_five_nor_for_few_operators(self) -> None:
        assert matches(step(items(6, *[MUL] * 17)))
        assert not matches(step(items(6, *[MUL] * 16)))
        assert not matches(step(items(5, *[MUL] * 20)))

    def test_not_for_parameters(self) -> None:
        assert not matches(step(loop(12, "aten::mul_ 1 dims=16,16 types=float,float", MUL)))

    def test_not_for_results_of_any_size(self) -> None:
        assert not matches(step(items(8, *[MUL] * 16, "aten::nonzero 1 dims=16 types=bool")))

    def test_not_for_items_of_unequal_shapes(self) -> None:
        assert not matches(step(items(8, *["aten::mul 1 dims={index},{index} types=float,float"] * 16)))

    def test_not_for_loops_of_libraries_or_unknown_ones(self) -> None:
        assert not matches(step(items(8, *[MUL] * 16, caller="transformers/trainer.py(3): <listcomp>")))
        assert not matches(draw(loop(12, MUL, MUL, function="ProfilerStep#1")))

    @pytest.mark.parametrize(("inner", "outer", "iterations"), [(8, 4, 12), (2, 60, 8)])
    def test_of_loops_in_loops_the_one_that_takes_the_time(self, inner: int, outer: int, iterations: int) -> None:
        """Eight items, each with a loop of twelve and operators besides."""
        lines, takes = [f"{EACH} 0-20000"], 12 * (2 * inner + 4) + 2 * outer + 10
        for item in range(8):
            begin = 10 + takes * item
            lines.append(f"  losses.py(9): loss_of {begin}-{begin + takes - 5}")
            for place in range(12):
                lines += calls([SELECT, *["aten::add 1"] * inner], begin + 1 + place * (2 * inner + 4), "    ", place)
            lines += calls(["aten::log 1"] * outer, begin + 1 + 12 * (2 * inner + 4), "    ")
        found = matches(draw("\n".join(lines)))
        assert {match.evidence.iterations for match in found} == {iterations}


def each_row(wide: int, *body: str) -> list[str]:
    """The body for eight pieces of so many rows each, 80 µs apart."""
    piece = "aten::slice 1 dims=640x16,-,-,-,- types=float,Scalar,Scalar,Scalar,Scalar scalars=,0,"
    starts = range(0, 8 * wide, wide)
    pieces = [[f"{piece}{start},{start + wide},1", *body] for start in starts]
    return [line for at, each in enumerate(pieces) for line in calls(each, 10 + 80 * at, "  ")]


class TestStaysQuiet:
    def test_below_ten_iterations(self) -> None:
        assert not matches(step(loop(9, SELECT, FILL)))

    def test_below_a_hundredth_of_the_step(self) -> None:
        # The loop lasts from 10 to 465 µs.
        assert matches(step(loop(10, SELECT, FILL), end=45_000))
        assert not matches(step(loop(10, SELECT, FILL), end=46_000))

    def test_when_the_index_does_not_move(self) -> None:
        assert not matches(step(loop(14, SELECT, "aten::relu 2", indices=[0] * 14)))

    def test_when_the_index_falls_as_in_a_sum_over_what_comes_later(self) -> None:
        assert not matches(step(loop(12, SELECT, FILL, indices=range(12, 0, -1))))

    def test_for_rollouts_that_store_what_a_model_does(self) -> None:
        store = "aten::copy_ 2 dims=16,16,- types=float,float,Scalar"
        assert matches(step(loop(12, SELECT, "aten::linear 2", SELECT, store)))
        assert not matches(step(loop(12, SELECT, store, "aten::linear 2", SELECT, store)))
        assert matches(step(loop(12, SELECT, store, "aten::relu 2", SELECT, store)))

    @pytest.mark.parametrize(
        ("threshold", "just", "beyond"), [("min_iterations", 10, 11), ("min_loop_share", 0.0227, 0.0228)]
    )
    def test_below_numbers_that_the_user_sets(self, threshold: str, just: float, beyond: float) -> None:
        # 10 iterations that last 455 of 20000 µs, 2.275 %.
        profile = step(loop(10, SELECT, FILL))
        assert matches_of(PythonLoopTensorIndexing({threshold: just}), profile)
        assert not matches_of(PythonLoopTensorIndexing({threshold: beyond}), profile)

    def test_above_the_part_of_work_that_the_user_sets(self) -> None:
        # A third of mul's 12 µs, 4 of 14 µs with the pick: 28.6 %.
        profile = step(loop(10, SELECT, "aten::mul 12"))
        assert matches_of(PythonLoopTensorIndexing({"most_work": 0.29}), profile)
        assert not matches_of(PythonLoopTensorIndexing({"most_work": 0.28}), profile)

    def test_when_the_index_moves_to_and_fro(self) -> None:
        order = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]
        assert not matches(step(loop(14, SELECT, FILL, indices=order)))

    @pytest.mark.parametrize("cell", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "_thnn_fused_lstm_cell"])
    def test_for_recurrent_cells(self, cell: str) -> None:
        assert not matches(step(loop(12, SELECT, f"aten::{cell} 2")))

    def test_for_layers_without_a_recorded_index(self) -> None:
        assert not matches(step(loop(12, "aten::select 2", "aten::linear 2", "aten::relu 2")))

    def test_for_batches_of_an_evaluation(self) -> None:
        rows = range(0, 192, 16)
        assert matches(step(loop(12, SLICE, "aten::relu 2", indices=rows)))
        assert not matches(step(loop(12, SLICE, "aten::linear 2", indices=rows)))

    @pytest.mark.parametrize(
        "training",
        ["Optimizer.step#SGD.step 2", "autograd::engine::evaluate_function:MulBackward0 2", "ProfilerStep#7 2"],
    )
    def test_for_batches_of_a_training(self, training: str) -> None:
        assert not matches(draw(loop(12, SLICE, "aten::relu 2", training, indices=range(0, 192, 16))))

    def test_for_large_bodies(self) -> None:
        unequal = ["aten::relu{odd} 0"] + ["aten::relu 0"] * 30
        assert matches(step(mixed(SELECT, *unequal)))
        assert not matches(step(mixed(SELECT, *unequal, "aten::relu 0")))
        equal = ["aten::relu 0"] * 256
        assert matches(step(items(12, *equal, every=300)))
        assert not matches(step(items(12, *equal, "aten::relu 0", every=300)))

    def test_for_operators_that_mostly_work(self) -> None:
        # Of 20 µs, 12 are work, and of the loop's 22 that is more than half.
        assert not matches(step(loop(12, SELECT, "aten::mul 20")))

    def test_for_few_columns_picked_again_and_again(self) -> None:
        assert not matches(step(loop(40, SELECT, FILL, indices=[0, 1, 2, 3, 4] * 8)))

    def test_for_straight_code(self) -> None:
        names = ["add", "mul", "sub", "div", "exp", "log", "tanh", "relu", "sum", "mean", "max", "min"]
        body = [
            line
            for index, name in enumerate(names)
            for line in calls([SELECT, f"aten::{name} 2"], 10 + 20 * index, "  ", index)
        ]
        assert not matches(draw("\n".join([f"{MAIN} 0-9000", *body])))

    @pytest.mark.parametrize(
        "function", ["torch/utils/data/_utils/fetch.py(54): <listcomp>", "transformers/generation.py(9): search"]
    )
    def test_in_libraries(self, function: str) -> None:
        assert not matches(step(loop(12, SELECT, FILL, function=function)))

    def test_in_the_fetch_of_a_loader_without_stacks(self) -> None:
        assert not matches(step(loop(12, SELECT, function="enumerate(DataLoader)#_Iter.__next__")))

    def test_for_a_loop_that_picks_nothing(self) -> None:
        assert not matches(step(loop(100, "aten::matmul 2", "aten::add 2")))

    def test_for_pieces_that_are_put_together_again(self) -> None:
        assert not matches(draw(f"{MAIN} 0-9000\n  aten::unbind 2-8\n  aten::stack 10-20\n  aten::add 30-40"))
