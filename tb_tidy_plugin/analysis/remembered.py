"""Answers about traces that are kept in a cache, each by all that it depends on.

That is the trace and the files beside it, this package's code, what was asked, the measurements that are known, and the
sources that were looked at. Answers of rules that are not this package's are not kept: what those depend on is unknown.
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
from tb_tidy_plugin.trace.cache import UNREAD, Cache, State, code_state, key_of, state_of, text_of
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.graph_files import LOOKED_AT, captures_state
from tb_tidy_plugin.trace.names import BESIDE, model_config_beside, snapshots_beside
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.visible import log_called

log = log_called("tb_tidy_plugin")

OWN_RULES = "tb_tidy_plugin.rules."
"""What the names of this package's rules' modules begin with: what comes of others is not kept."""

CACHED_GRAPH = "<graph in Inductor's cache> "
"""Before a key, stands for that graph among the sources that an answer depends on; no source has this name."""

_Answer = TypeVar("_Answer")


class _Entry(msgspec.Struct, frozen=True):
    """An answer, left as text, and the sources that were looked at for it."""

    sources: dict[str, State]
    answer: msgspec.Raw


class Remembered(msgspec.Struct, Generic[_Answer], frozen=True):
    """Answers of one kind, to one question.

    Attributes:
        kind: names entries of the cache; small letters.
        answer: the type of the answers.
        asked: all else that they depend on, as JSON can have it; None where they are not kept.
        roots: folders in which sources may be read.
        by_measurements: whether what was measured changes the answers.
    """

    cache: Cache
    kind: str
    answer: type[_Answer]
    asked: object
    roots: tuple[Path, ...] = ()
    by_measurements: bool = True

    def key(self, file: TraceFile) -> str | None:
        """Names the answer about a trace as it is now; None where it cannot be kept."""
        try:
            return self._key(file)
        except (OSError, UnicodeEncodeError):  # this package's code cannot be looked at, or the run's name is not text
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
        return key_of(code_state(), state, beside, measured, named, roots, self.asked)

    def load(self, file: TraceFile, key: str | None) -> _Answer | None:
        """The answer that was kept, None where there is none, or a source is another one by now."""
        content = None if key is None else self.cache.load(self.kind, key)
        if content is None:
            return None
        try:
            entry = msgspec.json.decode(content, type=_Entry)
            if any(self._state(name, file) != state for name, state in entry.sources.items()):
                return None
            return msgspec.json.decode(entry.answer, type=self.answer)
        except NOT_JSON as problem:
            log.info("%s %s is passed over: %s", self.kind, key, problem)
            return None

    def _state(self, name: str, file: TraceFile) -> State:
        if name.startswith(CACHED_GRAPH):
            from tb_tidy_plugin.sources.inductor_cache import folder_of_cache, graph_state

            return graph_state(folder_of_cache(), name.removeprefix(CACHED_GRAPH))
        return captures_state(file.path) if name == LOOKED_AT else source_state(name, file, self.roots)

    def keep(self, file: TraceFile, key: str | None, answer: _Answer, sources: Mapping[str, State]) -> None:
        """Keeps the answer for which `key` was asked before, unless something has changed since, or was unread."""
        if key is None or UNREAD in sources.values() or key != self.key(file):
            return
        with suppress(UnicodeEncodeError):  # an answer with a path that is not text
            entry = _Entry(dict(sources), msgspec.Raw(msgspec.json.encode(answer)))
            self.cache.keep(self.kind, key, [msgspec.json.encode(entry)])
