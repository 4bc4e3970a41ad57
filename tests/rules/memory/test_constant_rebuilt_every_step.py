"""constant-rebuilt-every-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
import re

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.memory.constant_rebuilt_every_step import ConstantRebuiltEveryStep

ONES = """
      aten::ones                10-30   dims=-,-,-,-,-   types=ScalarList,-,-,-,Scalar  scalars=[32x32],,,,False
        aten::empty             11-14   dims=-           types=ScalarList               scalars=[32x32]
        aten::fill_             15-29   dims=32x32,-     types=float,Scalar             scalars=,1.
"""
ZEROS = ONES.replace("aten::ones", "aten::zeros").replace("aten::fill_", "aten::zero_")
TRIU = "      aten::triu                40-60   dims=32x32,-     types=float,Scalar             scalars=,1"
TO_BOOL = "      aten::to                  70-80   dims=32x32,-     types=float,Scalar             scalars=,11"
USE = "      aten::masked_fill         90-99   dims=4x32x32,32x32,-  types=float,bool,Scalar   scalars=,,-inf"
TIMES = re.compile(r" +(\d+)-(\d+)\b")
FORWARD = "train.py(7): forward"


def steps(*bodies: str, function: str = FORWARD) -> Profile:
    """A step of 1000 µs for each body, whose times are those within the step and whose events are in `function`."""
    lines = []
    for at, body in enumerate(bodies):
        lines += [
            f"ProfilerStep#{at} {1000 * at}-{1000 * at + 999}",
            f"    {function} {1000 * at + 1}-{1000 * at + 998}",
        ]
        lines += [_later(line, 1000 * at) for line in body.splitlines() if line.strip()]
    return draw("\n".join(lines))


def _later(line: str, by: int) -> str:
    return TIMES.sub(lambda times: f" {int(times[1]) + by}-{int(times[2]) + by}", line, count=1)


def body(*texts: str) -> str:
    return "\n".join(texts)


MASK = body(ONES, TRIU, TO_BOOL, USE)


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ConstantRebuiltEveryStep, profile)


class TestReports:
    def test_a_mask_that_each_step_makes(self) -> None:
        (finding,) = findings(ConstantRebuiltEveryStep, steps(MASK, MASK))
        assert finding.message == "`ones` rebuilds a constant of 1,024 elements: 3 operators, 50 µs"
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "forward")]
        assert (finding.matches, finding.confidence, finding.cost_ns) == (2, "high", 50_000)

    def test_one_operator_is_not_many(self) -> None:
        finding, *_ = findings(ConstantRebuiltEveryStep, steps(ONES, ONES))
        assert ": 1 operator, " in finding.message

    def test_the_whole_chain_is_one_match_of_the_factory(self) -> None:
        first, second = matches(steps(MASK, MASK))
        assert first.evidence.chain == second.evidence.chain == "ones, triu, to"

    def test_what_a_function_makes_for_each_of_its_layers(self) -> None:
        text = body(ONES, "\n".join(_later(line, 100) for line in ONES.splitlines() if line.strip()))
        assert len(matches(steps(text, text))) == 4

    def test_sizes_that_differ_from_layer_to_layer_but_not_from_step_to_step(self) -> None:
        smaller = "\n".join(_later(line, 100) for line in ONES.replace("32x32", "16x16").splitlines() if line.strip())
        assert {match.evidence.elements for match in matches(steps(*[body(ONES, USE, smaller)] * 2))} == {1024, 256}

    def test_positions_and_frequencies_that_are_multiplied(self) -> None:
        text = """
      aten::arange       10-20   dims=-,-,-,-,-      types=Scalar,-,-,-,Scalar  scalars=64,,,,False
        aten::arange     12-19   dims=-,-,-,0        types=Scalar,Scalar,Scalar,long   scalars=0,64,1,
          aten::resize_  13-18   dims=0,-,-          types=long,ScalarList,-    scalars=,[64],
      aten::unsqueeze    21-25   dims=64,-           types=long,Scalar          scalars=,1
        aten::as_strided 22-24   dims=64,-,-,-       types=long,ScalarList,ScalarList,-   scalars=,[64x1],[1x1],
      aten::linspace     30-40   dims=-,-,-,-        types=Scalar,Scalar,Scalar,-        scalars=0,1,16,
        aten::empty      31-35   dims=-              types=ScalarList           scalars=[16]
      aten::mul          50-70   dims=64x1,16        types=long,float           scalars=,
      aten::sin          71-80   dims=64x16          types=float                scalars=
      aten::add          90-99   dims=4x64x16,64x16  types=float,float          scalars=,
        """
        match = matches(steps(text, text))[0]
        assert match.evidence.chain == "arange, unsqueeze, linspace, mul, sin"
        assert match.evidence.elements == 1024

    def test_a_constant_that_is_filled_with_constants(self) -> None:
        text = body(
            ZEROS,
            "      aten::slice 31-36 dims=32x32,-,-,-,- types=float,Scalar,Scalar,Scalar,Scalar scalars=,1,0,32,2",
            "        aten::as_strided 32-35 dims=32x32,-,-,- types=float,ScalarList,ScalarList,- scalars=,[32x16],,",
            "      aten::full 40-50 dims=-,-,-,-,- types=ScalarList,Scalar,-,-,Scalar scalars=[32x16],2.,,,False",
            "        aten::fill_ 45-49 dims=32x16,- types=float,Scalar scalars=,2.",
            "      aten::copy_ 55-60 dims=32x16,32x16,- types=float,float,Scalar scalars=,,False",
            USE,
        )
        assert matches(steps(text, text))[0].evidence.chain == "zeros, slice, full, copy_"

    def test_three_times_in_the_only_step_all_but_the_first(self) -> None:
        text = body(
            *("\n".join(_later(line, at) for line in ONES.splitlines() if line.strip()) for at in (0, 100, 200))
        )
        found = matches(steps(text))
        assert [match.confidence for match in found] == ["medium", "medium"]

    def test_a_window_with_all_that_it_runs_inside(self) -> None:
        text = """
      aten::hann_window  10-30   dims=-,-,-,-,-  types=Scalar,-,-,-,Scalar    scalars=400,,,,False
        aten::arange     12-29   dims=-,-,-,0    types=Scalar,Scalar,Scalar,float   scalars=0,401,1,
          aten::resize_  13-18   dims=0,-,-      types=float,ScalarList,-     scalars=,[401],
        """
        assert matches(steps(text, text))[0].evidence.factory == "hann_window"

    def test_less_surely_without_stacks(self) -> None:
        text = "\n".join(
            line for at in (0, 1000) for line in [f"ProfilerStep#{at} {at}-{at + 999}", *_shifted(MASK, at)]
        )
        first, second = matches(draw(text))
        assert first.confidence == second.confidence == "medium"

    def test_less_surely_where_a_library_makes_it(self) -> None:
        found = matches(steps(MASK, MASK, function="transformers/masking.py(9): causal_mask"))
        assert {match.confidence for match in found} == {"medium"}

    def test_what_the_device_fills(self) -> None:
        text = MASK.replace("scalars=,1.", "scalars=,1. kernel=fill@400-450")
        second = MASK.replace("scalars=,1.", "scalars=,1. kernel=fill@1400-1450")
        lines = [
            line
            for at, each in ((0, text), (1000, second))
            for line in [f"ProfilerStep#{at} {at}-{at + 999}", *_shifted(each, at)]
        ]
        (finding,) = findings(ConstantRebuiltEveryStep, draw("\n".join(lines), A100))
        assert finding.cost_ns == 50_000 + 50_000

    def test_benchmarks_what_is_made_of_sizes_alone(self) -> None:
        benchmark = ConstantRebuiltEveryStep().benchmark(matches(steps(MASK, MASK))[0].evidence)
        assert benchmark is not None
        assert benchmark.before == "result = torch.ones((32, 32), device=device).triu(1).bool()"
        assert benchmark.setup == "import torch\nkept = torch.ones((32, 32), device=device).triu(1).bool()"
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)

    @pytest.mark.parametrize("sizes", ["[4]);1/0#", "__import__('os')", "[32x32]+[3]", "[32x32"])
    def test_no_text_of_a_trace_gets_into_a_statement(self, sizes: str) -> None:
        text = MASK.replace("[32x32]", sizes)
        found = matches(steps(text, text))
        assert found
        assert all(ConstantRebuiltEveryStep().benchmark(match.evidence) is None for match in found)

    def test_benchmarks_nothing_else(self) -> None:
        text = MASK.replace("aten::ones", "aten::full")
        assert ConstantRebuiltEveryStep().benchmark(matches(steps(text, text))[0].evidence) is None


def _shifted(text: str, by: int) -> list[str]:
    return [_later(line, by) for line in text.splitlines() if line.strip()]


class TestSaves:
    def test_the_factory_and_its_chain(self) -> None:
        # 20 + 20 + 10 µs in each of two steps.
        assert saving_ns(ConstantRebuiltEveryStep, steps(MASK, MASK)) == (0, 50_000, 50_000)


WRITES = {
    "added to": "aten::add_ 90-99 dims=32x32,32x32,- types=float,float,Scalar scalars=,,1",
    "copied into": "aten::copy_ 90-99 dims=32x32,32x32,- types=float,float,Scalar scalars=,,False",
    "random": "aten::bernoulli_ 90-99 dims=32x32,-,- types=float,Scalar,- scalars=,0.5,",
    "scattered into": "aten::index_add_ 90-99 dims=32x32,-,64,64x32 types=float,Scalar,long,float scalars=,0,,",
    "start of a sum": "aten::index_add 90-99 dims=32x32,-,64,64x32 types=float,Scalar,long,float scalars=,0,,",
    "given to an operator of others": "mine::fill 90-99 dims=4,32x32 types=float,float scalars=,",
}


INSIDE_COMPILED_CODE = {
    "which shows nothing": ("        Pregraph bytecode 89-98", True),
    "whose kernels are given others": ("        triton_poi_fused_add_0 89-98 dims=8x8,8x8 types=float,float", False),
    "whose kernels are given it": ("        triton_poi_fused_add_0 89-98 dims=8x8,32x32 types=float,float", True),
}


class TestStaysQuiet:
    def test_in_one_step(self) -> None:
        assert not matches(steps(MASK))

    def test_in_one_step_of_several(self) -> None:
        assert not matches(steps(MASK, USE, USE))

    def test_below_256_elements(self) -> None:
        assert matches(steps(*[MASK.replace("32x32", "16x16")] * 2))
        assert not matches(steps(*[MASK.replace("32x32", "15x17")] * 2))

    def test_below_numbers_that_the_user_sets(self) -> None:
        assert not matches_of(ConstantRebuiltEveryStep({"min_elements": 1025}), steps(MASK, MASK))
        text = body(*("\n".join(_shifted(ONES, at)) for at in (0, 100, 200)))
        assert not matches_of(ConstantRebuiltEveryStep({"min_repeats": 4}), steps(text))

    def test_twice_in_the_only_step(self) -> None:
        assert not matches(steps(body(ONES, "\n".join(_shifted(ONES, 100)))))

    def test_for_sizes_that_change_from_step_to_step(self) -> None:
        assert not matches(steps(MASK, MASK.replace("32x32", "40x40"), MASK))

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    def test_for_tensors_that_are_written_to(self, write: str) -> None:
        text = body(ZEROS, f"      {write}")
        assert not matches(steps(text, text))

    @pytest.mark.parametrize(("inside", "is_quiet"), INSIDE_COMPILED_CODE.values(), ids=INSIDE_COMPILED_CODE)
    def test_for_what_compiled_code_may_write_to(self, inside: str, is_quiet: bool) -> None:
        region = "      Torch-Compiled Region: 0/0 88-99"
        assert bool(matches(steps(*[body(ONES, region, inside)] * 2))) is not is_quiet

    def test_for_a_list_that_is_too_long_to_be_recorded_unless_gradients_are_clipped(self) -> None:
        written = "aten::_foreach_mul_ 90-99 dims=-,- types=TensorList,Scalar scalars=,0.5"
        clipped = body("      torch/nn/utils/clip_grad.py(9): clip 85-99", f"        {written}")
        assert not matches(steps(*[body(ONES, f"      {written}")] * 2))
        assert matches(steps(*[body(ONES, clipped)] * 2))

    def test_for_a_part_of_a_view_whose_shape_is_not_known(self) -> None:
        view = "      aten::unfold 40-50 dims=32x32,-,-,- types=float,Scalar,Scalar,Scalar scalars=,0,4,4"
        write = "      aten::add_ 60-70 dims={0},{0},- types=float,float,Scalar scalars=,,1"
        assert not matches(steps(*[body(ONES, view, write.format("8x5"))] * 2))
        assert matches(steps(*[body(ONES, write.format("8x5"))] * 2))
        assert matches(steps(*[body(ONES, view, write.format("64x64"))] * 2))

    def test_for_what_runs_inside_an_operator_of_others(self) -> None:
        inside = body("      mine::block 80-99", "        aten::add_ 81-98 dims=32x32,32x32,- types=float,float,Scalar")
        assert not matches(steps(*[body(ONES, inside)] * 2))

    def test_for_what_another_thread_writes_to(self) -> None:
        drawn = [f"ProfilerStep#{at} {at}-{at + 999}\n" + "\n".join(_shifted(ONES, at)) for at in (0, 1000)]
        writes = [f"aten::add_ {at}-{at + 9} dims=32x32,32x32,- types=float,float,Scalar thread=2" for at in (90, 1090)]
        assert matches(draw("\n".join(drawn)))
        assert not matches(draw("\n".join([*drawn, *writes])))

    def test_for_tensors_that_are_written_to_piece_by_piece_much_later(self) -> None:
        others = [f"      aten::tanh {100 + 2 * at}-{101 + 2 * at} dims=4x4 types=float scalars=" for at in range(120)]
        write = """
      aten::select        400-410   dims=32x32,-,-  types=float,Scalar,Scalar  scalars=,0,3
        aten::as_strided  401-409   dims=32x32,-,-,- types=float,ScalarList,ScalarList,- scalars=,[32],[1],
      aten::copy_         411-420   dims=32,32,-    types=float,float,Scalar   scalars=,,False
        """
        assert matches(steps(*[body(ZEROS, *others)] * 2))
        assert not matches(steps(*[body(ZEROS, *others, write)] * 2))

    def test_for_a_sum_beside_a_constant_which_is_reported_alone(self) -> None:
        zeros = "\n".join(_shifted(ZEROS.replace("32x32", "64x32"), 100))
        write = "      aten::add_ 190-199 dims=64x32,64x32,- types=float,float,Scalar scalars=,,1"
        found = matches(steps(*[body(ONES, TRIU, zeros, write)] * 2))
        assert [match.evidence.chain for match in found] == ["ones, triu", "ones, triu"]

    def test_about_products_of_a_constant_and_data_of_its_shape(self) -> None:
        other = "\n".join(_shifted(ZEROS, 40))
        product = "      aten::mul 90-99 dims=32x32,32x32 types=float,float scalars=,"
        assert matches(steps(*[body(ONES, other, product)] * 2))[0].evidence.chain == "ones, zeros"

    @pytest.mark.parametrize(
        "function",
        [
            "torch/optim/adam.py(9): _init_group",
            "torch/utils/data/_utils/fetch.py(54): fetch",
            "torch/autograd/__init__.py(80): _make_grads",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "Optimizer.step#AdamW.step",
            "autograd::engine::evaluate_function:SelectBackward0",
        ],
    )
    def test_for_what_the_machinery_around_the_model_makes(self, function: str) -> None:
        assert not matches(steps(MASK, MASK, function=function))

    def test_for_random_numbers(self) -> None:
        assert not matches(steps(*[MASK.replace("aten::ones", "aten::rand")] * 2))

    def test_for_factories_inside_operators(self) -> None:
        inside = body("      aten::one_hot 5-35 dims=32 types=long scalars=", ONES.replace("      ", "        "))
        assert not matches(steps(inside, inside))

    def test_without_the_arguments(self) -> None:
        text = "\n".join(line.split("scalars=")[0] for line in MASK.splitlines())
        assert not matches(steps(text, text))
