"""Blocks that are read before they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, current_thread

import pytest

from tb_tidy_plugin.trace.kineto import ahead
from tb_tidy_plugin.trace.reader import CutShortError


def blocks(*texts: bytes, then: Exception | None = None) -> Iterator[bytes]:
    yield from texts
    if then is not None:
        raise then


def test_are_the_same_in_order() -> None:
    assert list(ahead(blocks(b"a", b"b", b"", b"c"))) == [b"a", b"b", b"", b"c"]
    assert list(ahead(blocks())) == []


def test_damage_is_told_after_all_that_came_before_it() -> None:
    found = ahead(blocks(b"a", b"b", then=CutShortError("damaged", "")))
    assert [next(found), next(found)] == [b"a", b"b"]
    with pytest.raises(CutShortError, match="damaged"):
        next(found)


def test_the_next_one_is_read_by_another_thread_while_the_last_one_is_used() -> None:
    read, readers = Event(), set()

    def slow() -> Iterator[bytes]:
        yield b"first"
        readers.add(current_thread())
        read.set()
        yield b"second"

    found = ahead(slow())
    assert next(found) == b"first"
    assert read.wait(60), "nobody has asked for the second one yet, and it is being read"
    assert current_thread() not in readers
    assert next(found) == b"second"


def test_who_stops_early_closes_the_file() -> None:
    closed = Event()

    def file() -> Iterator[bytes]:
        try:
            yield from (b"a", b"b", b"c", b"d")
        finally:
            closed.set()

    found = ahead(file())
    next(found)
    del found
    assert closed.wait(60)
