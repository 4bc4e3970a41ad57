"""All tables of real traces: their sums against counts written differently, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tb_tidy_plugin.analysis.assemble import Analysis, read_file
from tb_tidy_plugin.analysis.checker import MISSING, NO_HOST_EVENTS
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.operator_rows import MOST_KERNELS
from tb_tidy_plugin.analysis.tables import GROUPS, figures_of
from tb_tidy_plugin.profile.events.nesting import NOT_COUNTED
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.figures import Figures, FrameRow
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.plain_count import PlainTrace, end_ns, plain_trace, start_ns, sweep
from tests.support.recordings import ROOT, SHARED
from tests.support.written import event, kineto_text, write

TRACES = sorted((*SHARED.glob("traces/*/*.gz"), *ROOT.glob("sample_runs/*/*.gz")))
PARAMETERS = [
    pytest.param(path, marks=pytest.mark.sampled, id=f"{path.parent.name}/{path.name.split('.')[0]}") for path in TRACES
]


@dataclass(frozen=True)
class Real:
    """A real trace: its tables, and its events counted plainly."""

    path: Path
    analysis: Analysis
    figures: Figures
    plain: PlainTrace


@pytest.fixture(scope="module", params=PARAMETERS)
def real(request: pytest.FixtureRequest) -> Real:
    path: Path = request.param
    return Real(path, *analysed(path), plain_trace(path))


def analysed(path: Path) -> tuple[Analysis, Figures]:
    (file,) = [file for file in find_traces(path.parent) if file.path.name == path.name]
    analysis = read_file(file, Job())
    return analysis, figures_of(analysis.profile, tuple(analysis.traced.values()))


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
    assert decode(msgspec.json.encode(figures), Figures) == figures


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
    assert analysis.traced
    for traced in analysis.traced.values():
        for row in traced.rows.tolist():
            if profile.category(row) is not Category.PYTHON:
                assert traced.finding.id in names[profile.name(row)]
        if profile.category(int(traced.rows[0])) is Category.OPERATOR:
            for place in traced.finding.places:
                assert traced.finding.id in lines[place.file, place.function]


def test_what_runs_in_a_matched_annotation_is_linked_by_time() -> None:
    """With stacks an annotation ends in the tree with the built-in that opened it."""
    (path,) = (ROOT / "sample_runs" / "image_classifier_untidy").glob("*.gz")
    _, figures = analysed(path)
    (loading,) = [row for row in figures.operators["name"] if row.name.startswith("enumerate(DataLoader)")]
    (items,) = [row for row in figures.operators["line"] if row.function == "__getitem__"]
    assert set(loading.findings) <= set(items.findings)
    assert loading.findings


def test_frames_are_the_functions_of_the_trace(real: Real) -> None:
    figures = real.figures
    calls = Counter(each["name"] for each in real.plain.of_kind("python_function"))
    assert (figures.cpu.frames is None) == (not calls)
    for row in figures.cpu.frames or []:
        if "torch_dynamo_resume" not in row.function and not _is_resumed(row, calls):
            assert row.calls == calls[f"{row.file}({row.line}): {row.function}"]


def _is_resumed(row: FrameRow, calls: Counter[str]) -> bool:
    return any("torch_dynamo_resume" in name and row.function in name for name in calls)


# What is missing


def test_each_table_that_is_missing_names_the_option_that_records_it() -> None:
    figures = figures_of(draw("aten::mm 0-100"))
    assert list(figures.operators) == ["name"]
    assert figures.missing == {
        "shape": MISSING["shapes"], "line": MISSING["stacks"], "module": MISSING["stacks"],
        "modules": MISSING["stacks"], "memory": MISSING["memory"], "kernels": MISSING["device"],
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
