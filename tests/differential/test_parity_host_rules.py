"""The rules that grew out of upstream's host patterns, held against upstream's own counts and on real traces.

Where upstream is right the counts must agree. It asks neither whether a pattern costs time nor how much there is of it:
where that is all that differs, the counts agree once the rule's thresholds are taken away.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import findings, matches_of
from tb_tidy_plugin.rules.data_loading import dataloader_num_workers_zero as loader
from tb_tidy_plugin.rules.optimizer import optimizer_single_tensor as optimizer
from tb_tidy_plugin.rules.optimizer.zero_grad_memset import ZeroGradMemset
from tb_tidy_plugin.rules.python_loops.python_loop_tensor_indexing import PythonLoopTensorIndexing
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared, shared_names

every_program = pytest.mark.parametrize("program", shared_names("parity"))


def recorded(path: Path) -> Profile:
    (trace,) = path.glob("*trace.json.gz")
    return Profile(read_trace(trace))


def program_profile(program: str) -> Profile:
    return recorded(shared(f"parity/{program}"))


def upstream_count(program: str, pattern: str) -> int:
    expected = json.loads((shared(f"parity/{program}") / "expected.json").read_text())
    return int(expected["patterns"][pattern].get("count", 0))


class TestZeroGradMemset:
    @every_program
    def test_upstreams_counts(self, program: str) -> None:
        matches = matches_of(ZeroGradMemset, program_profile(program))
        assert len(matches) == upstream_count(program, "GradNotSetToNonePattern")


class TestPythonLoopTensorIndexing:
    @every_program
    def test_upstreams_counts_except_inside_torchs_own_fetch(self, program: str) -> None:
        expected = 0 if program.startswith("loader_") else upstream_count(program, "ForLoopIndexingPattern")
        assert len(matches_of(PythonLoopTensorIndexing, program_profile(program))) == expected


class TestOptimizerSingleTensor:
    @every_program
    def test_four_parameters_are_too_few(self, program: str) -> None:
        assert not matches_of(optimizer.OptimizerSingleTensor, program_profile(program))

    @every_program
    def test_upstreams_counts_without_a_least_number(self, program: str) -> None:
        any_number = optimizer.OptimizerSingleTensor({"min_parameters": 1})
        # Upstream counts plain SGD on a CPU too, for which no setting of the optimizer is faster.
        expected = 0 if program == "opt_sgd_1" else upstream_count(program, "OptimizerSingleTensorPattern")
        assert len(matches_of(any_number, program_profile(program))) == expected


class TestDataloaderNumWorkersZero:
    @every_program
    def test_loading_that_costs_nothing_does_not_count(self, program: str) -> None:
        assert not matches_of(loader.DataloaderNumWorkersZero, program_profile(program))

    @every_program
    def test_upstreams_counts_without_asking_for_the_cost(self, program: str) -> None:
        any_cost = loader.DataloaderNumWorkersZero({"min_share": 0, "min_ns": 0})
        expected = upstream_count(program, "SynchronizedDataLoaderPattern")
        assert len(matches_of(any_cost, program_profile(program))) == expected


class TestRealTraces:
    def test_a_loader_without_workers_is_reported_by_its_annotation_alone(self) -> None:
        profile = recorded(shared("traces/v100_2021_resnet50_workers0"))
        (finding,) = findings(loader.DataloaderNumWorkersZero, profile)
        # 39.62 % of the span of the steps; here, of the median step.
        assert finding.share == pytest.approx(0.39, abs=0.005)
        assert [(place.file, place.line) for place in finding.places] == [("resnet50_profiler_api.py", 42)]

    def test_a_loader_with_workers_is_not(self) -> None:
        assert not matches_of(loader.DataloaderNumWorkersZero, recorded(shared("traces/v100_2021_resnet50_workers4")))

    def test_an_optimizer_on_a_gpu_by_its_operators_alone(self) -> None:
        profile = recorded(shared("traces/v100_2021_resnet50_workers0"))
        (finding,) = findings(optimizer.OptimizerSingleTensor, profile)
        assert finding.message.startswith("`SGD` updates 161 parameters one at a time")
        (finding,) = findings(ZeroGradMemset, profile)
        assert "161 × `aten::zero_`" in finding.message

    def test_an_optimizer_on_a_cpu_by_its_operators_alone(self) -> None:
        (finding,) = findings(optimizer.OptimizerSingleTensor, recorded(shared("traces/cpu_gloo_rank34")))
        assert finding.message.startswith("`Adagrad` updates 16 parameters one at a time")

    def test_optimizers_that_update_all_parameters_at_once_are_not_reported(self) -> None:
        for name in ("mi300_ddp8_resnet_checkpoint", "mi250_toy"):
            assert not matches_of(optimizer.OptimizerSingleTensor, recorded(shared(f"traces/{name}")))
