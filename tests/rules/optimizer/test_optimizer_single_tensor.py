"""optimizer-single-tensor: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.optimizer.optimizer_single_tensor import OptimizerSingleTensor
from tests.support.known import with_settings

# What torch 2.13 runs for each parameter.
UPDATES = {
    "Adadelta": "add_ mul_ addcmul_ add sqrt_ add sqrt_ div_ mul_ mul_ addcmul_ add_",
    "Adafactor": "add_ item linalg_vector_norm square_ div_ lerp_ clamp_ rsqrt_ mul_ add_",
    "Adagrad": "add_ item addcmul_ sqrt add_ addcdiv_",
    "Adam": "add_ lerp_ mul_ addcmul_ item sqrt div add_ addcdiv_",
    "Adamax": "add_ lerp_ mul_ abs add_ maximum item addcdiv_",
    "AdamW": "add_ mul_ lerp_ mul_ addcmul_ item sqrt div add_ addcdiv_",
    "ASGD": "add_ item mul_ add_ item copy_ item empty to lift_fresh copy_ empty to lift_fresh copy_",
    "NAdam": "add_ item mul_ lerp_ mul_ addcmul_ div sqrt item add_ item addcdiv_ addcdiv_",
    "RAdam": "add_ item lerp_ mul_ addcmul_ div mul sqrt add_ reciprocal mul mul mul add_",
    "RMSprop": "add_ mul_ addcmul_ sqrt add_ addcdiv_",
    "Rprop": "add_ mul sign gt lift_fresh index_put_ mul_ clamp_ clone eq sign addcmul_ copy_",
    "SGD": "mul_ add_ add_",
}
FUSED = {"Adam", "AdamW", "Adagrad", "SGD"}
PLAIN_SGD = "add_"


SHAPES = " dims=64x64,64x64 types=float,float"


def operators(
    names: str, parameters: int, start: int, indent: str, launches: bool = False, shapes: str = SHAPES
) -> list[str]:
    """One operator of 5 µs every 10 µs."""
    calls = [name for _ in range(parameters) for name in names.split()]
    starts = range(start, start + 10 * len(calls), 10)
    kernel = " kernel=update@{0}-{1}" if launches else ""
    return [
        f"{indent}aten::{name} {at}-{at + 5}" + shapes + kernel.format(at + 2, at + 4)
        for name, at in zip(calls, starts, strict=True)
    ]


def without_stacks(optimizer: str, parameters: int, names: str = "", gpu: Gpu | None = None) -> Profile:
    """One step in which `Optimizer.step` lasts as long as its operators do, and 20 µs more."""
    names = names or UPDATES[optimizer]
    end = 110 + 10 * parameters * len(names.split())
    lines = ["ProfilerStep#1 0-100000", f"  Optimizer.step#{optimizer}.step 90-{end}"]
    return draw("\n".join([*lines, *operators(names, parameters, 100, "    ", gpu is not None)]), gpu)


def with_stacks(
    optimizer: str, groups: Sequence[int], file: str = "adam", function: str = "adam", shapes: str = SHAPES
) -> Profile:
    """Two steps, each with one update per group of parameters; an update lasts 10 µs longer than its operators."""
    lines = []
    for step in range(2):
        at = 50_000 * step
        lines += [
            f"train.py(9): step {at}-{at + 40_000}",
            f"  torch/optim/optimizer.py(509): wrapper {at + 10}-{at + 39_000}",
            f"    <built-in method _record_function_enter_new of x at 0x1> {at + 20}-{at + 30}",
            f"      Optimizer.step#{optimizer}.step {at + 21}-{at + 38_990}",
        ]
        start = at + 100
        for parameters in groups:
            end = start + 10 * parameters * len(UPDATES["Adam"].split()) + 10
            lines.append(f"    torch/optim/{file}.py(347): _single_tensor_{function} {start}-{end}")
            lines += operators(UPDATES["Adam"], parameters, start + 5, "      ", shapes=shapes)
            start = end + 100
    return draw("\n".join(lines))


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(OptimizerSingleTensor, profile)


class TestReports:
    def test_frames_that_update_one_tensor(self) -> None:
        (finding,) = findings(OptimizerSingleTensor, with_stacks("Adam", groups=[12]))
        assert finding.message == ("`Adam` updates 12 parameters one at a time: 108 operators and 1.09 ms per step")
        assert finding.fix == "Pass `fused=True` to `Adam`"
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "step")]
        assert finding.matches == 2

    def test_groups_of_parameters_add_up_to_one_optimizer(self) -> None:
        (finding,) = findings(OptimizerSingleTensor, with_stacks("AdamW", groups=[6, 7]))
        assert finding.message.startswith("`AdamW` updates 13 parameters")
        assert finding.matches == 4

    def test_an_optimizer_that_the_user_derived_from_one_of_torch(self) -> None:
        (finding,) = findings(OptimizerSingleTensor, with_stacks("WarmAdam", groups=[12]))
        assert finding.message.startswith("`WarmAdam` updates")

    @pytest.mark.parametrize("optimizer", sorted(FUSED))
    def test_what_repeats_on_a_cpu_without_stacks(self, optimizer: str) -> None:
        (finding,) = findings(OptimizerSingleTensor, without_stacks(optimizer, parameters=16))
        assert finding.message.startswith(f"`{optimizer}` updates 16 parameters")
        assert finding.fix == f"Pass `fused=True` to `{optimizer}`"

    @pytest.mark.parametrize("optimizer", sorted(UPDATES))
    def test_every_optimizer_on_a_gpu(self, optimizer: str) -> None:
        (finding,) = findings(OptimizerSingleTensor, without_stacks(optimizer, parameters=16, gpu=A100))
        setting = "fused=True" if optimizer in FUSED else "foreach=True"
        assert finding.message.startswith(f"`{optimizer}` updates 16 parameters")
        assert finding.fix == f"Pass `{setting}` to `{optimizer}`"

    def test_plain_sgd_on_a_gpu(self) -> None:
        assert matches(without_stacks("SGD", parameters=16, names=PLAIN_SGD, gpu=A100))

    def test_each_optimizer_is_a_finding_of_its_own(self) -> None:
        names = UPDATES["Adam"]
        lines = [
            "train.py(9): step 0-100000",
            *("  Optimizer.step#Adam.step 90-2000", *operators(names, 12, 100, "    ")),
            *("  Optimizer.step#AdamW.step 3090-5000", *operators(names, 12, 3100, "    ")),
        ]
        found = findings(OptimizerSingleTensor, draw("\n".join(lines)))
        assert {finding.message.split()[0] for finding in found} == {"`Adam`", "`AdamW`"}

    def test_optimizers_of_one_class_apart(self) -> None:
        """An actor of 12 parameters, and critics of 6: on average their steps update 9, too few to report."""
        lines = ["train.py(9): step 0-100000"]
        for number, parameters in enumerate((12, 6, 12, 6)):
            at = 5000 * number
            lines += [f"  Optimizer.step#Adam.step {at + 90}-{at + 4000}"]
            lines += operators(UPDATES["Adam"], parameters, at + 100, "    ")
        (finding,) = findings(OptimizerSingleTensor, draw("\n".join(lines)))
        assert finding.message.startswith("`Adam` updates 12 parameters one at a time: 108 operators")
        assert finding.matches == 2

    def test_the_update_alone_where_a_closure_runs_the_model_inside_the_step(self) -> None:
        update = operators(UPDATES["Adam"], 12, 1000, "    ")
        closure = [
            *operators("linear relu_", 12, 100, "    "),
            *("    aten::mse_loss 500-600", "    autograd::engine::evaluate_function: MseLossBackward0 610-700"),
        ]
        profile = draw("\n".join(["ProfilerStep#1 0-9000", "  Optimizer.step#Adam.step 90-3000", *closure, *update]))
        (finding,) = findings(OptimizerSingleTensor, profile)
        assert finding.message.startswith("`Adam` updates 12 parameters one at a time: 108 operators")
        assert finding.cost_ns == 108 * 5_000

    def test_what_annotations_of_2021_allocate_does_not_cut_the_step(self) -> None:
        lines = ["ProfilerStep#1 0-9000", "  Optimizer.step#SGD.step 90-1000", "    aten::empty 91-95"]
        profile = draw("\n".join([*lines, *operators(UPDATES["SGD"], 12, 100, "    ")]))
        (finding,) = findings(OptimizerSingleTensor, profile)
        assert finding.cost_ns == 910_000

    def test_benchmarks_of_the_recorded_sizes(self) -> None:
        (match,) = matches(without_stacks("SGD", parameters=16))
        benchmark = OptimizerSingleTensor().benchmark(match.evidence)
        assert benchmark is not None
        assert "torch.randn(4096, device=device) for _ in range(16)" in benchmark.setup
        assert "torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=True)" in benchmark.setup
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"foreach": False}, "; it was created with `foreach=False`."),
            ({"foreach": False, "fused": False}, "; it was created with `foreach=False` and `fused=False`."),
            ({"capturable": False}, "; neither `foreach` nor `fused` was given."),
        ],
    )
    def test_what_the_optimizer_was_given_where_it_is_known(self, given: dict[str, bool], said: str) -> None:
        known = with_settings(with_stacks("Adam", groups=[12]), optimizers=[{"kind": "Adam", **given}])
        (finding,) = findings(OptimizerSingleTensor, known)
        assert said in str(finding.details[0])

    def test_not_where_there_are_two_of_its_class(self) -> None:
        optimizers = [{"kind": "Adam", "foreach": False}, {"kind": "Adam"}]
        (finding,) = findings(
            OptimizerSingleTensor, with_settings(with_stacks("Adam", groups=[12]), optimizers=optimizers)
        )
        assert "`_fused_` operator." in str(finding.details[0])


class TestSaves:
    @pytest.mark.parametrize(
        ("shapes", "left"),
        [
            (" dims=4,4 types=float,float", 0.2),
            (" dims=8x1000,8x1000 types=float,float", 0.2 + 0.19 * 0.498),  # log 8 / log 65
            (" dims=512x512,512x512 types=float,float", 0.39),
            ("", 0.2 + 0.19 / 2),
        ],
    )
    def test_what_fused_takes_off_the_update_on_a_cpu(self, shapes: str, left: float) -> None:
        # 12 × 9 operators, one every 10 µs, and 10 µs: 1.09 ms, of which at best 0.11 are left. Two optimizer steps
        # make one step, from the end of the first to the end of the second.
        low, expected, high = saving_ns(OptimizerSingleTensor, with_stacks("Adam", groups=[12], shapes=shapes))
        assert (low, high) == (0, round(1_090_000 * 0.89))
        assert expected == pytest.approx(1_090_000 * (1 - left), rel=1e-3)

    def test_what_foreach_takes_off_the_step_on_a_gpu(self) -> None:
        # 16 × 6 operators, one every 10 µs, and 20 µs: 980 µs, of which 0.3 are left, at best 0.13.
        profile = without_stacks("RMSprop", parameters=16, gpu=A100)
        assert saving_ns(OptimizerSingleTensor, profile) == (0, round(980_000 * 0.7), round(980_000 * 0.87))


class TestStaysQuiet:
    def test_below_ten_parameters(self) -> None:
        assert matches(without_stacks("Adam", parameters=10))
        assert not matches(without_stacks("Adam", parameters=9))
        assert not matches(with_stacks("Adam", groups=[5, 4]))

    def test_below_the_number_that_the_user_sets(self) -> None:
        rule = OptimizerSingleTensor({"min_parameters": 13})
        assert matches_of(rule, without_stacks("Adam", parameters=13))
        assert not matches_of(rule, without_stacks("Adam", parameters=12))

    @pytest.mark.parametrize("optimizer", sorted(UPDATES.keys() - FUSED))
    def test_on_a_cpu_where_nothing_is_fused_and_foreach_can_be_slower(self, optimizer: str) -> None:
        assert not matches(without_stacks(optimizer, parameters=16))

    def test_for_plain_sgd_on_a_cpu_which_has_nothing_to_fuse(self) -> None:
        assert not matches(without_stacks("SGD", parameters=16, names=PLAIN_SGD))

    @pytest.mark.parametrize("name", ["aten::_fused_adam_", "aten::_foreach_addcdiv_"])
    def test_with_operators_for_all_parameters(self, name: str) -> None:
        lines = ["ProfilerStep#1 0-9000", "  Optimizer.step#Adam.step 90-3000", f"    {name} 95-99"]
        profile = draw("\n".join([*lines, *operators("item", 32, 100, "    ")]))
        assert not matches(profile)

    def test_with_frames_for_all_parameters(self) -> None:
        text = "torch/optim/adam.py(600): _multi_tensor_adam 0-2000\n" + "\n".join(
            operators(UPDATES["Adam"], 12, 100, "  ")
        )
        assert not matches(draw(text))

    @pytest.mark.parametrize("optimizer", ["LBFGS", "Muon", "SparseAdam", "Shampoo", "adam"])
    def test_for_optimizers_that_have_nothing_to_switch_on(self, optimizer: str) -> None:
        assert not matches(without_stacks(optimizer, parameters=16, names=UPDATES["Adam"], gpu=A100))

    @pytest.mark.parametrize("name", ["coalesce", "view_as_real"])
    def test_for_sparse_gradients_and_complex_parameters(self, name: str) -> None:
        assert not matches(without_stacks("Adam", parameters=16, names=f"{name} {UPDATES['Adam']}"))

    def test_for_the_same_operators_outside_of_an_optimizer(self) -> None:
        assert not matches(draw("\n".join(operators(UPDATES["Adam"], 16, 100, ""))))
