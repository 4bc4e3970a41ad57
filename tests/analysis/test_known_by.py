"""How the operator of a replayed kernel is known stands in every table that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tb_tidy_plugin.analysis.lines import LineCosts, line_costs
from tb_tidy_plugin.analysis.step_costs import step_costs_of
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.analysis.timeline import read_timeline
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.plugin.tables import Page, kernels_answer, line_columns, tables_of
from tb_tidy_plugin.plugin.timeline_answers import event_answer
from tb_tidy_plugin.plugin.timeline_models import TimelineEvent
from tb_tidy_plugin.profile.graphs.replay import KNOWN_BY, least_certain_of, with_replayed
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.sources.align import Aligner
from tests.ask.assistant import asking, folder_at, rows_of
from tests.ledger.traces import Made
from tests.profile.graphs.test_replay_drawn import capture, replay

CAPTURED = [*(f"k{letter}" for letter in "abcdefghi"), "gemm"]
REPLAYED = [*CAPTURED[:4], "another", *CAPTURED[5:]]
LAUNCHES = [*((f"aten::op_{name}", name) for name in CAPTURED[:-1]), ("aten::mm", "gemm")]
SOURCE = "def layer(x): return x\n" * len(CAPTURED)
WAYS = ["renamed" if kernel == "another" else "unique" for kernel in REPLAYED]
OF_OPERATORS = {**dict(zip((name for name, _ in LAUNCHES), WAYS, strict=True)), "aten::add": None}
OF_KERNELS = {**dict(zip(REPLAYED, WAYS, strict=True)), "plain": None}


def made() -> Made:
    """Two steps, each with a replay that has one kernel of another name, and a kernel that no graph launched."""
    found = Made().mark("ProfilerStep#0", 490, 800).mark("ProfilerStep#1", 800, 1110)
    capture(found.frame("nn.Module: Model_0", 5, 118), 0, LAUNCHES)
    for start in (700, 1000):
        found.frame("nn.Module: Head_0", start, start + 12).frame("head.py(1): head", start + 1, start + 11)
        found.operator("aten::add", start + 1, start + 10).kernel("plain", start + 20, start + 30, launch=start + 2)
    return replay(replay(found, 500, REPLAYED), 810, REPLAYED)


@lru_cache(maxsize=1)
def profile() -> Profile:
    return made().profile(with_replayed)


@lru_cache(maxsize=1)
def figures() -> Figures:
    return figures_of(profile())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replayed")
    made().written(folder)
    (folder / "model.py").write_text(SOURCE)
    return folder


def shown(folder: Path, command: str, *options: str) -> str:
    return CliRunner().invoke(commands, [command, str(folder), *options], env={"COLUMNS": "200"}).output


def test_of_several_ways_the_least_certain_counts() -> None:
    assert [least_certain_of(*KNOWN_BY[at:], None) for at in range(4)] == ["donor"] * 4
    assert least_certain_of("unique", "exact", None) == "unique"
    assert least_certain_of(None) is least_certain_of() is None


def test_kernels() -> None:
    assert {row.name: row.known_by for row in figures().kernels} == OF_KERNELS
    kept = tables_of(figures(), LineCosts([], []), 0)
    assert kernels_answer(kept, Page(0, 9, "name", descending=False)).empty == [
        "flops_per_second", "bytes_per_second", "roofline", "tensor_cores",
    ]  # fmt: skip


def test_modules_are_known_as_the_kernels_inside_them_are() -> None:
    layers = {f"layer_{at}": way for at, way in enumerate(WAYS)}
    assert {row.name: row.known_by for row in figures().modules} == {**layers, "Model_0": "renamed", "Head_0": None}


def test_operators_by_each_grouping() -> None:
    assert len(figures().operators) == 4
    for rows in figures().operators.values():
        assert {row.name: row.known_by for row in rows if row.name.startswith("aten::")} == OF_OPERATORS


def test_lines() -> None:
    sources = {"model.py": SOURCE, "head.py": "def head(x): return x + 1"}
    costs = line_costs(profile(), Aligner(profile(), lambda file: sources[file].splitlines()))
    found = {line.line: line.known_by for line in costs.lines if line.file == "model.py"}
    assert found == dict(enumerate(WAYS, 1))
    columns = line_columns(costs, 1000)["model.py"]
    assert dict(zip(columns.line, columns.known_by, strict=True)) == found
    assert [line.known_by for line in costs.lines if line.file == "head.py"] == [None]


def test_step_costs() -> None:
    costs = step_costs_of(profile())
    assert {row.name: row.known_by for row in costs.operators if row.name.startswith("aten::")} == OF_OPERATORS
    assert {row.name: row.known_by for row in costs.kernels} == OF_KERNELS


def test_an_event_of_the_timeline(folder: Path) -> None:
    timeline = read_timeline(folder / "made.pt.trace.json")

    def events(name: str) -> Iterator[TimelineEvent]:
        for at in np.flatnonzero(timeline.name == timeline.names.index(name)).tolist():
            if (event := event_answer(timeline, int(timeline.ids[at]))) is not None:
                yield event

    for kernel, operator, way in (("another", "aten::op_ke", "renamed"), ("ka", "aten::op_ka", "unique")):
        for event in events(kernel):
            assert event.operator is not None
            assert (event.operator.name, event.known_by) == (operator, way)
            found = event_answer(timeline, event.operator.id)
            assert found is not None
            assert (found.known_by, found.operator) == (way, None)
    assert [(event.operator, event.known_by) for event in events("plain")] == [(None, None)] * 2


def test_the_terminal(folder: Path) -> None:
    summary = shown(folder, "summary", "--top", "20")
    assert "aten::op_ke [replayed: by its place]: another " in summary
    assert "aten::op_kd [replayed: unique] " in summary
    assert "  layer_3 [replayed: unique] " in summary
    assert "Head_0 " in summary
    lines = shown(folder, "annotate", "model.py").splitlines()
    assert [line.partition("  # ")[2] for line in lines if "def layer" in line] == [
        f"replayed: {'by its place' if way == 'renamed' else way}" for way in WAYS
    ]


def test_a_comparison(folder: Path, tmp_path: Path) -> None:
    other = made()
    for each in other.events:
        each["dur"] += {"another": -5, "ka": 4, "plain": 3}.get(str(each["name"]), 0)
    other.written(tmp_path)
    found = json.loads(shown(folder, "compare", str(tmp_path), "--format", "json"))
    changed = {"aten::op_ke": "renamed", "aten::op_ka": "unique", "aten::add": None}
    assert {row["name"]: row["known_by"] for row in found["operators"]} == changed
    changed = {"another": "renamed", "ka": "unique", "plain": None}
    assert {row["name"]: row["known_by"] for row in found["kernels"]} == changed
    owners = {owner["name"]: owner["known_by"] for entry in found["ledger"]["entries"] for owner in entry["owners"]}
    assert (owners["aten::op_ke"], owners["aten::mm"], owners["aten::add"]) == ("renamed", "unique", None)
    assert "aten::op_ke [replayed: by its place]" in shown(folder, "compare", str(tmp_path))


def test_answers_to_an_assistant(folder: Path, tmp_path: Path) -> None:
    ask = asking(folder_at(folder, tmp_path))
    for question, expected in (("operators", OF_OPERATORS), ("kernels", OF_KERNELS)):
        rows = rows_of(json.loads(ask({"question": question, "tokens": 20_000})))
        found = {row["name"].strip("«»"): row["known_by"] for row in rows}
        assert {name: found[name] for name in expected} == expected


def test_an_operator_with_several_kernels_is_known_as_the_least_certain_of_them() -> None:
    twice = capture(Made(), 0, LAUNCHES)
    twice.operator("aten::two", 112, 119).call("hipLaunchKernel", 113, 114, kernel="first")
    twice.call("hipLaunchKernel", 115, 116, kernel="second")
    found = replay(twice, 500, [*CAPTURED, "other", "second"]).profile(with_replayed)
    rows = {row.name: row.known_by for row in figures_of(found).operators["name"]}
    assert (rows["aten::two"], rows["aten::mm"]) == ("renamed", "unique")
