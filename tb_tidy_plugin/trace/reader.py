"""A trace file on disk or on a store, plain or gz, as a stream of byte blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from tb_tidy_plugin.system.allowance import has_read
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath
from tb_tidy_plugin.words.errors import TraceError, UnreadError

try:
    from isal import isal_zlib as library  # the same interface as zlib, several times faster
except ImportError:
    import zlib as library  # type: ignore[no-redef] # the same functions

BLOCK_BYTES = 8 << 20  # large enough for little work per block, small enough for the processor's cache
RECORD_AGAIN = "Record again; the job may have ended while the trace was written."
GZIP_MAGIC = b"\x1f\x8b"
DAMAGED = cast("type[Exception]", library.error)
GZIP_WINDOW_BITS = 31  # zlib's number for "expect a gzip header"
LEAST_GIVEN, MOST_GIVEN = 1 << 10, 1 << 18  # bytes of a member that are inflated at once, at first and later

ReadProgress: TypeAlias = Callable[[int], object]
"""Called with the number of bytes of the file on disk that have been read so far."""


class CutShortError(TraceError):
    """The file ends early or is damaged at some point; everything before that point was yielded."""


class _Stream(Protocol):
    """The part of a file's interface that is used."""

    def read(self, size: int, /) -> bytes: ...


class _Inflater(Protocol):
    """The common interface of zlib's and isal's decompression objects."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...


def read_blocks(path: AnyPath, progress: ReadProgress | None = None, limits: Limits = USUAL_LIMITS) -> Iterator[bytes]:
    """Blocks of the JSON text in `path`, none larger than `BLOCK_BYTES`.

    The file's first bytes show whether it is gz, not its name. All members of a multi-member gz are read.

    Raises:
        UnreadError: the file is missing or unreadable.
        TraceError: it is empty, or exceeds `limits`.
        CutShortError: gz that ends early or is damaged; raised after all that could be inflated was yielded.
    """
    try:
        if isinstance(path, Path) and path.exists() and not (path.is_file() or path.is_dir()):
            raise TraceError("It is a pipe or a device, not a file.", "Write the trace to a file.")
        with path.open("rb") as stream:
            pieces = _reported(stream, progress)
            first = next(pieces, b"")
            if not first:
                raise TraceError("The file is empty.", RECORD_AGAIN)
            is_gz = first.startswith(GZIP_MAGIC)
            blocks = _inflated(first, pieces, limits) if is_gz else _bounded(chain([first], pieces), limits)
            for block in blocks:
                has_read(len(block))
                yield block
    except FileNotFoundError:
        raise UnreadError("The file is no longer there.", "Reload; it was moved or deleted.") from None
    except PermissionError:
        advice = "Give the user who runs this program read permission."
        raise UnreadError("The file cannot be read for lack of permission.", advice) from None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        what = "the network and the store" if isinstance(path, RemotePath) else "the disk or the mount"
        raise UnreadError(f"The file could not be read: {reason}.", f"Check {what}, then reload.") from None


def _reported(stream: _Stream, progress: ReadProgress | None) -> Iterator[bytes]:
    done = 0
    while piece := stream.read(BLOCK_BYTES):
        done += len(piece)
        if progress is not None:
            progress(done)
        yield piece


def _bounded(pieces: Iterator[bytes], limits: Limits) -> Iterator[bytes]:
    done = 0
    for piece in pieces:
        done += len(piece)
        limits.check(done)
        yield piece


def _inflated(first: bytes, pieces: Iterator[bytes], limits: Limits) -> Iterator[bytes]:
    """Blocks of the largest size, however short the members of the gz are."""
    texts: list[bytes] = []
    size = 0
    try:
        for text in _inflated_texts(first, pieces, limits):
            if size + len(text) > BLOCK_BYTES:
                yield b"".join(texts)
                texts, size = [], 0
            texts.append(text)
            size += len(text)
    except CutShortError as problem:
        if texts:
            yield b"".join(texts)
        raise problem from None
    if texts:
        yield b"".join(texts)


def _inflated_texts(data: bytes, pieces: Iterator[bytes], limits: Limits) -> Iterator[bytes]:
    """Inflated text, piece by piece.

    An inflater copies the input that it did not need. So a member starts with a small input that grows: the copies stay
    in proportion to the bytes read, however many members there are.
    """
    inflater: _Inflater = library.decompressobj(wbits=GZIP_WINDOW_BITS)
    at, given, read, made = 0, LEAST_GIVEN, len(data), 0
    try:
        while True:
            if len(data) - at < len(GZIP_MAGIC) and (piece := next(pieces, b"")):
                data, at, read = data[at:] + piece, 0, read + len(piece)
            if at == len(data):
                break
            if inflater.eof:
                if not data.startswith(GZIP_MAGIC, at):
                    return  # padding after the last member
                inflater, given = library.decompressobj(wbits=GZIP_WINDOW_BITS), LEAST_GIVEN
            part = data[at : at + given]
            text = inflater.decompress(part, BLOCK_BYTES)
            at += len(part) - len(inflater.unused_data if inflater.eof else inflater.unconsumed_tail)
            given = min(2 * given, MOST_GIVEN)
            made += len(text)
            limits.check(made, read - len(data) + at)
            if text:
                yield text
        while not inflater.eof and (text := inflater.decompress(b"", BLOCK_BYTES)):
            made += len(text)
            limits.check(made, read)
            yield text
    except DAMAGED:
        raise CutShortError("The gz data is damaged.", "Copy the file again or record again.") from None
    if not inflater.eof:
        raise CutShortError("The gz file ends early.", RECORD_AGAIN)


def packed(data: bytes) -> bytes:
    """The data compressed, as fast as possible."""
    return library.compress(data, 1)


def unpacked(data: bytes | memoryview, size: int) -> bytes:
    """The decompressed data of `size` bytes; never produces more.

    Raises:
        DAMAGED: it is not compressed data.
        ValueError: it has another size.
    """
    inflater: _Inflater = library.decompressobj()
    text = inflater.decompress(data, size + 1)
    if len(text) != size or not inflater.eof:
        raise ValueError("packed data of another size")
    return text
