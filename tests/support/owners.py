"""Files of other users, as root creates them; without root, `lstat` and `fstat` are made to say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

OTHER = 54_321
"""A user and a group that exist on no machine."""


class Owners:
    """Gives files away for the duration of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._uids: dict[tuple[int, int], int] = {}
        self._gids: dict[tuple[int, int], int] = {}
        self._is_root = os.name == "posix" and os.geteuid() == 0
        if not self._is_root:
            lstat, fstat = os.lstat, os.fstat
            monkeypatch.setattr(os, "lstat", lambda path: self._as_given(lstat(path)))
            monkeypatch.setattr(os, "fstat", lambda number: self._as_given(fstat(number)))

    def give_away(self, path: Path) -> None:
        """Changes the owner of a file, a folder or a link to another user."""
        if self._is_root:
            os.chown(path, OTHER, -1, follow_symlinks=False)
        self._uids[_identity(path)] = OTHER

    def share(self, path: Path) -> None:
        """Lets a group that may have other members write a file."""
        if self._is_root:
            os.chown(path, -1, OTHER)
        self._gids[_identity(path)] = OTHER
        path.chmod(path.stat().st_mode | 0o020)

    def _as_given(self, about: os.stat_result) -> os.stat_result:
        fields = list(about)
        fields[4] = self._uids.get((about.st_dev, about.st_ino), about.st_uid)
        fields[5] = self._gids.get((about.st_dev, about.st_ino), about.st_gid)
        return os.stat_result(fields)


def _identity(path: Path) -> tuple[int, int]:
    about = path.lstat()
    return about.st_dev, about.st_ino
