"""Device work without operators: a rule that looks for them there has seen nothing, which is not clean."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.checker import Clean, Found, NotChecked, RuleOutcome, check_rule
from tb_tidy_plugin.profile.hidden_work import hidden_work
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tests.support.drawn import A100, draw

SGEMM, NCCL, TRITON = "ampere_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32", "triton_poi_fused_gelu_0"
MM = "dims=4096x4096,4096x4096  types=float,float"


def step(*lines: str) -> Profile:
    return draw("ProfilerStep#1  0-30000\n" + "".join(f"  {line}\n" for line in lines), A100)


def outcome(profile: Profile) -> RuleOutcome:
    return check_rule(profile, Fp32MatmulNoTf32())


class TestShare:
    def test_of_replayed_graphs(self) -> None:
        profile = step(
            f"aten::mm  10-90  {MM}  kernel={SGEMM}@100-2600", f"GraphLaunch  100-190  graph={SGEMM}@3000-10500"
        )
        assert hidden_work(profile).in_graphs == 0.75

    def test_of_compiled_code(self) -> None:
        profile = step(
            f"aten::mm  10-90  {MM}  kernel={SGEMM}@100-2600", f"CompiledFunction  100-190  kernel={SGEMM}@3000-10500"
        )
        assert (hidden_work(profile).in_compiled, hidden_work(profile).in_graphs) == (0.75, 0)

    @pytest.mark.parametrize("name", [NCCL, TRITON])
    def test_without_communication_and_what_the_compiler_fused(self, name: str) -> None:
        profile = step(
            f"aten::mm  10-90  {MM}  kernel={SGEMM}@100-2600", f"GraphLaunch  100-190  graph={name}@3000-10500"
        )
        assert hidden_work(profile).share == 0

    def test_is_none_without_a_device(self) -> None:
        assert hidden_work(draw("aten::mm 0-10")).share == 0


class TestOutcome:
    def test_a_rule_that_sees_no_operators_is_not_checked(self) -> None:
        found = outcome(step(f"aten::mm  10-90  {MM}", f"GraphLaunch  100-190  graph={SGEMM}@3000-10500"))
        assert isinstance(found, NotChecked)
        assert found.reason == (
            "100 % of the kernels' time is in replayed graphs, which do not show their operators; record the capture "
            "of the graphs, too."
        )

    def test_nor_where_compiled_code_calls_the_kernels(self) -> None:
        found = outcome(step(f"aten::mm  10-90  {MM}", f"CompiledFunction  100-190  kernel={SGEMM}@3000-10500"))
        assert isinstance(found, NotChecked)
        assert "called by compiled code" in found.reason

    def test_what_it_sees_beside_them_is_found(self) -> None:
        lines = (f"aten::mm  10-90  {MM}  kernel={SGEMM}@100-10100", f"GraphLaunch  100-190  graph={SGEMM}@12000-29000")
        assert isinstance(outcome(step(*lines)), Found)

    def test_a_small_hidden_part_leaves_it_clean(self) -> None:
        mm = f"aten::mm  10-90  {MM}  kernel=ampere_s1688gemm_tf32@100-10100"
        assert isinstance(outcome(step(mm, f"GraphLaunch  100-190  graph={SGEMM}@11000-12000")), Clean)
        assert isinstance(outcome(step(mm, f"GraphLaunch  100-190  graph={SGEMM}@11000-12200")), NotChecked)

    def test_a_rule_that_reads_kernels_finds_them_in_a_graph(self) -> None:
        profile = step(f"GraphLaunch  100-190  graph={SGEMM}@3000-20500")
        assert isinstance(check_rule(profile, Fp32OnOrdinaryCores()), Found)
