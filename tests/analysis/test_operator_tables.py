"""Operator tables: grouped and described; lines as `place_of` names them, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.operator_tables import OperatorTable, operator_table
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.modules import modules_of
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.sources.places import place_of, places_of
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import SHARED, shared
from tests.support.written import event, kineto_text, write

TRACES = sorted(SHARED.glob("traces/*/*.gz"))
IDS = [f"{path.parent.name}/{path.name.split('.')[0]}" for path in TRACES]

STEP = """
ProfilerStep#1                        0-2000
  train.py(10): step                  10-1900
    nn.Module: Net_0                  20-900
      net.py(5): forward              30-890
        nn.Module: Linear_0           100-400
          torch/nn/linear.py(7): forward  110-390
            aten::linear              120-380  dims=64x64,64x64  types=half,half
              aten::addmm             130-370  dims=64,64x64,64x64  types=half,half,half  kernel=gemm_s16816gemm@200-300
        aten::relu                    500-600  dims=64x64  types=half  kernel=elementwise_kernel@520-540
    aten::relu                        1000-1100  dims=8x64  types=half  kernel=elementwise_kernel@1020-1030
    <built-in method sleep>           1200-1800
"""


def figures(table: OperatorTable) -> dict[str, tuple[int, int, int]]:
    """Calls, host and device total in µs by row name."""
    return {
        row.name: (row.totals.calls, row.totals.host_total_ns // 1000, row.totals.device_total_ns // 1000)
        for row in table.rows
    }


def test_by_name_every_kind_of_call_is_a_row() -> None:
    table = operator_table(draw(STEP, A100), "name")
    assert figures(table) == {
        "ProfilerStep*": (1, 2000, 130),
        "aten::linear": (1, 260, 100),
        "aten::addmm": (1, 240, 100),
        "aten::relu": (2, 200, 30),
        "cudaLaunchKernel": (3, 3, 0),
    }
    assert {row.name: row.kind for row in table.rows if row.kind != "operator"} == {
        "ProfilerStep*": "annotation", "cudaLaunchKernel": "runtime",
    }  # fmt: skip


def test_by_shape() -> None:
    table = operator_table(draw(STEP, A100), "shape")
    relus = {row.shapes: row.totals.calls for row in table.rows if row.name == "aten::relu"}
    assert relus == {((64, 64),): 1, ((8, 64),): 1}


def test_by_line_calls_inside_calls_count_once() -> None:
    """Library code counts for the user's line that called it; annotations are no line's."""
    table = operator_table(draw(STEP, A100), "line")
    assert figures(table) == {"net.py:5": (2, 360, 120), "train.py:10": (1, 100, 10)}
    (forward,) = [row for row in table.rows if row.name == "net.py:5"]
    assert forward.place is not None
    assert forward.place.function == "forward"
    assert forward.totals.host_self_ns == 360_000
    assert forward.rate.flops == 2 * 64**3 + 64 * 64


def test_by_module() -> None:
    profile = draw(STEP, A100)
    table = operator_table(profile, "module", modules=modules_of(profile))
    assert figures(table) == {"Net_0": (1, 100, 20), "Linear_0": (1, 260, 100)}
    assert [row.module for row in table.rows] == [0, 1]


def test_without_stacks_there_are_no_lines_and_no_modules() -> None:
    profile = draw("aten::mm 0-10")
    assert operator_table(profile, "line").rows == operator_table(profile, "module").rows == ()


def test_calls_and_kernels_of_a_row() -> None:
    profile = draw(STEP, A100)
    table = operator_table(profile, "name")
    (relu,) = [row for row in table.rows if row.name == "aten::relu"]
    assert [profile.name(row) for row in table.calls_of(profile, relu).tolist()] == ["aten::relu", "aten::relu"]
    assert [(use.name, use.count) for use in table.kernels_of(profile, relu)] == [("elementwise_kernel", 2)]


def test_stacks_that_operators_carry_themselves(tmp_path: Path) -> None:
    stack = "torch/nn/functional.py(5): linear;train.py(7): step;train.py(30): main"
    events = [
        event("aten::linear", 0, 10, args={"Call stack": stack}),
        event("aten::addmm", 2, 6),
        event("aten::mm", 20, 10, args={"Call stack": ""}),
    ]
    profile = Profile(read_trace(write(tmp_path / "t.json", kineto_text(events))))
    assert figures(operator_table(profile, "line")) == {"train.py:7": (1, 10, 0)}


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_lines_are_those_of_place_of(path: Path) -> None:
    profile = Profile(read_trace(path))
    places = places_of(profile)
    for row in range(0, profile.tree.size, 11):
        assert place_of(profile, row) == places.of(row)


@pytest.mark.parametrize("name", ["b200_eager", "mi300_ddp8_resnet_checkpoint", "mi300_sglang_prefill_decode"])
def test_all_groupings_of_a_real_trace_hold_the_same_time(name: str) -> None:
    """Self times of operators and runtime calls are the same by line as by name where every call has a line."""
    (path,) = shared(f"traces/{name}").glob("*.gz")
    profile = Profile(read_trace(path))
    names, shapes, lines = (operator_table(profile, by) for by in ("name", "shape", "line"))
    assert sum(row.totals.host_self_ns for row in names.rows) == sum(row.totals.host_self_ns for row in shapes.rows)
    assert sum(row.totals.calls for row in names.rows) == sum(row.totals.calls for row in shapes.rows)
    counted = (lines.keys != ABSENT) & (profile.table.category[profile.nested.rows] != Category.ANNOTATION)
    assert (counted == (lines.keys != ABSENT)).all()
    assert sum(row.totals.host_self_ns for row in lines.rows) == int(profile.nested.self_ns[counted].sum())
