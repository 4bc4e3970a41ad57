"""The ranks of drawn runs beside each other: figures, imbalance, who is here, findings told once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tb_tidy_plugin
from tb_tidy_plugin.analysis.present import doubts_about, missing_of, present_text, ranges_text, world_size_of
from tb_tidy_plugin.analysis.rank_parts import typical_step
from tb_tidy_plugin.analysis.ranks import ranks_of
from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.summary import Operation, RankFinding, RankSummary
from tb_tidy_plugin.report.rank_model import RANK_PARTS, Imbalance, RankRow, Ranks, worst_first
from tb_tidy_plugin.words.causes import Cause
from tests.support.drawn_runs import SITE, STEP_US, draw_run
from tests.support.recorded_ranks import record
from tests.support.recordings import shared

MS = 1_000_000


def changed(run: Run, **fields: Sequence[object]) -> Run:
    """The run with fields of its summaries set, one value per rank."""
    columns = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    ranks = zip(run.ranks, columns, strict=True)
    return Run([msgspec.structs.replace(rank, **values) for rank, values in ranks])


def summaries(*ranks: int, world: int | None = None, workers: Sequence[str] = ()) -> list[RankSummary]:
    (first, *_) = draw_run((0, 0)).ranks
    names = workers or [f"host_{rank}" for rank in ranks]
    return [
        msgspec.structs.replace(first, rank=rank, worker=name, world_size=world)
        for rank, name in zip(ranks, names, strict=True)
    ]


def imbalance(run: Run, what: str) -> Imbalance:
    (found,) = [each for each in ranks_of([run]).imbalances if each.what == what]
    return found


class TestRows:
    def test_have_who_comes_last_and_what_that_costs_the_others(self) -> None:
        """Rank 1 is 2 ms later than both others in all of 4 steps."""
        rows = ranks_of([draw_run(*((0, 2000, 0),) * 4)]).rows
        arrivals = [row.arrivals for row in rows]
        assert [(each.met, each.last) for each in arrivals if each] == [(4, 0), (4, 4), (4, 0)]
        assert [each.late_ns for each in arrivals if each] == [0, 2 * MS, 0]
        assert [each.waited_ns for each in arrivals if each] == [0, 2 * MS, 0]
        assert [each.waits_ns for each in arrivals if each] == [2 * MS, 0, 2 * MS]

    @given(late=st.lists(st.lists(st.integers(0, 3000), min_size=5, max_size=5), min_size=1, max_size=6))
    def test_what_ranks_wait_is_what_others_make_them_wait(self, late: list[list[int]]) -> None:
        """Counted once more from what was drawn: every rank waits for the last one."""
        rows = ranks_of([draw_run(*late)]).rows
        counted = [1000 * sum(max(step) - step[rank] for step in late) / len(late) for rank in range(5)]
        found = [row.arrivals for row in rows]
        assert [each.waits_ns for each in found if each] == pytest.approx(counted, abs=1)
        assert sum(each.waited_ns for each in found if each) * 4 == pytest.approx(sum(counted), abs=25)

    def test_of_the_warm_up_have_no_arrivals(self) -> None:
        rows = ranks_of([draw_run((0, 5000), (0, 100), (0, 100), warmups=1)]).rows
        assert rows[1].arrivals is not None
        assert (rows[1].arrivals.met, rows[1].arrivals.waited_ns) == (2, 100_000)

    def test_that_meet_nobody_say_so(self) -> None:
        alone = draw_run((0, 0), (0, 0), operation=Operation("broadcast", "", 8, None))
        assert [row.arrivals for row in ranks_of([alone]).rows] == [None, None]
        assert [row.clock_ahead_ns for row in ranks_of([alone]).rows] == [0, None]

    def test_have_clocks_with_their_errors(self) -> None:
        """Ends fit exactly, so what is left is the half millisecond that a collective takes after the last arrival."""
        rows = ranks_of([draw_run((0, 50), (70, 0), clocks_us=(0, 5000))]).rows
        assert [(row.clock_ahead_ns, row.clock_error_ns) for row in rows] == [(0, 0), (5 * MS, 500_000)]

    def test_of_a_trace_that_lost_its_time_have_no_clock(self) -> None:
        first, second = draw_run((0, 0), (0, 0)).ranks
        lost = msgspec.structs.replace(second, origin_ns=second.origin_ns - 10**18)
        assert ranks_of([Run([first, lost])]).rows[1].clock_ahead_ns is None

    def test_of_several_recordings_are_the_latest_that_most_ranks_have(self) -> None:
        early, late, later = (draw_run(*((0, us, 0),) * 3) for us in (100, 200, 300))
        moved = [
            Run([msgspec.structs.replace(rank, origin_ns=rank.origin_ns + at * 10**12) for rank in run.ranks[:count]])
            for at, run, count in ((0, early, 3), (1, late, 3), (2, later, 2))
        ]
        ranks = ranks_of(moved)
        assert ranks.rows[1].arrivals is not None
        assert ranks.rows[1].arrivals.waited_ns == 200_000
        assert ranks.notes == ["Each rank has up to 3 recordings; the figures are those of the latest one."]

    def test_come_worst_first(self) -> None:
        rows = ranks_of([draw_run(*((0, 500, 2000),) * 4)]).rows
        assert [row.rank for row in worst_first(rows)] == [2, 0, 1]


class TestPlaces:
    def test_say_who_is_last_most_often(self) -> None:
        (place,) = ranks_of([draw_run((0, 1000), (0, 1000), (2000, 0))]).places
        assert (place.kind, place.bytes, place.file, place.line) == ("all_reduce", 4096, SITE.file, SITE.line)
        assert (place.met, place.last_rank, place.last) == (3, 1, 2)
        assert place.waited_ns == 4000 * 1000 // 3


class TestParts:
    def test_each_is_that_of_a_cause(self) -> None:
        assert {cause.rank_part for cause in Cause} == set(RANK_PARTS)

    def test_are_medians_of_the_steps_that_are_no_warm_up(self, tmp_path: Path) -> None:
        """Counted once more from the ledger's steps, entry by entry."""
        record(tmp_path, 0, 2000)
        (report,) = tb_tidy_plugin.analyze(tmp_path).runs[0].profiles
        step_ns, parts = typical_step(report)
        lengths = sorted(step.end_ns - step.start_ns for step in report.ledger.steps)
        assert step_ns == report.ledger.step_ns.median == lengths[1]
        (waiting,) = (entry for entry in report.ledger.entries if entry.cause is Cause.HOST_COMMUNICATION)
        assert parts["communication"] == sorted(waiting.ns_by_step)[1]

    def test_of_a_device_without_steps_are_its_whole_time(self) -> None:
        path = shared("traces/mi210_gpu_only")
        (report,) = tb_tidy_plugin.analyze(path).runs[0].profiles
        step_ns, parts = typical_step(report)
        assert step_ns is None
        assert sum(parts.values()) == report.ledger.step_ns.mean


class TestImbalance:
    def loading(self, *times_ms: float) -> Run:
        typical = [{"loading": round(ms * MS), "compute": 4 * MS} for ms in times_ms]
        return changed(draw_run([0] * len(times_ms)), typical=typical)

    def test_is_the_most_against_the_middle(self) -> None:
        found = imbalance(self.loading(1, 1, 5, 1), "loading")
        assert (found.rank, found.most, found.middle, found.ratio, found.notable) == (2, 5 * MS, MS, 5.0, True)
        assert found.text == "Rank 2 spends 5 ms of a step on waiting for data: 5.0 times the middle rank's 1 ms."

    def test_below_a_tenth_of_the_step_is_no_matter(self) -> None:
        assert STEP_US == 10_000
        assert not imbalance(self.loading(0.1, 0.1, 1.09), "loading").notable
        assert imbalance(self.loading(0.1, 0.1, 1.1), "loading").notable

    def test_against_nothing_has_no_ratio(self) -> None:
        found = imbalance(self.loading(0, 0, 3), "loading")
        assert (found.ratio, found.notable) == (None, True)
        assert found.text.endswith("3 ms of a step on waiting for data, the middle rank none.")

    def test_of_what_no_rank_has_is_left_out(self) -> None:
        assert [each.what for each in ranks_of([self.loading(0, 0)]).imbalances] == ["compute"]

    def test_that_is_none_says_so(self) -> None:
        found = imbalance(self.loading(1, 1), "compute")
        assert found.text == "Rank 0 spends 4 ms of a step on compute, as the middle rank does."
        assert not found.notable

    def test_of_memory_is_a_part_of_the_middle_peak(self) -> None:
        run = changed(draw_run((0, 0, 0)), memory_peak_bytes=(1 << 30, 1 << 30, 3 << 29))
        found = imbalance(run, "memory")
        assert (found.rank, found.ratio, found.notable) == (2, 1.5, True)
        assert found.text == "Rank 2 holds 1.5 GiB at its peak: 50 % more than the middle rank's 1 GiB."

    def test_of_memory_leaves_out_ranks_without_it(self) -> None:
        run = changed(draw_run((0, 0, 0)), memory_peak_bytes=(None, 1 << 20, 1 << 20))
        assert imbalance(run, "memory").middle == 1 << 20


class TestWhoIsHere:
    @pytest.mark.parametrize(
        ("ranks", "world", "missing", "text"),
        [
            (range(8), 8, 0, "World size 8: all ranks are here."),
            (range(7), 8, 1, "World size 8: ranks 0–6 are here, 7 is missing."),
            ((0, 1), 128, 126, "World size 128: ranks 0, 1 are here, 2–127 are missing."),
            ((3,), 8, 7, "World size 8: rank 3 is here, 0–2, 4–7 are missing."),
            ((0, 2), None, 0, "Ranks 0, 2 are here; how many there should be is not known."),
            ((0, 1), 10**12, 10**12 - 2, "World size 1000000000000: ranks 0, 1 are here, 2–999999999999 are missing."),
        ],
    )  # fmt: skip
    def test_is_a_sentence(self, ranks: Sequence[int], world: int | None, missing: int, text: str) -> None:
        found = summaries(*ranks, world=world)
        assert (present_text(found), missing_of(found)) == (text, missing)
        assert doubts_about(found) == []

    def test_long_lists_end(self) -> None:
        assert ranges_text(range(0, 100, 3)).endswith("27, 30, 33 and more")

    def test_world_sizes_that_disagree_are_of_different_jobs(self) -> None:
        found = [*summaries(0, 1, 2, world=8), *summaries(3, world=4)]
        assert world_size_of(found) is None
        (doubt,) = doubts_about(found)
        assert "disagree about the world size: 4 by rank 3, 8 by ranks 0–2" in doubt

    def test_a_rank_that_two_workers_recorded(self) -> None:
        found = summaries(0, 1, 1, world=2, workers=("a", "b", "c"))
        (doubt,) = doubts_about(found)
        assert doubt.startswith(
            "Rank 1 was recorded by more than one worker, `b` and `c`: two jobs may lie in this folder"
        )

    def test_several_spans_of_one_worker_are_none_of_that(self) -> None:
        assert doubts_about(summaries(0, 0, 1, world=2, workers=("a", "a", "b"))) == []

    def test_a_rank_that_the_world_has_no_room_for(self) -> None:
        (doubt,) = doubts_about(summaries(0, 1, 9, world=2))
        assert doubt == "A job of world size 2 has no rank 9: another job may have been recorded here, too."


class TestSharedFindings:
    def found(self, *costs_ms: int | None) -> Ranks:
        """One finding, by what it costs on each rank; None where a rank does not have it."""
        findings = [
            [] if ms is None else [RankFinding("f1", "some-rule", "high", f"{ms} ms", ms * MS, ms * MS // 2)]
            for ms in costs_ms
        ]
        return ranks_of([changed(draw_run([0] * len(costs_ms)), findings=findings)])

    def test_are_told_once_with_the_worst_rank(self) -> None:
        (finding,) = self.found(1, 2, None, 9).findings
        assert (finding.ranks, finding.worst_rank, finding.cost_ns, finding.saving_ns) == (
            [0, 1, 3],
            3,
            9 * MS,
            9 * MS // 2,
        )
        assert (finding.message, finding.text) == ("9 ms", "on 3 of 4 ranks, worst rank 3")

    @pytest.mark.parametrize(
        ("costs", "text"),
        [
            ((5, 5, 5), "on all 3 ranks, worst rank 0"),
            ((1, 2), "on both ranks, worst rank 1"),
            ((None, 4, None), "on rank 1 only"),
        ],
    )
    def test_say_how_many_ranks(self, costs: Sequence[int | None], text: str) -> None:
        (finding,) = self.found(*costs).findings
        assert finding.text == text

    def test_are_those_of_the_reports(self, tmp_path: Path) -> None:
        """Counted once more from the profiles of the same report."""
        path = shared("traces/ranks128_sampled")
        (run,) = tb_tidy_plugin.analyze(path).runs
        assert run.ranks is not None
        having = {each.id: each.ranks for each in run.ranks.findings}
        ids = {finding.id for profile in run.profiles for finding in profile.findings}
        assert having == {
            each: [p.rank for p in run.profiles if each in {finding.id for finding in p.findings}] for each in ids
        }
        assert [row.findings for row in run.ranks.rows] == [len(profile.findings) for profile in run.profiles]


def test_a_row_for_every_rank_of_a_large_job() -> None:
    ranks = ranks_of([draw_run(*([0] * 256,) * 4)])
    assert [row.rank for row in ranks.rows] == list(range(256))
    assert all(isinstance(row, RankRow) for row in ranks.rows)
