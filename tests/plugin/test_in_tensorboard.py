"""The plugin in a real TensorBoard process, over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.logdirs import broken_traces, trace
from tests.support.recordings import ROOT
from tests.support.served import API, Served, needs_the_installed_plugin, tensorboard
from tests.support.user_rule import write_rule
from tests.support.waiting import until

pytestmark = pytest.mark.slow

PLUGIN = "data/plugin/torchtidy"
OTHERS = ("torch_profiler",)  # no need for another plugin to read the same traces


@pytest.fixture(autouse=True, scope="module")
def _installed() -> None:
    needs_the_installed_plugin()


LOADERS = (pytest.param("true", id="load_fast"), pytest.param("false", id="load_slow"))


@pytest.fixture(params=[LOADERS[0], pytest.param("false", id="load_slow", marks=pytest.mark.proof)])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    trace(tmp_path / "logs" / "first" / "w.7.pt.trace.json")
    flags = ("--logdir", str(tmp_path / "logs"), "--load_fast", request.param)
    with tensorboard(*flags, folder=tmp_path, without=OTHERS) as served:
        yield served


def test_the_tab_is_listed_and_active(board: Served) -> None:
    listed = board.get("data/plugins_listing").json()["torchtidy"]
    assert listed["enabled"]
    assert listed["tab_name"] == "TorchTidy"
    assert listed["loading_mechanism"] == {"type": "IFRAME", "module_path": f"/{PLUGIN}/index.js"}


def test_a_report_and_everything_around_it_leaves_no_complaint_in_the_log(board: Served) -> None:
    answer = board.analysed("run=first&worker=w&span=7")
    assert [state["state"] for state in answer["states"]] == ["done"]
    assert answer["report"]["profiles"][0]["events"] == 7
    for page in ("", "data/plugin_entry.html?name=torchtidy", f"{PLUGIN}/index.js", f"{API}/rules", "data/environment"):
        assert board.get(page).status == 200, page
    etag = board.get(f"{API}/runs").headers["ETag"]
    unchanged = board.get(f"{API}/runs", If_None_Match=etag)
    assert (unchanged.status, unchanged.headers["Content-Type"]) == (304, "application/json")
    entry = board.get(f"{PLUGIN}/index.js").headers["ETag"]
    unchanged = board.get(f"{PLUGIN}/index.js", If_None_Match=entry)
    assert unchanged.status == 304
    assert unchanged.headers["Content-Type"].startswith("text/javascript")
    assert board.get(f"{API}/nothing").status == 404
    assert board.get(f"{API}/report").status == 400
    assert board.get(f"{API}/runs", method="POST").status == 405
    assert board.get(f"{API}/rules", method="HEAD").status == 200
    log = board.log.read_text()
    assert "will become an error" not in log
    assert "torchtidy" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize("board", LOADERS, indirect=True)
def test_a_new_trace_appears_and_a_changed_one_is_read_anew(board: Served, tmp_path: Path) -> None:
    assert board.runs() == ["first"]
    trace(tmp_path / "logs" / "second" / "w.pt.trace.json")
    until(lambda: board.runs() == ["first", "second"])
    before = board.analysed("run=second&worker=w&span=")["states"][0]["version"]
    trace(tmp_path / "logs" / "second" / "w.pt.trace.json", operators=9)
    until(lambda: board.api("runs")["runs"][1]["profiles"][0]["version"] > before)
    answer = board.analysed("run=second&worker=w&span=")
    assert answer["report"]["profiles"][0]["events"] == 13


def test_named_folders_of_a_logdir_spec(tmp_path: Path) -> None:
    trace(tmp_path / "x" / "run" / "w.pt.trace.json")
    trace(tmp_path / "y" / "w.pt.trace.json")
    spec = f"left:{tmp_path / 'x'},right:{tmp_path / 'y'}"
    with tensorboard("--logdir_spec", spec, folder=tmp_path, without=OTHERS) as board:
        assert board.runs() == ["left/run", "right/y"]
        assert board.get("data/plugins_listing").json()["torchtidy"]["enabled"]


def test_below_a_path_prefix(tmp_path: Path) -> None:
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
    flags = ("--logdir", str(tmp_path / "logs"), "--path_prefix", "/some/where")
    with tensorboard(*flags, folder=tmp_path, without=OTHERS) as board:
        assert board.address.endswith("/some/where/")
        assert board.runs() == ["run"]
        assert board.get(f"{PLUGIN}/index.js").status == 200
        assert "will become an error" not in board.log.read_text()


def test_without_traces_the_tab_is_not_active_but_answers(tmp_path: Path) -> None:
    with tensorboard("--logdir", str(tmp_path / "logs"), folder=tmp_path, without=OTHERS) as board:
        until(lambda: not board.api("runs")["scanning"])
        assert not board.get("data/plugins_listing").json()["torchtidy"]["enabled"]
        assert board.api("runs") == {"logdirs": [str(tmp_path / "logs")], "scanning": False, "runs": []}


def test_broken_traces_show_their_reason_and_harm_no_other(tmp_path: Path) -> None:
    words = broken_traces(tmp_path / "logs")
    trace(tmp_path / "logs" / "whole" / "worker.pt.trace.json")
    forbidden = trace(tmp_path / "logs" / "forbidden" / "worker.pt.trace.json")
    forbidden.chmod(0)
    if os.geteuid() != 0:  # root may read everything
        words |= {"forbidden": "lack of permission"}
    with tensorboard("--logdir", str(tmp_path / "logs"), folder=tmp_path, without=OTHERS) as board:
        for run, word in words.items():
            [state] = board.analysed(f"run={run}&worker=worker&span=")["states"]
            assert word in state["problem"]["error"], run
            assert state["problem"]["advice"]
        [state] = board.analysed("run=whole&worker=worker&span=")["states"]
        assert (state["state"], state["problem"]) == ("done", None)
        (tmp_path / "logs" / "whole" / "worker.pt.trace.json").unlink()
        until(lambda: "whole" not in board.runs())
        gone = board.get(f"{API}/report?run=whole")
        assert gone.status == 404
        assert "no run `whole` in the logdir" in gone.json()["error"]["message"]
        assert "will become an error" not in board.log.read_text()


def test_sources_come_from_the_folder_it_was_started_in_and_from_the_flag(tmp_path: Path) -> None:
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
    started_in, other = tmp_path / "project", tmp_path / "other"
    for folder in (started_in, other):
        folder.mkdir()
    (other / "train.py").write_text("other\n")
    (tmp_path / "outside.py").write_text("secret\n")
    question = "source?run=run&worker=w&span=&file="
    flags = ("--logdir", str(tmp_path / "logs"), "--torchtidy_source_roots", "../other")
    with tensorboard(*flags, folder=started_in, without=OTHERS) as board:
        assert board.api(f"{question}train.py")["lines"] == ["other"]
        (started_in / "train.py").write_text("started in\n")
        assert board.api(f"{question}train.py")["lines"] == ["other"]
        (other / "train.py").unlink()
        assert board.api(f"{question}train.py")["lines"] == ["started in"]
        assert not board.api(f"{question}..%2F..%2Foutside.py")["available"]


@pytest.mark.parametrize(
    "path",
    [
        f"{PLUGIN}/..%2fplugin.py",
        f"{PLUGIN}/../plugin.py",
        f"{PLUGIN}/assets/..%2f..%2fplugin.py",
        f"{PLUGIN}/%2e%2e/%2e%2e/__init__.py",
        f"{PLUGIN}/%2fetc%2fpasswd",
        f"{PLUGIN}//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_bundle(outside: Served, path: str) -> None:
    assert outside.get(path).status == 404


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("outside")
    with tensorboard("--logdir", str(folder), folder=folder, without=OTHERS) as served:
        yield served


def test_the_sample_runs(tmp_path: Path) -> None:
    with tensorboard("--logdir", str(ROOT / "sample_runs"), folder=tmp_path, without=OTHERS) as board:
        for run in until(board.runs):
            [state] = board.api(f"report?run={run}")["states"]
            key = f"run={run}&worker={state['worker']}&span={state['span']}"
            [profile] = board.analysed(key)["report"]["profiles"]
            for finding in profile["findings"]:
                events = board.api(f"events?{key}&finding={finding['id']}&limit=500")
                assert events["total"] >= finding["matches"]
                for file in {place["file"] for place in finding["places"] if place["own_code"]}:
                    source = board.api(f"source?{key}&file={file}")
                    assert source["available"], source["reason"]
                    assert not source["changed"]


def test_the_delay_at_start_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(3):
        for name, left_out in (("with", OTHERS), ("without", (*OTHERS, "torchtidy"))):
            with tensorboard("--logdir", str(tmp_path / "logs"), folder=tmp_path, without=left_out) as board:
                assert ("torchtidy" in board.get("data/plugins_listing").json()) == (name == "with")
                seconds[name].append(board.started_s)
    fastest = {name: min(each) for name, each in seconds.items()}
    with capsys.disabled():
        sys.stdout.write(
            f"\nTensorBoard's start: {fastest['with']:.2f} s, without TorchTidy {fastest['without']:.2f} s\n"
        )


def test_a_broken_configuration_is_a_problem_on_the_page_and_nothing_else(tmp_path: Path) -> None:
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json", operators=9)
    (tmp_path / "logs" / "tb-tidy.toml").write_text('rules = ["never_read.py"]')
    (tmp_path / "strict.toml").write_text("selct = []")
    flags = ("--logdir", str(tmp_path / "logs"), "--torchtidy_config", "strict.toml")
    with tensorboard(*flags, folder=tmp_path, without=OTHERS) as board:
        [state] = board.analysed("run=run&worker=w&span=")["states"]
        assert state["state"] == "error"
        assert state["problem"]["error"] == f"`{tmp_path / 'strict.toml'}` has an unknown key `selct`."
        assert state["problem"]["advice"] == "Did you mean `select`?"
        assert board.get(f"{API}/rules").json()["error"]["message"] == state["problem"]["error"]
        assert board.get("data/plugins_listing").json()["torchtidy"]["enabled"]
        (tmp_path / "strict.toml").write_text('select = ["user"]\nrules = ["slow_multiplication.py"]')
        write_rule(tmp_path)
        until(lambda: board.api("runs")["runs"][0]["profiles"][0]["version"] > state["version"])
        [profile] = board.analysed("run=run&worker=w&span=")["report"]["profiles"]
        assert [finding["rule"] for finding in profile["findings"]] == ["slow-multiplication"]
        assert "Traceback" not in board.log.read_text()
