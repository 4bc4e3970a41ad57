"""Page faults that only recorded steps have: which operators' time they are, and what that changes in a saving."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.estimate.faults import fault_time
from tb_tidy_plugin.estimate.host import host_lanes
from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Remove
from tb_tidy_plugin.rulekit.testing import draw
from tests.support.known import with_faults

US = 1000


def step(number: int, *lines: str) -> str:
    """A step of 990 µs."""
    return "\n".join([f"ProfilerStep#{number} {number * 1000 - 1000}-{number * 1000 - 10}", *lines])


def two_steps() -> Profile:
    """In each step two long operators that make tensors, and others that do not or are short."""
    steps = (
        step(
            1 + base // 1000,
            f"  aten::cat {base + 100}-{base + 300}",
            f"  aten::contiguous {base + 301}-{base + 403}",
            f"    aten::clone {base + 302}-{base + 402}",
            f"      aten::copy_ {base + 310}-{base + 401}",
            f"  aten::mm {base + 404}-{base + 600}",
            f"  aten::add_ {base + 602}-{base + 700}",
            f"  aten::mul {base + 702}-{base + 719}",
            f"  library::mul {base + 720}-{base + 800}",
        )
        for base in (0, 1000)
    )
    return draw("\n".join(steps))


def fault_us(profile: Profile, *names: str) -> list[float]:
    """The faults' µs in all operators of each name."""
    host = host_lanes(profile)
    times = fault_time(profile, host)
    assert times is not None
    found = []
    for name in names:
        rows = profile.named(name)
        found.append(sum(times[a:b].sum() for a, b in zip(host.start_cut[rows], host.end_cut[rows], strict=True)) / US)
    here = np.flatnonzero(times)
    assert np.all(times[here] <= host.work_ns(here))
    return found


class TestTime:
    def test_long_operators_that_make_tensors_share_it_by_their_time(self) -> None:
        """150 faults more than usual in the first step, none in the second; its 8 operators take 450 bytes each."""
        profile = with_faults(two_steps(), (250, 100), usual=100, each_ns=1000)
        beyond_us = 150 - 8 * 450 / 4096
        assert fault_us(profile, "aten::cat", "aten::clone") == pytest.approx([beyond_us * 2 / 3, beyond_us / 3])
        assert fault_us(profile, "aten::mm", "aten::add_", "aten::mul", "library::mul") == [0, 0, 0, 0]

    def test_it_is_most_of_their_time_at_most(self) -> None:
        profile = with_faults(two_steps(), (10_000, 10_000), usual=0, each_ns=1000)
        assert fault_us(profile, "aten::cat", "aten::clone") == pytest.approx([0.8 * 400, 0.8 * 200])

    def test_steps_that_are_marked_otherwise_share_the_mean(self) -> None:
        profile = with_faults(two_steps(), (30, 150, 120), usual=50, each_ns=1000)
        beyond_us = 50 - 8 * 450 / 4096
        assert fault_us(profile, "aten::cat") == pytest.approx([2 * beyond_us * 2 / 3])

    def test_it_is_not_known_without_counts(self) -> None:
        assert fault_time(two_steps(), host_lanes(two_steps())) is None

    @pytest.mark.parametrize("recorded", [(90, 0), ()])
    def test_there_is_none_without_more_faults_than_usual(self, recorded: tuple[int, ...]) -> None:
        times = fault_time(with_faults(two_steps(), recorded, 100, 1000), host_lanes(two_steps()))
        assert times is not None
        assert not times.any()


def test_savings_of_a_true_step_leave_the_faults_out() -> None:
    """Of 990 µs recorded 840 are true: 150 are faults in operators that move memory, and a product is as it was."""
    profile = with_faults(two_steps(), (150, 150), usual=0, each_ns=1003)
    for recorded, name, left_us in ((two_steps(), "aten::mm", 196 * 840 / 990), (profile, "aten::mm", 196)):
        fix = Fix([Remove(tuple(recorded.named(name).tolist()))])
        saving = SavingEstimates(recorded, true_step_ns=840 * US).saving(fix)
        assert saving.expected_ns == pytest.approx(1.2 * left_us * US, rel=0.02), "with a fifth that others gain"
    cats = Fix([Remove(tuple(profile.named("aten::cat").tolist()))])
    assert SavingEstimates(profile, true_step_ns=840 * US).saving(cats).expected_ns == pytest.approx(
        1.2 * (200 - 100) * US, rel=0.02
    )
