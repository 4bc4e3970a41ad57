"""Counts of a step, against the drawn events counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.step_counts import Counted, NotCountedError, counted_events
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.compiled import compiled_step
from tests.support.written import event, kineto_text, write

TWO_STEPS = """
aten::mm                              0-5      kernel=gemm@6-9
ProfilerStep#1                        10-400
  aten::to                            20-60    copy=HtoD@30-50:1000
  aten::mm                            70-90    kernel=gemm@80-100
  aten::is_nonzero                    100-200
    aten::item                        101-199
      aten::_local_scalar_dense       102-198  wait=110-190 copy=DtoH@150-180:4
ProfilerStep#2                        410-800
  aten::to                            420-460  copy=HtoD@430-450:1000
  aten::mm                            470-490  kernel=gemm@480-500 kernel=splitKreduce@501-510
  aten::clone                         500-510  copy=DtoD@505-509:5000
  c10d::allreduce_                    520-540  kernel=ncclDevKernel_AllReduce_Sum_f32@530-560
"""

BROKEN = """
ProfilerStep#1                                                                 0-1000
  Torch-Compiled Region: 0/0                                                   10-900
    train.py(3): forward                                                       20-899
      Torch-Compiled Region: 1/0                                               500-890
        train.py(5): torch_dynamo_resume_in_forward_at_5                       501-880
          Torch-Compiled Region: 2/0                                           600-870
            train.py(9): torch_dynamo_resume_in_forward_at_9                   601-860
"""


def per_step(profile: Profile, counted: Counted) -> list[int]:
    return counted_events(profile, counted).per_step(profile)


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ("syncs", [1, 0]),
        ("reads", [1, 0]),
        ("kernels", [1, 3]),
        ("copies", [2, 1]),
        ("bytes_moved", [1004, 1000]),
        ("collectives", [0, 1]),
        ("graph_breaks", [0, 0]),
    ],
)
def test_each_step_is_counted_by_itself(counted: Counted, expected: list[int]) -> None:
    assert per_step(draw(TWO_STEPS, A100), counted) == expected


def test_without_steps_the_whole_profile_counts() -> None:
    assert per_step(draw("aten::mm 0-5 kernel=gemm@6-9\naten::mm 10-15 kernel=gemm@16-19", A100), "kernels") == [2]


@pytest.mark.parametrize("counted", ["syncs", "kernels", "copies", "bytes_moved", "allocations"])
def test_what_was_not_recorded_is_not_zero(counted: Counted) -> None:
    with pytest.raises(NotCountedError, match="the recording contains no"):
        counted_events(draw("ProfilerStep#1 0-10\n  aten::mm 1-5"), counted)


def test_the_host_hands_values_to_python_without_a_device_too() -> None:
    assert per_step(draw("ProfilerStep#1 0-10\n  aten::item 1-5\n    aten::_local_scalar_dense 2-4"), "reads") == [1]


def test_each_break_counts_once() -> None:
    assert per_step(draw(BROKEN), "graph_breaks") == [2]
    assert per_step(compiled_step(), "graph_breaks") == [0]


def allocated(ts: int, size: int, device: int) -> dict[str, Any]:
    args = {"Device Type": device, "Device Id": 0 if device else -1, "Addr": ts, "Bytes": size}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "args": args,
    }


@pytest.mark.parametrize(("with_kernel", "expected"), [(False, [3]), (True, [1])])
def test_allocations_are_those_of_the_device_where_there_is_one(
    tmp_path: Path, with_kernel: bool, expected: list[int]
) -> None:
    events = [event("ProfilerStep#1", 0, 100, cat="user_annotation")]
    events += [allocated(at, size, 0) for at, size in ((10, 64), (11, -64), (12, 64), (13, 64), (200, 64))]
    events += [event("gemm", 20, 5, cat="kernel", pid=0, tid=7), allocated(30, 512, 1)] if with_kernel else []
    profile = Profile(read_trace(write(tmp_path / "a.pt.trace.json", kineto_text(events))))
    assert per_step(profile, "allocations") == expected
