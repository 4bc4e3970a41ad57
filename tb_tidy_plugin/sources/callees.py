"""Callee of a call, from its source text."""

from __future__ import annotations

import ast
import builtins

from tb_tidy_plugin.sources.emissions import (
    BUILT_IN_TYPES,
    DRAWN_THROUGH,
    LIBRARIES_OF_TYPES,
    LIBRARY_TYPES,
    NOTHING,
    NUMBERS,
    UNPACKED,
)
from tb_tidy_plugin.sources.sites import LIKELY, RARE, SURE, Called

CONVERSIONS = frozenset({"__float__", "__int__", "__bool__", "__index__", "__str__", "__repr__", "__format__"})
ITERATIONS = frozenset({"__iter__", "__next__", "__len__", "__getitem__", "<genexpr>", "<lambda>"})

PYTHON = frozenset(name for name in dir(builtins) if not isinstance(getattr(builtins, name), type))
"""Functions that are part of the language, and always called by these names."""


def dunders_of(callee: ast.expr) -> frozenset[str]:
    """Methods of its argument that a built-in type calls."""
    is_number = isinstance(callee, ast.Name) and BUILT_IN_TYPES.get(callee.id, UNPACKED) <= NUMBERS
    return CONVERSIONS if is_number else ITERATIONS


def operators_of_type(callee: ast.expr) -> frozenset[str] | None:
    """Operators that calling a type written in C runs on a tensor; None for other callees."""
    match callee:
        case ast.Name(name) if name in BUILT_IN_TYPES:
            return BUILT_IN_TYPES[name]
        case ast.Name(name) if name in LIBRARY_TYPES:
            return NOTHING
        case ast.Attribute(ast.Name(library), name) if library in LIBRARIES_OF_TYPES and name in LIBRARY_TYPES:
            return NOTHING
        case _:
            return None


def silence_of(callee: ast.expr) -> float:
    """Cost of a call that makes no event: C code that is not a function makes none."""
    match callee:
        case ast.Name(name) | ast.Attribute(_, name) if name.endswith(("Error", "Exception", "Warning")):
            return RARE
        case ast.Attribute(ast.Call(ast.Name("super")), name) if name.startswith("__"):
            return RARE
        case ast.Call():
            return LIKELY
        case _:
            return SURE


def called_as(callee: ast.expr) -> Called:
    """The form of a call, as far as that shows what may appear."""
    match callee:
        case ast.Name(name) if name in PYTHON:
            return "python"
        case ast.Name(name) if name[:1].islower():
            return "variable"
        case ast.Attribute(ast.Name("torch"), _):
            return "torch"
        case ast.Attribute(ast.Call() | ast.BinOp() | ast.Subscript() | ast.Compare() | ast.UnaryOp(), _):
            return "method"
        case ast.Subscript() | ast.Call():
            return "variable"
        case _:
            return ""


def run_when_drawn(*sources: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
    """Names of functions, and operators, that iterators anywhere in `sources` run when they yield items."""
    names, operators = set[str](), set[str]()
    for each in (node for source in sources for node in ast.walk(source)):
        match each:
            case ast.Call(ast.Name("map" | "filter" as kind), [function, *_]):
                operators |= DRAWN_THROUGH[kind] | (operators_of_type(function) or called_names(function))
                names |= called_names(function) | {"<lambda>"}
            case ast.GeneratorExp():
                names.add("<genexpr>")
            case _:  # yields nothing
                pass
    return frozenset(names), frozenset(operators)


def type_of(value: ast.expr) -> str:
    """C++ type of a literal operand in the recording, empty for other operands."""
    match value:
        case ast.UnaryOp(_, operand):
            return type_of(operand)
        case ast.Constant(bool()):
            return "bool"
        case ast.Constant(int()):
            return "long int"
        case ast.Constant(float()):
            return "double"
        case _:
            return ""


def called_names(callee: ast.expr) -> frozenset[str]:
    """Names under which the callee may appear."""
    match callee:
        case ast.Name(name) | ast.Attribute(_, name):
            return frozenset({name})
        case ast.Call(inner):
            return called_names(inner)
        case _:
            return frozenset()


def all_names(node: ast.AST) -> frozenset[str]:
    """Names of everything called anywhere in an expression: generators run where their items are used."""
    return frozenset(name for each in ast.walk(node) if isinstance(each, ast.Call) for name in called_names(each.func))
