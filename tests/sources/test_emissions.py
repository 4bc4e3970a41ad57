"""The table of what operators of the language run, against torch itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tb_tidy_plugin.sources.emissions import (
    BUILT_IN_TYPES,
    OPERATORS,
    PROPERTIES,
    RARELY,
    STORES,
    SUBSCRIPTS,
    TRUTH,
    UNPACKED,
)

pytestmark = pytest.mark.torch

BINARY = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "LShift": "<<",
    "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "MatMult": "@", "Eq": "==", "NotEq": "!=", "Lt": "<",
    "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "NotIn": "not in",
}  # fmt: skip
UNARY = {"USub": "-", "UAdd": "+", "Invert": "~"}
OPERANDS = [("a", "b"), ("i", "j"), ("a", "2"), ("i", "2"), ("2", "a"), ("2", "i"), ("a", "0.5"), ("0.5", "a")]
IN_PLACE = ["Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "LShift", "RShift", "BitAnd", "BitOr", "BitXor"]


def values() -> Mapping[str, Any]:
    import torch

    return {
        "torch": torch, "a": torch.rand(4, 4) + 1, "b": torch.rand(4, 4) + 1, "i": torch.arange(1, 17).view(4, 4),
        "j": torch.arange(1, 17).view(4, 4), "m": torch.ones(4, 4) > 0, "t": torch.tensor(1), "c": torch.zeros(2) * 1j,
        "n": 1, "index": torch.tensor([0, 1]), "names": [0, 1],
    }  # fmt: skip


def recorded(statement: str) -> set[str]:
    """The operators that a statement runs, without those that they run inside themselves."""
    from torch.profiler import ProfilerActivity, profile

    code: Any = compile(statement, "<statement>", "exec")
    known = dict(values())
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        _run(code, known)
    top = [event.name for event in recording.events() or () if event.cpu_parent is None]
    return {name.removeprefix("aten::") for name in top if name.startswith("aten::")}


def _run(code: Any, known: dict[str, Any]) -> None:  # noqa: ANN401 - a code object
    try:
        exec(code, known)
    except (TypeError, RuntimeError):  # not for these operands
        return


def test_every_operator_of_the_language_is_there() -> None:
    kinds = (ast.operator, ast.unaryop, ast.cmpop)
    known = {kind.__name__ for base in kinds for kind in base.__subclasses__()} - {"Not"}
    assert set(OPERATORS) == known


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    found = set[str]().union(*(recorded(f"{left} {BINARY[name]} {right}") for left, right in OPERANDS))
    assert found
    assert found <= OPERATORS[name].operators


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    found = recorded(f"{UNARY[name]}a") | recorded(f"{UNARY[name]}i")
    assert found
    assert found <= OPERATORS[name].operators


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    found = set[str]().union(*(recorded(f"{each} {BINARY[name]}= {other}") for each in "ai" for other in (each, "2")))
    assert found
    assert found <= OPERATORS[name].in_place


@pytest.mark.parametrize("name", [name for name in PROPERTIES if not name.endswith("=")])
def test_properties(name: str) -> None:
    assert recorded(f"c.{name}" if name in {"real", "imag"} else f"a.{name}") == PROPERTIES[name]


def test_properties_that_are_set() -> None:
    assert recorded("a.data = b") == PROPERTIES["data="]


SINGLE: dict[str, Callable[[], frozenset[str]]] = {
    "a[0]": lambda: SUBSCRIPTS["integer"],
    "a[-1]": lambda: SUBSCRIPTS["integer"],
    "a[1:]": lambda: SUBSCRIPTS["slice"],
    "a[None]": lambda: SUBSCRIPTS["none"],
    "a[...]": lambda: SUBSCRIPTS["end"],
    "a[[0, 1]]": lambda: SUBSCRIPTS["list"],
    "a[n]": lambda: SUBSCRIPTS["other"],
    "a[m]": lambda: SUBSCRIPTS["other"],
    "a[index]": lambda: SUBSCRIPTS["other"],
    "a[t]": lambda: SUBSCRIPTS["other"] | RARELY,
    "a[names]": lambda: SUBSCRIPTS["other"] | RARELY,
    "a[True]": lambda: SUBSCRIPTS["other"] | RARELY,
    "a[1:2, None, n]": lambda: SUBSCRIPTS["slice"] | SUBSCRIPTS["other"] | SUBSCRIPTS["none"],
}


@pytest.mark.parametrize("expression", SINGLE)
def test_subscripts(expression: str) -> None:
    found = recorded(expression)
    assert found
    assert found <= SINGLE[expression]()


@pytest.mark.parametrize(
    "target",
    ["a[0]", "a[n]", "a[m]", "a[index]", "a[:, 0]", "a[...]", "a[0, 1]", "a[[0, 1]]", "a[1:3]", "a[None]", "a[t]"],
)
def test_stores(target: str) -> None:
    allowed = STORES | SUBSCRIPTS["other"] | SUBSCRIPTS["slice"] | RARELY
    found = recorded(f"{target} = 1") | recorded(f"{target} = b[0, 0]")
    assert found & STORES
    assert found <= allowed


@pytest.mark.parametrize("statement", ["1 if t else 2", "not t", "t and t", "assert t", "bool(t)"])
def test_truth(statement: str) -> None:
    assert recorded(statement) == TRUTH


@pytest.mark.parametrize(
    "statement", ["w, x, y, z = a", "[*a]", "for row in a: pass", "list(a)", "tuple(a)", "enumerate(a)"]
)
def test_iteration(statement: str) -> None:
    assert recorded(statement) == UNPACKED


@pytest.mark.parametrize("name", [name for name in BUILT_IN_TYPES if name not in {"type", "object", "property", "str"}])
def test_built_in_types(name: str) -> None:
    argument = {"slice": "1", "map": "len, a", "filter": "None, a", "super": "", "dict": "zip(names, a)"}.get(name)
    argument = (
        argument if argument is not None else "t" if name in {"int", "float", "bool", "complex", "range"} else "a"
    )
    if name not in {"super", "bytes", "memoryview"}:
        assert recorded(f"{name}({argument})") <= BUILT_IN_TYPES[name]
