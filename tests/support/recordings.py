"""Where recordings are that do not belong to the repository: real device traces and upstream's answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TIDY_SHARED", ROOT.parent / "shared"))


def shared(name: str) -> Path:
    """The shared file or folder `name` (`traces/b200_eager`); skips the test, visibly, where it is absent."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here: set TIDY_SHARED to the folder that holds it")
    return path


def shared_names(folder: str) -> list[str]:
    """Names of what is in the shared `folder`, for parametrizing; a placeholder that skips where it is absent."""
    path = SHARED / folder
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else ["absent"]
