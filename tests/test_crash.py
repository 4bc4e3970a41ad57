"""A test process that crashes ends `make test`, and the run names the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.recordings import ROOT

OTHERS = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_other(number):
    pass
"""
CRASHES = """
import os, signal
from pathlib import Path

def test_crash():
    crashed = Path(__file__).with_name("crashed")
    if not crashed.exists():
        crashed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crash_ends_the_run_that_names_the_test(tmp_path: Path) -> None:
    [flags] = re.findall(
        r"^PYTEST_FLAGS \?= --numprocesses \$\(.*\) (--dist .*\\\n.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    for name in "abcdef":
        (tmp_path / f"test_{name}.py").write_text(OTHERS)
    (tmp_path / "test_c.py").write_text(OTHERS + CRASHES)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [*command, "--numprocesses", "2", *flags.replace("\\", "").split()],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "crashed while running 'test_c.py::test_crash'" in ended.stdout
    assert "replacing" not in ended.stdout, "with a new process the run may never end"
