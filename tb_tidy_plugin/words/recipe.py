"""Stored form of a match: numbers and text from which its rule makes statements and fixes again.

Somebody else may have written a cache, or any other file on a disk. So only recipes are stored, and never a statement.
`rulekit/recipe.py` turns evidence into them and back.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

_MOST = 100

Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1 << 16)]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=100)]
_Numbers: TypeAlias = Annotated[tuple[Integer, ...], msgspec.Meta(max_length=_MOST)]
_Pair: TypeAlias = Annotated[tuple[Integer | float | _Text | _Numbers, ...], msgspec.Meta(max_length=_MOST)]
Several: TypeAlias = Annotated[tuple[Integer | float | _Text | _Pair, ...], msgspec.Meta(max_length=1 << 12)]
_Kept: TypeAlias = Integer | float | bool | _Text | Several | None
"""Content of a field: one value, several of them, or several groups of them, such as a number and a shape."""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a rule's `benchmark` reads.

    Attributes:
        rule: its name.
        settings: see `AnyRule.settings`.
        facts: the evidence of the most expensive match, by field.
    """

    rule: Name
    settings: Annotated[dict[Name, Integer | float], msgspec.Meta(max_length=_MOST)]
    facts: Annotated[dict[Name, _Kept], msgspec.Meta(max_length=_MOST)]
