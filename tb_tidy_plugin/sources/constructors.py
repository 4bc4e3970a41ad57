"""The call that made the object which a line uses, by assignments to the object's name in the same module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

WRAPPERS = frozenset({"enumerate", "iter", "itertools.islice", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm"})
"""Callables that hand on the items of their first argument."""

MOST_NAMES = 8
"""From a name to the next that it was assigned."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Use: TypeAlias = Literal["step", "loop", "call"]


class Unclear(Exception):  # noqa: N818 - not an error: the answer where a module does not say which call it was
    """No constructor; the text is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Made:
    """An object on which a fix sets an option.

    Attributes:
        what: such an object, for sentences.
        use: whether lines call its `step()`, loop over it, or call it.
        is_wanted: whether a callee's imported name makes such objects.
        trainer: the argument of transformers' `TrainingArguments` that sets the option; empty for none.
    """

    what: str
    use: Use
    is_wanted: Callable[[str], bool]
    trainer: str


class Constructors:
    """The calls of one module, with what their results are called."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._imported: dict[str, set[str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self._imported.setdefault(name, set()).add(alias.name if alias.asname else name)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    origin = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                    self._imported.setdefault(alias.asname or alias.name, set()).add(origin)

    def used_on(self, lines: Sequence[int], use: Use) -> list[ast.expr]:
        """The expressions on these lines that may be the object, 1-based; with their loops the innermost first."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and node.lineno in lines]
        if use == "call":
            return [call.func for call in calls]
        if use == "step":
            steps = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "step"]
            return [each for call in steps for each in (call.func.value, *call.args)]  # type: ignore[attr-defined]
        loops = [node for node in self.nodes if isinstance(node, (ast.For, ast.AsyncFor))]
        around = [loop for loop in loops if any(loop.lineno <= line <= (loop.end_lineno or 0) for line in lines)]
        return [loop.iter for loop in sorted(around, key=lambda loop: -loop.lineno)]

    def constructor(self, used: Iterable[ast.expr], wanted: Made) -> ast.Call:
        """The one call that made an object.

        Args:
            used: expressions that may be the object.
            wanted: the kind of object.

        Raises:
            Unclear: the module does not say which call it was.
        """
        calls = [
            node for node in self.nodes if isinstance(node, ast.Call) and wanted.is_wanted(self.qualified(node.func))
        ]
        if not calls:
            raise Unclear(f"This file does not make the {wanted.what}.")
        made = [list(self._made(expression)) for expression in used]
        is_open = not made or any(origin is None for origins in made for origin in origins)
        named = [origin for origins in made for origin in origins if origin in calls]
        found = calls if is_open else list(dict.fromkeys(named))
        if not found:
            raise Unclear(f"The line does not use the {wanted.what} that this file makes.")
        if len(found) > 1 or found[0] is None:
            raise Unclear(f"This file makes {len(found)} of the kind, and which {wanted.what} this is cannot be told.")
        return found[0]

    def qualified(self, node: ast.expr) -> str:
        """The imported name that an expression stands for, such as `torch.optim.SGD`; empty where it is not one."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        found = self._imported.get(node.id, set()) if isinstance(node, ast.Name) else set()
        return ".".join((*found, *reversed(names))) if len(found) == 1 else ""

    def _made(self, expression: ast.expr, most: int = MOST_NAMES) -> Iterator[ast.Call | None]:
        """The calls whose result an expression may be; None for what a caller gives."""
        if isinstance(expression, ast.Call):
            callee = self.qualified(expression.func) or ast.unparse(expression.func)
            if callee in WRAPPERS and expression.args:
                yield from self._made(expression.args[0], most)
            else:
                yield expression
        elif isinstance(expression, ast.Name) and self._is_parameter(expression):
            yield None
        elif isinstance(expression, (ast.Name, ast.Attribute)) and most:
            for value in self._assigned(ast.unparse(expression)):
                yield from self._made(value, most - 1)

    def _assigned(self, target: str) -> list[ast.expr]:
        """All values that the module assigns to `target`, a name or an attribute."""
        found = []
        for node in self.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            named = (isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) == target for each in targets)
            if any(named) and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                found.append(node.value)
        return found

    def _is_parameter(self, name: ast.Name) -> bool:
        """Whether a name is a parameter of the innermost function around it."""
        node: ast.AST | None = name
        while node is not None and not isinstance(node, FUNCTIONS):
            node = self._parents.get(node)
        if node is None:
            return False
        given = node.args
        return name.id in {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
