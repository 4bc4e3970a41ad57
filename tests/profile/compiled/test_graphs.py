"""Which events run in generated code, for which region, and which of its kernels they are."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.compiled.graphs import GraphCall, compiled_graphs_of, event_name
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw, row_of
from tests.support.compiled import FORWARD_KEY, captured, compiled_step


def launches_of(profile: Profile, *names: str) -> list[int]:
    return [int(compiled_graphs_of(profile).launch[row_of(profile, name)]) for name in names]


class TestCalls:
    def test_each_belongs_to_a_region(self) -> None:
        profile = compiled_step()
        region = row_of(profile, "Torch-Compiled Region: 0/0")
        forward, backward = (row_of(profile, name) for name in ("CompiledFunction", "CompiledFunctionBackward"))
        calls = compiled_graphs_of(profile).calls
        assert [(call.region, call.is_backward) for call in calls] == [(region, False)] * 2 + [(region, True)] * 2
        assert (calls[0], calls[2].forward) == (GraphCall(forward, "", region, forward, is_backward=False), forward)
        assert (calls[1].key, calls[2].row) == (FORWARD_KEY, backward)

    def test_the_innermost_counts(self) -> None:
        profile = compiled_step()
        call = compiled_graphs_of(profile).around(row_of(profile, "aten::mm"))
        assert call is not None
        assert profile.name(call.row) == f"## Call CompiledFxGraph {FORWARD_KEY} ##"
        assert compiled_graphs_of(profile).around(row_of(profile, "train.py(20): step")) is None

    def test_nothing_is_compiled(self) -> None:
        profile = draw("train.py(1): step 0-9\n  aten::mm 1-8")
        assert (compiled_graphs_of(profile).calls, compiled_graphs_of(profile).call.tolist()) == ((), [-1, -1])

    def test_a_backward_pass_whose_forward_pass_was_not_recorded(self) -> None:
        profile = draw("CompiledFunctionBackward 0-9 seq=3 fwd=1\n  aten::mm 1-8")
        (call,) = compiled_graphs_of(profile).calls
        assert (call.region, call.forward, call.is_backward) == (-1, -1, True)


class TestLaunches:
    def test_of_each_name_the_first_is_the_first(self) -> None:
        profile = captured(compiled_step(), launches=[("extern_kernels.mm", [0]), ("cpp_fused_sin_0", [1])])
        assert launches_of(profile, "aten::mm", "aten::resolve_conj", "graph_3_cpp_fused_sin_0") == [0, 0, 1]

    def test_kernels_without_events_are_passed_over(self) -> None:
        kernels = [("cpp_fused_mul_0", [0]), ("extern_kernels.mm", [0]), ("cpp_fused_sin_0", [1])]
        assert launches_of(captured(compiled_step(), launches=kernels), "aten::mm", "graph_3_cpp_fused_sin_0") == [1, 2]

    def test_other_numbers_of_a_name_are_not_guessed(self) -> None:
        kernels = [("extern_kernels.mm", [0]), ("extern_kernels.mm", [1]), ("cpp_fused_sin_0", [1])]
        assert launches_of(captured(compiled_step(), launches=kernels), "aten::mm", "graph_3_cpp_fused_sin_0") == [
            -1,
            2,
        ]

    @pytest.mark.parametrize("region", ["0/1", "1/0"])
    def test_another_region_with_the_same_graph_has_its_own(self, region: str) -> None:
        profile = captured(compiled_step(), launches=[("extern_kernels.mm", [0])], region=region)
        assert launches_of(profile, "aten::mm") == [-1]

    def test_two_answers_are_none(self) -> None:
        once, again = [("extern_kernels.mm", [0])], [("extern_kernels.mm", [1])]
        assert launches_of(captured(compiled_step(), launches=once, again=once), "aten::mm") == [0]
        assert launches_of(captured(compiled_step(), launches=once, again=again), "aten::mm") == [-1]

    def test_a_graph_that_was_made_before_the_capture(self) -> None:
        assert launches_of(captured(compiled_step(), launches=None), "aten::mm") == [-1]


@pytest.mark.parametrize(
    ("kernel", "event"),
    [
        ("extern_kernels.addmm", "aten::addmm"),
        ("torch.ops.aten.sort.stable", "aten::sort"),
        ("aten.convolution_backward.default", "aten::convolution_backward"),
        ("torch.ops.mkldnn._linear_pointwise.default", "mkldnn::_linear_pointwise"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)
def test_names_of_events(kernel: str, event: str) -> None:
    assert event_name(kernel) == event
