"""guards-take-long: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.guards_take_long import GuardsTakeLong

ONE_SLOW = "\n".join(
    f"ProfilerStep#{at // 20000} {at}-{at + 19900}\n  TorchDynamo Cache Lookup {at + 10}-{at + 10 + slow}\n"
    f"  Torch-Compiled Region: 0/0 {at + 5000}-{at + 9000}"
    for at, slow in ((20000, 30), (40000, 4500), (60000, 30))
)


def job(guards_us: int = 1000, calls: int = 1, step: str = "ProfilerStep#1", lookup: str = "Lookup") -> Profile:
    """A step of 20 ms with compiled calls of 4 ms and their look-ups."""
    lines = [f"{step} 0-20000", "  train.py(9): step 1-19999"]
    for at in range(10, 10 + 4900 * calls, 4900):
        lines += [
            f"    TorchDynamo Cache {lookup} {at}-{at + guards_us}",
            f"    Torch-Compiled Region: 0/0 {at + guards_us + 1}-{at + 3990}",
            f"      AOTDispatcher Runtime Wrapper Prologue {at + 3960}-{at + 3980}",
        ]
    return draw("\n".join(lines))


class TestReports:
    def test_the_calls_where_they_are_made(self) -> None:
        (finding,) = findings(GuardsTakeLong, job(calls=2))
        assert finding.message == "Evaluating guards takes 2 ms per step, 10 % of it, for 2 compiled calls"
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "step")]
        assert "skip_guard_eval_unsafe" in finding.fix


class TestSaves:
    def test_four_fifths_of_the_look_ups(self) -> None:
        assert saving_ns(GuardsTakeLong, job()) == (0, 800_000, 900_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(guards_us=550), id="quick guards"),
            pytest.param(job(calls=4), id="many regions"),
            pytest.param(draw("ProfilerStep#1 0-2000\n  TorchDynamo Cache Lookup 10-410"), id="a short step"),
            pytest.param(draw(ONE_SLOW), id="one slow look-up in three steps"),
            pytest.param(job(step="## part"), id="steps that are not marked"),
            pytest.param(job(lookup="Miss"), id="no look-ups"),
            pytest.param(draw("ProfilerStep#1 0-99\n  aten::mm 1-9"), id="eager code"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(GuardsTakeLong, profile) == ()
