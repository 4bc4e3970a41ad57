"""Data that only the profiler's live event tree has: calling lines, and the identity of tensors.

The line of a caller is CPython's `f_lineno` when the call began. It stays in memory only: the exported trace
of torch up to 2.13 holds the line where a function is defined (https://github.com/pytorch/pytorch/issues/167605).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tb_tidy_plugin.capture.own_files import OwnFiles

if TYPE_CHECKING:
    from torch._C._profiler import _ProfilerEvent

    Event: TypeAlias = _ProfilerEvent

_BUDGET_S = 15.0
"""The walk stops after this time, wherever it is: 200,000 events take well below 1 s."""

MAX_ENTRIES = 500_000
CLOCK_EVERY = 4096  # events between two checks of the clock

ATEN = "aten::"


@dataclass(frozen=True, slots=True)
class Walk:
    """Result of one walk over the tree, in columns.

    Attributes:
        calls: start in Unix ns, checksum of the name, and line in the caller's file, of each call made by a frame of
            the user's own.
        files: the user's own files, by the names that frames give them.
        tensors: start, checksum of the name, and the ids of tensor and storage of each input, of each operator.
        complete: False if time or room ran out.
    """

    calls: list[tuple[int, int, int]]
    files: frozenset[str]
    tensors: list[tuple[int, int, list[int], list[int]]]
    complete: bool


def walk(roots: Iterable[Event], own: OwnFiles, *, tensors: bool, budget_s: float = _BUDGET_S) -> Walk:
    """Visits every event once.

    Args:
        roots: the result of `experimental_event_tree()`.
        own: knows which frames are the user's own.
        tensors: True to also record the ids of tensors.
        budget_s: time after which the walk stops.
    """
    visitor = _Visitor(own, tensors=tensors)
    visits = visitor.by_kind()
    deadline = time.perf_counter() + budget_s
    waiting: list[tuple[Iterable[Event], bool]] = [(roots, False)]
    seen = 0
    while waiting:
        events, called_by_own = waiting.pop()
        for event in events:
            visit = visits.get(event.tag)
            below = visit(event, called_by_own) if visit else None
            if below is not None:
                waiting.append((event.children, below))
            seen += 1
            if not seen % CLOCK_EVERY and (time.perf_counter() > deadline or visitor.is_full):
                return visitor.result(complete=False)
    return visitor.result(complete=True)


class _Visitor:
    """Records the relevant data of each event.

    A visit returns True if a frame of the user's own calls the events below; None if they need no visit.
    """

    def __init__(self, own: OwnFiles, *, tensors: bool) -> None:
        self._own = own
        self._keeps_tensors = tensors
        self._calls: list[tuple[int, int, int]] = []
        self._files: set[str] = set()
        self._tensors: list[tuple[int, int, list[int], list[int]]] = []

    def by_kind(self) -> dict[object, Callable[[Event, bool], bool | None]]:
        from torch._C._profiler import _EventType

        return {
            _EventType.PyCall: self._function,
            _EventType.PyCCall: self._built_in,
            _EventType.TorchOp: self._operator,
        }

    @property
    def is_full(self) -> bool:
        return len(self._calls) + len(self._tensors) > MAX_ENTRIES

    def result(self, *, complete: bool) -> Walk:
        return Walk(sorted(self._calls), frozenset(self._files), sorted(self._tensors), complete)

    def _function(self, event: Event, called_by_own: bool) -> bool:
        name = _name(event)
        if called_by_own:
            self._keep_call(event, name)
        file = self._own.named_in(name)
        if file is None:
            return False
        self._files.add(file)
        return True

    def _built_in(self, event: Event, called_by_own: bool) -> bool:
        if called_by_own:
            self._keep_call(event, _name(event))
        return False

    def _operator(self, event: Event, called_by_own: bool) -> bool | None:
        is_aten = event.name.startswith(ATEN)
        if self._keeps_tensors:
            self._keep_tensors(event)
            return called_by_own and not is_aten
        return None if is_aten else called_by_own  # operators of ATen call no Python, except for rare dispatch modes

    def _keep_call(self, event: Event, name: str) -> None:
        line = event.extra_fields.caller.line_number  # type: ignore[union-attr] # of Python events only
        if line > 0 and name:
            self._calls.append((event.start_time_ns, checksum(name), line))

    def _keep_tensors(self, event: Event) -> None:
        inputs = event.extra_fields.inputs  # type: ignore[union-attr] # of operators only
        ids = [getattr(value, "id", None) or 0 for value in inputs]
        if any(ids):
            storages = [getattr(value, "allocation_id", None) or 0 for value in inputs]
            self._tensors.append((event.start_time_ns, checksum(event.name), ids, storages))


def _name(event: Event) -> str:
    """The event's name; names of code that was freed may be damaged: https://github.com/pytorch/pytorch/pull/186359."""
    try:
        return event.name
    except UnicodeDecodeError:
        return ""


def checksum(name: str) -> int:
    """Checksum of an event's name: joins it with the trace without repeating addresses and paths."""
    return zlib.crc32(name.encode("utf-8", "replace"))
