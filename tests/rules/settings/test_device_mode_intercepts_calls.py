"""device-mode-intercepts-calls: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.settings.device_mode_intercepts_calls import DeviceModeInterceptsCalls

MODE = "torch/utils/_device.py(118): __torch_function__"


def job(calls: int = 100, frame: str = MODE, step: str = "ProfilerStep#1") -> Profile:
    """Calls of 10 µs, of which the operator takes 6."""
    lines = [f"{step} 0-5000", "  model.py(4): forward 1-4999"]
    for number in range(calls):
        at = 10 + 20 * number
        lines += [f"    {frame} {at}-{at + 10}", f"      aten::relu {at + 2}-{at + 8} dims=8x8 types=float"]
    return draw("\n".join(lines))


class TestReports:
    def test_the_frames_own_time(self) -> None:
        (finding,) = findings(DeviceModeInterceptsCalls, job())
        assert finding.message == "A default device intercepts 100 calls per step, which takes 400 µs"
        assert [place.function for place in finding.places] == ["forward"]


class TestSaves:
    def test_half_of_it(self) -> None:
        low, expected, high = saving_ns(DeviceModeInterceptsCalls, job())
        assert (low, high) == (0, 400_000)
        assert expected == pytest.approx(200_000, rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(calls=99), id="fewer calls"),
            pytest.param(job(frame="torch/overrides.py(118): __torch_function__"), id="another mode"),
            pytest.param(job(step="## part"), id="steps that are not marked"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(DeviceModeInterceptsCalls, profile) == ()
