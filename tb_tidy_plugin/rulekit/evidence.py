"""Evidence: the typed facts of a match, from which a rule's sentences, edits and statements are made.

Each rule has its own: a frozen `msgspec.Struct` of numbers, words and their units (`tb_tidy_plugin.words.units`), whose
properties express its fields in words. A sentence names fields and properties in braces, and thresholds of its rule.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    E = TypeVar("E", default=Any)
else:
    from typing import TypeVar

    E = TypeVar("E")  # defaults of type variables came with Python 3.13


def names_in(template: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def evidence_names(evidence: type[msgspec.Struct] | None) -> set[str]:
    """The names that sentences may use: fields and properties of a class of evidence; empty without one."""
    if evidence is None:
        return set()
    properties = {name for name in dir(evidence) if isinstance(getattr(evidence, name), property)}
    return properties | {field.name for field in msgspec.structs.fields(evidence)}
