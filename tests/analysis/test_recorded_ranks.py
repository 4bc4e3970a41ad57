"""Eight real ranks on the CPU: the slow one is named, with what it costs; a balanced job names nobody.

What was recorded is counted once more straight from the JSON of the traces. The ranks ran on one machine, by one clock,
so that no clock has to be set right for that.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.report.model import RunReport
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.words.causes import Cause
from tests.support.gloo_ranks import LOADING_RANK, LOADING_S, SLOWED_RANK, WORLD
from tests.support.written import write

pytestmark = pytest.mark.torch

SHIFT_NS = 5_000_000
Event = dict[str, Any]


def report_on(path: Path) -> RunReport:
    (run,) = tb_tidy_plugin.analyze(path).runs
    return run


def ranks_in(path: Path) -> Ranks:
    return ranks_of(report_on(path))


def ranks_of(run: RunReport) -> Ranks:
    assert run.ranks is not None
    return run.ranks


@pytest.fixture(scope="module")
def balanced(gloo_jobs: Path) -> RunReport:
    return report_on(gloo_jobs / "balanced")


@pytest.fixture(scope="module")
def slowed(gloo_jobs: Path) -> RunReport:
    return report_on(gloo_jobs / "slowed")


@pytest.fixture(scope="module")
def loading(gloo_jobs: Path) -> RunReport:
    return report_on(gloo_jobs / "loading")


class PlainRank:
    """One rank's trace as the JSON says it; times in µs of the machine's clock."""

    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_text())
        self.rank: int = document["distributedInfo"]["rank"]
        self.since_us = document["baseTimeNanoseconds"] / 1000
        self.events: list[Event] = [event for event in document["traceEvents"] if event.get("ph") == "X"]
        self.steps = {event["name"]: event for event in self.named(r"ProfilerStep#\d+")}

    def named(self, pattern: str) -> list[Event]:
        return [event for event in self.events if re.fullmatch(pattern, event["name"])]

    def within(self, step: str, pattern: str) -> list[Event]:
        begin, took = self.steps[step]["ts"], self.steps[step]["dur"]
        return [event for event in self.named(pattern) if begin <= event["ts"] < begin + took]

    def comes_us(self, step: str) -> float:
        (reduce,) = self.within(step, "gloo:all_reduce")
        return float(self.since_us + reduce["ts"])


def plain_ranks(folder: Path) -> list[PlainRank]:
    return sorted((PlainRank(path) for path in folder.iterdir()), key=lambda each: each.rank)


def common_steps(ranks: list[PlainRank]) -> list[str]:
    return sorted(set.intersection(*(set(rank.steps) for rank in ranks)))


class TestASlowedRank:
    def test_is_named(self, slowed: RunReport) -> None:
        (finding,) = slowed.findings
        assert finding.ranks == [SLOWED_RANK]

    def test_comes_last_nearly_always(self, slowed: RunReport) -> None:
        late = ranks_of(slowed).rows[SLOWED_RANK].arrivals
        assert late is not None
        assert late.met >= 4
        assert late.last >= late.met - 1

    def test_is_waited_for_as_long_as_the_traces_show(self, slowed: RunReport, gloo_jobs: Path) -> None:
        """The clocks are one, so what is found between them is how wrong they are set; the rest must fit to 10 %."""
        plain, ranks = plain_ranks(gloo_jobs / "slowed"), ranks_of(slowed)
        late = ranks.rows[SLOWED_RANK].arrivals
        assert late is not None
        others = [rank for rank in plain if rank.rank != SLOWED_RANK]
        steps = common_steps(plain)[-ranks.steps :]
        waits = [plain[SLOWED_RANK].comes_us(step) - rank.comes_us(step) for step in steps for rank in others]
        counted_ns = 1000 * fmean(max(wait, 0) for wait in waits)
        wrong_ns = max(abs(row.clock_ahead_ns or 0) for row in ranks.rows)
        assert abs(late.waited_ns - counted_ns) <= wrong_ns + 0.1 * counted_ns

    def test_shows_where_its_time_goes(self, slowed: RunReport) -> None:
        uneven = [(each.what, each.rank) for each in ranks_of(slowed).imbalances if each.notable]
        assert ("host", SLOWED_RANK) in uneven


class TestABalancedJob:
    def test_names_nobody(self, balanced: RunReport) -> None:
        assert balanced.findings == []

    def test_has_everybody(self, balanced: RunReport) -> None:
        ranks = ranks_of(balanced)
        assert (ranks.world_size, ranks.missing, ranks.notes) == (WORLD, 0, [])
        assert ranks.present == "World size 8: all ranks are here."
        assert [row.rank for row in ranks.rows] == list(range(WORLD))

    def test_without_one_of_its_ranks(self, gloo_jobs: Path, tmp_path: Path) -> None:
        for path in (gloo_jobs / "balanced").iterdir():
            if not path.name.startswith("rank7"):
                (tmp_path / path.name).hardlink_to(path)
        ranks = ranks_in(tmp_path)
        assert (ranks.missing, ranks.present) == (1, "World size 8: ranks 0–6 are here, 7 is missing.")


class TestSlowLoading:
    def test_on_one_rank_is_named(self, loading: RunReport) -> None:
        (uneven,) = [each for each in ranks_of(loading).imbalances if each.what == "loading"]
        assert (uneven.rank, uneven.notable) == (LOADING_RANK, True)
        assert uneven.most >= LOADING_S * 1e9

    def test_is_what_the_traces_show(self, loading: RunReport, gloo_jobs: Path) -> None:
        """The time in the loader. The loop around it is loading, too, and the machine may do other work in a step."""
        profiles = {profile.rank: profile for profile in loading.profiles}
        for rank, row in zip(plain_ranks(gloo_jobs / "loading"), ranks_of(loading).rows, strict=True):
            ledger = profiles[rank.rank].ledger
            loads = [entry.ns_by_step for entry in ledger.entries if entry.cause is Cause.DATA_LOADING]
            found = [sum(times) for times in zip(*loads, strict=True)]
            counted = [
                1000 * sum(each["dur"] for each in rank.within(step.name, r"enumerate\(DataLoader\).*"))
                for step in ledger.steps
            ]
            pairs = zip(found, counted, strict=True)
            near = [ns == pytest.approx(true, rel=0.01, abs=1_000_000) for ns, true in pairs]
            assert sum(near) > len(near) / 2, (rank.rank, found, counted)
            assert row.parts_ns["loading"] == round(median(found)), rank.rank


class TestClocks:
    def test_of_one_machine_are_one_within_the_error_that_is_stated(
        self, balanced: RunReport, slowed: RunReport, loading: RunReport
    ) -> None:
        for run in (balanced, slowed, loading):
            for row in ranks_of(run).rows:
                assert row.clock_ahead_ns is not None
                assert row.clock_error_ns is not None
                assert abs(row.clock_ahead_ns) <= row.clock_error_ns, (run.run, row.rank)

    def test_one_that_is_moved_by_hand_is_moved_back(self, slowed: RunReport, gloo_jobs: Path, tmp_path: Path) -> None:
        moved = 2
        for path in (gloo_jobs / "slowed").iterdir():
            document = json.loads(path.read_text())
            if document["distributedInfo"]["rank"] == moved:
                document["baseTimeNanoseconds"] += SHIFT_NS
            write(tmp_path / path.name, json.dumps(document))
        before, after = ranks_of(slowed), ranks_in(tmp_path)
        was, found = before.rows[moved], after.rows[moved]
        assert was.clock_ahead_ns is not None
        assert found.clock_ahead_ns is not None
        assert found.clock_error_ns is not None
        assert abs(found.clock_ahead_ns - SHIFT_NS) <= found.clock_error_ns
        assert abs(found.clock_ahead_ns - was.clock_ahead_ns - SHIFT_NS) <= 1
        assert [row.arrivals for row in after.rows] == [row.arrivals for row in before.rows]
