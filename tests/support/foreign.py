"""Files and folders as another user could have left them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

NOBODY = 65534


def given_away(path: Path) -> None:
    """Changes the owner to another user, which only root can."""
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(path, NOBODY, NOBODY)


def group_may_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


def everybody_may_write(path: Path) -> None:
    """Makes a shared folder in which nobody can delete the files of others."""
    path.chmod(path.stat().st_mode | stat.S_IWOTH | (stat.S_ISVTX if path.is_dir() else 0))


def linked(path: Path) -> None:
    """Moves `path` and puts a link to it in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path: Path) -> None:
    """Replaces `path` by a pipe that nobody writes to."""
    path.unlink()
    os.mkfifo(path, 0o600)
