"""The elements of an index, and the operators that each of them runs on a tensor."""

from __future__ import annotations

import ast

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.sources.emissions import NOTHING, RARELY, SUBSCRIPTS
from tb_tidy_plugin.sources.sites import LIKELY, RARE, SILENT

LAST = str(2**63 - 1)
"""The recorded end of a slice without an end."""


class Element(msgspec.Struct, frozen=True):
    """One element of an index.

    Attributes:
        operators, rarely: operators that it runs, and those that it also runs if a variable holds something unusual.
        silent: cost of running none: the indexed value may be a list.
        literal: a whole number as the recording shows it, or begin, end and step of a slice separated by colons, empty
            if unknown; empty for other elements.
    """

    operators: frozenset[str]
    silent: float
    rarely: frozenset[str] = NOTHING
    literal: str = ""


def elements_of(index: ast.expr) -> list[Element]:
    """The elements in their order; a tensor is certainly indexed if there are several, or a `None`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    found = [_element(part) for part in parts]
    if len(parts) == 1:
        return [replace(each, silent=min(each.silent, RARE)) for each in found]
    return [_passed_over(each) if _is_whole(part) else each for part, each in zip(parts, found, strict=True)]


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def _passed_over(whole: Element) -> Element:
    """A `:` among other elements, for which torch runs nothing; it did before 2021."""
    return replace(whole, silent=0.0, operators=NOTHING, rarely=whole.operators)


def _element(part: ast.expr) -> Element:  # noqa: PLR0911 - one case per form
    match part:
        case ast.Constant(None):
            return Element(SUBSCRIPTS["none"], LIKELY)
        case ast.Constant(bool()):
            return Element(SUBSCRIPTS["other"], RARE, RARELY)
        case ast.Constant(int()) | ast.UnaryOp(ast.USub(), ast.Constant(int())):
            return Element(SUBSCRIPTS["integer"], RARE, literal=_number(part))
        case ast.Constant():  # an ellipsis or a key
            return Element(NOTHING, SILENT)
        case ast.Slice(lower, upper, step):
            literal = ":".join([_number(lower, "0"), _number(upper, LAST), _number(step, "1")])
            return Element(SUBSCRIPTS["slice"], RARE if _is_whole(part) else LIKELY, literal=literal)
        case ast.List():
            return Element(SUBSCRIPTS["list"], RARE)
        case _:
            return Element(SUBSCRIPTS["other"], RARE, RARELY)


def _number(value: ast.expr | None, missing: str = "") -> str:
    match value:
        case None:
            return missing
        case ast.Constant(int(number)) if not isinstance(number, bool):
            return str(number)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            return str(-number)
        case _:
            return ""
