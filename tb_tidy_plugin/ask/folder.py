"""The folder with the recordings of questions; answers never use anything outside it."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import msgspec

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.quoted import unquoted
from tb_tidy_plugin.trace.files import FOLLOW, TraceFile, find_traces, is_under
from tb_tidy_plugin.words.errors import NotFoundError

ID = re.compile(r"t-[0-9a-f]{8}")
_NAMED = 10
"""Most traces that an error names."""


class OutsideError(NotFoundError):
    """A path outside the folder."""


class Folder(msgspec.Struct, frozen=True):
    """A folder, or a single trace file.

    Attributes:
        root: the folder's absolute path.
        job: settings of the analysis of its traces.
        allows_apply: True if files may be written and programs run.
    """

    root: Path
    job: Job
    allows_apply: bool = False

    def place(self, path: str) -> Path:
        """The file or folder that an argument names.

        Raises:
            OutsideError: it lies outside, or a link leads there.
            NotFoundError: it is the id of a trace that does not exist.
        """
        text = unquoted(path)
        if ID.fullmatch(text):
            return self._called(text)
        try:
            place = Path(os.path.normpath(self.root / text)) if text not in {"", "."} else self.root
            real = os.path.realpath(place)
        except ValueError:  # a null byte
            raise NotFoundError("The path is not text.", "Ask `runs` for the recordings.") from None
        is_link = place.is_relative_to(self.root)
        if not is_under(real, os.path.realpath(self.root)) and not (is_link and self.job.follow_links):
            advice = f"`{FOLLOW}` follows links." if is_link else "Ask `runs` for the recordings."
            raise OutsideError(f"`{text}` leads out of the served folder.", advice)
        return place

    def traces(self, path: str) -> list[TraceFile]:
        """The traces at a path, in the order of runs, workers and spans.

        Raises:
            NotFoundError: there are none, or the path lies outside.
        """
        return find_traces(self.place(path), follow_links=self.job.follow_links)

    def trace(self, path: str) -> TraceFile:
        """The only trace at a path.

        Raises:
            NotFoundError: there is none, or there are several.
        """
        found = self.traces(path)
        if len(found) > 1:
            names = ", ".join(map(self.id_of, found[:_NAMED])) + (" …" if len(found) > _NAMED else "")
            raise NotFoundError(f"There are {len(found)} traces.", f"Name one by `path`: {names}")
        return found[0]

    def name_of(self, file: TraceFile) -> str:
        """The path of a trace relative to the folder."""
        return os.path.relpath(file.path, self.root if self.root.is_dir() else self.root.parent)

    def id_of(self, file: TraceFile) -> str:
        """A short id of a trace, derived from its path."""
        return f"t-{hashlib.sha256(os.fsencode(self.name_of(file))).hexdigest()[:8]}"

    def _called(self, name: str) -> Path:
        for file in find_traces(self.root, follow_links=self.job.follow_links):
            if isinstance(file.path, Path) and self.id_of(file) == name:
                return file.path
        raise NotFoundError(f"The trace {name} does not exist.", "Ask `runs` for the recordings.")
