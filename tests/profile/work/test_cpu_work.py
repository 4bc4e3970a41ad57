"""CPU work: spreads as numpy computes them, slow calls and the threads beside them, threads counted by the moment."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.cpu_work import CpuGroup, CpuWork, cpu_time, cpu_work_of, frame_times
from tb_tidy_plugin.profile.work.flops import estimates_of
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

SHAPES = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}


def work_of(profile: Profile) -> CpuWork:
    return cpu_work_of(profile, estimates_of(profile))


def profile_of(events: list[dict[str, Any]]) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        return Profile(read_trace(write(Path(folder, "t.json"), kineto_text(events))))


def calls(name: str, times_us: list[int], tid: int = 1, args: dict[str, Any] = SHAPES) -> list[dict[str, Any]]:
    """Calls of one operator after each other."""
    starts = [sum(times_us[:at]) + at for at in range(len(times_us))]
    return [event(name, begin, length, tid=tid, args=args) for begin, length in zip(starts, times_us, strict=True)]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.lists(st.integers(1, 500), min_size=1, max_size=9))
def test_spread_of_call_times(first: list[int], second: list[int]) -> None:
    groups = {group.name: group for group in work_of(profile_of(calls("a", first) + calls("b", second, tid=2))).groups}
    for name, times in (("a", first), ("b", second)):
        expected = np.quantile(np.array(times) * 1000, [0.1, 0.5, 0.9, 1])
        group = groups[name]
        assert [group.low_ns, group.median_ns, group.high_ns, group.longest_ns] == pytest.approx(expected, abs=1)
        assert (group.calls, group.total_ns) == (len(times), 1000 * sum(times))


def test_groups_are_sorted_by_their_time_and_told_apart_by_shapes() -> None:
    profile = draw(
        """
        aten::mm   0-10     dims=8x8,8x8      types=float,float
        aten::mm   20-90    dims=64x64,64x64  types=float,float
        aten::mm   100-110  dims=8x8,8x8      types=float,float
        """
    )
    found = [(profile.signatures.shapes[group.shape], group.calls, group.first) for group in work_of(profile).groups]
    assert found == [(((64, 64), (64, 64)), 1, 1), (((8, 8), (8, 8)), 2, 0)]


def test_time_in_the_runtime_is_no_cpu_work() -> None:
    profile = draw("aten::item 0-500  copy=DtoH@100-200:4", A100)
    (item,) = np.flatnonzero(profile.nested.rows == row_of(profile, "aten::item"))
    assert cpu_time(profile)[item] == 500_000 - 1000


def test_a_call_far_above_its_median_is_slow_and_contended_where_other_threads_run() -> None:
    busy_others = [event("aten::sort", 100, 900, tid=thread, args={}) for thread in (2, 3)]
    work = work_of(profile_of(calls("aten::mm", [100, 110, 120, 400, 100, 105]) + busy_others))
    (slow,) = work.slow_calls
    assert (slow.own_ns, slow.median_ns, slow.threads, slow.contended) == (400_000, 107_500, 3, True)
    assert work.groups[slow.group].name == "aten::mm"
    assert work.groups[slow.group].slow_calls == 1


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ([100, 110, 120, 290, 100], "less than three times the median"),
        ([5, 5, 5, 49, 5], "too short to matter"),
        ([100, 100, 100, 900], "too few calls to know what is usual"),
    ],
)
def test_what_is_not_called_slow(times: list[int], reason: str) -> None:
    assert work_of(profile_of(calls("aten::mm", times))).slow_calls == (), reason


def test_sizes_that_are_not_recorded_explain_any_time() -> None:
    listed = {"Input Dims": [[], []], "Input type": ["TensorList", "Scalar"]}
    for args in (listed, {}):
        assert not work_of(profile_of(calls("aten::cat", [10] * 9 + [1000], args=args))).slow_calls


def test_a_delay_is_named_once_where_it_happened() -> None:
    inner = calls("aten::mm", [100] * 9 + [1000])
    outer = [entry | {"name": "aten::matmul", "ts": entry["ts"] - 0.1, "dur": entry["dur"] + 0.2} for entry in inner]
    profile = profile_of(outer + inner)
    assert [profile.name(slow.row) for slow in work_of(profile).slow_calls] == ["aten::mm"]


def test_a_first_call_is_slow_for_its_own_reasons() -> None:
    others = [event("aten::sort", 0, 9000, tid=2, args={})]
    (slow,) = work_of(profile_of(calls("aten::mm", [900, 100, 100, 100, 100]) + others)).slow_calls
    assert (slow.is_first, slow.threads, slow.contended) == (True, 2, False)


def test_rates_against_the_best_of_the_same_operator() -> None:
    profile = draw(
        """
        aten::mm   0-10      dims=64x64,64x64      types=float,float
        aten::mm   100-1100  dims=256x256,256x256  types=float,float
        aten::mv   1200-1300 dims=64x64,64         types=float,float
        """
    )
    groups = {(group.name, group.shape): group for group in work_of(profile).groups}
    rates = {profile.signatures.shapes[shape]: group.flops_per_second for (_, shape), group in groups.items()}
    assert rates[(64, 64), (64, 64)] == pytest.approx(2 * 64**3 / 10e-6)
    shares = sorted(group.share_of_best for group in groups.values() if group.share_of_best is not None)
    assert shares == [pytest.approx((2 * 256**3 / 1e-3) / (2 * 64**3 / 10e-6)), 1.0]
    assert next(group for group in groups.values() if group.name == "aten::mv").share_of_best is None


def test_device_work_has_no_rate_on_the_cpu() -> None:
    profile = draw("aten::mm 0-10  dims=64x64,64x64  types=float,float  kernel=k@20-90", A100)
    assert work_of(profile).groups[0].flops_per_second is None


@st.composite
def many_threads(draw_one: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw_one(
        st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(1, 4)), min_size=1, max_size=25)
    )
    return [
        event("a", start, length, tid=thread, args={"Ev Idx": at}) for at, (start, length, thread) in enumerate(rows)
    ]


@given(many_threads())
def test_threads_are_counted_moment_by_moment(events: list[dict[str, Any]]) -> None:
    moments = defaultdict(set)
    for entry in events:
        for moment in range(entry["ts"], entry["ts"] + entry["dur"]):
            moments[moment].add(entry["tid"])
    found = work_of(profile_of(events)).threads
    first = min(entry["ts"] for entry in events)
    for moment in range(70):
        at = int(np.searchsorted(found.times_ns, (moment - first) * 1000, side="right")) - 1
        assert (found.counts[at] if at >= 0 else 0) == len(moments.get(moment, ()))
    assert found.most == max(map(len, moments.values()), default=0)
    if moments:
        total = sum(map(len, moments.values()))
        assert found.busy_mean == pytest.approx(total / len(moments))
        assert found.mean == pytest.approx(total / (max(moments) - min(moments) + 1))


def test_python_frames_have_what_nothing_inside_them_takes() -> None:
    profile = draw(
        """
        train.py(3): step             0-1000
          nn.Module: Linear_0         100-400
            aten::addmm               200-300  kernel=k@220-280
          <built-in method sleep>     500-900
        """,
        A100,
    )
    times = frame_times(profile)
    assert times is not None
    found = {profile.name(row): own for row, own in zip(times.rows.tolist(), times.self_ns.tolist(), strict=True)}
    assert found == {
        "train.py(3): step": 300_000, "nn.Module: Linear_0": 200_000, "<built-in method sleep>": 400_000,
    }  # fmt: skip
    assert frame_times(draw("aten::mm 0-10")) is None


def test_frames_of_the_profilers_own_work_are_left_out() -> None:
    profile = draw(
        """
        train.py(3): step             0-1000
          tb_tidy_plugin/capture/profiling.py(99): step   700-900
            tb_tidy_plugin/capture/faults.py(49): _faults   710-800
            <built-in function getrusage>                   810-890
          <built-in function sum>       905-950
        """,
        A100,
    )
    times = frame_times(profile)
    assert times is not None
    found = {profile.name(row): own for row, own in zip(times.rows.tolist(), times.self_ns.tolist(), strict=True)}
    assert found == {"train.py(3): step": 755_000, "<built-in function sum>": 45_000}


@pytest.mark.parametrize("name", ["cpu_gloo_rank34", "b200_eager", "v100_2021_resnet50_workers4"])
def test_groups_of_real_traces(name: str) -> None:
    """Every operator call is in one group; spreads again by numpy, from a plain dictionary."""
    (path,) = shared(f"traces/{name}").glob("*.gz")
    profile = Profile(read_trace(path))
    operators = profile.table.category[profile.nested.rows] == Category.OPERATOR
    times: dict[tuple[str, int], list[int]] = defaultdict(list)
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    signatures, time_ns = profile.signatures, cpu_time(profile).tolist()
    for at in np.flatnonzero(operators).tolist():
        key = (names[numbers[profile.nested.rows[at]]], int(signatures.shape_number[signatures.number[at]]))
        times[key].append(time_ns[at])
    work = work_of(profile)
    assert len(work.groups) == len(times)
    for group in work.groups:
        found = times[group.name, group.shape]
        assert (group.calls, group.total_ns, group.longest_ns) == (len(found), sum(found), max(found))
        spread = [group.low_ns, group.median_ns, group.high_ns]
        assert spread == pytest.approx(np.quantile(found, [0.1, 0.5, 0.9]), abs=1)
    assert [group.total_ns for group in work.groups] == sorted((group.total_ns for group in work.groups), reverse=True)
    assert all(is_ordered(group) for group in work.groups)
    assert sum(group.slow_calls for group in work.groups) == len(work.slow_calls)


def is_ordered(group: CpuGroup) -> bool:
    spread = (0, group.low_ns, group.median_ns, group.high_ns, group.longest_ns)
    return list(spread) == sorted(spread) and group.threads >= 1
