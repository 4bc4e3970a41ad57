"""The bound on what edits save."""

from __future__ import annotations

from tb_tidy_plugin.estimate.saving import SavedTime, bound
from tb_tidy_plugin.rulekit import Edit, Overlap, Profile, Remove, Scale, Unblock
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of

TWO_STEPS = """
ProfilerStep#1  0-1000
  load          10-210
  aten::mm      300-400
    aten::add   310-360
  wait          500-600
ProfilerStep#2  1001-2001
  load          1010-1810
"""


def saved(*edits: Edit) -> tuple[int, int, int]:
    saving: SavedTime = bound(PROFILE, edits)
    assert saving.basis == ("bound",)
    return saving.expected_ns, saving.low_ns, saving.high_ns


PROFILE = draw(TWO_STEPS)
LOADS = (row_of(PROFILE, "load"), row_of(PROFILE, "load", 1))
MM, ADD, WAIT = (row_of(PROFILE, name) for name in ("aten::mm", "aten::add", "wait"))


def test_removed_events_save_their_time_per_step() -> None:
    assert saved(Remove((MM,))) == (50_000, 0, 50_000)


def test_time_inside_removed_time_counts_once() -> None:
    assert saved(Remove((MM,)), Remove((ADD,))) == (50_000, 0, 50_000)


def test_a_wait_saves_at_most_itself() -> None:
    assert saved(Unblock(WAIT)) == (50_000, 0, 50_000)


def test_scaled_events_save_the_rest() -> None:
    assert saved(Scale((MM,), factor=0.5, low=0.2, high=0.9)) == (25_000, 0, 40_000)


def test_scaled_time_inside_removed_time_is_gone_already() -> None:
    assert saved(Remove((MM,)), Scale((ADD,), factor=0.5, low=0.2, high=0.9)) == (50_000, 0, 50_000)


def test_work_beside_the_step_hides_behind_its_rest() -> None:
    """500 µs of 1000 µs per step are loading, so 500 µs are left to hide it behind."""
    assert saved(Overlap(LOADS)) == (500_000, 0, 500_000)


def test_more_work_than_the_rest_of_the_step_cannot_all_hide() -> None:
    profile = draw("ProfilerStep#1  0-1000\n  load  100-900")
    saving = bound(profile, [Overlap((row_of(profile, "load"),))])
    assert (saving.expected_ns, saving.high_ns) == (200_000, 800_000)


def test_device_work_counts_in_the_step_that_launched_it() -> None:
    profile: Profile = draw("ProfilerStep#1  0-100\n  aten::mm  10-20  kernel=gemm@200-260", A100)
    assert bound(profile, [Remove((row_of(profile, "gemm"),))]).expected_ns == 60_000


def test_a_host_that_runs_ahead_of_the_device_is_not_expected_to_save() -> None:
    """The kernel of 600 µs hides 100 of the 150 µs that the host adds; all of them are the bound."""
    profile = draw(
        "ProfilerStep#1  0-1000\n  aten::mm  10-20  kernel=gemm@20-620\n  aten::add  520-670  kernel=add@675-680", A100
    )
    saving = bound(profile, [Remove((row_of(profile, "aten::add"),))])
    assert (saving.expected_ns, saving.high_ns) == (50_000 + 5_000, 150_000 + 5_000)


def test_lost_time_is_saved_instead_of_the_events_own() -> None:
    """Per step: 100 µs of the span that lie in steps, of which half are scaled away."""
    lost = [(900_000, 1_000_000), (950_000, 1_000_000), (1_001_000, 1_101_000), (5_000_000, 6_000_000)]
    saving = bound(PROFILE, [Scale((MM,), factor=0.5, low=0.2, high=0.9)], lost)
    assert (saving.expected_ns, saving.low_ns, saving.high_ns) == (50_000, 0, 80_000)


def test_nothing_saves_nothing() -> None:
    assert saved() == (0, 0, 0)
