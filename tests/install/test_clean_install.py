"""The distributions as a user gets them: built, then installed where there is no Node.js, compiler or torch.

`TORCHTIDY_PYTHONS="python3.10 python3.13"` names those to try, as `make test-install` does. Without it no environment
is made, which takes minutes where the index is far away.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

import setup
from tests.support.served import API, Served, started
from tests.test_packaging import copy_of_the_checkout

pytestmark = pytest.mark.slow

PYTHONS = os.environ.get("TORCHTIDY_PYTHONS", "").split()
SAMPLES = setup.ROOT / "sample_runs"
SIDES = "base=image_classifier_untidy&candidate=image_classifier_tidy"
OTHER_QUESTIONS = ("rules", "mutes", "modules?", "memory?", "cpu?", "benchmarks?", "export?", f"compare?{SIDES}")
COMPLAINT = re.compile("Traceback|[Ee]rror|warning|torchtidy")
"""What TensorBoard's log does not hold where all is well."""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution, and the wheel for every platform that is built of it, without Node.js and compiler."""
    checkout = copy_of_the_checkout(tmp_path_factory.mktemp("checkout"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", "dist"]
    environment = os.environ | {"PATH": "", "TORCHTIDY_FRONTEND": "skip", "TORCHTIDY_EXTENSION": "skip"}
    subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True)
    return checkout / "dist"


def only(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def test_the_source_distribution_ships_the_page_and_what_is_compiled(distributions: Path) -> None:
    with tarfile.open(only(distributions, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    package = setup.PACKAGE.name
    assert {f"{package}/plugin/static/index.js", f"{package}/trace/_scan.pyx", f"{package}/profile/_nest.pyx"} <= names
    assert {"LICENSE", "CHANGELOG.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith("tests/") or "node_modules" in name or name.endswith(".so")]


def test_the_wheel_built_of_it_has_the_page_and_no_tests(distributions: Path) -> None:
    with zipfile.ZipFile(only(distributions, "*.whl")) as archive:
        names = archive.namelist()
    assert "tb_tidy_plugin/plugin/static/index.js" in names
    assert not [
        name for name in names if "/test_" in name or name.startswith("tests/") or name.endswith((".so", ".pyx"))
    ]


class Installed:
    """An environment with the wheel and what it asks for, and nothing else."""

    def __init__(self, python: str, folder: Path, wheel: Path) -> None:
        command = shutil.which(python)
        if command is None:
            pytest.skip(f"there is no {python}")
        subprocess.run([command, "-m", "venv", folder], check=True)
        self.bin = folder / "bin"
        self.environment = {"PATH": str(self.bin), "HOME": str(folder), "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
        self.install(wheel)

    def install(self, *wanted: str | Path) -> None:
        """By pip, with no other command on PATH; it stops where anything asks for torch."""
        never = self.bin.parent / "never.txt"
        never.write_text("torch<0\n")
        outside = {"PYTHONPATH", "VIRTUAL_ENV", "CI"}
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        environment = kept | {"PATH": str(self.bin), "PIP_CONSTRAINT": str(never)}
        options = ["--quiet", "--prefer-binary", "--disable-pip-version-check"]
        command = [self.bin / "python", "-m", "pip", "install", *options, *wanted]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / command, *arguments],
            env=self.environment,
            cwd=self.bin,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module", params=PYTHONS)
def installed(
    request: pytest.FixtureRequest, distributions: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    return Installed(request.param, tmp_path_factory.mktemp("clean") / "venv", only(distributions, "*.whl"))


def test_neither_torch_nor_node_nor_a_compiler_is_there(installed: Installed) -> None:
    code = "import shutil, importlib.util as u; tools = map(shutil.which, ('node', 'npm', 'cc', 'gcc')); "
    code += "print(u.find_spec('torch'), *tools)"
    assert installed.run("python", "-c", code).stdout.split() == ["None"] * 5


def test_the_command_reads_the_sample_runs(installed: Installed) -> None:
    done = installed.run("tb-tidy", "check", SAMPLES, "--format", "json", "--no-cache")
    assert done.returncode == 0, done.stderr
    runs = {run["run"]: run["profiles"] for run in json.loads(done.stdout)["runs"]}
    assert {"image_classifier_tidy", "image_classifier_untidy"} <= set(runs)
    assert all(profile["findings"] for profile in runs["image_classifier_untidy"])


def test_the_doctor_finds_nothing_wrong_and_says_what_is_optional(installed: Installed) -> None:
    done = installed.run("tb-tidy", "doctor", SAMPLES, "--format", "json")
    found = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in found["checks"]}
    assert (done.returncode, found["ok"]) == (0, True), done.stdout
    assert (states["torch"], states["compiled decoder"]) == ("optional", "optional")
    assert (states["plugin in TensorBoard"], states["logdir"]) == ("fine", "fine")


@pytest.fixture
def board(installed: Installed, tmp_path: Path) -> Iterator[Served]:
    """A TensorBoard of that environment, on the sample runs."""
    program: list[str | Path] = [installed.bin / "tensorboard", "--logdir", SAMPLES, "--torchtidy_cache", "off"]
    with started(program, tmp_path, installed.environment) as served:
        yield served


def test_tensorboard_lists_the_tab_answers_all_its_questions_and_complains_of_nothing(board: Served) -> None:
    listed = board.get("data/plugins_listing").json()["torchtidy"]
    assert (listed["enabled"], listed["tab_name"]) == (True, "TorchTidy")
    page = board.get(listed["loading_mechanism"]["module_path"].removeprefix("/"))
    assert (page.status, page.headers.get_content_type()) == (200, "text/javascript")
    [run] = (run for run in board.api("runs")["runs"] if run["run"] == "image_classifier_untidy")
    first = run["profiles"][0]
    key = urlencode({"run": run["run"], "worker": first["worker"], "span": first["span"]})
    answer = board.analysed(key)
    assert (answer["states"][0]["state"], answer["states"][0]["problem"]) == ("done", None)
    [profile] = answer["report"]["profiles"]
    assert profile["findings"]
    assert board.api(f"operators?{key}")["total"] > 0
    assert board.api(f"timeline/lanes?{key}")["lanes"]
    for question in OTHER_QUESTIONS:
        assert board.get(f"{API}/{question}{key if question.endswith(('?', '&')) else ''}").status == 200, question
    assert not COMPLAINT.search(board.log.read_text()), board.log.read_text()


def test_the_source_distribution_installs_without_a_compiler(installed: Installed, distributions: Path) -> None:
    installed.install("--no-deps", "--force-reinstall", only(distributions, "*.tar.gz"))
    done = installed.run("tb-tidy", "doctor", SAMPLES, "--format", "json")
    states = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, states["compiled decoder"]) == (0, "optional"), done.stdout


def test_the_oldest_versions_tried_are_those_that_setup_asks_for() -> None:
    asked = re.findall(r'"([\w-]+)>=([\d.]+)', (setup.ROOT / "setup.py").read_text("utf-8"))
    pinned = (setup.ROOT / "tests" / "constraints-min.txt").read_text("utf-8").partition("# ----")[0]
    tried = dict(re.findall(r"^([\w-]+)==([\d.]+)$", pinned, re.MULTILINE))
    assert set(tried) == {name for name, _ in asked}
    for name, least in asked:
        assert f"{tried[name]}.0.0".startswith(f"{least}."), name
