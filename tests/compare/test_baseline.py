"""A baseline keeps old findings from failing a check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.dev.generate import ROOT
from tb_tidy_plugin.words.errors import TidyError

UNTIDY, EVALUATION = ROOT / "sample_runs" / "image_classifier_untidy", ROOT / "sample_runs" / "text_generation_eval"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, ["check", "--isolated", *map(str, arguments)])


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("baseline") / "known.json"
    assert check(UNTIDY, "--write-baseline", file).exit_code == 0
    return file


def test_what_is_known_does_not_fail(baseline: Path) -> None:
    assert check(UNTIDY, "--fail-on", "high").exit_code == 1
    assert check(UNTIDY, "--fail-on", "low", "--baseline", baseline).exit_code == 0


def test_what_is_new_does(baseline: Path) -> None:
    assert check(EVALUATION, "--fail-on", "high", "--baseline", baseline).exit_code == 1


def test_findings_are_shown_all_the_same(baseline: Path) -> None:
    assert "dataloader-num-workers-zero" in check(UNTIDY, "--baseline", baseline).output


def test_it_is_the_same_each_time(baseline: Path, tmp_path: Path) -> None:
    check(UNTIDY, "--write-baseline", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == baseline.read_bytes()


def test_a_line_that_moved_is_known_still(baseline: Path, tmp_path: Path) -> None:
    """As if the recording had been made when the function had another name and lay in another file."""
    content = json.loads(baseline.read_text())
    for number, finding in enumerate(content["findings"]):
        finding["id"] = f"{number:012}"
        for place in finding["places"]:
            place.update(file="old.py", line=place["line"] + 20, function="old")
    (tmp_path / "moved.json").write_text(json.dumps(content))
    assert all(place["text"] for finding in content["findings"] for place in finding["places"])
    assert check(UNTIDY, "--fail-on", "low", "--baseline", tmp_path / "moved.json").exit_code == 0


@pytest.mark.parametrize("text", [None, "", "[]", '{"schema": 1}'])
def test_a_file_that_is_no_baseline_is_said(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "known.json"
    if text is not None:
        file.write_text(text)
    result = check(UNTIDY, "--baseline", file)
    assert isinstance(result.exception, TidyError)
    assert "--write-baseline" in result.exception.advice
