"""What each step holds, against counts of another kind."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import Analysis, read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.step_costs import step_costs_of
from tb_tidy_plugin.dev.generate import ROOT
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

TWO_STEPS = """
# device: A100
ProfilerStep#3                     0-999
  enumerate(DataLoader)#x.__next__   0-100
  aten::mm                       101-300   dims=8x8,8x8  types=float,float  kernel=gemm@150-450
  aten::mm                       301-400   dims=8x8,8x8  types=float,float  kernel=gemm@450-500
ProfilerStep#4                  1000-2000
  aten::mm                      1100-1200  dims=8x8,8x8  types=float,float  kernel=gemm@1900-2300
  aten::mm                      1201-1250  dims=4x4,4x4  types=double,double
"""


@cache
def untidy() -> Analysis:
    [file] = find_traces(ROOT / "sample_runs" / "image_classifier_untidy")
    return read_file(file, Job())


def test_operators_by_name_and_inputs_in_each_step() -> None:
    large, small = step_costs_of(draw(TWO_STEPS)).operators
    assert (large.name, large.shapes) == ("aten::mm", "8×8, 8×8 · float32")
    assert (large.step, large.calls) == ([0, 1], [2, 1])
    assert sum(large.host_ns) <= 400_000
    assert large.device_ns == [350_000, 400_000]
    assert (small.shapes, small.step, small.calls, small.device_ns) == ("4×4, 4×4 · float64", [1], [1], [0])


def test_kernels_belong_to_the_step_that_launched_them() -> None:
    """The last one ends after its step."""
    [kernel] = step_costs_of(draw(TWO_STEPS)).kernels
    assert (kernel.name, kernel.shapes, kernel.step) == ("gemm", "8×8, 8×8 · float32", [0, 1])
    assert (kernel.calls, kernel.device_ns) == ([2, 1], [350_000, 400_000])


def test_waits_in_each_step(tmp_path: Path) -> None:
    """Two calls overlap by 10 µs; the third is not a wait."""
    assert step_costs_of(draw(TWO_STEPS)).waits == {"data_loading": [100_000, 0]}
    calls = [
        ("cudaMalloc", 100, 50),
        ("cudaFree", 140, 60),
        ("cudaLaunchKernel", 300, 5),
        ("cudaDeviceSynchronize", 400, 7),
    ]
    steps = [event(f"ProfilerStep#{at}", 1000 * at, 900, cat="user_annotation") for at in range(2)]
    steps += [event("aten::mm", 1000 * at + 10, 20) for at in range(2)]
    runtime = [event(name, 1000 + start, time, cat="cuda_runtime") for name, start, time in calls]
    path = write(tmp_path / "w.pt.trace.json", kineto_text([*steps, *runtime]))
    costs = step_costs_of(Profile(read_trace(path)))
    assert costs.waits == {"allocator": [0, 100_000], "synchronisation": [0, 7_000]}


def test_a_profile_without_steps_is_one() -> None:
    [row] = step_costs_of(draw("aten::mm  0-100\naten::mm  200-250")).operators
    assert (row.step, row.calls, row.host_ns) == ([0], [2], [150_000])


def test_nothing_is_no_error() -> None:
    costs = step_costs_of(draw("ProfilerStep#1  0-100"))
    assert (costs.operators, costs.kernels, costs.findings, costs.waits) == ([], [], {}, {})


def calls_per_step(profile: Profile) -> Counter[tuple[str, int]]:
    """Counted one by one: operators that are calls of torch's tables, by the step that they begin in."""
    found: Counter[tuple[str, int]] = Counter()
    for row in profile.nested.rows.tolist():
        if profile.category(row) is not Category.OPERATOR:
            continue
        for at, step in enumerate(profile.steps.items):
            if step.start_ns <= profile.start_ns(row) < step.end_ns:
                found[profile.plain_name(row), at] += 1
    return found


def test_every_call_of_a_recording_counts_once() -> None:
    analysis = untidy()
    found: Counter[tuple[str, int]] = Counter()
    for row in analysis.step_costs.operators:
        for step, calls in zip(row.step, row.calls, strict=True):
            found[row.name, step] += calls
    assert found == calls_per_step(analysis.profile)


def test_findings_cost_in_their_steps_what_they_cost_on_average() -> None:
    analysis = untidy()
    assert analysis.report.findings
    for finding in analysis.report.findings:
        costs = analysis.step_costs.findings[finding.id]
        assert len(costs) == analysis.report.steps.count
        assert sum(costs) / len(costs) == pytest.approx(finding.cost_ns, abs=1)


@pytest.mark.parametrize("name", ["v100_2021_resnet50_workers0", "mi300_ddp8_resnet_checkpoint"])
def test_every_kernel_of_a_recording_counts_once(name: str) -> None:
    """Summed over all that any call in a step launched, straight from the table."""
    file = next(iter(find_traces(shared(f"traces/{name}"))))
    analysis = read_file(file, Job(()))
    profile, table = analysis.profile, analysis.profile.table
    wanted = 0
    for row, call in zip(profile.operators.work.tolist(), profile.operators.work_call.tolist(), strict=True):
        launched_ns = profile.start_ns(int(profile.nested.rows[call]))
        if any(step.start_ns <= launched_ns < step.end_ns for step in profile.steps.items):
            wanted += int(table.end_ns[row] - table.start_ns[row])
    assert table.is_category(DEVICE_WORK).any()
    assert sum(sum(row.device_ns) for row in analysis.step_costs.kernels) == wanted > 0
