"""Reads the next block while the last one is decoded: inflating and waiting leave the interpreter free."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, each asked for before it is wanted; what `blocks` raises is raised in its place."""
    with ThreadPoolExecutor(1, "torchtidy-read") as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block
