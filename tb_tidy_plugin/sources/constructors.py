"""The call that created the object used on a line, by assignments to its name and by what functions return."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

_WRAPPERS = frozenset({"enumerate", "iter", "itertools.islice", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm"})
"""Callables that yield the items of their first argument."""

PREPARES = frozenset({"prepare", "setup", "setup_dataloaders", "setup_module", "setup_optimizers"})
"""Methods of Accelerate and Lightning Fabric that return their arguments, in that order."""

MOST_NAMES = 8
"""Most steps from a name to the next that it was assigned, or to what a function returns."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Use: TypeAlias = Literal["step", "loop", "call"]


class Unclear(Exception):  # noqa: N818 - not an error: the answer if a module does not show which call it was
    """No constructor; the text is a sentence that says why."""


class Made(msgspec.Struct, frozen=True):
    """An object on which a fix sets an option.

    Attributes:
        what: such an object, for sentences.
        use: what lines do with it: call its `step()`, loop over it, or call it.
        is_wanted: True if a callee's imported name creates such objects.
        trainer: the argument of transformers' `TrainingArguments` that sets the option; empty for none.
    """

    what: str
    use: Use
    is_wanted: Callable[[str], bool]
    trainer: str


class Constructors:
    """The calls of one module, with the names of their results."""

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
        """The expressions on these lines that may be the object, 1-based; of loops around them, the innermost first."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and node.lineno in lines]
        if use == "call":
            return [call.func for call in calls]
        if use == "step":
            methods = [(call.func, call.args) for call in calls if isinstance(call.func, ast.Attribute)]
            return [each for method, given in methods if method.attr == "step" for each in (method.value, *given)]
        loops = [node for node in self.nodes if isinstance(node, (ast.For, ast.AsyncFor))]
        around = [loop for loop in loops if any(loop.lineno <= line <= (loop.end_lineno or 0) for line in lines)]
        return [loop.iter for loop in sorted(around, key=lambda loop: -loop.lineno)]

    def constructor(self, used: Iterable[ast.expr], wanted: Made) -> ast.Call:
        """The one call that created an object.

        Args:
            used: expressions that may be the object.
            wanted: the kind of object.

        Raises:
            Unclear: the module does not show which call it was.
        """
        calls = self.making(wanted)
        if not calls:
            raise Unclear(f"This file does not create the {wanted.what}.")
        origins = self.origins(used)
        found = calls if None in origins else [each for each in dict.fromkeys(origins) if each in calls]
        if not found:
            raise Unclear(f"The line does not use the {wanted.what} that this file creates.")
        if len(found) > 1 or found[0] is None:
            raise Unclear(f"This file creates {len(found)} of the kind, and does not show which {wanted.what} this is.")
        return found[0]

    def making(self, wanted: Made) -> list[ast.Call | None]:
        """All calls that create such an object."""
        calls = (node for node in self.nodes if isinstance(node, ast.Call))
        return [call for call in calls if wanted.is_wanted(self.qualified(call.func))]

    def origins(self, used: Iterable[ast.expr]) -> list[ast.Call | None]:
        """The calls whose result these expressions may be; None for an argument of a caller, or for none."""
        made = [list(self._made(expression)) for expression in used]
        return [origin for origins in made for origin in origins] if made else [None]

    def returned_by(self, function: str) -> list[ast.Call | None]:
        """The calls whose result the functions of this name in the module return."""
        return self.origins([*self._returned(function)]) if function in self._functions else []

    def qualified(self, node: ast.expr) -> str:
        """The imported name that an expression stands for, such as `torch.optim.SGD`; empty if there is none."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        found = self._imported.get(node.id, set()) if isinstance(node, ast.Name) else set()
        return ".".join((*found, *reversed(names))) if len(found) == 1 else ""

    def _made(self, expression: ast.expr, most: int = MOST_NAMES, item: int | None = None) -> Iterator[ast.Call | None]:
        """The calls whose result an expression, or that item of it, may be; None for an argument of a caller."""
        if isinstance(expression, ast.Tuple) and item is not None:
            if item < len(expression.elts):
                yield from self._made(expression.elts[item], most)
        elif isinstance(expression, ast.Call):
            yield from self._called(expression, most, item)
        elif isinstance(expression, ast.Name) and (function := self._parameter_of(expression)) is not None:
            given = self._given(function, expression.id) if most else []
            for value in given:
                yield from self._made(value, most - 1, item)
            if not given:
                yield None
        elif isinstance(expression, (ast.Name, ast.Attribute)) and most:
            for value, inside in self._assigned(ast.unparse(expression)):
                yield from self._made(value, most - 1, item if inside is None else inside)

    def _called(self, call: ast.Call, most: int, item: int | None) -> Iterator[ast.Call | None]:
        """The same for a call: itself, unless the function returns something it was given."""
        name = called_name(call)
        if (self.qualified(call.func) or ast.unparse(call.func)) in _WRAPPERS and call.args:
            yield from self._made(call.args[0], most)
        elif name in PREPARES and isinstance(call.func, ast.Attribute) and (item or 0) < len(call.args):
            if most:
                yield from self._made(call.args[item or 0], most - 1)
        elif name in self._functions and most:
            for value in self._returned(name):
                yield from self._made(value, most - 1, item)
        else:
            yield call

    @cached_property
    def _functions(self) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes if isinstance(node, FUNCTIONS))

    def _returned(self, function: str) -> Iterator[ast.expr]:
        for node in self.nodes:
            if isinstance(node, ast.Return) and node.value is not None:
                around = self._function(node)
                if around is not None and around.name == function:
                    yield node.value

    def _assigned(self, target: str) -> list[tuple[ast.expr, int | None]]:
        """All values that the module assigns to `target`, a name or an attribute, and the item of each."""
        found: list[tuple[ast.expr, int | None]] = []
        for node in self.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            for each in targets:
                many = isinstance(each, ast.Tuple)
                for at, one in enumerate(each.elts if isinstance(each, ast.Tuple) else [each]):
                    is_named = isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one) == target
                    if is_named and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                        found.append((node.value, at if many else None))
        return found

    def _parameter_of(self, name: ast.Name) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around a name, if that is one of its parameters."""
        function = self._function(name)
        if function is None:
            return None
        taken = function.args
        is_taken = name.id in {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
        return function if is_taken else None

    def _given(self, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str) -> list[ast.expr]:
        """Arguments of the module's calls of a function, or of the class that it initialises, for a parameter."""
        above, taken = self._parents.get(function), [*function.args.posonlyargs, *function.args.args]
        is_method = isinstance(above, ast.ClassDef) and bool(taken)
        called = above.name if isinstance(above, ast.ClassDef) and function.name == "__init__" else function.name
        places = [each.arg for each in taken[is_method:]]
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Call) and called_name(node) == called:
                found += [each.value for each in node.keywords if each.arg == parameter]
                place = places.index(parameter) if parameter in places else len(node.args)
                if not any(isinstance(each, ast.Starred) for each in node.args[: place + 1]):
                    found += node.args[place : place + 1]
        return found

    def _function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around a node."""
        above = self._parents.get(node)
        while above is not None and not isinstance(above, FUNCTIONS):
            above = self._parents.get(above)
        return above


def called_name(call: ast.Call) -> str:
    """The last name of the callee: `configure_optimizers` of `model.configure_optimizers(…)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
