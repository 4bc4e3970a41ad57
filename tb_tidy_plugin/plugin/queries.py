"""What a query of the web API asks for, checked: each of its values by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from flask import request

from tb_tidy_plugin.plugin.answers import BadQueryError
from tb_tidy_plugin.plugin.scan import Key

MOST_ROWS = 500
USUAL_ROWS = 100

_Value = TypeVar("_Value")


def profile_key() -> Key:
    """Which profile is asked about."""
    return Key(given("run"), given("worker"), given("span"))


def given(name: str) -> str:
    """A value that has to be there, though it may be empty.

    Raises:
        BadQueryError: it is not there.
    """
    value = request.args.get(name)
    if value is None:
        raise BadQueryError(f"The query has no `{name}`.", f"Add `{name}=…`, empty where it has no name.")
    return value


def number(name: str, default: int | None = None) -> int:
    """A number from 0 on; without a default it has to be there.

    Raises:
        BadQueryError: it is something else.
    """
    text = given(name) if default is None else request.args.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadQueryError(f"`{name}={text}` must be a whole number, 0 or greater.", "Remove it for the default.")
    return int(text)


def page_asked() -> tuple[int, int]:
    """From where on how many rows are asked for."""
    offset, limit = number("offset", 0), number("limit", USUAL_ROWS)
    if limit > MOST_ROWS:
        raise BadQueryError(f"`limit` is larger than {MOST_ROWS}.", "Ask for one page after the other.")
    return offset, limit


def sort_asked(usual: str, known: Sequence[_Value]) -> tuple[_Value, bool]:
    """What to sort by, and whether the largest comes first, which a `-` before it says."""
    sort = request.args.get("sort", usual)
    return one_of("sort", sort.removeprefix("-"), known, ", each also with `-`"), sort.startswith("-")


def one_of(name: str, value: str, known: Sequence[_Value], also: str = "") -> _Value:
    """The one of `known` that `value` is.

    Raises:
        BadQueryError: it is none of them.
    """
    for each in known:
        if each == value:
            return each
    names = ", ".join(str(each) for each in known if each != "")
    raise BadQueryError(f"`{name}={value}` is not known.", f"Known: {names}{also}.")
