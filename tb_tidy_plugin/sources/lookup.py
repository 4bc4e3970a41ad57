"""The sources of one recording: read when first asked for, and once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tb_tidy_plugin.sources.align import Sources
from tb_tidy_plugin.sources.files import SourceText, read_source
from tb_tidy_plugin.trace.columns import SourceFile
from tb_tidy_plugin.trace.files import TraceFile


def sources_of(trace: TraceFile, roots: Sequence[Path], captured: Sequence[SourceFile] = ()) -> Sources:
    """Lines of the files that a trace names, captured with it, or beside the trace or under one of `roots`."""
    texts = {source.file: source.text for source in captured}

    @cache
    def lines(name: str) -> list[str] | None:
        found = read_source(name, (name,), trace, roots, texts)
        return found.lines if isinstance(found, SourceText) else None

    return lines
