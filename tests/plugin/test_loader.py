"""The entry point TensorBoard imports: it must be light, and it must not be able to stop TensorBoard."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from types import ModuleType

import pytest
from tensorboard import program
from tensorboard.plugins import base_plugin

from tb_tidy_plugin.plugin.loader import Loader

PLUGIN_MODULE = "tb_tidy_plugin.plugin.plugin"


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    Loader().define_flags(parser)
    return parser.parse_args(arguments)


def test_importing_the_loader_imports_nothing_heavy() -> None:
    heavy = ["flask", "msgspec", "numpy", "tensorflow", "tensorboard.compat.tf"]
    code = f"import sys, tb_tidy_plugin.plugin.loader; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_loader_imports_no_other_part_of_the_package() -> None:
    """Apart from its errors, which the package itself exports."""
    code = "import sys, tb_tidy_plugin.plugin.loader; print(*(n for n in sys.modules if n.startswith('tb_tidy')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"", ".plugin", ".plugin.loader", ".words", ".words.errors"}
    assert set(done.stdout.split()) == {f"tb_tidy_plugin{name}" for name in own}


def test_tensorboard_accepts_the_flags_beside_its_own() -> None:
    tensorboard = program.TensorBoard(plugins=[Loader])
    flags = ["--torchtidy_source_roots", "src,lib", "--torchtidy_config", "tidy.toml", "--torchtidy_device", "L4"]
    tensorboard.configure(argv=["tensorboard", *flags])
    assert tensorboard.flags.torchtidy_source_roots == "src,lib"
    assert tensorboard.flags.torchtidy_config == "tidy.toml"
    assert tensorboard.flags.torchtidy_device == "L4"


def test_no_flag_is_required() -> None:
    assert parsed().torchtidy_source_roots == ""
    assert parsed().torchtidy_config == ""
    assert parsed().torchtidy_follow_links is False


def test_a_flag_without_a_value() -> None:
    assert parsed("--torchtidy_follow_links").torchtidy_follow_links is True


def test_a_flag_name_taken_by_another_plugin_costs_the_flag_not_tensorboard(caplog: pytest.LogCaptureFixture) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torchtidy_source_roots", default="theirs")
    Loader().define_flags(parser)
    assert parser.parse_args([]).torchtidy_source_roots == "theirs"
    assert parser.parse_args(["--torchtidy_config", "ours.toml"]).torchtidy_config == "ours.toml"
    assert "torchtidy: flag not added" in caplog.text


def test_a_missing_dependency_is_one_line_in_the_log_and_no_plugin(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, PLUGIN_MODULE, None)
    assert Loader().load(base_plugin.TBContext()) is None
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("torchtidy: plugin not loaded: ")
    assert record.exc_info is None


def test_a_fault_of_the_plugin_is_left_to_tensorboard_which_logs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, context: base_plugin.TBContext) -> None:
            raise RuntimeError("broken")

    module = ModuleType(PLUGIN_MODULE)
    monkeypatch.setattr(module, "Plugin", Broken, raising=False)
    monkeypatch.setitem(sys.modules, PLUGIN_MODULE, module)
    with pytest.raises(RuntimeError, match="broken"):
        Loader().load(base_plugin.TBContext())
