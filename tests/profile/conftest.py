"""Recordings that several tests of profiles look at."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recordings import ROOT


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with fresh traces of small models, and what torch itself says of them in `truth.json`."""
    if importlib.util.find_spec("torch") is None and not os.environ.get("CI"):
        pytest.skip("torch is not installed")
    folder = tmp_path_factory.mktemp("small_models")
    recorder = ROOT / "tests" / "support" / "small_models.py"
    done = subprocess.run(
        [sys.executable, str(recorder), str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder
