"""The tables of a profile: hand counts on drawn profiles; sums on real traces against counts written differently."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tb_tidy_plugin.profile.nesting import NOT_COUNTED
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.assemble import Analysis, analyze_file
from tb_tidy_plugin.report.checker import MISSING, NO_HOST_EVENTS, Found, check_rule
from tb_tidy_plugin.report.figures import Figures, FrameRow, KernelRow, OperatorGroup, OperatorRow
from tb_tidy_plugin.report.findings import Evidence, findings_of
from tb_tidy_plugin.report.operator_rows import MOST_KERNELS
from tb_tidy_plugin.report.tables import GROUPS, figures_of
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.drawn import A100, draw, row_of
from tests.support.made_up_rule import SlowMultiplication
from tests.support.plain_count import PlainTrace, end_ns, plain_trace, start_ns, sweep
from tests.support.recordings import ROOT, SHARED, shared
from tests.support.written import event, kineto_text, write

TRACES = sorted(path for path in (*SHARED.glob("traces/*/*.gz"), *ROOT.glob("sample_runs/*/*.gz")))
IDS = [f"{path.parent.name}/{path.name.split('.')[0]}" for path in TRACES]

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


def table(profile: Profile, by: OperatorGroup, evidence: list[Evidence] | None = None) -> list[OperatorRow]:
    return figures_of(profile, evidence or []).operators[by]


def named(rows: list[OperatorRow], name: str) -> OperatorRow:
    (row,) = [row for row in rows if row.name == name]
    return row


@dataclass(frozen=True)
class Real:
    """A real trace: its tables, and its events counted plainly."""

    path: Path
    analysis: Analysis
    figures: Figures
    plain: PlainTrace


@pytest.fixture(scope="module", params=TRACES, ids=IDS)
def real(request: pytest.FixtureRequest) -> Real:
    path: Path = request.param
    return Real(path, *analysed(path), plain_trace(path))


def analysed(path: Path) -> tuple[Analysis, Figures]:
    (file,) = [file for file in find_traces(path.parent) if file.path.name == path.name]
    analysis = analyze_file(file)
    return analysis, figures_of(analysis.profile, tuple(analysis.evidence.values()))


# Operators


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


def test_by_line_the_operator_with_most_time_stands_for_the_others() -> None:
    net, step = (row for row in table(draw(STEP, A100), "line") if row.file)
    assert (net.file, net.line, net.function, net.kind) == ("net.py", 5, "forward", "mixed")
    assert (net.name, net.operators, net.calls) == ("aten::mm", 3, 2), "mm is inside linear; a launch is no operator"
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


def found(profile: Profile, *rows: int) -> list[Evidence]:
    """One finding whose matched events are `rows`."""
    outcome = check_rule(profile, SlowMultiplication)
    assert isinstance(outcome, Found)
    (evidence,) = findings_of(profile, SlowMultiplication, outcome.matches)
    return [Evidence(evidence.finding, np.array(sorted(rows), np.int64))]


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
    evidence = found(profile, *(row_of(profile, name) for name in matched))
    rows = table(profile, "name", evidence)
    assert {row.name for row in rows if row.findings} == linked
    assert all(row.findings == [evidence[0].finding.id] for row in rows if row.findings)


def test_lines_and_shapes_are_linked_too() -> None:
    profile = draw(NESTED, A100)
    figures = figures_of(profile, found(profile, row_of(profile, "aten::mm")))
    assert [row.file for row in figures.operators["line"] if row.findings] == ["train.py"]
    assert {row.name for row in figures.operators["shape"] if row.findings} == {"aten::mm", "aten::resolve_conj"}


# Real traces


def test_every_grouping_adds_up_to_the_same(real: Real) -> None:
    analysis, figures = real.analysis, real.figures
    sums = {
        by: tuple(
            sum(getattr(row, name) or 0 for row in rows if row.kind != "annotation")
            for name in ("host_self_ns", "device_self_ns")
        )
        for by, rows in figures.operators.items()
    }
    annotations = [row for row in figures.operators.get("name", []) if row.kind == "annotation"]
    launched = sum(row.device_self_ns or 0 for row in annotations)
    assert len(set(sums.values())) <= 1, sums
    work = analysis.profile.table.duration_ns[analysis.profile.operators.work].sum()
    assert sum(sum(pair[1:]) for pair in list(sums.values())[:1]) + launched == work


def test_self_times_add_up_to_the_time_in_which_threads_were_in_any_call(real: Real) -> None:
    kinds = {"cpu_op", "operator", "user_annotation", "cuda_runtime", "cuda_driver", "runtime"}
    threads: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for call in real.plain.of_kind(*kinds):
        if call["name"] not in NOT_COUNTED:
            threads[call["pid"], call["tid"]].append(call)
    busy_ns = sum(sweep(calls) for calls in threads.values())
    assert sum(row.host_self_ns for row in real.figures.operators["name"]) == pytest.approx(busy_ns, rel=0.001)


def test_device_time_is_that_of_all_work_with_a_known_cause(real: Real) -> None:
    profile, figures = real.analysis.profile, real.figures
    work = profile.table.is_category(DEVICE_WORK)
    unknown_ns = int(profile.table.duration_ns[work & (profile.launched_by == ABSENT)].sum())
    plain_ns = sum(end_ns(each) - start_ns(each) for each in real.plain.work)
    of_calls = [row.device_self_ns for row in figures.operators.get("name", [])]
    assert sum(value or 0 for value in of_calls) == plain_ns - unknown_ns


def test_rows_have_keys_of_their_own_and_possible_figures(real: Real) -> None:
    analysis, figures = real.analysis, real.figures
    ids = {finding.id for finding in analysis.report.findings}
    for by, rows in figures.operators.items():
        assert len({row.key for row in rows}) == len(rows), by
        for row in rows:
            assert set(row.findings) <= ids
            assert row.host_self_ns >= 0
            assert row.calls > 0
            assert (row.device_total_ns is None) == ("device" not in analysis.report.recorded)
            assert len(row.kernels) <= MOST_KERNELS
            if row.device_busy_ns is not None and row.device_total_ns is not None:
                assert row.device_busy_ns <= row.device_total_ns
                if by in {"line", "module"}:
                    kernels_ns = sum(kernel.total_ns for kernel in row.kernels)
                    assert kernels_ns <= row.device_total_ns
                    assert kernels_ns == row.device_total_ns or len(row.kernels) == MOST_KERNELS
            assert row.operators == 1 or by in {"line", "module"}


def test_what_is_not_there_has_a_reason_and_what_is_there_has_none(real: Real) -> None:
    figures = real.figures
    assert set(figures.operators) == {by for by in GROUPS if by not in figures.missing}
    assert bool(figures.modules) == ("modules" not in figures.missing)
    assert bool(figures.memory) == ("memory" not in figures.missing)


def test_figures_survive_being_written_and_read(real: Real) -> None:
    figures = real.figures
    assert msgspec.json.decode(msgspec.json.encode(figures), type=Figures) == figures


def test_modules_are_a_tree_whose_self_times_add_up(real: Real) -> None:
    figures = real.figures
    for at, row in enumerate(figures.modules):
        inside = figures.modules[at : row.last + 1]
        assert sum(each.forward_self_ns for each in inside) == row.forward_ns
        assert sum(each.backward_self_ns for each in inside) == row.backward_ns
        if row.parent is not None:
            around = figures.modules[row.parent]
            assert row.parent < at <= row.last <= around.last
            assert row.depth == around.depth + 1


def test_findings_on_operators_are_those_of_their_lines_and_of_the_calls_inside() -> None:
    (path,) = (ROOT / "sample_runs" / "image_classifier_untidy").glob("*.gz")
    analysis, figures = analysed(path)
    profile = analysis.profile
    lines = {(row.file, row.function): row.findings for row in figures.operators["line"]}
    names = {row.name: row.findings for row in figures.operators["name"]}
    assert analysis.evidence
    for evidence in analysis.evidence.values():
        for row in evidence.rows.tolist():
            if profile.category(row) is not Category.PYTHON:
                assert evidence.finding.id in names[profile.name(row)]
        if profile.category(int(evidence.rows[0])) is Category.OPERATOR:
            for place in evidence.finding.places:
                assert evidence.finding.id in lines[place.file, place.function]


def test_what_runs_in_a_matched_annotation_is_linked_by_time() -> None:
    """With stacks an annotation ends in the tree with the built-in that opened it."""
    (path,) = (ROOT / "sample_runs" / "image_classifier_untidy").glob("*.gz")
    _, figures = analysed(path)
    (loading,) = [row for row in figures.operators["name"] if row.name.startswith("enumerate(DataLoader)")]
    (items,) = [row for row in figures.operators["line"] if row.function == "__getitem__"]
    assert set(loading.findings) <= set(items.findings)
    assert loading.findings


# Memory


def test_what_holds_the_peak() -> None:
    (path,) = shared("traces/v100_memory_compile_216k").glob("*.gz")
    _, figures = analysed(path)
    cpu, device = figures.memory
    assert (cpu.device, device.device) == ("cpu", "cuda:1")
    events = [event for event in _instants(path) if event["args"]["Device Type"] == 1]
    assert device.peak_bytes == max(event["args"]["Total Allocated"] for event in events)
    alive: dict[int, int] = {}
    for each in sorted(events, key=lambda each: each["ts"]):
        if each["args"]["Bytes"] > 0:
            alive[each["args"]["Addr"]] = each["args"]["Bytes"]
        else:
            alive.pop(each["args"]["Addr"], None)
        if each["args"]["Total Allocated"] == device.peak_bytes:
            break
    assert sum(holder.bytes for holder in device.holders) == sum(alive.values())
    assert sum(holder.allocations for holder in device.holders) == len(alive)
    assert device.other_bytes == device.peak_bytes - sum(alive.values())
    sizes = [holder.bytes for holder in device.holders]
    assert sizes == sorted(sizes, reverse=True)
    assert max(device.allocated_bytes) == device.peak_bytes
    assert [step.step for step in device.steps] == [f"ProfilerStep#{n}" for n in range(2, 7)]


def _instants(path: Path) -> list[dict[str, Any]]:
    import gzip
    import json

    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event["name"] == "[memory]"]


def test_holders_are_told_apart_by_operator_and_place(tmp_path: Path) -> None:
    def allocation(ts: float, address: int, total: int) -> dict[str, Any]:
        args = {"Device Type": 0, "Device Id": -1, "Addr": address, "Bytes": 100, "Total Allocated": total}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "s": "t",
                "args": args}  # fmt: skip

    frames = [
        event(f"train.py({line}): {name}", start, 90, cat="python_function", args={"Python id": line})
        for line, name, start in ((1, "one", 0), (2, "two", 100))
    ]
    calls = [event("aten::mm", start, 20) for start in (10, 50, 110)] + [event("aten::empty", 12, 5)]
    memory = [allocation(13, 1, 100), allocation(55, 2, 200), allocation(115, 3, 300), allocation(180, 4, 400)]
    profile = Profile(read_trace(write(tmp_path / "w.pt.trace.json", kineto_text([*frames, *calls, *memory]))))
    (device,) = figures_of(profile).memory
    assert [(held.operator, held.function, held.allocations, held.bytes) for held in device.holders] == [
        ("aten::mm", "one", 2, 200), ("aten::mm", "two", 1, 100), ("train.py(2): two", "two", 1, 100),
    ]  # fmt: skip


# CPU work


def test_python_between_operators_by_function() -> None:
    frames = figures_of(draw(STEP, A100)).cpu.frames
    assert frames is not None
    assert [(row.function, row.calls, row.self_ns) for row in frames] == [
        ("step", 1, 911_000), ("forward", 1, 480_000), ("forward", 1, 20_000),
    ]  # fmt: skip
    step, net, linear = frames
    assert (step.file, step.line, step.own_code) == ("train.py", 10, True)
    assert (net.file, linear.file, linear.own_code) == ("net.py", "torch/nn/linear.py", False)


def test_frames_are_the_functions_of_the_trace(real: Real) -> None:
    figures = real.figures
    calls = Counter(each["name"] for each in real.plain.of_kind("python_function"))
    assert (figures.cpu.frames is None) == (not calls)
    for row in figures.cpu.frames or []:
        if "torch_dynamo_resume" not in row.function and not _is_resumed(row, calls):
            assert row.calls == calls[f"{row.file}({row.line}): {row.function}"]


def _is_resumed(row: FrameRow, calls: Counter[str]) -> bool:
    return any("torch_dynamo_resume" in name and row.function in name for name in calls)


def test_slow_calls_and_the_threads_beside_them() -> None:
    usual = [f"aten::mm {n * 100}-{n * 100 + 50} dims=4x4,4x4 types=float,float" for n in range(9)]
    slow = "aten::mm 2000-3000 dims=4x4,4x4 types=float,float"
    other = "aten::add 2100-2900 dims=4x4,4x4 types=float,float thread=2"
    cpu = figures_of(
        draw("\n".join(["ProfilerStep#7 0-5000"] + ["  " + line for line in [*usual, slow]] + [other]))
    ).cpu
    (call,) = cpu.slow_calls
    assert (call.operator, call.shapes, call.step, call.file, call.line) == (
        "aten::mm", "4×4, 4×4", "ProfilerStep#7", "", None,
    )  # fmt: skip
    assert (call.own_ns, call.median_ns, call.threads, call.contended) == (1_000_000, 50_000, 2, True)
    assert (cpu.threads, cpu.most_threads, cpu.frames) == (2, 2, None)


# What is missing


def test_each_table_that_is_missing_names_the_option_that_records_it() -> None:
    figures = figures_of(draw("aten::mm 0-100"))
    assert list(figures.operators) == ["name"]
    assert figures.missing == {
        "shape": MISSING["shapes"], "line": MISSING["stacks"], "module": MISSING["stacks"],
        "modules": MISSING["stacks"], "memory": MISSING["memory"],
    }  # fmt: skip


def test_stacks_without_modules() -> None:
    figures = figures_of(draw("train.py(1): f 0-100\n  aten::mm 10-90"))
    assert "No `nn.Module` was called" in figures.missing["modules"]
    assert "line" not in figures.missing


def test_device_events_only(tmp_path: Path) -> None:
    kernel = event("k", 0, 10, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7, "correlation": 1})
    profile = Profile(read_trace(write(tmp_path / "w.pt.trace.json", kineto_text([kernel]))))
    figures = figures_of(profile)
    assert figures.operators == {}
    assert {figures.missing[name] for name in ("name", "shape", "line", "module", "modules")} == {NO_HOST_EVENTS}
    assert (figures.cpu.threads, figures.cpu.slow_calls, figures.cpu.frames) == (0, [], None)
