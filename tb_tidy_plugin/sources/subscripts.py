"""The elements of an index, and what each of them runs on a tensor."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tb_tidy_plugin.sources.emissions import NOTHING, RARELY, SUBSCRIPTS
from tb_tidy_plugin.sources.sites import LIKELY, RARE, SILENT


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an index.

    Attributes:
        operators, rarely: what it runs, and what else where a variable holds something unusual.
        silent: cost of its running nothing: what is indexed may be a list.
        literal: a whole number as the recording shows it, empty for all else.
    """

    operators: frozenset[str]
    silent: float
    rarely: frozenset[str] = NOTHING
    literal: str = ""


def elements_of(index: ast.expr) -> list[Element]:
    """The elements in their order; a tensor is surely indexed where there are several, or a `None`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    found = [_element(part) for part in parts]
    return (
        found
        if len(parts) > 1
        else [Element(each.operators, min(each.silent, RARE), each.rarely, each.literal) for each in found]
    )


def _element(part: ast.expr) -> Element:  # noqa: PLR0911 - one case per form
    match part:
        case ast.Constant(None):
            return Element(SUBSCRIPTS["none"], LIKELY)
        case ast.Constant(bool()):
            return Element(SUBSCRIPTS["other"], RARE, RARELY)
        case ast.Constant(int(value)):
            return Element(SUBSCRIPTS["integer"], RARE, literal=str(value))
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return Element(SUBSCRIPTS["integer"], RARE, literal=str(-value))
        case ast.Constant():  # an ellipsis or a key
            return Element(NOTHING, SILENT)
        case ast.Slice(lower, upper, step):
            is_whole = lower is None and upper is None and step is None
            return Element(SUBSCRIPTS["slice"], RARE if is_whole else LIKELY)
        case ast.List():
            return Element(SUBSCRIPTS["list"], RARE)
        case _:
            return Element(SUBSCRIPTS["other"], RARE, RARELY)
