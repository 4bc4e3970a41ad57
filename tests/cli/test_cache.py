"""`tb-tidy cache`, and what `tb-tidy check` keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.system.private import HAS_OWNERS
from tb_tidy_plugin.trace.cache import say_once
from tests.support.logdirs import trace


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that this user's entries are in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path / "user" / "tb-tidy" / "analyses"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return trace(tmp_path / "run" / "w.pt.trace.json")


def said(*arguments: str) -> str:
    result = CliRunner().invoke(commands, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_report_is_kept_and_shown_again(path: Path, cache: Path) -> None:
    first = said("check", "--isolated", str(path))
    (entry,) = cache.iterdir()
    assert entry.name.startswith("report-")
    assert said("check", "--isolated", str(path)) == first


def said_and_imported(*command: str) -> tuple[str, set[str]]:
    """What a process of its own prints, and the modules that it has imported at its end."""
    code = "import sys, atexit; from tb_tidy_plugin.cli.main import script; "
    code += "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); script()"
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


def test_a_kept_report_is_shown_without_what_analyses_traces(path: Path) -> None:
    first = said("check", "--isolated", str(path))
    shown, imported = said_and_imported("check", "--isolated", str(path))
    assert (shown, "tb_tidy_plugin.analysis.remembered" in imported) == (first, True)
    assert not imported & {"numpy", "flask", "libcst", "loky"}
    packages = {name.split(".")[1] for name in imported if name.startswith("tb_tidy_plugin.")}
    assert not packages & {"rules", "rulekit", "estimate", "plugin", "capture"}


def test_an_analysis_imports_only_what_it_uses(path: Path) -> None:
    _, imported = said_and_imported("check", "--isolated", "--no-cache", str(path))
    assert "numpy" in imported
    assert imported.isdisjoint({"numpy.ma", "flask", "loky", "tensorboard", "torch"})


def test_nothing_is_kept_where_that_is_not_wanted(path: Path, cache: Path) -> None:
    said("check", "--isolated", "--no-cache", str(path))
    assert not cache.exists()


def test_info_says_where_how_large_and_what(path: Path, cache: Path) -> None:
    assert said("cache", "info") == f"{cache}: 0 B of at most 2 GiB\n"
    said("check", "--isolated", str(path))
    first, second = said("cache", "info").splitlines()
    assert first.startswith(f"{cache}: ")
    assert second.startswith("  report: 1, ")


def test_clear_deletes_all_of_it(path: Path, cache: Path) -> None:
    said("check", "--isolated", str(path))
    assert said("cache", "clear").endswith(f" deleted in {cache}.\n")
    assert list(cache.iterdir()) == []
    assert said("cache", "clear") == f"0 B deleted in {cache}.\n"


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no permissions of this kind")
def test_a_folder_that_others_may_write_is_told_once_and_not_used(
    path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    reason = f"The folder `{cache}` is not used: others may write there (mode 777). Run `chmod go-w` on it"
    say_once.cache_clear()
    with_others = CliRunner().invoke(commands, ["check", "--isolated", str(path)])
    assert (with_others.exit_code, list(cache.iterdir())) == (0, [])
    assert [line.getMessage().startswith(reason) for line in caplog.records] == [True]
    assert reason in said("cache", "info").splitlines()[1]
    assert reason in " ".join(said("doctor").split()).replace("Traces are read again each time. ", "")


def test_another_folder_can_be_named(tmp_path: Path) -> None:
    assert said("cache", "info", "--folder", str(tmp_path)) == f"{tmp_path}: 0 B of at most 2 GiB\n"
