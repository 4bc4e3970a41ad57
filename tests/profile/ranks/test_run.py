"""Ranks together: clocks set by the ends of collectives, and who waits for whom."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.summary import Operation, RankSummary
from tb_tidy_plugin.system.decoders import decode
from tests.support.drawn_runs import REDUCE, draw_run

LATE = ((0, 900, 300), (500, 0, 100), (0, 200, 700))


def seen_from(run: Run, *ranks: int) -> Run:
    """The same run with only these ranks."""
    return Run([rank for rank in run.ranks if rank.rank in ranks])


class TestClocks:
    @given(
        late=st.lists(st.lists(st.integers(0, 5000), min_size=4, max_size=4), min_size=1, max_size=8),
        clocks=st.lists(st.integers(-(10**12), 10**12), min_size=4, max_size=4),
    )
    @settings(max_examples=60, deadline=None)
    def test_made_up_offsets_are_recovered(self, late: list[list[int]], clocks: list[int]) -> None:
        run = draw_run(*late, clocks_us=clocks)
        assert run.clocks_ns == tuple(1000 * (clock - clocks[0]) for clock in clocks)
        assert run.clock_error_ns == 0

    @given(clocks=st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=3))
    @settings(max_examples=30, deadline=None)
    def test_who_waits_for_whom_does_not_depend_on_the_clocks(self, clocks: list[int]) -> None:
        true, skewed = draw_run(*LATE).meetings, draw_run(*LATE, clocks_us=clocks).meetings
        assert skewed.late_ns().tolist() == true.late_ns().tolist()
        assert skewed.waits_ns().tolist() == true.waits_ns().tolist()

    @given(jitter=st.lists(st.lists(st.integers(-50, 50), min_size=3, max_size=3), min_size=15, max_size=15))
    @settings(max_examples=30, deadline=None)
    def test_ends_that_jitter_set_clocks_to_within_the_jitter(self, jitter: list[list[int]]) -> None:
        late = [[0, 0, 0]] * len(jitter)
        clocks = (0, 123_456, -98_765)
        ranks = []
        for rank, by in zip(draw_run(*late, clocks_us=clocks).ranks, zip(*jitter, strict=True), strict=True):
            ends = [end + 1000 * us for end, us in zip(rank.collectives.end_ns, by, strict=True)]
            ranks.append(
                msgspec.structs.replace(rank, collectives=msgspec.structs.replace(rank.collectives, end_ns=ends))
            )
        run = Run(ranks)
        wrong = [abs((found or 0) - 1000 * clock) for found, clock in zip(run.clocks_ns, clocks, strict=True)]
        assert max(wrong) <= 100_000
        assert run.clock_error_ns <= 100_000

    def test_along_ranks_that_meet(self) -> None:
        """Rank 2 meets rank 1 only, in a group of their own."""
        whole = draw_run(*LATE, clocks_us=(0, 40, -70))
        first, middle, last = whole.ranks
        pair = msgspec.structs.replace(REDUCE, group="pair")
        both = msgspec.structs.replace(
            middle,
            operations=[REDUCE, pair],
            collectives=msgspec.structs.replace(middle.collectives, operation=[0, 0, 1]),
        )
        alone = msgspec.structs.replace(
            last, operations=[pair], collectives=msgspec.structs.replace(last.collectives, position=[0, 0, 0])
        )
        assert Run([first, both, alone]).clocks_ns == (0, 40_000, -70_000)

    def test_of_a_rank_that_meets_nobody_are_unknown(self) -> None:
        first, second, third = draw_run(*LATE).ranks
        stranger = msgspec.structs.replace(third, operations=[msgspec.structs.replace(REDUCE, group="other")])
        run = Run([first, second, stranger])
        assert run.clocks_ns == (0, 0, None)
        assert not run.meetings.there[:, 2].any()


class TestMeetings:
    def test_each_rank_waits_from_its_start_to_that_of_the_last(self) -> None:
        waits = draw_run(*LATE).meetings.waits_ns()
        assert waits.tolist() == [[900_000, 0, 600_000], [0, 500_000, 400_000], [700_000, 500_000, 0]]

    def test_lateness_is_against_the_middle_rank(self) -> None:
        late = draw_run(*LATE).meetings.late_ns()
        assert late.tolist() == [[-300_000, 600_000, 0], [400_000, -100_000, 0], [-200_000, 0, 500_000]]

    def test_waiting_behind_other_work_is_none(self) -> None:
        assert draw_run(*LATE, exposed_us=100).meetings.waits_ns().max() == 100_000

    def test_waiting_in_two_collectives_at_once_counts_once(self) -> None:
        """Two buckets: the second one is begun while the first one still waits for rank 1, by 1 ms."""
        early, late = draw_run((0, 1000), (0, 1000)).ranks
        together = [
            msgspec.structs.replace(
                rank,
                collectives=msgspec.structs.replace(
                    rank.collectives,
                    step=[0, 0],
                    position=[0, 1],
                    start_ns=starts,
                    end_ns=[2_500_000, 3_000_000],
                    exposed_ns=[5_000_000, 5_000_000],
                ),
            )
            for rank, starts in ((early, [1_000_000, 1_400_000]), (late, [2_000_000, 2_100_000]))
        ]
        # 1000 us in the first one; in the second one from 2000 to 2100 only.
        assert Run(together).meetings.waits_ns().tolist() == [[1_000_000, 0], [100_000, 0]]

    @pytest.mark.parametrize("kind", ["broadcast", "send_recv", "reduce"])
    def test_collectives_that_a_rank_may_leave_early_tell_nothing(self, kind: str) -> None:
        assert not len(draw_run(*LATE, operation=Operation(kind, "0", 4096, None)).meetings)

    def test_what_one_rank_ends_before_another_has_come_is_no_meeting(self) -> None:
        """Two groups of one name: the third collective of rank 1 has nothing to do with that of rank 0."""
        first, second = draw_run(*((0, 0),) * 3).ranks
        starts = [*second.collectives.start_ns[:2], second.collectives.start_ns[2] + 5_000_000]
        ends = [*second.collectives.end_ns[:2], second.collectives.end_ns[2] + 5_000_000]
        columns = msgspec.structs.replace(second.collectives, start_ns=starts, end_ns=ends)
        assert len(Run([first, msgspec.structs.replace(second, collectives=columns)]).meetings) == 2

    def test_steps_are_those_that_two_ranks_have_and_that_are_no_warm_up(self) -> None:
        first, second = draw_run(*((0, 0),) * 4, warmups=1).ranks
        shorter = msgspec.structs.replace(second, steps=second.steps[:3])
        columns = msgspec.structs.replace(second.collectives, step=[0, 1, 2, -1])
        run = Run([first, msgspec.structs.replace(shorter, collectives=columns)])
        assert run.steps == ("ProfilerStep#1", "ProfilerStep#2")
        assert run.step_ns == 10_000_000


def test_a_run_of_nobody_knows_nothing() -> None:
    run = Run([])
    assert (run.clocks_ns, run.steps, run.step_ns, len(run.meetings)) == ((), (), 0, 0)


def test_256_ranks_travel_in_little_and_arrive_unchanged() -> None:
    random = np.random.default_rng(0)
    run = draw_run(*random.integers(0, 300, (100, 256)).tolist())
    encoded = msgspec.json.encode(run.ranks)
    assert len(encoded) / 256 / 100 < 150  # bytes of one collective and one step
    assert decode(encoded, tuple[RankSummary, ...]) == run.ranks
