"""The sources of one recording, each read once, on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.sources.files import SourceText, Unavailable, path_of_source, read_source
from tb_tidy_plugin.trace.cache import UNREAD, State, state_of
from tb_tidy_plugin.trace.files import TraceFile

if TYPE_CHECKING:
    from tb_tidy_plugin.trace.columns import SourceFile


class FoundSources(msgspec.Struct, frozen=True):
    """Lines of the files that a trace names, captured with it, or beside the trace or under one of `roots`.

    Attributes:
        captured: texts stored with the trace, by name.
        looked_at: states of the files on disk, by name, to check later whether they have changed.
        complaints: sentences about files that exist but could not be read.
    """

    trace: TraceFile
    roots: Sequence[Path]
    captured: Mapping[str, str]
    looked_at: dict[str, State] = msgspec.field(default_factory=dict)
    complaints: list[str] = msgspec.field(default_factory=list)
    _lines: dict[str, list[str] | None] = msgspec.field(default_factory=dict)

    def __call__(self, name: str) -> list[str] | None:
        """The lines of the file that the trace calls `name`, None if it is not here."""
        if name not in self._lines:
            if name not in self.captured:
                self.looked_at[name] = source_state(name, self.trace, self.roots)
            found = read_source(name, (name,), self.trace, self.roots, self.captured)
            self._lines[name] = found.lines if isinstance(found, SourceText) else None
            if isinstance(found, Unavailable) and found.unread:
                self.looked_at[name] = UNREAD
                self.complaints.append(found.reason)
        return self._lines[name]


def sources_of(trace: TraceFile, roots: Sequence[Path], captured: Sequence[SourceFile] = ()) -> FoundSources:
    """The sources of a trace; reads nothing yet."""
    return FoundSources(trace, roots, {source.file: source.text for source in captured})


def source_state(name: str, trace: TraceFile, roots: Sequence[Path]) -> State:
    """A state that changes when another text would be read for `name`; empty without one."""
    try:
        path = path_of_source(name, trace, roots)
    except OSError:
        return UNREAD
    return () if path is None else state_of(path)
