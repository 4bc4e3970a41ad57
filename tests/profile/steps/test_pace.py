"""How long a step takes: as marked, as devices take for it, and without the profiler."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.host.critical import clipped_to_steps
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw
from tests.support.known import with_true_step

US = 1000


def two_steps(kernels_end_us: tuple[int, int], first_us: int = 10) -> Profile:
    """Two steps of 1,000 µs on the host, each with a kernel that is done then; the first one begins at `first_us`."""
    first, second = kernels_end_us
    return draw(
        f"""
        ProfilerStep#1  0-1000
          aten::mm      1-9        kernel=gemm@{first_us}-{first}
        ProfilerStep#2  1001-2001
          aten::mm      1002-1008  kernel=gemm@{max(first, 1010)}-{second}
        """,
        A100,
    )


def test_a_host_that_runs_ahead_is_as_slow_as_its_device() -> None:
    pace = two_steps((3_000, 6_001)).pace
    assert pace.behind_ns == (4_000 - 10) * US // 2
    assert pace.recorded_ns == pace.mean_ns == pace.step_ns == 6_001 * US // 2
    assert pace.done_ns == 6_001 * US


def test_a_device_that_is_as_late_in_the_first_step_does_not_fall_behind() -> None:
    late = two_steps((1_700, 2_750), first_us=750).pace
    assert (late.behind_ns, late.done_ns) == (0, 2_750 * US)


def test_a_step_is_the_one_of_the_ledger() -> None:
    profile = two_steps((1_700, 3_100), first_us=750)
    ledger = account_of(profile).ledger
    assert [step.end_ns - step.start_ns for step in ledger.steps] == [1_700 * US, 1_400 * US]
    assert (profile.pace.recorded_ns, profile.pace.mean_ns) == (ledger.step_ns.median, ledger.step_ns.mean)
    assert profile.share_of_step(1_550 * US) == 1.0


def test_a_little_is_chance() -> None:
    assert two_steps((900, 2_110)).pace.behind_ns == 0
    assert two_steps((900, 2_114)).pace.behind_ns > 50 * US


def test_time_after_the_last_step_counts_until_all_is_done() -> None:
    profile = two_steps((3_000, 6_001))
    assert (
        clipped_to_steps(profile, profile.device_busy).total_ns == (6_001 - 10 - 1) * US
    )  # and not what lies between steps
    assert profile.share_of_step(profile.pace.recorded_ns or 0) == 1.0


@pytest.mark.parametrize(("true_us", "step_us"), [(None, 1_000.5), (700, 700), (1_300, 1_000.5)])
def test_the_true_step_counts_where_it_is_shorter(true_us: int | None, step_us: float) -> None:
    profile = two_steps((900, 1_900))
    profile = profile if true_us is None else with_true_step(profile, true_us * US)
    assert profile.pace.step_ns == step_us * US


def test_a_true_step_that_a_host_timed_which_ran_ahead_is_none() -> None:
    pace = with_true_step(two_steps((3_000, 6_001)), 700 * US).pace
    assert pace.true_ns is None
    assert pace.step_ns == pace.recorded_ns
