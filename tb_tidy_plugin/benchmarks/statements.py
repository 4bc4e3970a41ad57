"""What statements may hold: a second line of defence behind the rules, which put numbers into them and no text.

A trace is somebody else's file. Should a rule ever let its text into a statement, this keeps it from being run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_tidy_plugin.rulekit import Benchmark

MOST_CHARACTERS = 20_000
MODULES = frozenset({"numpy", "time", "torch", "torch.nn.functional", "torch.utils.data"})
BUILTINS = frozenset(
    {
        "bool", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range", "reversed", "sum", "tuple",
        "zip",
    }
)  # fmt: skip
REACHING_OUT = frozenset(
    {
        "_C", "classes", "cpp_extension", "ctypeslib", "distributed", "f2py", "from_file", "fromfile", "genfromtxt",
        "hub", "load", "load_library", "loadtxt", "memmap", "multiprocessing", "ops", "os", "package", "save",
        "savetxt", "savez", "serialization", "storage", "sys", "testing", "tofile",
    }
)  # fmt: skip
"""Attributes by which torch and NumPy read files, write them or load code."""


def complaint_about(pair: Benchmark) -> str | None:
    """Why the statements of a pair are not run, None where they may be."""
    texts = (pair.setup, pair.before, pair.after)
    if sum(map(len, texts)) > MOST_CHARACTERS:
        return "they are too long"
    try:
        trees = [ast.parse(text) for text in texts]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "they are no Python"
    nodes = [node for tree in trees for node in ast.walk(tree)]
    given = {"device"} | {name for node in nodes for name in _given_by(node)}
    return next((said for node in nodes if (said := _complaint(node, given))), None)


def _given_by(node: ast.AST) -> Iterator[str]:
    """Names that a statement defines."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.split(".")[0]
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


def _complaint(node: ast.AST, given: set[str]) -> str | None:
    if isinstance(node, ast.Name) and node.id not in given | BUILTINS:
        return f"they use `{node.id}`"
    if isinstance(node, ast.Attribute) and (node.attr in REACHING_OUT or node.attr.startswith("_")):
        return f"they use `.{node.attr}`"
    if isinstance(node, ast.Import) and not all(each.name in MODULES for each in node.names):
        return "they import something else than torch and NumPy"
    if isinstance(node, ast.ImportFrom):
        return "they import single names"
    return None
