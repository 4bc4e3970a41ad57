"""TensorBoard's log, when folders, files and what is in them have names that steer terminals."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin import comparisons, timelines
from tb_tidy_plugin.plugin.comparisons import AskedSide, Comparisons, RowFilter
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.scan import Key, look
from tb_tidy_plugin.plugin.timeline_worker import LanesQuestion
from tb_tidy_plugin.plugin.timelines import Timelines
from tb_tidy_plugin.words.errors import TidyError
from tests.support.logdirs import trace
from tests.support.profiles import LIMIT_S, finished, started
from tests.support.serving import served
from tests.support.workers import script

HOSTILE = "x\x1b]0;owned\x07\x9b31m\r\nWARNING: forged\u202egpj.\u2066"
COMPLAINS = f"sys.stderr.write({HOSTILE!r}); sys.stderr.flush(); "


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of all that was logged; each message begins one, and none of its others looks like another's."""
    texts = [caplog.handler.format(record) for record in caplog.records]
    assert texts
    for text in texts:
        first, *others = text.split("\n")
        assert all(line.isprintable() for line in (first, *others)), text
        assert all(line.startswith(("    ", "Traceback")) for line in others), text
    return [line for text in texts for line in text.split("\n")]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A run, and its worker, whose names steer."""
    name = HOSTILE.replace("\r\n", "")  # no trace has lines in its name
    return trace(tmp_path / HOSTILE / f"{name}.1.pt.trace.json").parents[1]


@pytest.mark.parametrize("dies", ["os.kill(os.getpid(), 9)", f"print({HOSTILE!r}, flush=True); time.sleep(60)"])
def test_a_worker_that_dies(logs: Path, caplog: pytest.LogCaptureFixture, dies: str) -> None:
    profiles = started(logs, script(COMPLAINS + dies))
    [run] = profiles.runs().runs
    assert finished(profiles, Key(run.run, run.profiles[0].worker, "1")).state == "error"
    assert sum("owned" in line for line in lines_of(caplog)) >= 2


def test_a_timeline_and_a_comparison_that_break(
    logs: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (sys.executable, "-c", f"import sys; {COMPLAINS}raise SystemExit(3)")
    monkeypatch.setattr(timelines, "TIMELINE_COMMAND", broken)
    monkeypatch.setattr(comparisons, "COMPARISON_COMMAND", broken)
    profiles = started(logs)
    [run] = profiles.runs().runs
    key = Key(run.run, run.profiles[0].worker, "1")
    with pytest.raises(TidyError, match="its process ended"):
        Timelines(profiles).answer(key, LanesQuestion(), LIMIT_S)
    assert any("owned" in line for line in lines_of(caplog)), "it is said when it ends, not when another one begins"
    caplog.clear()
    with pytest.raises(TidyError, match="failed with an internal error"):
        Comparisons(profiles).answer(AskedSide(run.run), AskedSide(run.run), RowFilter("", 0, 1), LIMIT_S)
    assert any("owned" in line for line in lines_of(caplog))


def test_a_fault_of_ours_and_a_store_without_an_answer(
    logs: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object, **__: object) -> object:
        raise RuntimeError(HOSTILE)

    client = served(Profiles([Logdir(str(logs))]))
    monkeypatch.setattr(Profiles, "report", fault)
    assert client.get("/api/report", query_string={"run": HOSTILE}).status_code == 500
    list(look([Logdir(f"nothing://{HOSTILE}")]))
    assert sum("owned" in line for line in lines_of(caplog)) >= 2
