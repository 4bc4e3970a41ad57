"""Python's cycle collector rests while a trace is analysed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.plugin.analysis_worker import AnalysisRequest, send_analysis
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.system.collector import held_off
from tests.support.logdirs import trace
from tests.support.made_up_rule import Evidence, SlowMultiplication
from tests.support.user_rule import write_rule

WORK = "        for row in"
STATES: list[bool] = []


class Watching(SlowMultiplication):
    """Notes whether the collector is on."""

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        STATES.append(gc.isenabled())
        yield from super().detect(profile)


@pytest.fixture
def states() -> list[bool]:
    STATES.clear()
    return STATES


def test_it_is_as_it_was_afterwards() -> None:
    with held_off():
        with held_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"), held_off():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_blocks_of_two_threads_overlap() -> None:
    first, second = held_off(), held_off()
    with first, ExitStack() as later:
        later.enter_context(second)
        outlives = later.pop_all()
    assert not gc.isenabled()
    outlives.close()
    assert gc.isenabled()


def test_it_stays_off_where_the_user_turned_it_off() -> None:
    gc.disable()
    try:
        with held_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_commands_analyse_without_it(tmp_path: Path, states: list[bool]) -> None:
    analyze_path(trace(tmp_path / "w.pt.trace.json"), Job(rules=(Watching(),)))
    assert (states, gc.isenabled()) == ([False], True)


def test_the_worker_analyses_without_it(tmp_path: Path) -> None:
    said = tmp_path / "said"
    write_rule(
        tmp_path,
        "r.py",
        (
            WORK,
            f"        import gc, pathlib\n        pathlib.Path({str(said)!r}).write_text(str(gc.isenabled()))\n{WORK}",
        ),
    )
    configuration = tmp_path / "tb-tidy.toml"
    configuration.write_text('rules = ["r.py"]\nselect = ["TT999"]\n')
    path = trace(tmp_path / "w.pt.trace.json")
    send_analysis(AnalysisRequest("run", "w", "", os.fsencode(path), os.fsencode(configuration)), lambda _: None)
    assert (said.read_text(), gc.isenabled()) == ("False", True)
