"""The report in a notebook's cell."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import tb_tidy_plugin
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.render.notebook import Cell
from tb_tidy_plugin.words.errors import NotFoundError, TidyError
from tests.support.logdirs import trace
from tests.support.recordings import ROOT


def test_a_cell_is_a_frame_without_scripts_around_the_whole_page() -> None:
    shown = Cell('<p title="a">"&</p>', 300)._repr_html_()
    attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', shown))
    assert html.unescape(attributes["srcdoc"]) == '<p title="a">"&</p>'
    assert attributes["sandbox"] == "allow-popups"
    assert "height: 300px" in attributes["style"]
    assert re.fullmatch(r'<iframe( [\w-]+="[^"]*")+></iframe>', shown)


def test_the_report_of_a_folder_is_shown(tmp_path: Path) -> None:
    trace(tmp_path / "job" / "w.7.pt.trace.json")
    cell = tb_tidy_plugin.show(tmp_path)
    assert cell.page.startswith("<!DOCTYPE html>")
    assert "TorchTidy" in cell.page
    assert "job" in cell.page


def test_as_text_a_cell_is_one_line(tmp_path: Path) -> None:
    """Which a notebook stores beside the page, and IPython prints in a terminal."""
    trace(tmp_path / "job" / "w.7.pt.trace.json")
    assert re.fullmatch("<TorchTidy: [0-9]+ findings? in job>", repr(tb_tidy_plugin.show(tmp_path)))


def test_a_path_that_is_not_there_is_an_error() -> None:
    for shown in (tb_tidy_plugin.show, tb_tidy_plugin.annotate):
        with pytest.raises(NotFoundError):
            shown("nowhere")


SAMPLE = ROOT / "sample_runs" / "image_classifier_untidy"


def test_sources_are_shown_with_the_time_of_each_line_as_in_a_terminal() -> None:
    cell = tb_tidy_plugin.annotate(SAMPLE, "train.py", [SAMPLE])
    assert repr(cell) == "<TorchTidy: the time of each line>"
    rows = [
        [html.unescape(re.sub("<[^>]*>", "", each)) for each in re.findall(r"<t[hd][ >].*?</t[hd]>", row)]
        for row in re.findall("<tr>.*?</tr>", cell.page)
    ]
    printed = CliRunner().invoke(commands, ["annotate", str(SAMPLE)]).output.splitlines()
    assert ["line", "source", "total", "share", "forward", "backward", "optimizer", "loading", "other", "calls"] in rows
    [backward] = [row for row in rows if "".join(row[1:2]).strip() == "loss.backward()"]
    [in_terminal] = [line for line in printed if line.endswith("loss.backward()")]
    assert " ".join(backward[:1] + backward[2:] + backward[1:2]).split() == in_terminal.split()
    assert " ".join([*rows[-1][1:], rows[-1][0]]).split() == printed[-2 if not printed[-1] else -1].split()


def test_a_trace_that_cannot_be_read_is_an_error_and_a_file_that_is_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "w.7.pt.trace.json").write_text("{")
    with pytest.raises(TidyError):
        tb_tidy_plugin.annotate(tmp_path)
    with pytest.raises(NotFoundError):
        tb_tidy_plugin.annotate(SAMPLE, "other.py")
