"""The ranks of a run, as they are shown on a terminal and in Markdown."""

from __future__ import annotations

import msgspec
import pytest

from tb_tidy_plugin.analysis.ranks import ranks_of
from tb_tidy_plugin.analysis.runs import run_report
from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.profile.run import Run
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.ranks import MOST_RANKS
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Report
from tb_tidy_plugin.report.rank_model import Ranks
from tests.support.drawn_runs import draw_run

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
