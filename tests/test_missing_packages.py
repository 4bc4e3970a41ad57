"""Packages that only tests need and that are missing: their tests are skipped, which each says, and fail in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import missing
from tests.support.environments import same_imports
from tests.support.recordings import ROOT

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jsonschema", "dask", "torch", "made_up"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
FILES = {
    "test_file.py": "import jsonschema\n\ndef test_never_collected(): ...\n",
    "test_tests.py": """
import pytest

@pytest.fixture
def records():
    raise AssertionError("comes after the skip")

@pytest.mark.torch
def test_marked(records): ...

def test_imports():
    import dask.config

def test_fails():
    import made_up
""",
}


def run_in(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "blocked.py").write_text(BLOCKED)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    plugins = ("-p", "blocked", "-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:schemathesis")
    paths = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-rA",
            "--rootdir",
            folder,
            "--continue-on-collection-errors",
            "-o",
            "markers=torch",
            *plugins,
            folder,
        ],
        cwd=folder,
        env={**same_imports(), "CI": "", **environment, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_what_needs_them_is_skipped_and_nothing_else(tmp_path: Path) -> None:
    said = run_in(tmp_path).stdout
    for package in ("jsonschema", "torch", "dask"):
        assert f"needs the package {package}: `pip install -r tests/requirements.txt`" in said
    assert "3 skipped" in said.splitlines()[-1], said
    assert "1 failed" in said.splitlines()[-1], "made_up is no requirement of the tests"


@pytest.mark.slow
def test_in_ci_it_fails(tmp_path: Path) -> None:
    said = run_in(tmp_path, CI="true").stdout
    assert "2 failed, 2 errors" in said.splitlines()[-1], said
    assert "No module named 'jsonschema'" in said
    assert "skipped in CI, which must run it" in said


def test_all_requirements_are_known_by_the_names_of_their_modules() -> None:
    assert {"yaml", "torch_tb_profiler", "jsonschema", "distributed", "dask"} <= missing.names()
    assert not {"pyyaml", "_c", ""} & missing.names()
