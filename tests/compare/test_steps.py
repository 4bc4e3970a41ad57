"""The verdict on step times knows noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.compare.compare import few_steps
from tb_tidy_plugin.compare.model import Ratio
from tb_tidy_plugin.compare.steps import is_vague, step_ratio, verdict_of
from tb_tidy_plugin.words.vocabulary import Verdict
from tests.support.step_recordings import recording

MS = 1_000_000


def judged(base: list[int], candidate: list[int]) -> tuple[Ratio, Verdict]:
    ratio = step_ratio([base], [candidate])
    assert ratio is not None
    assert ratio.low <= ratio.value <= ratio.high
    return ratio, verdict_of(ratio)


def test_steps_that_are_clearly_shorter() -> None:
    ratio, verdict = judged([100 * MS, 101 * MS, 99 * MS, 100 * MS], [60 * MS, 61 * MS, 59 * MS, 60 * MS])
    assert ratio.value == pytest.approx(0.6)
    assert verdict == "faster"


def test_steps_that_are_clearly_longer() -> None:
    assert judged([60 * MS, 61 * MS, 59 * MS], [100 * MS, 101 * MS, 99 * MS])[1] == "slower"


def test_equal_steps_are_never_told_apart_by_less_than_recordings_differ() -> None:
    assert judged([100 * MS] * 50, [102 * MS] * 50)[1] == "no_clear_difference"
    assert judged([100 * MS] * 50, [105 * MS] * 50)[1] == "slower"


def test_one_step_shows_no_spread() -> None:
    assert judged([100 * MS], [60 * MS])[1] == "no_clear_difference"
    assert judged([100 * MS], [40 * MS, 41 * MS])[1] == "faster"


def test_without_steps_there_is_no_ratio() -> None:
    assert step_ratio([[]], [[1]]) is None
    assert step_ratio([[1]], []) is None
    assert verdict_of(None) == "no_clear_difference"


def test_the_same_answer_each_time() -> None:
    base, candidate = [100 * MS, 130 * MS, 90 * MS], [95 * MS, 99 * MS, 120 * MS]
    assert judged(base, candidate) == judged(base, candidate)


@pytest.mark.parametrize("steps", [2, 3, 4, 6, 20, 100])
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.4])
def test_the_same_program_twice_is_no_difference_nineteen_times_in_twenty(steps: int, spread: float) -> None:
    """Steps of one lognormal distribution, recordings that differ by as much as is allowed for."""
    random = np.random.default_rng(steps)
    tries, wrong = 100, 0
    for _ in range(tries):
        sides = [
            (MS * random.lognormal(random.normal(0, 0.008), spread, steps)).astype(np.int64).tolist() for _ in range(2)
        ]
        wrong += judged(*sides)[1] != "no_clear_difference"
    assert wrong <= 0.06 * tries


@pytest.mark.parametrize("steps", [4, 10])
def test_a_difference_of_a_third_is_seen_in_quiet_steps(steps: int) -> None:
    random = np.random.default_rng(1)
    seen = 0
    for _ in range(100):
        base = (MS * random.lognormal(0, 0.03, steps)).astype(np.int64).tolist()
        candidate = (MS / 1.5 * random.lognormal(0, 0.03, steps)).astype(np.int64).tolist()
        seen += judged(base, candidate)[1] == "faster"
    assert seen >= 99


class TestIntervalsThatSayNothing:
    def test_two_steps_that_differ_are_no_basis(self) -> None:
        ratio = step_ratio([[1_072_000, 20_000]], [[499_000, 9_000]])
        assert ratio is not None
        assert is_vague(ratio)
        assert ratio.high / ratio.low <= 1.2e6, "no astronomic figures"
        assert verdict_of(ratio) == "no_clear_difference"

    def test_ordinary_noise_is(self) -> None:
        ratio = step_ratio([[100, 110, 105, 95, 150]], [[100, 90, 105, 95, 150]])
        assert ratio is not None
        assert not is_vague(ratio)

    @pytest.mark.parametrize(
        ("steps", "advice"),
        [
            (6, "6 and 6 steps are too few for how much they differ. Record 10 or more on each side."),
            (
                12,
                "12 and 12 steps differ too much among themselves to compare times. Record both sides again, in turns.",
            ),
        ],
    )
    def test_more_steps_are_asked_for_while_there_are_few(self, steps: int, advice: str) -> None:
        """Every other step takes ten thousand times as long."""
        noisy = [1000, 10_000_000] * (steps // 2)
        ratio = step_ratio([noisy], [noisy])
        assert ratio is not None
        assert is_vague(ratio)
        assert [advice] == [note.removeprefix("The ") for note in few_steps(noisy, noisy, ratio)]

    @pytest.mark.parametrize("form", ["text", "markdown", "json"])
    def test_the_comparison_says_what_to_record(self, tmp_path: Path, form: str) -> None:
        sides = [recording(tmp_path / name, us, steps=2, slow_step=1) for name, us in (("a", 40_000), ("b", 90_000))]
        output = " ".join(CliRunner().invoke(commands, ["compare", *map(str, sides), "--format", form]).output.split())
        assert "2 and 2 steps are too few to compare times. Record 10 or more on each side." in output
        if form != "json":
            assert "(no interval)" in output
            assert "e+" not in output
