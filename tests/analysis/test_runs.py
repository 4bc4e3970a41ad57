"""From the traces of several ranks to what is said of the run."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import tb_tidy_plugin
from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.ranks import ranks_of
from tb_tidy_plugin.analysis.runs import run_report, runs_in, summaries_of
from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.profile.ranks.summary import MOST_COLLECTIVES, CollectiveSite, Operation, RankFinding, RankSummary
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report, RunReport
from tb_tidy_plugin.report.sarif import to_sarif
from tb_tidy_plugin.rulekit import Run, RunMatch, RunRule
from tb_tidy_plugin.rules import all_run_rules, catalogue
from tb_tidy_plugin.rules.distributed.collective_straggler import CollectiveStraggler
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.files import find_traces
from tests.support.drawn_runs import draw_run
from tests.support.recorded_ranks import LAST_US, STEP_US, record
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

RUN_RULES = [rule.name() for rule in all_run_rules()]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two ranks of which the second one comes 6 ms after the first one, by a clock that is 1 s ahead."""
    record(tmp_path / "job", 0, LAST_US - 6000)
    record(tmp_path / "job", 1, LAST_US, clock_us=1_000_000)
    return tmp_path / "job"


def run_of(path: Path) -> RunReport:
    (run,) = tb_tidy_plugin.analyze(path).runs
    return run


def summary(path: Path) -> RankSummary:
    (file,) = find_traces(path)
    analysis = read_file(file, Job([]))
    (found,) = summaries_of(analysis.profile, analysis.report)
    return found


class Broken(CollectiveStraggler):
    __module__ = CollectiveStraggler.__module__  # and its page

    def detect(self, run: Run) -> Iterator[RunMatch]:
        raise ZeroDivisionError("of one's own doing")


class WithStacks(CollectiveStraggler):
    __module__ = CollectiveStraggler.__module__
    needs = frozenset({"stacks"})


def about(run: Run, rule: RunRule) -> RunReport:
    return run_report("job", [], run.ranks, [rule])


class TestSummary:
    def test_of_one_trace(self, pair: Path) -> None:
        found = summary(pair / "host_1.11.pt.trace.json")
        assert (found.rank, found.worker, found.span) == (1, "host_1", "11")
        assert [step.name for step in found.steps] == [f"ProfilerStep#{number}" for number in range(4)]
        assert found.operations == [Operation("all_reduce", "", 4096, CollectiveSite("train.py", 7, "train"))]
        columns = found.collectives
        assert (columns.step, columns.position) == ([0, 1, 2, 3], [0, 0, 0, 0])
        absolute_us = (found.origin_ns + columns.start_ns[1]) / 1000
        assert absolute_us == 1_000_000 + STEP_US + LAST_US + 10
        assert columns.exposed_ns[0] == 970_000  # from the wait's begin at 8030 to the end at 9000

    def test_travels(self, pair: Path) -> None:
        found = summary(pair / "host_0.10.pt.trace.json")
        assert decode(msgspec.json.encode(found), RankSummary) == found

    def test_of_a_trace_that_does_not_say_its_rank_is_none(self, tmp_path: Path) -> None:
        write(tmp_path / "w.pt.trace.json", kineto_text([event("aten::mm", 0, 10)]))
        (file,) = find_traces(tmp_path)
        analysis = read_file(file, Job([]))
        assert summaries_of(analysis.profile, analysis.report) == []

    def test_of_very_many_collectives_keeps_the_same_ones_on_all_ranks(self, tmp_path: Path) -> None:
        kept = []
        for rank, count in ((0, MOST_COLLECTIVES + 1), (1, 2 * MOST_COLLECTIVES + 1)):
            folder = tmp_path / str(rank)
            folder.mkdir()
            events = [event("ProfilerStep#1", 0, 10 * count, cat="user_annotation")]
            events += [event("gloo:all_reduce", 10 * at, 5, cat="user_annotation", tid=2) for at in range(count)]
            write(folder / "w.pt.trace.json", kineto_text(events, f'"distributedInfo": {{"rank": {rank}}}'))
            kept.append(summary(folder).collectives.position)
        assert kept[0] == list(range(0, MOST_COLLECTIVES + 1, 2))
        assert kept[1] == list(range(0, 2 * MOST_COLLECTIVES + 1, 4))


class TestRunReport:
    def test_names_the_rank_that_is_late(self, pair: Path) -> None:
        run = run_of(pair)
        assert [outcome.rule for outcome in run.outcomes] == RUN_RULES
        (finding,) = run.findings
        assert (finding.rule, finding.ranks, finding.cost_ns) == ("collective-straggler", [1], 6_000_000)
        assert finding.places[0].function == "train"
        assert len(run.profiles) == 2

    def test_each_finding_of_the_ranks_is_told_once(self, pair: Path) -> None:
        report = tb_tidy_plugin.analyze(pair)
        (run,) = report.runs
        profiles, summaries = [], []
        for profile, rank in zip(run.profiles, draw_run((0, 50), (70, 0)).ranks, strict=True):
            cost_ns = rank.rank + 1
            finding = msgspec.structs.replace(
                run.findings[0], id="id0", message="Told once", cost_ns=cost_ns, fix=f"Fix of rank {rank.rank}"
            )
            profiles.append(msgspec.structs.replace(profile, findings=[finding]))
            of_rank = [RankFinding("id0", finding.rule, finding.severity, finding.message, cost_ns, 0)]
            names = {"worker": profile.worker, "span": profile.span}
            summaries.append(msgspec.structs.replace(rank, findings=of_rank, **names))
        several = msgspec.structs.replace(run, profiles=profiles, ranks=ranks_of([Run(summaries)]))
        shown = msgspec.structs.replace(report, runs=[several])
        for text in (
            as_lines(to_text(report_document(shown, "text"))),
            to_markdown(report_document(shown, "markdown")),
            to_html(report_document(shown, "html")),
        ):
            told = " ".join(re.sub(r"<[^>]+>", " ", text).split())
            assert "Told once: on both ranks, worst rank 1" in told
            assert told.count("Told once") == told.count("Told once: on both ranks")
            assert "Fix of rank 1" in told
            assert "Fix of rank 0" not in told
            assert told.count("1 finding is listed above, for all ranks.") == 2
        told_in_json = decode(to_json(shown), Report).runs[0].profiles
        assert [len(profile.findings) for profile in told_in_json] == [1, 1]

    def test_reads_back_from_json(self, pair: Path) -> None:
        report = tb_tidy_plugin.analyze(pair)
        assert decode(to_json(report), Report) == report

    def test_is_shown_under_the_runs_name(self, pair: Path) -> None:
        console = Console(file=StringIO(), width=100)
        console.print(to_text(report_document(tb_tidy_plugin.analyze(pair), "text")))
        assert isinstance(console.file, StringIO)
        text = console.file.getvalue()
        assert text.index("job · 2 ranks together") < text.index("Rank 1 is late") < text.index("job · host_0")

    def test_is_in_markdown_and_sarif(self, pair: Path) -> None:
        report = tb_tidy_plugin.analyze(pair)
        assert "### 2 ranks together" in to_markdown(report_document(report, "markdown"))
        assert "Rank 1 is late to" in to_markdown(report_document(report, "markdown"))
        (run,) = decode(to_sarif(report, catalogue()))["runs"]
        (result,) = [result for result in run["results"] if result["ruleId"] == CollectiveStraggler.code]
        assert result["properties"]["ranks"] == [1]
        assert " Rank 1 is late to `all_reduce`" in result["message"]["text"]

    def test_one_rank_is_no_run(self, tmp_path: Path) -> None:
        record(tmp_path / "job", 0, 2000)
        assert (run_of(tmp_path).outcomes, run_of(tmp_path).findings) == ([], [])

    def test_recordings_of_one_rank_are_no_run_either(self, tmp_path: Path) -> None:
        record(tmp_path / "job", 0, 2000, span=1)
        record(tmp_path / "job", 0, 2000, span=2, clock_us=10_000_000)
        assert run_of(tmp_path).outcomes == []

    def test_only_the_rules_asked_for(self, pair: Path) -> None:
        (run,) = analyze_path(pair, Job([])).runs
        assert run.outcomes == []
        (run,) = analyze_path(pair, Job([CollectiveStraggler()])).runs
        assert [outcome.rule for outcome in run.outcomes] == ["collective-straggler"]
        assert run.profiles[0].outcomes == []

    def test_what_was_recorded_together_is_the_nth_recording_of_each_rank(self) -> None:
        early, late = draw_run((0, 0)), draw_run((0, 0))
        later = [msgspec.structs.replace(rank, origin_ns=rank.origin_ns + 10**12) for rank in late.ranks]
        runs = runs_in([later[1], *early.ranks, later[0]])
        assert [[rank.origin_ns for rank in run.ranks] for run in runs] == [
            [1_000_000_000] * 2,
            [1_001_000_000_000] * 2,
        ]

    def test_of_several_recordings_the_one_that_costs_most_counts(self) -> None:
        slow, slower = draw_run(*((0, 2000),) * 4), draw_run(*((0, 3000),) * 4)
        again = [msgspec.structs.replace(rank, origin_ns=rank.origin_ns + 10**12) for rank in slower.ranks]
        report = run_report("job", [], [*again, *slow.ranks], [CollectiveStraggler()])
        assert [finding.cost_ns for finding in report.findings] == [3_000_000]


class TestOutcomes:
    def test_found(self) -> None:
        (outcome,) = about(draw_run(*((0, 2000),) * 4), CollectiveStraggler()).outcomes
        assert (outcome.status, outcome.reason) == ("found", None)

    def test_clean(self) -> None:
        (outcome,) = about(draw_run(*((0, 0),) * 4), CollectiveStraggler()).outcomes
        assert (outcome.status, outcome.reason) == ("clean", None)

    def test_what_costs_little_is_left_out_and_said_so(self) -> None:
        report = about(draw_run(*((0, 90),) * 4), CollectiveStraggler())
        assert report.findings == []
        (outcome,) = report.outcomes
        assert outcome.status == "clean"
        assert outcome.reason == "Left out: 1 finding below 5 % of a step (`min-share`)."
        assert about(draw_run(*((0, 90),) * 4), CollectiveStraggler({"min_share": 0.005})).findings

    def test_what_is_in_files_that_are_ignored_is_left_out_and_said_so(self) -> None:
        ignores = PathIgnores({"train.py": frozenset({"collective-straggler"})})
        run = draw_run(*((0, 2000),) * 4)
        report = run_report("job", [], run.ranks, [CollectiveStraggler()], ignores)
        assert report.findings == []
        assert report.outcomes[0].reason == "Left out: 1 finding in files of `per-path-ignores`."

    def test_not_checked_where_nobody_meets(self) -> None:
        (outcome,) = about(draw_run((0, 0)), CollectiveStraggler()).outcomes
        assert outcome.status == "not_checked"
        assert "too few steps besides the warm-up: 1" in (outcome.reason or "")

    def test_not_checked_where_a_rank_lacks_what_is_needed(self) -> None:
        (outcome,) = about(draw_run(*((0, 2000),) * 4), WithStacks()).outcomes
        assert (outcome.status, outcome.reason) == (
            "not_checked",
            "The profile has no Python stacks; record with `with_stack=True`.",
        )

    def test_a_broken_rule_costs_nobody_the_report(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.ERROR):
            (outcome,) = about(draw_run(*((0, 2000),) * 4), Broken()).outcomes
        assert (outcome.status, outcome.reason) == ("failed", "ZeroDivisionError: of one's own doing")
        assert "collective-straggler failed" in caplog.text


def test_two_real_ranks_meet_in_their_collectives() -> None:
    """Thinned out to two steps, so that not even the collectives' order is the same: nothing is claimed."""
    (run,) = tb_tidy_plugin.analyze(shared("traces/ranks128_sampled")).runs
    assert [profile.rank for profile in run.profiles] == [0, 1]
    assert [outcome.status for outcome in run.outcomes] == ["not_checked"] * len(RUN_RULES)
    assert run.findings == []


class TestFilesNamedAsOneRank:
    def files(self, folder: Path, *starts_us: int, footer: str = "") -> RunReport:
        """Recordings of 900 µs with names that all say rank 0, which begin at these times."""
        base = '"baseTimeNanoseconds": 1700000000000000000'
        for number, start in enumerate(starts_us):
            text = kineto_text([event("aten::mm", start, 900)], footer + base)
            write(folder / f"r0-2025-3-14-14-46.{1741988781221064630 + number}.pt.trace.json", text)
        return run_of(folder)

    def test_at_the_same_time_have_unknown_ranks_and_this_is_said(self, tmp_path: Path) -> None:
        run = self.files(tmp_path, 100, 100, 400, 700)
        assert [profile.rank for profile in run.profiles] == [None] * 4
        assert len({(profile.worker, profile.span) for profile in run.profiles}) == 4
        for profile in run.profiles:
            assert (
                "4 recordings of the same time are named as rank 0: their ranks are not known. Name files by rank, or "
                "initialise torch.distributed before recording."
            ) in profile.quality.notes

    def test_one_after_the_other_are_of_that_rank(self, tmp_path: Path) -> None:
        run = self.files(tmp_path, 100, 1000, 1900)
        assert [profile.rank for profile in run.profiles] == [0] * 3
        assert [profile.quality.notes for profile in run.profiles] == [[]] * 3

    def test_only_those_of_the_same_time_are_in_doubt(self, tmp_path: Path) -> None:
        run = self.files(tmp_path, 100, 500, 9000)
        assert sorted(str(profile.rank) for profile in run.profiles) == ["0", "None", "None"]

    def test_a_rank_that_the_recording_states_is_believed(self, tmp_path: Path) -> None:
        run = self.files(tmp_path, 100, 100, footer='"distributedInfo": {"rank": 0, "world_size": 1},')
        assert [profile.rank for profile in run.profiles] == [0, 0]


def test_ranks_that_share_steps_but_no_collectives_are_not_told_to_share_steps() -> None:
    ranks = [
        msgspec.structs.replace(
            rank, collectives=msgspec.structs.replace(rank.collectives, **{column: [] for column in _COLUMNS})
        )
        for rank in draw_run(*((0, 0),) * 4).ranks
    ]
    (outcome,) = run_report("job", [], ranks, [CollectiveStraggler()]).outcomes
    assert outcome.status == "not_checked"
    assert outcome.reason == (
        "The ranks share 4 steps besides the warm-up, but recorded the same collectives in none of them: only these "
        "show which rank comes late."
    )


_COLUMNS = ("operation", "step", "position", "start_ns", "end_ns", "exposed_ns")
