"""Answers about traces in a cache, each by everything that it depends on.

That is the trace and the files beside it, this package's code, the question, the known measurements, those of this
machine, and the sources that were read. Answers of rules from outside this package are not stored: what those depend on
is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tb_tidy_plugin.benchmarks.store import MEASUREMENTS_SUFFIX as MEASURED
from tb_tidy_plugin.benchmarks.store import cache_state
from tb_tidy_plugin.sources.lookup import source_state
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.cache import UNREAD, Cache, State, code_state, key_of, state_of, text_of
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.graph_files import LOOKED_AT, captures_state
from tb_tidy_plugin.trace.names import BESIDE, model_config_beside, snapshots_beside
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.this_machine import machine_state
from tb_tidy_plugin.words.visible import log_called

log = log_called("tb_tidy_plugin")

OWN_RULES = "tb_tidy_plugin.rules."
"""Prefix of the modules of this package's rules; answers of others are not stored."""

CACHED_GRAPH = "<graph in Inductor's cache> "
"""Prefix for keys of Inductor's cache among the sources that an answer depends on; no source has this name."""

_Answer = TypeVar("_Answer")


class _Entry(msgspec.Struct, frozen=True):
    """An answer, left as text, and the sources that were read for it."""

    sources: dict[str, State]
    answer: msgspec.Raw


class Remembered(msgspec.Struct, Generic[_Answer], frozen=True):
    """Answers of one kind, to one question.

    Attributes:
        kind: prefix of the cache entries' names; lower-case letters.
        answer: the type of the answers.
        asked: all else that they depend on, as JSON values; None if they are not stored.
        roots: folders in which sources may be read.
        by_measurements: True if measurements change the answers.
    """

    cache: Cache
    kind: str
    answer: type[_Answer]
    asked: object
    roots: tuple[Path, ...] = ()
    by_measurements: bool = True

    def key(self, file: TraceFile) -> str | None:
        """Key of the answer about a trace as it is now; None if the answer cannot be stored."""
        try:
            return self._key(file)
        except (OSError, UnicodeEncodeError):  # this package's code cannot be read, or the run's name is not text
            return None

    def _key(self, file: TraceFile) -> str | None:
        state = () if self.cache.folder is None or self.asked is None else state_of(file.path)
        if not state:
            return None
        suffixes = (*BESIDE, MEASURED) if self.by_measurements else BESIDE
        beside = [state_of(file.path.with_name(file.path.name + suffix)) for suffix in suffixes]
        beside += [state_of(path) for path in (*snapshots_beside(file.path), model_config_beside(file.path))]
        measured = cache_state() if self.by_measurements else []
        named = (file.run, file.worker, file.span, text_of(file.path) if isinstance(file.path, Path) else "")
        roots = [text_of(root.absolute()) for root in self.roots]
        return key_of(code_state(), state, beside, measured, machine_state(), named, roots, self.asked)

    def load(self, file: TraceFile, key: str | None) -> _Answer | None:
        """The stored answer; None if there is none, or a source has changed."""
        content = None if key is None else self.cache.load(self.kind, key)
        if content is None:
            return None
        try:
            entry = decode(content, _Entry)
            if any(self._state(name, file) != state for name, state in entry.sources.items()):
                return None
            return decode(entry.answer, self.answer)
        except NOT_JSON as problem:
            log.info("%s %s is passed over: %s", self.kind, key, problem)
            return None

    def _state(self, name: str, file: TraceFile) -> State:
        if name.startswith(CACHED_GRAPH):
            from tb_tidy_plugin.sources.inductor_cache import folder_of_cache, graph_state

            return graph_state(folder_of_cache(), name.removeprefix(CACHED_GRAPH))
        return captures_state(file.path) if name == LOOKED_AT else source_state(name, file, self.roots)

    def keep(self, file: TraceFile, key: str | None, answer: _Answer, sources: Mapping[str, State]) -> None:
        """Stores the answer under the `key` asked for before, unless a file has changed since or could not be read."""
        if key is None or UNREAD in sources.values() or key != self.key(file):
            return
        with suppress(UnicodeEncodeError):  # an answer with a path that is not text
            entry = _Entry(dict(sources), msgspec.Raw(msgspec.json.encode(answer)))
            self.cache.keep(self.kind, key, [msgspec.json.encode(entry)])
