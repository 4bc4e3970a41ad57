"""The plugin object as TensorBoard uses it."""

from __future__ import annotations

import argparse
import importlib.util
import threading
from pathlib import Path

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from tb_tidy_plugin.plugin import scan
from tb_tidy_plugin.plugin.loader import Loader
from tb_tidy_plugin.plugin.plugin import Plugin
from tb_tidy_plugin.plugin.start import configuration_file
from tests.support.logdirs import trace
from tests.support.user_rule import write_rule
from tests.support.waiting import until


def plugin(logdir: str = "", **flags: str | bool) -> Plugin:
    found = Loader().load(base_plugin.TBContext(logdir=logdir, flags=argparse.Namespace(**flags)))
    assert isinstance(found, Plugin)
    return found


def test_the_tab(tmp_path: Path) -> None:
    metadata = plugin(str(tmp_path)).frontend_metadata()
    assert (metadata.es_module_path, metadata.tab_name) == ("/index.js", "TorchTidy")


def test_active_with_a_trace(tmp_path: Path) -> None:
    trace(tmp_path / "run" / "w.pt.trace.json")
    found = plugin(str(tmp_path))
    assert found.is_active()
    ask_runs(found)
    assert found.is_active()


def test_not_active_without_one_until_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_tidy_plugin.plugin import profiles

    monkeypatch.setattr(profiles, "PERIOD_S", 0.05)
    found = plugin(str(tmp_path))
    until(lambda: not found.is_active())
    trace(tmp_path / "run" / "w.pt.trace.json")
    until(found.is_active)


def test_active_while_the_first_look_goes_on_and_the_constructor_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    from tb_tidy_plugin.plugin import profiles

    def slow(*_: object) -> scan.Catalog:
        assert gate.wait(60)
        return {}

    monkeypatch.setattr(profiles, "look", slow)
    found = plugin(str(tmp_path))
    assert found.is_active()
    gate.set()
    until(lambda: not found.is_active())


def test_a_look_that_fails_is_over_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_tidy_plugin.plugin import profiles

    def fails(*_: object) -> scan.Catalog:
        raise OSError("the disk is gone")

    monkeypatch.setattr(profiles, "look", fails)
    found = plugin(str(tmp_path))
    until(lambda: not found.is_active())


def test_all_below_one_route(tmp_path: Path) -> None:
    trace(tmp_path / "a" / "run" / "w.pt.trace.json")
    assert ask_runs(plugin(logdir_spec=f"name:{tmp_path / 'a'}")) == ["name/run"]


@pytest.mark.parametrize("flags", [{"logdir": "logs"}, {"logdir_spec": "a:logs"}])
def test_links_out_of_the_logdir_are_followed_where_the_flag_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trace(tmp_path / "elsewhere" / "deep" / "w.pt.trace.json")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run").symlink_to(tmp_path / "elsewhere")
    prefix = "a/" if "logdir_spec" in flags else ""
    assert ask_runs(plugin(**flags)) == [f"{prefix}run"]
    assert ask_runs(plugin(**flags, torchtidy_follow_links=True)) == [f"{prefix}run/deep"]


def ask_runs(found: Plugin) -> list[str]:
    [(route, app)] = found.get_plugin_apps().items()
    assert route == "/*"
    answer = Client(app).get("/data/plugin/torchtidy/api/runs")
    assert answer.status_code == 200
    assert answer.json is not None
    return [run["run"] for run in answer.json["runs"]]


def test_a_context_without_flags_of_ours(tmp_path: Path) -> None:
    assert ask_runs(plugin(str(tmp_path))) == []


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert ask_runs(plugin(str(tmp_path))) == []


def test_without_flask_the_module_cannot_be_imported_which_the_loader_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    import tb_tidy_plugin.plugin.plugin as module

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "flask" else object())
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match="flask is not installed"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


class TestConfiguration:
    def test_the_flag_goes_before_the_environment(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TB_TIDY_CONFIG", "/etc/theirs.toml")
        assert configuration_file("strict.toml") == tmp_path / "strict.toml"
        assert configuration_file("") == Path("/etc/theirs.toml")

    def test_none_is_looked_for(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("TB_TIDY_CONFIG", raising=False)
        (tmp_path / "tb-tidy.toml").write_text("=")
        assert configuration_file("") is None

    def test_it_reaches_the_rules(self, tmp_path: Path) -> None:
        write_rule(tmp_path)
        (tmp_path / "tb-tidy.toml").write_text('rules = ["slow_multiplication.py"]')
        found = plugin(str(tmp_path), torchtidy_config=str(tmp_path / "tb-tidy.toml"))
        client = Client(found.get_plugin_apps()["/*"])
        answer = client.get("/data/plugin/torchtidy/api/rules").get_json()
        assert answer["rules"][-1]["rule"] == "slow-multiplication"
