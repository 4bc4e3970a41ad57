"""Answers in pages: as many rows as fit into a number of tokens, and a cursor for the next ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.ask.arguments import QuestionBase
from tb_tidy_plugin.ask.quoted import MARKS, quoted
from tb_tidy_plugin.words.errors import TidyError

_TOKEN_BYTES = 4
"""Bytes of UTF-8 per token: the average of tokenizers for JSON and code; other scripts take more tokens."""

_DIGITS = 8


Columns: TypeAlias = Mapping[str, str]
"""The columns of rows: name, and field of the value that a row is made of; empty for one that is computed."""

_OWN_WORDS = frozenset({
    "basis", "confidence", "entry", "family", "finding", "known_by", "proof", "recording", "results", "rule",
    "step_source", "trace", "verdict",
})  # fmt: skip
"""Fields with words of ours; all other text may be that of a recording."""

_DIGITS_AFTER_POINT = {"matches_per_step": 2, "roofline": 3, "speedup": 3}
"""Decimals of these figures; shares have four."""


class WholeAnswer(msgspec.Struct, frozen=True):
    """An answer of any length: the fields before its rows, and the rows; their order depends only on the recordings."""

    head: Mapping[str, object]
    columns: Columns
    rows: Sequence[Mapping[str, object]]


def columns(kind: type, text: str) -> Columns:
    """Columns from `name`, `name=field`, `name=field.field` and, for computed ones, `name=`, separated by spaces."""
    pairs = [part.partition("=") for part in text.split()]
    found = {name: field if is_other else name for name, is_other, field in pairs}
    for field in found.values():
        assert not field or hasattr(kind, field.partition(".")[0]), f"{kind.__name__} has no {field}"
    return found


def picked(wanted: Columns, value: object, **computed: object) -> dict[str, object]:
    """The wanted fields of a value: times as µs, other figures rounded, and text of recordings quoted.

    A field of an absent value is None.
    """
    return {name: _shown(name, _at(value, field)) if field else computed[name] for name, field in wanted.items()}


def if_known(**fields: object) -> dict[str, object]:
    """The fields that are known and not empty."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [])}


def microseconds(ns: int | None) -> float | None:
    """Converts ns to µs, rounded to a tenth."""
    return None if ns is None else round(ns / 1000, 1)


def _at(value: object, field: str) -> object:
    for name in field.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _shown(name: str, value: object) -> object:
    if isinstance(value, str):
        return value if name in _OWN_WORDS else quoted(value)
    if isinstance(value, int) and name.endswith("_us"):
        return microseconds(value)
    return round(value, _DIGITS_AFTER_POINT.get(name, 4)) if isinstance(value, float) else value


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
    encoded = [msgspec.json.encode(list(row.values())) for row in found.rows]
    digest = _digest(asked, encoded)
    first = _offset(asked.cursor, digest, len(encoded))
    shown = {"marks": MARKS, **found.head, "columns": list(found.columns)}
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
