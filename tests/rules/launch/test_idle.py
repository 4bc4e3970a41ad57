"""Idle time of a device that is launch overhead."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.rules.launch.gpu_idle_host_bound.idle import HostBoundIdle, host_bound_idle

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


def idle(profile: Profile = PROFILE) -> HostBoundIdle:
    found = host_bound_idle(profile)
    assert found is not None
    return found


def test_gaps_whose_next_work_was_launched_late() -> None:
    # Each until the launch returns, which takes 1 µs. What runs from 300 on was launched at 190: of the pause before,
    # as much as it takes belongs to the queue. At 500 a batch loads. After 600 nothing is launched.
    assert [*zip(idle().time.starts.tolist(), idle().time.ends.tolist(), strict=True)] == [
        (0, 11_000),
        (100_000, 151_000),
        (200_000, 280_000),
        (320_000, 401_000),
        (430_000, 500_000),
        (600_000, 1_000_000),
    ]
    assert idle().in_gap_ns.tolist() == [11_000, 51_000, 80_000, 81_000, 70_000, 400_000]
    assert idle().after_ns.tolist() == [0, 80_000, 40_000, 20_000, 10_000, 40_000], "work just before each"
    assert idle().between == pytest.approx((51 + 80 + 81 + 70) / (11 + 51 + 80 + 81 + 70 + 400))


def test_the_event_that_each_gap_waited_for() -> None:
    events = dict.fromkeys(PROFILE.name(row) for row in idle().ended_by)
    assert [*events] == ["aten::mm", "aten::add", "aten::mul", "aten::copy_", "train.py(3): step"]
    assert idle().longest(1) == [row_of(PROFILE, "train.py(3): step")], "which runs until the end"


def test_nothing_where_the_ledger_has_no_such_time() -> None:
    assert host_bound_idle(draw("aten::mm 0-10\naten::mm 20-30")) is None


def test_time_by_place() -> None:
    places = idle().by_place(PROFILE, lambda name: name.startswith("train.py"))
    assert [(PROFILE.name(place), time_ns) for place, time_ns, _ in places] == [
        ("train.py(3): step", 623_000),
        ("aten::copy_", 70_000),
    ]
    assert places[0][2] == row_of(PROFILE, "train.py(3): step"), "the longest gap of the place"


@pytest.mark.parametrize(
    ("slowdown", "left_us"),
    [
        (1.0, 11 + 51 + 80 + 81 + 70 + 400),
        (1.5, 11 + 51 - 40 + 80 - 20 + 81 - 10 + 70 - 5 + 400 - 20),
        (3.0, 11 + 81 - 40 + 70 - 20 + 400 - 80),  # two gaps are no longer than what the kernel before them hides
    ],
)
def test_what_a_faster_host_would_leave(slowdown: float, left_us: int) -> None:
    assert idle().beyond_ns(slowdown) == left_us * 1000


def test_how_many_launches_find_the_queue_empty() -> None:
    # The kernel launched at 190 finds one other not yet done, which is shallow, too.
    assert idle().shallow == 1.0
    deep = draw("aten::mm 0-10 kernel=a@20-100 kernel=a@100-200 kernel=a@200-300 kernel=a@300-400", A100)
    assert idle(deep).shallow == 0.5
