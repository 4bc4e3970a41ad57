"""Answers in pages: as many rows as fit into a number of tokens, and a cursor for the next ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from tb_tidy_plugin.ask.arguments import QuestionBase
from tb_tidy_plugin.ask.quoted import MARKS
from tb_tidy_plugin.words.errors import TidyError

_TOKEN_BYTES = 4
"""Bytes of UTF-8 per token: the average of tokenizers for JSON and code; other scripts take more tokens."""

_DIGITS = 8


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the fields before an answer's rows."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """Base of rows: a list of values, named by the answer's `columns`."""


class WholeAnswer(msgspec.Struct, frozen=True):
    """An answer of any length; the order of its rows depends only on the recordings."""

    head: Head
    columns: type[Row]
    rows: Sequence[Row]


class CursorError(TidyError):
    """A cursor that belongs to another answer."""


class TokensError(TidyError):
    """A number of tokens too small for any row."""


def tokens_in(text: bytes) -> int:
    """Approximate number of tokens in `text`."""
    return -(-len(text) // _TOKEN_BYTES)


def page(asked: QuestionBase, found: WholeAnswer) -> bytes:
    """The page asked for, as JSON.

    Its fields are `marks`, those of the head, `columns`, `rows`, and, if rows are left, `left` and `next`.

    Raises:
        CursorError: the cursor is not that of this answer.
        TokensError: not even one row fits.
    """
    encoded = [msgspec.json.encode(row) for row in found.rows]
    digest = _digest(asked, encoded)
    first = _offset(asked.cursor, digest, len(encoded))
    shown = {"marks": MARKS, **msgspec.to_builtins(found.head), "columns": list(found.columns.__struct_fields__)}
    empty = msgspec.json.encode(shown | {"rows": [], "left": len(encoded), "next": f"{len(encoded)}.{digest}"})
    most = asked.tokens * _TOKEN_BYTES
    last, size = first, len(empty)
    while last < len(encoded) and size + len(encoded[last]) + 1 <= most:
        size += len(encoded[last]) + 1
        last += 1
    if len(empty) > most or (last == first < len(encoded)):
        needed = tokens_in(empty + (encoded[first] if first < len(encoded) else b"") + b",")
        raise TokensError(
            f"The answer does not fit into {asked.tokens} tokens.", f"Ask with `tokens` of {needed} or more."
        )
    shown["rows"] = [msgspec.Raw(row) for row in encoded[first:last]]
    if last < len(encoded):
        shown |= {"left": len(encoded) - last, "next": f"{last}.{digest}"}
    return msgspec.json.encode(shown)


def _digest(asked: QuestionBase, rows: Sequence[bytes]) -> str:
    """Hash of the whole answer, the same for all of its pages."""
    question = msgspec.structs.replace(asked, cursor="", tokens=0)
    return hashlib.sha256(b"\n".join([msgspec.json.encode(question), *rows])).hexdigest()[:_DIGITS]


def _offset(cursor: str, digest: str, rows: int) -> int:
    if not cursor:
        return 0
    offset, _, known = cursor.partition(".")
    if known != digest or not (offset.isascii() and offset.isdecimal()) or int(offset) > rows:
        raise CursorError("The cursor belongs to another answer.", "Ask again without `cursor`.")
    return int(offset)
