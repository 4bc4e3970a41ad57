"""Operators of the user beside compiled code, and work whose operators a recording hides."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.checker import Clean, Found, NotChecked, RuleOutcome, check_rule
from tb_tidy_plugin.profile.compiled.operators import hidden_work, spans_of, user_operators
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32
from tb_tidy_plugin.rules.precision.fp32_on_ordinary_cores import Fp32OnOrdinaryCores
from tests.support.compiled import compiled_step

FUNCTION = """
train.py(20): step                              0-990
  Cube                                          10-300
    train.py(5): forward                        20-290
      aten::mul                                 30-60
        aten::resolve_conj                      40-45
      torch/nn/functional.py(9): silu           70-200
        aten::silu                              80-190
  torch/_tensor.py(5): backward                 400-900
    CubeBackward                                410-890 fwd=1
      train.py(9): backward                     420-880
        aten::mul                               430-600
    MulBackward0                                892-899 fwd=1
      aten::mul                                 893-898
"""

SGEMM, NCCL, TRITON = "ampere_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32", "triton_poi_fused_gelu_0"
MM = "dims=4096x4096,4096x4096  types=float,float"


def listed(profile: Profile) -> list[str]:
    rows = user_operators(profile, lambda name: name.startswith("train.py"))
    return [profile.name(row) for row in rows.tolist()]


def test_in_both_passes_of_an_autograd_function() -> None:
    assert listed(draw(FUNCTION)) == ["Cube", "aten::mul", "aten::silu", "CubeBackward", "aten::mul", "MulBackward0"]


def test_below_spans_that_are_recorded_as_operators() -> None:
    profile = draw("""
train.py(20): step                              0-990
  my span                                       10-300
    aten::mul                                   20-60
    inner span                                  70-200
      aten::add                                 80-190
        aten::resolve_conj                      90-95
  empty span                                    310-320
""")
    assert [name for name in listed(profile) if "::" in name] == ["aten::mul", "aten::add"]
    spans = [profile.name(row) for row in range(profile.tree.size) if spans_of(profile)[row]]
    assert spans == ["my span", "inner span"]


@pytest.mark.parametrize("name", ["aten::linear", "MulBackward0", "mylib::fused"])
def test_an_operator_that_runs_others_is_no_span(name: str) -> None:
    profile = draw(f"train.py(20): step 0-990\n  {name} 10-300\n    aten::mul 20-60")
    assert listed(profile) == [name]
    assert not spans_of(profile).any()


def test_a_library_s_python_below_an_operator_is_not_the_user_s() -> None:
    profile = draw(
        "train.py(20): step 0-990\n  aten::linear 10-300\n    torch/_dtensor.py(3): f 15-90\n      aten::mul 20-60"
    )
    assert listed(profile) == ["aten::linear"]


def test_of_compiled_code_its_kernels() -> None:
    names = [name for name in listed(compiled_step()) if "::" in name or "cpp" in name]
    assert names == ["aten::mm", "graph_3_cpp_fused_sin_0", "aten::addmm"]


def test_in_row_order() -> None:
    profile = draw(FUNCTION)
    rows = user_operators(profile, lambda name: name.startswith("train.py"))
    assert rows.tolist() == sorted(rows.tolist())
    assert rows[0] == row_of(profile, "Cube")


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
