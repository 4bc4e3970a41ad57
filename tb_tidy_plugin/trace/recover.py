"""Reads the readable part of malformed JSON, event by event, for kinds of damage seen in real traces.

Each kind of damage has its public report: lone backslashes https://github.com/pytorch/kineto/issues/336, invalid UTF-8
and control characters https://github.com/pytorch/pytorch/issues/64345, unescaped quotes
https://github.com/pytorch/pytorch/issues/146900, bare `nan` and `N/A` https://github.com/pytorch/kineto/issues/105.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import msgspec

LONE_BACKSLASH = re.compile(rb'(\\)(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
BARE_WORD = re.compile(rb"(?<=[:\[,])\s*(-?(?:inf|Inf|Infinity|nan|NaN)|N/A)(?=\s*[,\]}])")
CONTROL = bytes(max(byte, 32) for byte in range(256))
EVENT_START = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|tts|dur|tdur|id|id2|args|s|bp|cname)"\s*:)')
"""Boundary of two events of any layout, recognised by a key that only events begin with."""

NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of msgspec for text that is damaged, nested too deeply, or not of the wanted type."""


def mended(text: bytes) -> bytes:
    """`text` with unambiguous damage repaired; undamaged text stays the same.

    Control characters become spaces, invalid UTF-8 the replacement character, lone backslashes escaped ones, and bare
    `nan`, `inf` and `N/A` become `null`.
    """
    clean = text.translate(CONTROL).decode("utf-8", "replace").encode()
    return _replaced(BARE_WORD, b"null", _replaced(LONE_BACKSLASH, rb"\\", clean))


def painted_over(text: bytes) -> bytes:
    """`text` with the same damage hidden, and each byte in its place: its brackets stay where they were."""
    spaced = text.translate(CONTROL)
    painted = bytearray(spaced)
    for pattern in (LONE_BACKSLASH, BARE_WORD):
        for match in pattern.finditer(spaced):
            start, end = match.span(1)
            painted[start:end] = b"1" * (end - start)  # valid in a string and as a number
    return bytes(painted)


def _replaced(pattern: re.Pattern[bytes], new: bytes, text: bytes) -> bytes:
    """`text` with `new` for the group of each match. `re.sub` would list all pieces, many times the text's size."""
    made, done = bytearray(), 0
    for match in pattern.finditer(text):
        start, end = match.span(1)
        made += text[done:start]
        made += new
        done = end
    return bytes(made + text[done:]) if done else text


def event_texts(text: bytes) -> Iterator[bytes]:
    """The events in `text` (separated by commas), cut where an event seems to start; the last may be incomplete."""
    start = 0
    ends = (match.start() + 1 for match in EVENT_START.finditer(text))
    for end in chain(ends, [len(text)]):
        if piece := text[start:end].strip(b", \t\r\n"):
            yield piece
        start = end
