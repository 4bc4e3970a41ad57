"""A copy of the package, for a rule that must be found in it without being in the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns("__pycache__", "static")


@dataclass(frozen=True)
class Copy:
    """The package with the tests' support below `root`."""

    root: Path

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs this Python in the copy, on the copy's code."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def copy_package(folder: Path) -> Copy:
    """Copies the package and what its tests import into `folder`."""
    shutil.copytree(ROOT / "tb_tidy_plugin", folder / "tb_tidy_plugin", ignore=LEFT_OUT)
    shutil.copytree(ROOT / "tests" / "support", folder / "tests" / "support", ignore=LEFT_OUT)
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests" / "__init__.py")
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    return Copy(folder)
