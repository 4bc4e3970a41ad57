"""gz files, member by member: built, and broken where readers of gz have broken."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Sequence

from tests.fuzz.mutations import ANYWHERE, mutated

MAGIC = b"\x1f\x8b"
METHODS = (b"\x08", b"\x00", b"\x07", b"\xff")
FLAGS = tuple(bytes([flags]) for flags in (0, 1, 2, 4, 8, 16, 6, 31, 32, 64, 128, 255))
HEADER_BYTES = 10
TRAILER_BYTES = 8


def member(text: bytes, flags: int = 0, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """One member; its optional fields are those that `flags` names, all of them sound."""
    header = MAGIC + bytes([8, flags]) + bytes(6)
    header += struct.pack("<H", 5) + b"ab\x01\x00x" if flags & 4 else b""
    header += b"w.pt.trace.json\0" if flags & 8 else b""
    header += b"recorded at night\0" if flags & 16 else b""
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF) if flags & 2 else b""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    packed = packer.compress(text) + packer.flush()
    return header + packed + struct.pack("<II", zlib.crc32(text), len(text) & 0xFFFFFFFF)


def files(texts: Sequence[bytes]) -> list[bytes]:
    """Files of one member and of many, with all that a header may hold, stored and packed in all ways."""
    text = texts[0]
    third = len(text) // 3 + 1
    pieces = [text[start : start + third] for start in range(0, len(text), third)]
    return [
        *map(gzip.compress, texts),
        *(member(text, flags) for flags in (2, 4, 8, 16, 30)),
        member(text, level=0),
        member(text, strategy=zlib.Z_FIXED),
        member(text, strategy=zlib.Z_HUFFMAN_ONLY),
        b"".join(map(member, pieces)),
        b"".join(member(piece, flags) for piece, flags in zip(pieces, (30, 0, 8), strict=False)),
        member(b"") + member(text) + member(b"") * 3,
        member(text) + bytes(512),
        member(text) + b"padding",
        b"".join(member(text[at : at + 20]) for at in range(0, len(text), 20)),
        member(b""),
        text,
    ]


def inflated(packed: bytes) -> bytes | None:
    """The text as Python's zlib has it; None where that is cut short or damaged. What follows members is padding."""
    texts, rest = [], packed
    while rest.startswith(MAGIC):
        inflater = zlib.decompressobj(31)
        try:
            texts.append(inflater.decompress(rest) + inflater.flush())
        except zlib.error:
            return None
        if not inflater.eof:
            return None
        rest = inflater.unused_data
    return b"".join(texts)


def broken(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    """A file with a few things wrong: in a member's header or trailer, in the order of members, or anywhere."""
    changes = (_header, _trailer, _cut, _member_more, _member_gone, _text_broken, *ANYWHERE)
    for _ in range(make.choice((1, 1, 2, 3))):
        packed = make.choice(changes)(packed, others, make)
    return packed


def _starts(packed: bytes) -> list[int]:
    """Where members seem to start, and where the last one ends."""
    found, at = [], packed.find(MAGIC)
    while at >= 0:
        found.append(at)
        at = packed.find(MAGIC, at + 1)
    return [*(found or [0]), len(packed)]


def _header(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    at = make.choice(_starts(packed)[:-1])
    place, values = make.choice(((2, METHODS), (3, FLAGS), (3, FLAGS), (8, (b"\x00", b"\xff")), (0, (b"\x1f", b"P"))))
    return packed[: at + place] + make.choice(values) + packed[at + place + 1 :]


def _trailer(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    end = make.choice(_starts(packed)[1:])
    new = struct.pack("<II", make.choice((0, 1, 1 << 31, (1 << 32) - 1)), make.choice((0, 1, (1 << 32) - 1)))
    return packed[: max(end - TRAILER_BYTES, 0)] + make.choice((new, new[:4], b"")) + packed[end:]


def _cut(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    end = make.choice(_starts(packed)[1:])
    return packed[: max(end - make.choice((1, 4, 8, 9, make.randint(0, HEADER_BYTES * 10))), 0)]


def _member_more(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    other = make.choice((*others, member(b""), member(b" " * 1000), member(b"x", 30)))
    at = make.choice(_starts(packed))
    return packed[:at] + other * make.choice((1, 1, 2, 50)) + packed[at:]


def _member_gone(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    starts = _starts(packed)
    at = make.randrange(len(starts) - 1)
    return packed[: starts[at]] + packed[starts[at + 1] :]


def _text_broken(packed: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    """Sound gz of a broken text."""
    text = inflated(packed)
    return (
        packed if not text else member(mutated(text, [text], make), make.choice((0, 0, 8, 30)), make.choice((0, 1, 9)))
    )
