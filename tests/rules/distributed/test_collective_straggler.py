"""collective-straggler: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tb_tidy_plugin.analysis.runs import findings_about
from tb_tidy_plugin.rulekit import Run, RunMatch
from tb_tidy_plugin.rules.distributed.collective_straggler import CollectiveStraggler
from tests.support.drawn_runs import draw_run

LATE_RANK_1 = ((0, 2000), (0, 2100), (0, 1900), (0, 2000))


def matches(run: Run) -> tuple[RunMatch, ...]:
    rule = CollectiveStraggler()
    assert rule.not_applicable(run) is None
    return tuple(rule.detect(run))


def spread(ranks: int, steps: int, seed: int) -> list[list[int]]:
    """Lateness up to 2 ms that goes round among the ranks by chance."""
    lines: list[list[int]] = np.random.default_rng(seed).integers(0, 2000, (steps, ranks)).tolist()
    return lines


def with_slow(lines: Sequence[Sequence[int]], slow: Sequence[int], by_us: int) -> list[list[int]]:
    """The same with some ranks later by so much."""
    return [[late + by_us * (rank in slow) for rank, late in enumerate(line)] for line in lines]


class TestReports:
    def test_the_rank_that_is_last_in_every_step(self) -> None:
        (finding,) = findings_about(draw_run(*LATE_RANK_1), CollectiveStraggler())
        assert finding.message == "Rank 1 is late to `all_reduce`: the other ranks wait for 2 ms of each step (20 %)"
        assert finding.ranks == [1]
        assert (finding.severity, finding.confidence, finding.matches) == ("high", "high", 4)
        assert [(place.file, place.line, place.function) for place in finding.places] == [("train.py", 5, "step")]
        assert "Last in 4 of 4 steps (by chance 2.0)" in str(finding.details[0])

    def test_it_whatever_the_clocks_say(self) -> None:
        """By its clock rank 1 comes before rank 0."""
        assert [match.ranks for match in matches(draw_run(*LATE_RANK_1, clocks_us=(0, -7000)))] == [(1,)]

    def test_what_it_does_meanwhile(self) -> None:
        entries = (
            {"cpu:matrix": 4_000_000, "data_loading": 500_000},
            {"cpu:matrix": 4_000_000, "data_loading": 2_500_000},
        )
        (match,) = matches(draw_run(*LATE_RANK_1, entries=entries))
        assert match.evidence.extra == "Per step it spends 2 ms more on loading data"
        assert "loading data" in match.evidence.advice

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ("compute:matrix", "matrix products"),
            ("cpu:python", "Python between operators"),
            ("launch_pace", "launching kernels"),
            ("between_kernels", "pauses between kernels"),
        ],
    )
    def test_its_work_by_the_words_of_the_ledger(self, entry: str, words: str) -> None:
        (match,) = matches(draw_run(*LATE_RANK_1, entries=({entry: 1_000_000}, {entry: 3_000_000})))
        assert match.evidence.extra == f"Per step it spends 2 ms more on {words}"

    @pytest.mark.parametrize("entry", ["communication", "host_communication", "stream_wait", "synchronisation"])
    def test_that_its_longer_steps_are_not_explained_by_waiting(self, entry: str) -> None:
        (match,) = matches(draw_run(*LATE_RANK_1, entries=({entry: 1_000_000}, {entry: 3_000_000})))
        assert match.evidence.extra == "Its steps show no work that the others lack"

    def test_all_ranks_of_a_slow_host_together(self) -> None:
        run = draw_run(*with_slow(spread(8, 12, seed=1), slow=(2, 3), by_us=6000))
        (match,) = matches(run)
        assert match.ranks == (2, 3)
        assert match.evidence.who == "Ranks 2, 3 are"

    def test_it_among_ranks_that_are_late_by_chance(self) -> None:
        run = draw_run(*with_slow(spread(16, 12, seed=2), slow=(5,), by_us=3000))
        assert [match.ranks for match in matches(run)] == [(5,)]

    def test_it_although_the_warm_up_and_one_step_were_unlike_the_others(self) -> None:
        run = draw_run((9000, 0), *LATE_RANK_1, (0, 9000), warmups=1)
        (match,) = matches(run)
        assert (match.ranks, match.steps) == ((1,), 5)
        # 2000, 2100, 1900 and 2000 µs, and of 9000 µs no more than twice the middle one.
        assert match.cost_ns == (2000 + 2100 + 1900 + 2000 + 4000) * 1000 / 5


class TestSaves:
    def test_the_time_between_the_last_and_the_second_last_rank_shared_out_among_all(self) -> None:
        """The others wait 2000, 1500 and 1000 µs; without rank 3 the first two would wait 1000 and 500 µs still."""
        (match,) = matches(draw_run(*((0, 500, 1000, 2000),) * 4))
        assert match.cost_ns == 1_500_000
        assert match.saving_ns == 1_000_000 * 3 / 4

    def test_no_more_than_the_others_wait_with_nothing_else_to_do(self) -> None:
        (match,) = matches(draw_run(*LATE_RANK_1, exposed_us=300))
        assert (match.cost_ns, match.saving_ns) == (300_000, 150_000)


class TestStaysQuiet:
    @pytest.mark.parametrize("clocks_us", [(0, 5000), (0, -5000)])
    def test_with_skewed_clocks_and_no_straggler(self, clocks_us: tuple[int, int]) -> None:
        assert not matches(draw_run(*((0, 0),) * 6, clocks_us=clocks_us))

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("ranks", [2, 8, 64])
    def test_with_lateness_that_goes_round_by_chance(self, ranks: int, seed: int) -> None:
        assert not matches(draw_run(*spread(ranks, 10, seed)))

    def test_with_one_outlier_only(self) -> None:
        assert not matches(draw_run((0, 10), (10, 0), (0, 90_000), (10, 0), (0, 10)))

    def test_with_a_rank_that_is_late_in_the_warm_up(self) -> None:
        assert not matches(draw_run((0, 5000), (0, 5000), (10, 0), (0, 10), (10, 0), warmups=2))

    def test_when_one_rank_is_early(self) -> None:
        assert not matches(draw_run(*((0, 2000, 2000, 2000),) * 4))

    def test_when_the_others_have_something_else_to_do(self) -> None:
        (finding,) = findings_about(draw_run(*LATE_RANK_1, exposed_us=500), CollectiveStraggler())
        assert finding.share == CollectiveStraggler().min_share
        (hidden,) = findings_about(draw_run(*LATE_RANK_1, exposed_us=499), CollectiveStraggler())
        assert (hidden.share or 0) < CollectiveStraggler().min_share

    def test_with_too_few_steps(self) -> None:
        rule = CollectiveStraggler()
        assert rule.not_applicable(draw_run(*LATE_RANK_1[:3])) is None
        assert "too few steps besides the warm-up: 2" in (rule.not_applicable(draw_run(*LATE_RANK_1[:2])) or "")
        assert rule.not_applicable(draw_run(*LATE_RANK_1, warmups=2)) is not None

    def test_with_habits_that_are_not_steady_enough(self) -> None:
        """Mean and standard error of the lateness against the middle are 1000 ± 204 µs, then 1000 ± 196 µs."""
        assert not matches(draw_run((0, 1000), (0, 2000), (0, 3000), (0, 2000)))
        assert matches(draw_run((0, 1040), (0, 2000), (0, 2960), (0, 2000)))
