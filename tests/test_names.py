"""One public name stands for one thing: constants, classes and functions of the package are defined once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tb_tidy_plugin

DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGE = Path(tb_tidy_plugin.__file__).parent

REPEATED = {
    "annotate": "the function for notebooks, and the command",
    "Evidence": "a slot that each rule fills",
    "IS_COMPILED": "of each module whose loops have a compiled twin; tests switch one off",
    "TidyCallback": "the same callback for Lightning and for transformers",
    "NOTHING": "no metadata, and no operators",
    "log": "each module's logger",
    "main": "where a process starts",
}
"""Names that may stand in several modules, each with the reason."""


def public_names(tree: ast.Module) -> Iterator[str]:
    """Public constants, type aliases, classes and functions at the top of a module."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        yield from (
            name for name in (*names, *([node.name] if isinstance(node, DEFINITIONS) else [])) if name[0] != "_"
        )


def test_public_names_are_defined_in_one_module() -> None:
    places: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name in public_names(ast.parse(path.read_text("utf-8"))):
            places.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    repeated = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in repeated.items() if name not in REPEATED} == {}
    assert REPEATED.keys() <= repeated.keys(), "a name that is no longer repeated needs no exception"
