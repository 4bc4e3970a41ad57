"""Idle time of a device that is launch overhead."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.lanes import idle_parts, step_parts
from tb_tidy_plugin.profile.steps import ProfileSteps
from tb_tidy_plugin.rules.launch.gpu_idle_host_bound.idle import HostBoundIdle, host_bound_idle
from tests.support.drawn import A100, draw, row_of

PROFILE = draw(
    """
train.py(3): step       0-1000
  aten::mm              10-20    kernel=gemm@20-100
  aten::add             150-160  kernel=add@160-200
  aten::add             190-195  kernel=add@300-320
  aten::mul             400-410  kernel=mul@420-430
enumerate(DataLoader)#_Iter.__next__  500-600  thread=2
  aten::copy_           550-560  thread=2 copy=HtoD@560-600:4096
""",
    A100,
)


def idle() -> HostBoundIdle:
    return host_bound_idle(PROFILE, 0, 1_000_000)


def test_gaps_whose_next_work_was_launched_late() -> None:
    # From 200 to 300 the device waits for something else: what comes next was launched at 190. At 500 a batch loads.
    assert [*zip(idle().time.starts.tolist(), idle().time.ends.tolist(), strict=True)] == [
        (100_000, 160_000),
        (320_000, 420_000),
        (430_000, 500_000),
    ]


def test_the_event_that_each_gap_waited_for() -> None:
    assert [PROFILE.name(row) for row in idle().ended_by] == ["aten::add", "aten::mul", "aten::copy_"]
    assert idle().longest(1) == [row_of(PROFILE, "aten::mul")]


def test_only_gaps_up_to_a_length() -> None:
    assert host_bound_idle(PROFILE, 0, 99_000).time.total_ns == 60_000


def test_time_by_place() -> None:
    places = idle().by_place(PROFILE, lambda name: name.startswith("train.py"))
    assert [(PROFILE.name(place), time_ns) for place, time_ns, _ in places] == [
        ("train.py(3): step", 160_000),
        ("aten::copy_", 70_000),
    ]
    assert places[0][2] == row_of(PROFILE, "aten::mul"), "the longest gap of the place"


@pytest.mark.parametrize(
    ("slowdown", "left_us"),
    [
        (1.0, 60 + 100 + 70),
        (1.5, 60 - 40 + 100 - 10 + 70 - 5),
        (3.0, 100 - 40 + 70 - 20),  # the first gap is shorter than what the kernel before it hides
    ],
)
def test_what_a_faster_host_would_leave(slowdown: float, left_us: int) -> None:
    assert idle().beyond_ns(slowdown) == left_us * 1000


def test_how_many_launches_find_the_queue_empty() -> None:
    # The kernel launched at 190 finds one other not yet done, which is shallow, too.
    assert idle().shallow == 1.0
    deep = draw("aten::mm 0-10 kernel=a@20-100 kernel=a@100-200 kernel=a@200-300 kernel=a@300-400", A100)
    assert host_bound_idle(deep, 0, 1e6).shallow == 0.5


def test_idle_parts_are_those_of_all_parts() -> None:
    (lane,) = step_parts(PROFILE.table, ProfileSteps("none", ()))
    idle = {part: time.total_ns for part, time in idle_parts(PROFILE.table, 0).items() if time.total_ns}
    assert idle == {part: times.sum() for part, times in lane.parts.items() if part.startswith("idle")}
