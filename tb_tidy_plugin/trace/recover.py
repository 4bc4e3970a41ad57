"""Reads what can be read of malformed JSON: damage seen in real traces, event by event.

Each kind of damage has its public report: lone backslashes https://github.com/pytorch/kineto/issues/336, invalid UTF-8
and control characters https://github.com/pytorch/pytorch/issues/64345, unescaped quotes
https://github.com/pytorch/pytorch/issues/146900, bare `nan` and `N/A` https://github.com/pytorch/kineto/issues/105.
"""

from __future__ import annotations

import re

import msgspec

LONE_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
BARE_WORD = re.compile(rb"(?<=[:\[,])(\s*)(?:-?(?:inf|Inf|Infinity|nan|NaN)|N/A)(?=\s*[,\]}])")
CONTROL = bytes(max(byte, 32) for byte in range(256))
EVENT_START = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|tts|dur|tdur|id|id2|args|s|bp|cname)"\s*:)')
"""Between two events of any layout, told by a key that only events begin with."""

NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for text that is damaged, nested beyond all measure, or not of the wanted type."""


def mended(text: bytes) -> bytes:
    """`text` with the damage repaired that has one obvious meaning; text without damage stays as it is.

    Control characters become spaces, invalid UTF-8 the replacement character, lone backslashes escaped ones, and bare
    `nan`, `inf` and `N/A` become `null`.
    """
    spaced = text.translate(CONTROL)
    clean = spaced.decode("utf-8", "replace").encode()
    return BARE_WORD.sub(rb"\1null", LONE_BACKSLASH.sub(rb"\\\\", clean))


def event_texts(text: bytes) -> list[bytes]:
    """The events in `text` (separated by commas), cut where an event seems to start; the last may be incomplete."""
    cuts = [match.start() + 1 for match in EVENT_START.finditer(text)]
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [stripped for piece in pieces if (stripped := piece.strip(b", \t\r\n"))]
