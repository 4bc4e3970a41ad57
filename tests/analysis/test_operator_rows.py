"""Rows of the operator tables, counted by hand: kernels, text, spread, and the findings they are linked with."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tb_tidy_plugin.analysis import operator_rows
from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.analysis.findings import TracedFinding, findings_of
from tb_tidy_plugin.analysis.lines import LineCosts
from tb_tidy_plugin.analysis.operator_rows import MOST_KERNELS
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.plugin.tables import Page, operators_answer, tables_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.figures import KernelRow, OperatorGroup, OperatorRow
from tb_tidy_plugin.report.generated import CodeLine, Generated
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tests.support.compiled import captured, compiled_step
from tests.support.made_up_rule import SlowMultiplication

NO_COSTS = LineCosts([], [])
STEP = """
ProfilerStep#1                        0-2000
  train.py(10): step                  10-1900
    nn.Module: Net_0                  20-900
      net.py(5): forward              30-890
        nn.Module: Linear_0           100-400
          torch/nn/linear.py(7): forward  110-390
            aten::linear              120-380  dims=64x64,64x64  types=half,half
              aten::mm                130-370  dims=64x64,64x64  types=half,half  kernel=gemm_s16816gemm@200-300
        aten::relu                    500-600  dims=64x64  types=half  kernel=elementwise_kernel@520-540
    aten::relu                        1000-1100  dims=8x64  types=float  kernel=elementwise_kernel@1020-1050
    aten::relu                        1101-1120  dims=8x64  types=half
    <built-in method sleep>           1200-1800
"""


def table(profile: Profile, by: OperatorGroup, traced: list[TracedFinding] | None = None) -> list[OperatorRow]:
    return figures_of(profile, traced or []).operators[by]


def named(rows: list[OperatorRow], name: str) -> OperatorRow:
    (row,) = [row for row in rows if row.name == name]
    return row


def test_by_name() -> None:
    rows = table(draw(STEP, A100), "name")
    relu = named(rows, "aten::relu")
    assert (relu.kind, relu.calls, relu.operators) == ("operator", 3, 1)
    assert (relu.host_total_ns, relu.host_self_ns) == (219_000, 217_000), "two launches of 1 µs are inside"
    assert (relu.device_total_ns, relu.device_self_ns, relu.device_busy_ns) == (50_000, 50_000, 50_000)
    assert relu.kernels == [
        KernelRow(name="elementwise_kernel", kind="elementwise", calls=2, total_ns=50_000, tensor_cores=False)
    ]
    assert Counter(row.kind for row in rows) == {"annotation": 1, "operator": 3, "runtime": 1}


def test_beyond_a_number_rows_with_the_least_host_time_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = figures_of(draw(STEP, A100))
    assert (len(whole.operators["name"]), whole.left_out) == (5, {})
    monkeypatch.setattr(operator_rows, "MOST_ROWS", 4)
    figures = figures_of(draw(STEP, A100))
    assert figures.operators["name"] == whole.operators["name"][:4]
    assert figures.left_out == {by: len(rows) - 4 for by, rows in whole.operators.items() if len(rows) > 4}
    page = Page(0, 100, "calls", descending=True, text="no such operator")
    assert operators_answer(tables_of(figures, NO_COSTS, 0), "name", page).left_out == 1


def test_device_time_of_a_call_is_that_of_the_calls_inside_it_too() -> None:
    linear = named(table(draw(STEP, A100), "name"), "aten::linear")
    assert (linear.device_total_ns, linear.device_self_ns, linear.tensor_cores) == (100_000, 0, True)
    assert [kernel.name for kernel in linear.kernels] == ["gemm_s16816gemm"]


def test_work_counts_once_for_calls_that_are_inside_each_other() -> None:
    step = named(table(draw(STEP, A100), "name"), "ProfilerStep*")
    assert [(kernel.name, kernel.calls, kernel.total_ns) for kernel in step.kernels] == [
        ("gemm_s16816gemm", 1, 100_000), ("elementwise_kernel", 2, 50_000),
    ]  # fmt: skip


def test_by_shape_with_dtypes_and_the_spread_of_the_calls_times() -> None:
    rows = [row for row in table(draw(STEP, A100), "shape") if row.name == "aten::relu"]
    assert [(row.shapes, row.calls) for row in rows] == [("8×64 · float32, float16", 2), ("64×64 · float16", 1)]
    both = rows[0]
    assert (both.low_ns, both.median_ns, both.high_ns) == (27_000, 59_000, 91_000), "between 19 µs and 99 µs"
    assert (both.longest_ns, both.slow_calls) == (99_000, 0)
    assert named(table(draw(STEP, A100), "name"), "aten::relu").median_ns is None


def test_kernels_of_compiled_code_stand_under_their_main_line_and_pass() -> None:
    launches = [("extern_kernels.mm", [0]), ("cpp_fused_sin_0", [1, 0])]
    profile = captured(compiled_step(), launches=launches, backward=[("extern_kernels.addmm", [0])])
    rows = [(row.file, row.line, row.generated) for row in table(profile, "line") if row.generated]
    shared = Generated(of="forward", also=[CodeLine(file="model.py", line=8)])
    forward, backward = Generated(of="forward", also=[]), Generated(of="backward", also=[])
    assert sorted(rows, key=str) == sorted(
        [
            ("layers.py", 3, shared),
            *(("model.py", line, of) for line in (7, 8) for of in (forward, backward)),
        ],
        key=str,
    )


def test_by_line_the_operator_with_most_time_stands_for_the_others() -> None:
    net, step = (row for row in table(draw(STEP, A100), "line") if row.file)
    assert (net.file, net.line, net.function, net.kind) == ("net.py", 5, "forward", "mixed")
    assert (net.name, net.operators, net.calls) == ("aten::mm", 3, 2), "mm is inside linear; launches are not operators"
    assert (net.host_total_ns, net.host_self_ns, net.device_total_ns) == (360_000, 360_000, 120_000)
    assert (step.file, step.name, step.operators, step.calls) == ("train.py", "aten::relu", 1, 2)


def test_by_module_what_is_outside_has_a_row_of_its_own() -> None:
    rows = table(draw(STEP, A100), "module")
    assert {row.module: (row.calls, row.host_self_ns) for row in rows} == {
        "Linear_0": (1, 260_000), "Net_0": (1, 100_000), "": (2, 119_000),
    }  # fmt: skip


def test_without_a_device_its_columns_are_unknown() -> None:
    row = named(table(draw("aten::mm 0-100 dims=4x4,4x4 types=float,float"), "name"), "aten::mm")
    assert (row.device_total_ns, row.device_self_ns, row.device_busy_ns, row.tensor_cores) == (None,) * 4
    assert row.kernels == []


def test_the_largest_kernels_only() -> None:
    kernels = "  ".join(f"kernel=k{n}@{100 * n}-{100 * n + n}" for n in range(1, MOST_KERNELS + 5))
    profile = draw(f"aten::mm 0-5000 {kernels}", A100)
    assert [kernel.total_ns for kernel in named(table(profile, "name"), "aten::mm").kernels] == [
        1000 * n for n in range(MOST_KERNELS + 4, 4, -1)
    ]


def test_work_of_several_streams_counts_twice_and_is_busy_once() -> None:
    profile = draw("aten::mm 0-1000 kernel=a@100-300 kernel=b@200-400", A100)
    row = named(table(profile, "name"), "aten::mm")
    assert (row.device_total_ns, row.device_busy_ns) == (400_000, 300_000)


def test_modules_of_one_name_in_two_places_have_keys_of_their_own() -> None:
    text = """
    nn.Module: A_0                0-1000
      a.py(1): forward            1-999
        nn.Module: Shared_0       10-400
          s.py(1): forward        20-390
            aten::mm              30-380
    nn.Module: B_0                1001-2000
      b.py(1): forward            1002-1999
        nn.Module: Shared_0       1010-1400
          s.py(1): forward        1020-1390
            aten::mm              1030-1380
    """
    figures = figures_of(draw("\n".join(line.removeprefix("    ") for line in text.splitlines())))
    assert [row.module for row in figures.operators["module"]] == ["Shared_0", "Shared_0"]
    assert len({row.key for row in figures.operators["module"]}) == 2
    assert [(row.name, row.places) for row in figures.modules if row.depth] == [("Shared_0", 2), ("Shared_0", 2)]


# Findings


NESTED = """
ProfilerStep#1             0-3000
  train.py(10): step       10-2900
    aten::matmul           100-500  dims=4x4,4x4  types=float,float
      aten::mm             150-450  dims=4x4,4x4  types=float,float  kernel=gemm@200-300
        aten::resolve_conj 410-420
    aten::relu             600-700  kernel=elementwise_kernel@620-640
"""


def found(profile: Profile, *rows: int) -> list[TracedFinding]:
    """One finding whose matched events are `rows`."""
    outcome = check_rule(profile, SlowMultiplication())
    assert isinstance(outcome, Found)
    (traced,) = findings_of(profile, SlowMultiplication(), outcome.matches)
    return [TracedFinding(traced.finding, np.array(sorted(rows), np.int64))]


@pytest.mark.parametrize(
    ("matched", "linked"),
    [
        (("aten::mm",), {"aten::mm", "aten::resolve_conj"}),
        (("aten::matmul",), {"aten::matmul", "aten::mm", "aten::resolve_conj"}),
        (("gemm",), {"aten::mm"}),
        (("train.py(10): step",), {"aten::matmul", "aten::mm", "aten::resolve_conj", "aten::relu"}),
        (("cudaLaunchKernel",), {"cudaLaunchKernel"}),
        (("aten::relu", "elementwise_kernel"), {"aten::relu"}),
        ((), set()),
    ],
)
def test_a_row_is_linked_with_findings_on_its_calls(matched: tuple[str, ...], linked: set[str]) -> None:
    profile = draw(NESTED, A100)
    traced = found(profile, *(row_of(profile, name) for name in matched))
    rows = table(profile, "name", traced)
    assert {row.name for row in rows if row.findings} == linked
    assert all(row.findings == [traced[0].finding.id] for row in rows if row.findings)


def test_lines_and_shapes_are_linked_too() -> None:
    profile = draw(NESTED, A100)
    figures = figures_of(profile, found(profile, row_of(profile, "aten::mm")))
    assert [row.file for row in figures.operators["line"] if row.findings] == ["train.py"]
    assert {row.name for row in figures.operators["shape"] if row.findings} == {"aten::mm", "aten::resolve_conj"}
