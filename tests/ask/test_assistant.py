"""The skill file leads to the cause: few calls, few tokens, the same answers each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.ask.pages import tokens_in
from tb_tidy_plugin.ask.questions import QUESTION_KINDS
from tb_tidy_plugin.ask.skill import in_short, skill_text
from tests.ask.assistant import DRAWN, SAMPLES, asking, cause_in, causes, folder_at, recording

MOST_CALLS, MOST_TOKENS, MOST_S = 4, 6_000, 3.0
TIMES = 5


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    (folder := tmp_path / "cache").mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize(("name", "rule"), causes().items())
def test_the_cause_is_found_the_same_way_each_time(name: str, rule: str, cache: Path, tmp_path: Path) -> None:
    folder = folder_at(recording(name, tmp_path), cache)
    ways = [cause_in(asking(folder)) for _ in range(TIMES)]
    assert {(way.rule, way.answers) for way in ways} == {(rule, ways[0].answers)}
    assert len(ways[0].answers) <= MOST_CALLS
    assert ways[0].tokens <= MOST_TOKENS


@pytest.mark.timed
def test_no_call_takes_long(cache: Path, tmp_path: Path) -> None:
    folder = folder_at(SAMPLES / "image_classifier_untidy", cache)
    assert cause_in(asking(folder)).seconds < MOST_S


def test_there_are_ten_recordings() -> None:
    assert len(causes()) == 10


def test_another_process_answers_the_same(cache: Path, tmp_path: Path) -> None:
    """Without a cache, and with other hashes of strings."""
    path = recording(DRAWN[0], tmp_path)
    code = "from tb_tidy_plugin.cli.main import script; script()"
    given = ["ask", '{"question": "findings"}', "--path", str(path), "--isolated", "--no-cache"]
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code, *given], env=environment, check=True, capture_output=True)
    assert done.stdout == asking(folder_at(path, cache))({"question": "findings"}) + b"\n"


class TestSkill:
    def test_names_every_question(self) -> None:
        assert [name for name in QUESTION_KINDS if f"`{name}`" not in skill_text()] == []

    def test_says_in_short_what_the_assistant_here_does(self) -> None:
        assert in_short().startswith("Ask `runs`, `ledger`, `findings`, `finding`, in this order.")
        assert "##" not in in_short()

    def test_is_short_itself(self) -> None:
        assert tokens_in(skill_text().encode()) < 2_000
