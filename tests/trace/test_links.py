"""Device work finds its launch, and both find the operator behind them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, draw, row_of
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.links import launches
from tests.support.recordings import SHARED, shared
from tests.support.written import event, kineto_text, write


def profile_of(tmp_path: Path, *events: dict[str, object]) -> Profile:
    return Profile(read_trace(write(tmp_path / "t.json", kineto_text(list(events)))))


def launch(name: str, ts: float, **args: object) -> dict[str, object]:
    return event(name, ts, 1, cat="cuda_runtime", args=args)


def kernel(name: str, ts: float, **args: object) -> dict[str, object]:
    return event(name, ts, 5, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7} | args)


def name_of_launch(profile: Profile, kernel_name: str) -> str | None:
    at = int(profile.launch[row_of(profile, kernel_name)])
    return None if at == ABSENT else profile.name(at)


@pytest.mark.parametrize("gpu", [A100, MI300])
def test_by_correlation(gpu: object) -> None:
    profile = draw("aten::mm  0-100  kernel=gemm@50-90\n", gpu)  # type: ignore[arg-type]
    assert name_of_launch(profile, "gemm") in {"cudaLaunchKernel", "hipLaunchKernel"}
    assert profile.device_activity_of(row_of(profile, "aten::mm")).tolist() == [row_of(profile, "gemm")]


def test_one_graph_launch_has_many_kernels(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        event("model.py(3): decode", 0, 50, cat="python_function", args={"Python id": 1}),
        launch("hipGraphLaunch", 10, correlation=5),
        *(kernel(f"k{number}", 20 + number * 6, correlation=5) for number in range(4)),
    )
    assert {name_of_launch(profile, f"k{number}") for number in range(4)} == {"hipGraphLaunch"}
    assert len(profile.device_activity_of(row_of(profile, "model.py(3): decode"))) == 4


def test_by_arrow_where_correlation_is_missing(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        event("aten::mm", 0, 50),
        launch("cudaLaunchKernel", 10),
        kernel("gemm", 30),
        {"ph": "s", "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "f", "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 30, "bp": "e"},
    )
    assert name_of_launch(profile, "gemm") == "cudaLaunchKernel"


def test_by_external_id_where_the_launch_is_missing(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        event("aten::mm", 0, 50, args={"External id": 4}),
        kernel("gemm", 30, correlation=99, **{"External id": 4}),
    )
    assert name_of_launch(profile, "gemm") is None
    assert int(profile.launched_by[row_of(profile, "gemm")]) == row_of(profile, "aten::mm")


def test_the_cause_is_the_innermost_event_around_the_launch(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        event("aten::linear", 0, 50),
        event("aten::addmm", 5, 20),
        launch("cudaLaunchKernel", 10, correlation=1),
        launch("cudaLaunchKernel", 40, correlation=2),
        kernel("inner", 60, correlation=1),
        kernel("outer", 70, correlation=2),
    )
    cause = {name: profile.name(int(profile.launched_by[row_of(profile, name)])) for name in ("inner", "outer")}
    assert cause == {"inner": "aten::addmm", "outer": "aten::linear"}


def test_what_has_no_partner_is_left_alone(tmp_path: Path) -> None:
    profile = profile_of(
        tmp_path,
        event("aten::mm", 0, 50),
        launch("cudaLaunchKernel", 10, correlation=1),
        launch("cudaDeviceSynchronize", 20),
        kernel("alone", 30, correlation=7),
        kernel("nameless", 40),
        {"ph": "f", "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 40, "bp": "e"},
    )
    assert (profile.launch == ABSENT).all()
    assert (profile.launched_by[profile.table.is_category(DEVICE_WORK)] == ABSENT).all()


UNLAUNCHED = {"mi300_ddp8_resnet_checkpoint": 968, "v100_ddp2_test": 614}
"""Real traces that hold device work without its launch, and how much."""


@pytest.mark.sampled
@pytest.mark.parametrize("path", sorted(SHARED.glob("traces/*/*.gz")), ids=lambda path: path.parent.name)
def test_real_traces(path: Path) -> None:
    """Every launch that is in the file is found, by a count over plain dictionaries; ids agree with the tree."""
    table = read_trace(path)
    launch_rows = launches(table)
    runtime = {int(table.correlation[row]) for row in np.flatnonzero(table.category == Category.RUNTIME)} - {ABSENT, 0}
    work = np.flatnonzero(table.is_category(DEVICE_WORK))
    expected = sum(int(table.correlation[row]) in runtime for row in work)
    assert int((launch_rows[work] != ABSENT).sum()) == expected
    assert len(work) - expected == UNLAUNCHED.get(path.parent.name, 0)
    for row in work[launch_rows[work] != ABSENT].tolist():
        assert table.correlation[launch_rows[row]] == table.correlation[row]


def test_cause_by_place_agrees_with_external_id() -> None:
    (path,) = shared("traces/b200_eager").glob("*.gz")
    profile = Profile(read_trace(path))
    table, size = profile.table, profile.tree.size
    by_id = {int(table.external_id[row]): row for row in range(size) if table.external_id[row] > 0}
    agree: Counter[bool] = Counter()
    for row in np.flatnonzero(table.is_category(DEVICE_WORK)).tolist():
        wanted, found = by_id.get(int(table.external_id[row])), int(profile.launched_by[row])
        if wanted is not None and found != ABSENT:
            agree[wanted == found or wanted in profile.ancestors(found) or found in profile.ancestors(wanted)] += 1
    assert agree[True] > 500
    assert agree[False] == 0
