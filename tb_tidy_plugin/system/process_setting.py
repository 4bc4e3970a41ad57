"""Settings of the whole process that blocks change, in several threads at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class ProcessSetting(Generic[_Value]):
    """A setting that is as before once no block changes it: the first block keeps its value, the last restores it."""

    def __init__(self, get: Callable[[], _Value], put: Callable[[_Value], object]) -> None:
        self._get, self._put = get, put
        self._changing = RLock()  # a signal's handler may run in a thread that holds it
        self._blocks: dict[object, _Value] = {}  # each with the value from before the first of them

    @contextmanager
    def at(self, value: _Value) -> Iterator[None]:
        """Changes the setting meanwhile."""
        block = object()
        try:
            with self._changing:
                self._blocks[block] = next(iter(self._blocks.values()), self._get())
                self._put(value)
            yield
        finally:
            with self._changing:
                if block in self._blocks:  # a limit's exception may have come before
                    before = self._blocks.pop(block)
                    if not self._blocks:
                        self._put(before)
