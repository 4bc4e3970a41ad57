"""checkpoint-saved-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.host_device.checkpoint_saved_in_step import CheckpointSavedInStep

SAVE = "torch/serialization.py(964): save"


def job(saving: int = 2, steps: int = 4, frame: str = SAVE) -> Profile:
    """Steps of 1 ms, of which the first ones save for 400 µs."""
    lines = []
    for number in range(steps):
        at = 1000 * number
        lines += [f"ProfilerStep#{number} {at}-{at + 990}", f"  train.py(4): train {at + 1}-{at + 989}"]
        lines += [f"    {frame} {at + 100}-{at + 500}"] if number < saving else []
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize("frame", [SAVE, "torch/distributed/checkpoint/state_dict_saver.py(80): save"])
    def test_saves_in_half_of_the_steps(self, frame: str) -> None:
        (finding,) = findings(CheckpointSavedInStep, job(frame=frame))
        assert finding.message == "Saving checkpoints in the step takes 200 µs per step"
        assert "`save` runs 2 times in 4 steps" in str(finding.details[0])
        assert [place.function for place in finding.places] == ["train"]


class TestSaves:
    def test_what_can_be_written_beside_the_next_steps(self) -> None:
        low, expected, high = saving_ns(CheckpointSavedInStep, job())
        assert (low, high) == (0, 200_000)
        assert expected == pytest.approx(180_000, rel=0.01)


class TestStaysQuiet:
    def test_for_fewer(self) -> None:
        assert matches_of(CheckpointSavedInStep, job(saving=1)) == ()

    def test_for_a_save_in_the_background(self) -> None:
        frame = "torch/distributed/checkpoint/state_dict_saver.py(80): async_save"
        assert matches_of(CheckpointSavedInStep, job(frame=frame)) == ()
