"""The report in a notebook's cell."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.render.notebook import Cell
from tb_tidy_plugin.words.errors import NotFoundError
from tests.support.logdirs import trace


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
    with pytest.raises(NotFoundError):
        tb_tidy_plugin.show("nowhere")
