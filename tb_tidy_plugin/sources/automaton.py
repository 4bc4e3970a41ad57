"""The body of a function as an automaton of sites: places that may appear in a recording, in order of evaluation.

Loops repeat, branches choose, and every site may stay silent, at a cost that reflects how surprising that is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from tb_tidy_plugin.sources.callees import called_names, type_of
from tb_tidy_plugin.sources.emissions import OPERATORS
from tb_tidy_plugin.sources.expressions import Expressions
from tb_tidy_plugin.sources.sites import LIKELY, RARE, SILENT, Automaton

TRIED = 0.5
"""Cost of leaving a `try` in the middle; at its beginning it is next to nothing."""


def automaton_of(function: ast.AST) -> Automaton:
    """The automaton of a function, lambda, comprehension, class body or module."""
    return _Builder(function).built()


class _Builder(Expressions):
    """Walks the body in order of evaluation. `at` is the current node; None after code that never returns."""

    def __init__(self, function: ast.AST) -> None:
        super().__init__(function)
        self.loops: list[tuple[list[int], list[int]]] = []  # nodes that `break` and `continue` leave from
        self.cleanups: list[Sequence[ast.stmt] | ast.withitem] = []
        self.returned: list[int] = []

    def built(self) -> Automaton:
        """Walks all of it."""
        function = self.function
        self.automaton.starts.append((0, first_line(function)))
        match function:
            case ast.Lambda(_, body):
                self.value(body)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                self.comprehension(function.generators, [function.elt], own_frame=True)
            case ast.DictComp():
                self.comprehension(function.generators, [function.key, function.value], own_frame=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Module():
                self.body(function.body)
            case _:
                raise TypeError(f"{type(function).__name__} has no frames of its own")
        end = self.node()
        self.edge(self.at, end)
        for left in self.returned:
            self.edge(left, end)
        self.automaton.ends.append(end)
        return self.automaton

    # Statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:  # noqa: C901, PLR0912 - one case per kind of node
        match node:
            case ast.Expr(value) | ast.Assign([], value):
                self.value(value)
            case ast.Assign(targets, value):
                self.value(value)
                for target in targets:
                    self.store(target, value)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self.value(value)
                    self.store(target)
            case ast.AugAssign():
                self.augmented(node)
            case ast.Return(value):
                self.left_by_return(value)
            case ast.If(test, body, orelse):
                self.branch(test, body, orelse)
            case ast.For() | ast.AsyncFor():
                self.for_loop(node)
            case ast.While():
                self.while_loop(node)
            case ast.With(items, body) | ast.AsyncWith(items, body):
                self.with_items(items, body)
            case ast.Try():
                self.tried(node)
            case ast.Match(subject, cases):
                self.matched(subject, cases)
            case ast.Break() | ast.Continue():
                self.jump(is_break=isinstance(node, ast.Break))
            case ast.Raise(error, cause):
                for part in filter(None, (error, cause)):
                    self.value(part)
                self.at = self.node()
            case ast.Assert(test, message):
                self.condition(test)
                if message is not None:
                    self.sometimes(message)
            case ast.Delete(targets):
                for target in targets:
                    self.store(target)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definition(node)
            case ast.Import() | ast.ImportFrom():
                names = frozenset(
                    {"_find_and_load", "_handle_fromlist", "__getattr__", "parent", "<module>", "__import__"}
                )
                self.site("other", node, silent=SILENT, names=names, again=0.0, anything=1.0)
            case _:
                if type(node).__name__ == "TryStar":  # since Python 3.11; handled like Try
                    self.tried(cast("ast.Try", node))

    def augmented(self, node: ast.AugAssign) -> None:
        load = _as_load(node.target)
        if isinstance(node.target, ast.Subscript):
            self.value(node.target.value)
            self.index_parts(node.target.slice)
            self.subscript(node.target)
        else:
            self.value(load)
        self.value(node.value)
        if not (self.scalars.is_plain(load) and self.scalars.is_plain(node.value)):
            found = OPERATORS[type(node.op).__name__]
            names, operators = found.names | found.in_place_names, found.operators | found.in_place
            self.site("operator", node, silent=RARE, names=names, operators=operators, literal=type_of(node.value))
        if isinstance(node.target, ast.Subscript):
            self.store_item(node.target)
        elif isinstance(node.target, ast.Attribute):
            self.store_attribute(node.target)

    def left_by_return(self, value: ast.expr | None) -> None:
        if value is not None:
            self.value(value)
        for cleanup in reversed(self.cleanups):
            self.clean_up(cleanup)
        self.returned.append(self.at)
        self.at = self.node()  # nothing leads here

    def clean_up(self, cleanup: Sequence[ast.stmt] | ast.withitem) -> None:
        if isinstance(cleanup, ast.withitem):
            self.leave(cleanup)
            return
        saved, self.cleanups = self.cleanups, []
        self.body(cleanup)
        self.cleanups = saved

    def branch(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        self.condition(test)
        chosen = self.at
        self.body(body)
        first = self.at
        self.at = self.node()
        self.edge(chosen, self.at)
        self.body(orelse)
        self.join(first, self.at)

    def for_loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.iterated(node.iter)
        head = self.node()
        self.edge(self.at, head)
        self.at = head
        self.next_item(node.iter, node.target)
        drawn = self.at
        self.unpacked(node.target)
        breaks, continues = self.looped(node.body)
        self.edge(self.at, head)
        for end in continues:
            self.edge(end, head)
        self.at = self.node()
        self.edge(drawn, self.at)
        self.body(node.orelse)
        self.join(self.at, *breaks)

    def while_loop(self, node: ast.While) -> None:
        head = self.node()
        self.edge(self.at, head)
        self.at = head
        self.condition(node.test)
        decided = self.at
        breaks, continues = self.looped(node.body)
        for end in (self.at, *continues):
            self.edge(end, head)
        self.at = self.node()
        self.edge(decided, self.at)
        self.body(node.orelse)
        self.join(self.at, *breaks)

    def looped(self, body: Sequence[ast.stmt]) -> tuple[list[int], list[int]]:
        self.loops.append(([], []))
        self.body(body)
        return self.loops.pop()

    def jump(self, *, is_break: bool) -> None:
        if self.loops:
            self.loops[-1][0 if is_break else 1].append(self.at)
        self.at = self.node()

    def with_items(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt]) -> None:
        if not items:
            self.body(body)
            return
        first, *rest = items
        self.value(first.context_expr)
        names = frozenset({"__enter__", "__aenter__"})
        self.site("call", first.context_expr, silent=RARE, names=names, again=0.6, anything=1.5)
        if first.optional_vars is not None:
            self.store(first.optional_vars)
        self.cleanups.append(first)
        self.with_items(rest, body)
        self.cleanups.pop()
        self.leave(first)

    def leave(self, item: ast.withitem) -> None:
        names = frozenset({"__exit__", "__aexit__"})
        self.site("call", item.context_expr, silent=RARE, names=names, again=0.6, anything=1.5)

    def tried(self, node: ast.Try) -> None:
        if node.finalbody:
            self.cleanups.append(node.finalbody)
        first = self.at
        self.body(node.body)
        thrown = self.node()
        for inside in range(first, thrown):
            self.edge(inside, thrown, SILENT if inside == first else TRIED)
        self.body(node.orelse)
        ends = [self.at]
        for handler in node.handlers:
            self.at = self.node()
            self.edge(thrown, self.at, 0.5)
            self.body(handler.body)
            ends.append(self.at)
        if node.finalbody:
            self.cleanups.pop()
        self.join(*ends)
        self.body(node.finalbody)

    def matched(self, subject: ast.expr, cases: Sequence[ast.match_case]) -> None:
        self.value(subject)
        ends = []
        for case in cases:
            tested = self.at
            self.site("other", case.pattern, silent=SILENT, names=frozenset({"__instancecheck__", "__eq__"}), again=0.1)
            if case.guard is not None:
                self.condition(case.guard)
            self.body(case.body)
            ends.append(self.at)
            self.at = self.node()
            self.edge(tested, self.at)
        self.join(self.at, *ends)

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.value(decorator)
        if isinstance(node, ast.ClassDef):
            for base in (*node.bases, *(keyword.value for keyword in node.keywords)):
                self.value(base)
            names = frozenset({"__build_class__", node.name, "__init_subclass__", "__prepare__", "__new__", "__init__"})
            self.site("call", node, silent=RARE, names=names, again=0.2)
        else:
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                self.value(default)
        for decorator in reversed(node.decorator_list):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            self.site("call", decorator, silent=LIKELY, names=called_names(called), anything=0.8, again=0.6)


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Attribute(held, name):
            return ast.copy_location(ast.Attribute(held, name, ast.Load()), target)
        case _:
            return target


def first_line(function: ast.AST) -> int:
    """The line that the recording gives the function: that of its first decorator, else its own."""
    decorators = getattr(function, "decorator_list", [])
    return min((node.lineno for node in decorators), default=getattr(function, "lineno", 1))
