"""The ranks of a run, as they are shown on a terminal and in Markdown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.ranks import ranks_of
from tb_tidy_plugin.analysis.runs import run_report
from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.ranks import MOST_RANKS
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Outcome, Report
from tb_tidy_plugin.report.rank_model import Ranks
from tests.support.drawn_runs import draw_run
from tests.support.recorded_ranks import record

MS = 1_000_000


def ranks(count: int) -> Ranks:
    """The last rank is 2 ms late to every collective."""
    drawn = draw_run(*([*[0] * (count - 1), 2000],) * 4).ranks
    alike = [msgspec.structs.replace(rank, world_size=count, typical={"host": MS}, step_ns=MS) for rank in drawn]
    return ranks_of([Run(alike)])


def text_of(shown: Ranks) -> str:
    run = msgspec.structs.replace(run_report("job", (), [], []), ranks=shown)
    report = Report(schema=SCHEMA_VERSION, version="", runs=[run], problems=[])
    terminal = as_lines(to_text(report_document(report, "text")))
    return terminal + to_markdown(report_document(report, "markdown"))


def test_on_a_screen_however_many_there_are() -> None:
    text = text_of(ranks(128))
    lines = text[: text.index("##")].splitlines()
    assert len(lines) < 24
    assert lines[3].split() == ["127", "1", "ms", "1", "ms", "4", "of", "4", "2", "ms", "0", "ns"]
    assert f"{128 - MOST_RANKS} more ranks wait for others or have shorter steps." in text


def test_one_rank_that_does_not_fit_is_one() -> None:
    assert "1 more rank waits for others or has shorter steps." in text_of(ranks(MOST_RANKS + 1))


def test_in_markdown_with_the_worst_first() -> None:
    text = text_of(ranks(3))
    assert "| rank | step | host | comes last | others wait | waits |" in text
    assert text.index("| 2 | 1 ms | 1 ms | 4 of 4 | 2 ms | 0 ns |") < text.index("| 0 | 1 ms")


def test_columns_that_no_rank_has_are_left_out() -> None:
    alone = ranks(2)
    rows = [
        msgspec.structs.replace(row, arrivals=None, memory_peak_bytes=2048, parts_ns={"host": 10**6, "idle": 9999})
        for row in alone.rows
    ]
    assert "| rank | step | host | memory |\n" in text_of(msgspec.structs.replace(alone, rows=rows))


@pytest.mark.parametrize(("clock_us", "way"), [(-5000, "behind"), (5000, "ahead of")])
def test_clocks_that_differ_are_said(clock_us: int, way: str) -> None:
    shown = ranks_of([draw_run((0, 50), (70, 0), clocks_us=(0, clock_us))])
    assert f"rank 1's is 5 ms {way} rank 0's (± 500 µs)" in text_of(shown).replace("\n  ", " ")


def test_control_characters_of_a_worker_are_not_obeyed() -> None:
    noted = msgspec.structs.replace(ranks(2), notes=["by `\x1b[31mred`"])
    assert "\x1b" not in text_of(noted)


COUNT = MOST_RANKS + 3


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """More ranks than fit on a screen; the last one is late to every collective."""
    folder = tmp_path_factory.mktemp("ranks")
    for rank in range(COUNT):
        record(folder / "job", rank, 8000 if rank == COUNT - 1 else 1000, world=COUNT)
    return analyze_path(folder, Job())


class TestManyRanks:
    @staticmethod
    def sections(report: Report, *, verbose: bool = False) -> list[str]:
        """The titles of the sections of ranks."""
        lines = as_lines(to_text(report_document(report, "text", verbose=verbose))).splitlines()
        return [line for line in lines if line.startswith("job · host_")]

    def test_the_one_that_others_wait_for_is_shown_and_the_others_are_counted(self, report: Report) -> None:
        assert self.sections(report) == ["job · host_10 · 110 · rank 10"]
        text = as_lines(to_text(report_document(report, "text")))
        assert "10 more ranks have no finding of their own (steps of 20 ms). `tb-tidy check -v` shows each." in text
        markdown = to_markdown(report_document(report, "markdown"))
        assert "10 more ranks have no finding of their own (steps of 20 ms). `tb-tidy check -v` shows each." in markdown
        assert markdown.count("\n### host") == 1

    def test_all_of_them_are_shown_if_asked_for(self, report: Report) -> None:
        assert [line.rpartition(" ")[2] for line in self.sections(report, verbose=True)] == [
            str(rank) for rank in range(COUNT)
        ]
        assert "of their own" not in as_lines(to_text(report_document(report, "text", verbose=True)))

    def test_a_rank_with_a_rule_that_failed_is_shown(self, report: Report) -> None:
        run = report.runs[0]
        broken = msgspec.structs.replace(
            run.profiles[2], outcomes=[Outcome(rule="slow-multiplication", status="failed", reason="It broke.")]
        )
        profiles = [broken if profile.rank == broken.rank else profile for profile in run.profiles]
        changed = msgspec.structs.replace(run, profiles=profiles)
        shown = self.sections(msgspec.structs.replace(report, runs=[changed]))
        assert [line.rpartition(" ")[2] for line in shown] == ["2", "10"]

    def test_a_rank_that_was_not_compared_is_counted(self, report: Report) -> None:
        run = report.runs[0]
        assert run.ranks is not None
        compared = msgspec.structs.replace(run.ranks, rows=[row for row in run.ranks.rows if row.rank != 3])
        changed = msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, ranks=compared, findings=[])])
        shown, text = self.sections(changed), as_lines(to_text(report_document(changed, "text")))
        assert f"{COUNT - len(shown)} more ranks have no finding of their own" in text

    def test_few_ranks_are_all_shown(self, tmp_path: Path) -> None:
        for rank in range(2):
            record(tmp_path / "job", rank, 1000)
        assert len(self.sections(analyze_path(tmp_path, Job()))) == 2
