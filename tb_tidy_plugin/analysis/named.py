"""Names of source files for readers: relative to the repository that holds the file, else to the current folder.

A recording names a file relative to the folder of the script that ran, or by a path of another machine. Code hosts,
editors and `git apply` need the name in the repository. Stored answers keep the recorded names: a file is looked for
each time it is shown, and only where sources may be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ledger.model import Entry, Owner
from tb_tidy_plugin.report.code_model import CodeFix
from tb_tidy_plugin.report.model import Finding, Note, Report, RunReport
from tb_tidy_plugin.sources.files import candidates
from tb_tidy_plugin.trace.files import is_under
from tb_tidy_plugin.trace.remote import path_or_url

_T = TypeVar("_T")

_SENTENCES: dict[type, tuple[str, ...]] = {
    Finding: ("message", "fix", "action"),
    Note: ("text",),
    Entry: ("advice", "nothing_to_fix"),
}
"""Fields with sentences that may name places, as `train.py:12`."""

_IN_SENTENCES = re.compile(r"[^\s():`«»,;]+\.py(?=:\d)")


class ShownNames(msgspec.Struct, frozen=True):
    """Finds and names source files; each name is looked up once.

    Attributes:
        job: settings of the analysis: files are found below its source roots, and beside a trace.
    """

    job: Job
    _shown: dict[tuple[str, tuple[Path, ...]], str] = msgspec.field(default_factory=dict)
    _tops: dict[str, str | None] = msgspec.field(default_factory=dict)

    def of(self, name: str, beside: tuple[Path, ...] = ()) -> str:
        """The name to show for the file that a recording calls `name`: the recorded one if the file is not found.

        `beside` are the folders of the traces.
        """
        key = (name, beside)
        if key not in self._shown:
            self._shown[key] = self._found(name, beside)
        return self._shown[key]

    def of_path(self, path: Path, name: str) -> str:
        """The name to show for a real path; `name` if the file lies in no repository, and not in the current folder."""
        real = str(path)
        bases = [self._top(os.path.dirname(real)), _current_folder()]  # noqa: PTH120 - as realpath
        for base in bases:
            if base is not None and is_under(real, base):
                return Path(os.path.relpath(real, base)).as_posix()
        return name

    def report(self, report: Report) -> Report:
        """A report with these names."""
        return replace(report, runs=[self._run(run) for run in report.runs])

    def beside(self, *paths: str) -> Callable[[str], str]:
        """The names of the files in the recordings at `paths`."""
        places = map(path_or_url, dict.fromkeys(paths))
        folders = tuple(dict.fromkeys(place.parent for place in places if isinstance(place, Path)))
        return lambda name: self.of(name, folders)

    def _run(self, run: RunReport) -> RunReport:
        profiles = [renamed(profile, self.beside(profile.path)) for profile in run.profiles]
        of_all = self.beside(run.profiles[0].path) if run.profiles else self.of
        return replace(renamed(replace(run, profiles=[]), of_all), profiles=profiles)

    def _found(self, name: str, beside: tuple[Path, ...]) -> str:
        if not name.endswith(".py"):
            return name
        try:
            path = next(candidates(name, (*beside, *self.job.source_roots)), None)
        except OSError:  # a disk does not answer
            path = None
        return name if path is None else self.of_path(path, name)

    def _top(self, folder: str) -> str | None:
        """The top folder of the repository around a folder."""
        if folder not in self._tops:
            above = os.path.dirname(folder)  # noqa: PTH120 - as realpath
            has_git = os.path.lexists(os.path.join(folder, ".git"))  # noqa: PTH118
            self._tops[folder] = folder if has_git else None if above == folder else self._top(above)
        return self._tops[folder]


def _current_folder() -> str | None:
    try:
        return os.path.realpath(os.getcwd())  # noqa: PTH109 - as realpath
    except FileNotFoundError:  # it was deleted
        return None


def renamed(value: _T, of: Callable[[str], str]) -> _T:
    """A value with other names of files, wherever it has a `file`, and in sentences and diffs."""
    if isinstance(value, msgspec.Struct):
        changes: dict[str, object] = {}
        for field in value.__struct_fields__:
            old = getattr(value, field)
            new: object = renamed(old, of)
            if isinstance(old, str):
                new = of(old) if field == "file" else _sentence(type(value), field, old, of)
            if new is not old and new != old:
                changes[field] = new
        if isinstance(value, CodeFix) and "file" in changes:
            changes["diff"] = of_file(value.diff, value.file, str(changes["file"]))
        if isinstance(value, Owner) and value.file and "file" in changes:
            changes["place"] = value.place.replace(value.file, str(changes["file"]), 1)
        return replace(value, **changes) if changes else value
    if type(value) in (list, tuple):
        items = [renamed(item, of) for item in value]  # type: ignore[attr-defined]
        is_same = all(new is old for new, old in zip(items, value, strict=True))  # type: ignore[call-overload]
        return value if is_same else type(value)(items)  # type: ignore[call-arg]
    if isinstance(value, dict):
        known = {key: renamed(item, of) for key, item in value.items()}
        return known if any(known[key] is not value[key] for key in known) else value  # type: ignore[return-value]
    return value


def of_file(diff: str, old: str, new: str) -> str:
    """A diff of the file `old` as one of the file `new`."""
    heading = f"--- a/{old}\n+++ b/{old}\n"
    return f"--- a/{new}\n+++ b/{new}\n{diff[len(heading) :]}" if diff.startswith(heading) else diff


def _sentence(kind: type, field: str, text: str, of: Callable[[str], str]) -> str:
    if field not in _SENTENCES.get(kind, ()):
        return text
    return _IN_SENTENCES.sub(lambda match: of(match[0]), text)
