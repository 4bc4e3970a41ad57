"""Findings that the user ignores, by the files that they are in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from operator import or_

import msgspec


class PathIgnores(msgspec.Struct, frozen=True):
    """Names of ignored rules, by glob of a finding's files."""

    rules: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)

    def cover(self, rule: str, files: Collection[str]) -> bool:
        """True if `rule` is ignored in all `files` of a finding; False without files."""
        globs = [glob for glob, rules in self.rules.items() if rule in rules]
        return bool(files) and all(any(fits(glob, file) for glob in globs) for file in files)


NOTHING_IGNORED = PathIgnores()


def fits(glob: str, file: str) -> bool:
    """True if `glob` matches a file's path as recorded, possibly on another machine.

    `*` is anything but a `/`, `**` any number of folders. A glob that does not start at the root may start in any
    folder: `tests/*.py` matches `/home/me/job/tests/model.py`.
    """
    parts = tuple(_posix(glob).split("/"))
    is_whole = parts[0] == "" or parts[0].endswith(":")
    return _fits(parts if is_whole else ("**", *parts), _posix(file).split("/"))


def _posix(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _fits(glob: Sequence[str], parts: Sequence[str]) -> bool:
    """Starts at the end, so that each part of the glob is compared with each part of the path at most once."""
    fitting = [False] * len(parts) + [True]  # [i]: the rest of the glob matches parts[i:]
    for part in reversed(glob):
        if part == "**":
            fitting = [*accumulate(reversed(fitting), or_)][::-1]
        else:
            rests = zip(parts, fitting[1:], strict=True)
            fitting = [*(fits and fnmatchcase(name, part) for name, fits in rests), False]
    return fitting[0]
