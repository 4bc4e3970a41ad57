"""The nn.Module hierarchy: hand counts of drawn profiles, and what holds for any events."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.modules import Module, ModuleTree, modules_of
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import event, kineto_text, write

TRAINING = """
    nn.Module: Net_0                                          0-100
      model.py(9): forward                                    1-99
        nn.Module: Linear_0                                   10-40
          torch/nn/modules/linear.py(130): forward            11-39
            aten::linear                                      12-38  seq=1
              aten::t                                         13-15  seq=1
              aten::addmm                                     16-30  seq=2  kernel=gemm@20-80
        nn.Module: ReLU_0                                     41-50
          aten::relu                                          42-49  seq=3  kernel=relu@80-90
        nn.Module: Linear_0                                   51-70
          torch/nn/modules/linear.py(130): forward            52-69
            aten::addmm                                       55-65  seq=4  kernel=gemm@90-100
        aten::mul                                             80-90  seq=5  kernel=mul@100-103
    aten::sum                                                 110-120  seq=6
    autograd::engine::evaluate_function: SumBackward0         200-210  seq=6  fwd=1  thread=2
    autograd::engine::evaluate_function: MulBackward0         211-220  seq=5  fwd=1  thread=2  kernel=mul@300-305
    autograd::engine::evaluate_function: AddmmBackward0       221-240  seq=4  fwd=1  thread=2  kernel=gemm@305-325
      AddmmBackward0                                          222-239  seq=4  fwd=1  thread=2
        aten::mm                                              223-238  thread=2
    autograd::engine::evaluate_function: torch::autograd::AccumulateGrad  241-247  thread=2  kernel=add@325-329
    autograd::engine::evaluate_function: ReluBackward0        248-250  seq=3  fwd=1  thread=2
    autograd::engine::evaluate_function: AddmmBackward0       251-260  seq=2  fwd=1  thread=2  kernel=gemm@330-331
    autograd::engine::evaluate_function: TBackward0           261-262  seq=1  fwd=1  thread=2
    autograd::engine::evaluate_function: GoneBackward0        263-270  seq=99  fwd=1  thread=2
"""


def by_name(tree: ModuleTree) -> dict[str, Module]:
    return {module.name: module for module in tree.modules}


def test_the_passes_of_a_drawn_training_step() -> None:
    tree = modules_of(draw(TRAINING, A100))
    assert [(module.name, module.parent, module.depth, module.last_descendant) for module in tree.modules] == [
        ("Net_0", ABSENT, 0, 2), ("Linear_0", 0, 1, 1), ("ReLU_0", 0, 1, 2),
    ]  # fmt: skip
    net, linear, relu = tree.modules
    assert [(module.calls, module.repeated_calls) for module in tree.modules] == [(1, 0), (2, 0), (1, 0)]
    assert (net.forward.host_ns, net.forward_self.host_ns) == (100_000, 42_000)
    assert (linear.forward.host_ns, relu.forward.host_ns) == (49_000, 9_000)
    assert (net.forward.device_ns, net.forward_self.device_ns) == (83_000, 3_000)
    assert (linear.forward.device_ns, relu.forward.device_ns) == (70_000, 10_000)
    assert (net.backward.host_ns, net.backward_self.host_ns) == (40_000, 9_000)
    assert (linear.backward.host_ns, relu.backward.host_ns) == (29_000, 2_000)
    assert (net.backward.device_ns, linear.backward.device_ns) == (26_000, 21_000)
    assert (tree.backward_outside.host_ns, tree.backward_outside.device_ns) == (23_000, 4_000)
    assert net.forward.host_allocated_bytes is None, "no memory was recorded"


def test_modules_operators_and_kernels_lead_to_each_other() -> None:
    profile = draw(TRAINING, A100)
    tree = modules_of(profile)
    operators = profile.table.is_category({Category.OPERATOR})
    names = [profile.name(row) for row in np.flatnonzero(tree.rows_of(1) & operators).tolist()]
    assert names.count("aten::addmm") == 2
    assert names[-1] == "autograd::engine::evaluate_function: TBackward0"
    assert "aten::relu" not in names
    assert {profile.name(row) for row in np.flatnonzero(tree.rows_of(0, nested=False) & operators).tolist()} == {
        "aten::mul", "autograd::engine::evaluate_function: MulBackward0",
    }  # fmt: skip
    on_device = profile.table.is_category(DEVICE_WORK)
    assert np.count_nonzero(tree.rows_of(0) & on_device) == 7
    launched = np.flatnonzero(tree.rows_of(1) & on_device).tolist()
    assert [profile.name(row) for row in launched].count("gemm") == 4
    assert tree.module[row_of(profile, "aten::addmm")] == 1
    assert tree.module[row_of(profile, "aten::mm")] == 1, "below the backward of a forward operator"
    assert tree.in_backward[row_of(profile, "aten::mm")]
    assert tree.module[row_of(profile, "aten::sum")] == ABSENT
    assert profile.table.names[profile.table.name[tree.modules[1].forward_frame]].endswith("linear.py(130): forward")
    assert tree.modules[2].forward_frame == ABSENT


def test_an_object_used_in_two_places_is_two_entries_that_know_of_each_other() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Net_0         0-100
              nn.Module: Block_0     10-40
                nn.Module: Norm_0    20-30
              nn.Module: Norm_0      50-70
            """
        )
    )
    assert [(module.name, module.parent, module.places, module.first_place) for module in tree.modules] == [
        ("Net_0", ABSENT, 1, 0), ("Block_0", 0, 1, 1), ("Norm_0", 1, 2, 2), ("Norm_0", 0, 2, 2),
    ]  # fmt: skip
    assert [module.forward_self.host_ns for module in tree.modules] == [50_000, 20_000, 10_000, 20_000]


def test_two_classes_of_one_name_are_told_apart_by_their_forward() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Norm_0      0-20
              mine.py(3): forward  1-19
            nn.Module: Norm_0      30-40
              yours.py(3): forward 31-39
            """
        )
    )
    assert [(module.name, module.calls, module.places) for module in tree.modules] == [("Norm_0", 1, 1)] * 2


def test_a_forward_pass_repeated_in_the_backward_pass_belongs_to_its_module() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Net_0                                                       0-100
              nn.Module: Block_0                                                   10-40
                nn.Module: Linear_0                                                11-20
                  aten::addmm                                                      12-19  seq=1
                nn.Module: Norm_0                                                  21-30
                  aten::norm                                                       22-29  seq=2
            autograd::engine::evaluate_function: NormBackward0                     200-260  seq=2  fwd=1  thread=2
              checkpoint.py(5): recompute                                          201-240  thread=2
                nn.Module: Linear_0                                                210-220  thread=2
                  aten::addmm                                                      212-219  seq=1  thread=2
                nn.Module: Norm_0                                                  221-231  thread=2
            """
        )
    )
    found = by_name(tree)
    assert len(found) == len(tree.modules) == 4
    assert {name: (module.calls, module.repeated_calls) for name, module in found.items()} == {
        "Net_0": (1, 0), "Block_0": (1, 0), "Linear_0": (1, 1), "Norm_0": (1, 1),
    }  # fmt: skip
    assert found["Linear_0"].backward.host_ns == 10_000
    assert found["Norm_0"].backward.host_ns == 50_000
    assert found["Block_0"].backward.host_ns == found["Net_0"].backward.host_ns == 60_000


def test_a_repeated_forward_pass_below_no_known_operator_goes_to_its_objects_first_place() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Net_0                                              0-100
              nn.Module: Linear_0                                         11-20
            autograd::engine::evaluate_function: GoneBackward0            200-260  seq=9  fwd=1
              nn.Module: Linear_0                                         210-220
              nn.Module: New_0                                            230-240
            """
        )
    )
    assert [(module.name, module.parent, module.calls, module.repeated_calls) for module in tree.modules] == [
        ("Net_0", ABSENT, 1, 0), ("Linear_0", 0, 1, 1), ("New_0", ABSENT, 0, 1),
    ]  # fmt: skip
    assert tree.modules[0].backward.host_ns == 10_000
    assert tree.backward_outside.host_ns == 40_000


def test_gradients_of_gradients_belong_to_the_module_they_come_from() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Net_0                                      0-50
              aten::mul                                           10-20  seq=1
            autograd::engine::evaluate_function: MulBackward0     60-80  seq=1  fwd=1
              aten::mul                                           61-70  seq=2
            autograd::engine::evaluate_function: MulBackward0     90-95  seq=2  fwd=1
            autograd::engine::evaluate_function: MulBackward0     96-99  seq=1  fwd=1
            """
        )
    )
    (net,) = tree.modules
    assert net.backward.host_ns == 20_000 + 5_000 + 3_000
    assert tree.backward_outside.host_ns == 0


def test_a_backward_pass_called_inside_a_module_is_no_forward_time() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: Penalty_0                                    0-100
              nn.Module: Net_0                                      5-20
                aten::mul                                           6-19  seq=1
              autograd::engine::evaluate_function: MulBackward0     30-50  seq=1  fwd=1
              autograd::engine::evaluate_function: AccumulateGrad   51-61
            """
        )
    )
    penalty, net = tree.modules
    assert (penalty.forward.host_ns, penalty.forward_self.host_ns) == (70_000, 55_000)
    assert (penalty.backward.host_ns, penalty.backward_self.host_ns) == (20_000, 0)
    assert (net.forward.host_ns, net.backward.host_ns) == (15_000, 20_000)
    assert tree.backward_outside.host_ns == 10_000


def test_a_module_that_begins_when_another_ends_is_not_inside_it() -> None:
    """Whole µs, as before 2024: the live profiler's tree puts what only touches inside."""
    frames = [_frame("A_0", 0, 10), _frame("B_0", 10, 5), _frame("C_0", 11, 2), event("aten::mul", 15, 3)]
    profile = profile_of(frames)
    tree = modules_of(profile)
    assert [(module.name, module.parent, module.forward.host_ns) for module in tree.modules] == [
        ("A_0", ABSENT, 10_000), ("B_0", ABSENT, 5_000), ("C_0", 1, 2_000),
    ]  # fmt: skip
    assert tree.module[row_of(profile, "aten::mul")] == ABSENT


def test_of_operators_that_share_a_sequence_number_autograd_recorded_the_last() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: A_0                                        0-20
              aten::view                                          10-15  seq=1
            nn.Module: B_0                                        30-50
              aten::mul                                           31-40  seq=1
            autograd::engine::evaluate_function: MulBackward0     60-70  seq=1  fwd=1
            """
        )
    )
    assert [module.backward.host_ns for module in tree.modules] == [0, 10_000]


def test_forward_passes_on_two_threads_do_not_mix_their_sequence_numbers() -> None:
    tree = modules_of(
        draw(
            """
            nn.Module: A_0                                        0-50
              aten::mul                                           10-20  seq=1
              aten::mul                                           21-25  seq=2
            nn.Module: B_0                                        0-50    thread=3
              aten::mul                                           11-20  seq=1  thread=3
            autograd::engine::evaluate_function: MulBackward0     60-70  seq=2  fwd=1  thread=2
            autograd::engine::evaluate_function: MulBackward0     71-80  seq=1  fwd=1  thread=2
            """
        )
    )
    assert {name: module.backward.host_ns for name, module in by_name(tree).items()} == {"A_0": 19_000, "B_0": 0}


def test_without_frames_there_are_no_modules() -> None:
    tree = modules_of(
        draw("aten::mul  0-10  seq=1\nautograd::engine::evaluate_function: MulBackward0  20-30  seq=1  fwd=1")
    )
    assert tree.modules == ()
    assert tree.module.tolist() == [ABSENT, ABSENT]
    assert tree.backward_outside.host_ns == 10_000


def _frame(name: str, ts: float, dur: float, **fields: object) -> dict[str, Any]:
    return event(f"nn.Module: {name}", ts, dur, cat="python_function", **fields)


def profile_of(events: list[dict[str, Any]]) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        return Profile(read_trace(write(Path(folder, "t.json"), kineto_text(events))))


@st.composite
def any_events(draw_: st.DrawFn) -> list[dict[str, Any]]:
    entry = st.tuples(
        st.integers(0, 60), st.integers(0, 30), st.integers(1, 3), st.integers(0, 2), st.integers(-1, 4),
        st.sampled_from(["nn.Module: A_0", "nn.Module: B_0", "nn.Module: C_0", "op", "[memory]"]),
    )  # fmt: skip
    events = []
    for number, (start, length, thread, forward, sequence, name) in enumerate(
        draw_(st.lists(entry, min_size=1, max_size=40))
    ):
        args = {"Ev Idx": number, "Fwd thread id": forward, "Sequence number": sequence}
        if name == "[memory]":
            memory = {"Ev Idx": number, "Device Type": 0, "Device Id": -1, "Bytes": length - 15, "Addr": number + 1}
            events.append({"ph": "i", "name": name, "pid": 1, "tid": thread, "ts": start, "args": memory})
        elif name == "op":
            events.append(event(f"op{number}", start, length, tid=thread, args=args))
        else:
            frame = {"Ev Idx": number, "Python id": number}
            events.append(event(name, start, length, tid=thread, args=frame, cat="python_function"))
    return events


@given(any_events())
def test_parts_add_up_for_any_events(events: list[dict[str, Any]]) -> None:
    profile = profile_of(events)
    tree = modules_of(profile)
    frames = [entry for entry in events if entry["name"].startswith("nn.Module")]
    backward = [
        entry for entry in events if entry["name"].startswith("op")
        and entry["args"]["Fwd thread id"] and entry["args"]["Sequence number"] >= 0
    ]  # fmt: skip
    assert sum(module.calls + module.repeated_calls for module in tree.modules) == len(frames)
    for at, module in enumerate(tree.modules):
        inside = tree.modules[at : module.last_descendant + 1]
        children = [child for child in inside if child.parent == at]
        assert all(other.depth > module.depth for other in inside[1:])
        for own, whole in (("forward_self", "forward"), ("backward_self", "backward")):
            assert getattr(module, own).host_ns >= 0
            parts = sum(getattr(child, whole).host_ns for child in children)
            assert getattr(module, whole).host_ns == getattr(module, own).host_ns + parts
            assert getattr(module, whole).host_ns == sum(getattr(other, own).host_ns for other in inside)
    own_ns = sum(module.forward_self.host_ns + module.backward_self.host_ns for module in tree.modules)
    assert own_ns + tree.backward_outside.host_ns <= 1000 * sum(
        _covered([entry for entry in [*frames, *backward] if entry["tid"] == thread]) for thread in (1, 2, 3)
    )
    assert own_ns + tree.backward_outside.host_ns > 0 or not any(entry["dur"] for entry in frames)
    attributed = sum(
        (module.forward_self.host_net_bytes or 0) + (module.backward_self.host_net_bytes or 0)
        for module in tree.modules
    )
    belongs = {int(profile.table.event_index[row]) for row in range(len(profile.table)) if tree.module[row] != ABSENT}
    assert attributed == sum(
        entry["args"]["Bytes"] for entry in events if entry["name"] == "[memory]" and entry["args"]["Ev Idx"] in belongs
    )


def _covered(events: list[dict[str, Any]]) -> int:
    return len({time for entry in events for time in range(entry["ts"], entry["ts"] + entry["dur"])})


def test_modules_stand_in_order_of_first_call() -> None:
    tree = modules_of(
        draw("nn.Module: B_0  0-10\nnn.Module: A_0  20-30\n  nn.Module: C_0  21-22\nnn.Module: B_0  40-50")
    )
    assert [module.name for module in tree.modules] == ["B_0", "A_0", "C_0"]
    assert [module.class_name for module in tree.modules] == ["B", "A", "C"]
