"""workers-started-every-epoch: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.data_loading.workers_started_every_epoch import WorkersStartedEveryEpoch

START = "multiprocessing/process.py(110): start"


def job(epochs: int = 3, start: str = START, steps: int = 3) -> Profile:
    """Steps of 1 ms, of which the first ones start two workers for 300 µs and stop them for 50 µs."""
    lines = []
    for number in range(steps):
        at = 1000 * number
        lines += [f"ProfilerStep#{number} {at}-{at + 990}", f"  train.py(4): epoch {at + 1}-{at + 989}"]
        if number < epochs:
            lines += [
                f"    torch/utils/data/dataloader.py(433): _get_iterator {at + 100}-{at + 400}",
                f"      {start} {at + 110}-{at + 200}",
                f"      {start} {at + 210}-{at + 300}",
                f"    torch/utils/data/dataloader.py(1600): _shutdown_workers {at + 800}-{at + 850}",
            ]
    return draw("\n".join(lines))


class TestReports:
    def test_each_start_but_the_first(self) -> None:
        (finding,) = findings(WorkersStartedEveryEpoch, job())
        assert finding.message == (
            "A `DataLoader` starts its workers again for each epoch, which takes 250 µs per step"
        )
        assert "It starts 2 processes 3 times in the profile" in str(finding.details[0])
        assert [place.function for place in finding.places] == ["epoch"]


class TestSaves:
    def test_two_starts_and_three_stops_in_three_steps(self) -> None:
        assert saving_ns(WorkersStartedEveryEpoch, job()) == (0, 250_000, 250_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(epochs=1), id="one start"),
            pytest.param(job(start="torch/utils/data/dataloader.py(9): _reset"), id="workers that stay"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(WorkersStartedEveryEpoch, profile) == ()
