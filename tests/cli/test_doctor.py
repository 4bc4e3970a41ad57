"""`tb-tidy doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin import __version__
from tb_tidy_plugin.cli import examined
from tb_tidy_plugin.cli.doctor import doctor
from tb_tidy_plugin.system.compiled import DECODER, is_usable
from tb_tidy_plugin.torchfacts.aten_table import TORCH as NEWEST_TORCH
from tests.support.logdirs import trace
from tests.support.served import needs_the_installed_plugin


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(doctor, [str(each) for each in arguments], catch_exceptions=False)


def answers(*arguments: str | Path) -> dict[str, Any]:
    """The checks by name, as JSON has them."""
    return {check["name"]: check for check in json.loads(run(*arguments, "--format", "json").output)["checks"]}


@pytest.fixture(scope="module")
def text() -> str:
    return run().output


def test_says_the_versions(text: str) -> None:
    assert f"tb-tidy {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}" in text
    assert "numpy " in text


def test_ends_with_the_verdict_and_an_exit_code_to_match(tmp_path: Path) -> None:
    needs_the_installed_plugin()
    trace(tmp_path / "run" / "w.pt.trace.json")
    fine, wrong = run(tmp_path), run(tmp_path / "nowhere")
    assert (fine.exit_code, fine.output.splitlines()[-1]) == (0, "Nothing is wrong.")
    assert (wrong.exit_code, wrong.output.splitlines()[-1]) == (1, "1 thing is wrong.")


@pytest.mark.compiled
@pytest.mark.skipif(not is_usable(DECODER), reason="the compiled decoder was not built")
def test_says_that_the_compiled_decoder_is_there(text: str) -> None:
    assert "The compiled decoder is installed." in text


class TestDecoder:
    """What is compiled, where it is missing or of no use."""

    @pytest.fixture
    def without(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, DECODER, None)  # as on a machine that had no compiler

    def test_says_what_is_lost_and_how_to_get_it(self, without: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        check = examined.of_decoder()
        assert check.text.endswith("traces are read several times more slowly.")
        assert (check.state, "Install a C compiler" in check.advice) == ("optional", True)

    def test_where_a_compiler_is_there_only_the_install_is_asked_for(
        self, without: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "cc").touch(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert examined.of_decoder().advice.startswith("A C compiler is installed now: run `pip install --force-re")

    def test_one_of_another_python_is_wrong(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "for_another.py").write_text("raise ImportError('undefined symbol')\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(examined, "EXTENSIONS", ())
        monkeypatch.setattr(examined, "DECODER", "for_another")
        check = examined.of_decoder()
        assert (check.state, "cannot be loaded: undefined symbol." in check.text) == ("wrong", True)

    def test_one_that_is_older_than_its_sources_is_not_used_and_asks_for_another_install(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        built = tmp_path / "pulled.py"
        built.touch()
        os.utime(built, (1, 1))
        (tmp_path / "pulled.pyx").touch()
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(examined, "EXTENSIONS", ("pulled",))
        check = examined.of_decoder()
        assert (check.state, "older than their sources and not used" in check.text) == ("optional", True)
        assert f"`pip install --editable {Path(examined.__file__).parents[2]}`" in check.advice


class TestPackages:
    """What is needed and what is optional."""

    def test_what_is_needed_is_read_off_the_install_and_here_all_there(self) -> None:
        needs_the_installed_plugin()
        checks = {check.name: check for check in examined.of_package()}
        needed = {"click", "flask", "msgspec", "numpy", "rich", "tensorboard"}
        assert needed <= set(checks)
        assert {checks[name].state for name in needed} == {"fine"}

    def test_an_extra_that_nobody_asked_for_is_not_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        said = ["click>=8", 'no-such-package[client]>=2; extra == "ray"', 'no-such-package; extra == "dask"']
        monkeypatch.setattr(metadata, "requires", lambda name: said)
        assert "no-such-package" not in {check.name for check in examined.of_package()}

    def test_one_that_is_missing_is_wrong(self) -> None:
        check = examined.of_requirement("no-such-package", "1.2")
        assert (check.state, check.text) == ("wrong", "no-such-package is not installed.")
        assert check.advice == "pip install 'no-such-package>=1.2'"

    @pytest.mark.parametrize(
        ("least", "state"), [("1.9", "fine"), ("2.4", "fine"), ("10", "wrong"), ("999.1", "wrong")]
    )
    def test_one_that_is_too_old_is_wrong_and_10_is_more_than_9(
        self, monkeypatch: pytest.MonkeyPatch, least: str, state: str
    ) -> None:
        monkeypatch.setattr(metadata, "version", lambda name: "9.1.0rc1")
        assert examined.of_requirement("numpy", least).state == state

    def test_an_optional_one_that_is_missing_says_what_it_would_add(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fsspec", None)
        [check] = (check for check in examined.of_package() if check.name == "fsspec")
        assert (check.state, check.text) == ("optional", "fsspec is not installed: no logdirs on stores such as s3://.")
        assert "tb-tidy-plugin[remote]" in check.advice


class TestTensorBoard:
    """Asked of TensorBoard itself."""

    def test_sees_the_plugin(self) -> None:
        needs_the_installed_plugin()
        [check] = examined.of_plugin()
        assert (check.state, check.text) == ("fine", "TensorBoard sees the plugin.")

    def test_another_plugin_that_keeps_it_from_starting_is_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        about = tmp_path / "broken-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[tensorboard_plugins]\nbroken = no_such_module:Plugin\n")
        monkeypatch.syspath_prepend(tmp_path)
        [check] = (check for check in examined.of_plugin() if check.name == "plugin in TensorBoard")
        assert check.state == "wrong"
        assert "No module named 'no_such_module'" in check.text

    def test_a_missing_page_is_wrong(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(examined, "PAGE", tmp_path / "index.js")
        [check] = (check for check in examined.of_plugin() if check.name == "page")
        assert check.state == "wrong"

    def test_the_command_of_another_environment_is_told(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "tensorboard").touch(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        [check] = examined.of_tensorboard()
        assert check.text == f"The command `tensorboard` belongs to another environment: {tmp_path / 'tensorboard'}."
        assert f"{sys.executable} -m tensorboard.main" in check.advice

    def test_without_it_nothing_is_wrong_and_nothing_else_is_asked_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        needs_the_installed_plugin()
        monkeypatch.setitem(sys.modules, "tensorboard", None)
        done = run("--format", "json")
        found = json.loads(done.output)
        of_it = {check["name"]: check for check in found["checks"] if "ensor" in check["name"]}
        assert (done.exit_code, found["ok"], [*of_it]) == (0, True, ["tensorboard"])
        assert of_it["tensorboard"]["state"] == "optional"
        assert "`tb-tidy serve`" in of_it["tensorboard"]["text"]


class TestAnalysis:
    """A small recording goes through everything."""

    def test_it_works_here(self) -> None:
        check = examined.of_analysis()
        assert (check.state, check.text) == ("fine", "A small recording can be analysed.")

    def test_a_package_that_breaks_it_is_found(self, tmp_path: Path) -> None:
        """As msgspec 0.18.0 to 0.18.4 did, and `doctor` said that nothing was wrong."""
        code = """
import msgspec, sys
class Old(type(msgspec.Struct)):
    def __new__(cls, name, bases, namespace, **options):
        if options.pop("cache_hash", False):
            raise TypeError("cache_hash")
        return super().__new__(cls, name, bases, namespace, **options)
class Struct(msgspec.Struct, metaclass=Old):
    pass
msgspec.Struct = Struct
from tb_tidy_plugin.cli import examined
found = examined.of_analysis()
print(found.state, found.text)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.startswith("wrong A small recording cannot be analysed."), done.stderr
        assert "TypeError" in done.stdout

    def test_events_that_are_lost_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        events = [*examined.SMALL_RECORDING, {"ph": "X", "name": "lost", "ts": 1, "dur": -1, "pid": 1, "tid": 1}]
        monkeypatch.setattr(examined, "SMALL_RECORDING", events)
        check = examined.of_analysis()
        assert (check.state, "9 of its 10 events were read." in check.text) == ("wrong", True)


class TestTorch:
    """Which releases of torch were tried."""

    @pytest.mark.parametrize("version", ["1.13.1", "2.9.0", NEWEST_TORCH, f"{NEWEST_TORCH}+cpu"])
    def test_one_that_was_tried_is_fine(self, version: str) -> None:
        assert examined.of_torch(version) == examined.Check("torch", "fine", f"torch {version}")

    def test_a_newer_one_is_noted_and_not_wrong(self) -> None:
        major, minor, *_ = map(int, NEWEST_TORCH.split("."))
        check = examined.of_torch(f"{major}.{minor + 1}.0+cu130")
        assert check.state == "fine"
        assert f"is newer than {NEWEST_TORCH}" in check.text
        assert check.advice


class TestLogdir:
    """Whether there is anything to show."""

    def test_counts_traces_and_runs(self, tmp_path: Path) -> None:
        trace(tmp_path / "a" / "w.1.pt.trace.json")
        trace(tmp_path / "a" / "w.2.pt.trace.json")
        trace(tmp_path / "b" / "w.pt.trace.json")
        check = answers(tmp_path)["logdir"]
        assert check["state"] == "fine"
        assert check["text"].startswith(f"{tmp_path}: traces 3, runs 2, ")

    def test_without_traces_it_says_how_to_record_some(self, tmp_path: Path) -> None:
        check = answers(tmp_path)["logdir"]
        assert check["state"] == "wrong"
        assert "tensorboard_trace_handler" in check["advice"]

    def test_a_trace_that_may_not_be_read_is_named(self, tmp_path: Path) -> None:
        trace(tmp_path / "a" / "w.1.pt.trace.json")
        (tmp_path / "a" / "w.2.pt.trace.json").symlink_to(tmp_path / "gone")
        check = answers(tmp_path)["logdir"]
        assert check["text"].startswith("1 of 2 traces")
        assert "w.2.pt.trace.json" in check["text"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert examined.of_cache().state == "optional"


def test_runs_as_a_command_that_says_the_same(tmp_path: Path) -> None:
    code = "from tb_tidy_plugin.cli.main import script; script()"
    command = [sys.executable, "-W", "error", "-c", code, "doctor", "--format", "json", str(tmp_path / "nowhere")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["version"] == __version__
