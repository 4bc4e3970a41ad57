"""Files and folders as somebody else could have left them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

NOBODY = 65534


def given_away(path: Path) -> None:
    """Makes it another user's, which only root can."""
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(path, NOBODY, NOBODY)


def group_may_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


def everybody_may_write(path: Path) -> None:
    """As a folder that many share, where nobody can delete what is another's."""
    path.chmod(path.stat().st_mode | stat.S_IWOTH | (stat.S_ISVTX if path.is_dir() else 0))


def linked(path: Path) -> None:
    """Puts a link in its place, to what is as it was."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path: Path) -> None:
    """Puts a pipe in its place, into which nobody writes."""
    path.unlink()
    os.mkfifo(path, 0o600)
