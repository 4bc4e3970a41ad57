"""The body of a function as an automaton of sites: places that may show up in a recording, in order of evaluation.

Loops repeat, branches choose, and every site may be passed in silence, at a cost that says how surprising that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tb_tidy_plugin.sources.emissions import BUILT_IN_TYPES, OPERATORS, PROPERTIES, STORES, SUBSCRIPTS, TRUTH
from tb_tidy_plugin.sources.scalars import Scalars

Kind: TypeAlias = Literal["call", "operator", "subscript", "attribute", "truth", "iteration", "other"]

SILENT, RARE, LIKELY, SURE = 0.05, 0.25, 0.7, 1.6
"""Costs of passing a site in silence: it mostly makes no event, it may make one, it should, it always does."""

THROWN = 2.0
"""Cost of leaving a body by an exception."""

UNPACKED, BRANCH, TRIED = 0.4, 0.0, 0.02

COMPREHENSIONS = {ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>"}


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source that may make an event.

    Attributes:
        kind: what the instruction is.
        begin, end: nodes of the automaton before and after it.
        line, end_line: 1-based; `line` is that of the instruction as Python itself tells it.
        names: names of Python functions, built-ins or modules that it may run.
        operators: names of operators, without `aten::`, that it may run itself.
        literal: C++ type of a literal operand, and the text of a literal index, empty for none.
        again: cost of making another event at once; None where it cannot.
        anything: cost of running a function of any name, for what is called through a variable; None where it cannot.
    """

    kind: Kind
    begin: int
    end: int
    line: int
    end_line: int
    names: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    literal: str = ""
    again: float | None = None
    anything: float | None = None


@dataclass(slots=True)
class Automaton:
    """Nodes are numbers; an edge leads from one to another at a cost, without an event; a site leads on with one.

    Attributes:
        starts: nodes at which a frame may begin, and the line it then carries: the first line, or that of a `yield`.
        ends: nodes at which it may end.
    """

    nodes: int = 1
    edges: list[tuple[int, int, float]] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def automaton_of(function: ast.AST) -> Automaton:
    """The automaton of a function, lambda, comprehension, class body or module."""
    return _Builder(function).built()


class _Builder:
    """Walks the body in order of evaluation. `at` is the node reached; None after what never comes back."""

    def __init__(self, function: ast.AST) -> None:
        self.automaton = Automaton()
        self.at = 0
        self.scalars = Scalars(function)
        self.function = function
        self.loops: list[tuple[list[int], list[int]]] = []  # nodes from which `break` and `continue` leave
        self.cleanups: list[Sequence[ast.stmt] | ast.withitem] = []
        self.returned: list[int] = []

    def built(self) -> Automaton:
        """Walks all of it."""
        function = self.function
        self.automaton.starts.append((0, _first_line(function)))
        match function:
            case ast.Lambda(_, body):
                self.value(body)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                self.comprehension(function.generators, [function.elt], own_frame=True)
            case ast.DictComp():
                self.comprehension(function.generators, [function.key, function.value], own_frame=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Module():
                self.body(function.body)
        end = self.node()
        self.edge(self.at, end)
        for left in self.returned:
            self.edge(left, end)
        self.automaton.ends.append(end)
        return self.automaton

    # The automaton

    def node(self) -> int:
        self.automaton.nodes += 1
        return self.automaton.nodes - 1

    def edge(self, begin: int, end: int, cost: float = 0.0) -> None:
        self.automaton.edges.append((begin, end, cost))

    def join(self, *ends: int) -> None:
        """Goes on where several ways meet."""
        self.at = self.node()
        for end in ends:
            self.edge(end, self.at)

    def site(  # noqa: PLR0913 - one call of it per kind of site, all by name
        self,
        kind: Kind,
        node: ast.AST,
        *,
        silent: float,
        names: frozenset[str] = frozenset(),
        operators: frozenset[str] = frozenset(),
        literal: str = "",
        again: float | None = None,
        anything: float | None = None,
        line: int | None = None,
    ) -> None:
        begin, end = self.at, self.node()
        first = line if line is not None else getattr(node, "lineno", 0)
        last = getattr(node, "end_lineno", None) or first
        site = Site(kind, begin, end, first, max(first, last), names, operators, literal, again, anything)
        self.automaton.sites.append(site)
        self.edge(begin, end, silent)
        self.at = end

    # Statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value) | ast.Assign([], value):
                self.value(value)
            case ast.Assign(targets, value):
                self.value(value)
                for target in targets:
                    self.store(target)
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
            case ast.Try() | ast.TryStar():
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
                names = frozenset({"_find_and_load", "_handle_fromlist", "__getattr__", "parent", "<module>", "__import__"})
                self.site("other", node, silent=SILENT, names=names, again=0.0, anything=1.0)

    def augmented(self, node: ast.AugAssign) -> None:
        load = _as_load(node.target)
        if isinstance(node.target, ast.Subscript):
            self.value(node.target.value)
            self.index_parts(node.target.slice)
            self.subscript(node.target)
        else:
            self.value(load)
        self.value(node.value)
        if not (self.scalars.is_scalar(load) and self.scalars.is_scalar(node.value)):
            found = OPERATORS[type(node.op).__name__]
            names, operators = found.names | found.in_place_names, found.operators | found.in_place
            self.site("operator", node, silent=RARE, names=names, operators=operators, literal=_type_of(node.value))
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
        self.edge(chosen, self.at, BRANCH)
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

    def tried(self, node: ast.Try | ast.TryStar) -> None:
        if node.finalbody:
            self.cleanups.append(node.finalbody)
        first = self.at
        self.body(node.body)
        thrown = self.node()
        for inside in range(first, thrown):
            self.edge(inside, thrown, TRIED if inside == first else 0.5)
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
            self.site("call", decorator, silent=LIKELY, names=_names_of(called), anything=0.8, again=0.6)

    # Values

    def values(self, nodes: Sequence[ast.expr | None]) -> None:
        for node in nodes:
            if node is not None:
                self.value(node)

    def value(self, node: ast.expr) -> None:
        match node:
            case ast.Call():
                self.call(node)
            case ast.Attribute(held, name):
                self.value(held)
                self.attribute(node, name)
            case ast.BinOp(left, operator, right):
                self.values([left, right])
                self.binary(node, type(operator).__name__, left, right)
            case ast.UnaryOp(ast.Not(), operand):
                self.condition(operand)
            case ast.UnaryOp(operator, operand):
                self.value(operand)
                if not self.scalars.is_scalar(operand):
                    found = OPERATORS[type(operator).__name__]
                    self.site("operator", node, silent=RARE, names=found.names, operators=found.operators)
            case ast.Compare():
                self.compared(node)
            case ast.BoolOp(_, values):
                self.any_or_all(values)
            case ast.IfExp(test, body, orelse):
                self.condition(test)
                chosen = self.at
                self.value(body)
                first = self.at
                self.at = self.node()
                self.edge(chosen, self.at)
                self.value(orelse)
                self.join(first, self.at)
            case ast.Subscript(held, index):
                self.value(held)
                self.index_parts(index)
                self.subscript(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.comprehended(node)
            case ast.JoinedStr(values):
                for part in values:
                    self.formatted(part)
            case ast.Dict(keys, values):
                for key, held in zip(keys, values, strict=True):
                    self.values([key, held])
            case ast.Yield(value) | ast.YieldFrom(value) | ast.Await(value):
                self.suspended(node, value)
            case ast.NamedExpr(_, value) | ast.Starred(value):
                self.value(value)
            case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
                self.values(elements)
            case ast.Slice(lower, upper, step):
                self.values([lower, upper, step])

    def call(self, node: ast.Call) -> None:
        callee = node.func
        if isinstance(callee, ast.Attribute):
            self.value(callee.value)
            self.attribute(callee, callee.attr)
        elif not isinstance(callee, ast.Name):
            self.value(callee)
        self.values([*node.args, *(keyword.value for keyword in node.keywords)])
        names = _names_of(callee)
        built_in = isinstance(callee, ast.Name) and callee.id in BUILT_IN_TYPES
        operators = BUILT_IN_TYPES[callee.id] if built_in and isinstance(callee, ast.Name) else frozenset()
        silent = SILENT if built_in else SURE
        line = callee.end_lineno if isinstance(callee, ast.Attribute) else None
        self.site(
            "call", node, silent=silent, names=names | _dunders_of(callee), operators=operators,
            again=0.1 if built_in else 1.0, anything=None if built_in else self.through_variable(callee), line=line,
        )  # fmt: skip

    def through_variable(self, callee: ast.expr) -> float:
        """How surprising it is that a function of another name runs: a variable may hold any."""
        match callee:
            case ast.Name(name):
                return 0.6 if name[:1].islower() else 1.2
            case ast.Attribute(ast.Name("torch" | "F" | "nn" | "np" | "math"), _):
                return 2.0
            case ast.Attribute(ast.Name("self"), _):
                return 0.8
            case ast.Attribute():
                return 1.3
            case _:
                return 0.5

    def attribute(self, node: ast.Attribute, name: str) -> None:
        """Most attributes are plain; properties and what modules hold run Python, a few run operators."""
        if isinstance(node.value, ast.Name) and node.value.id in MODULES:
            return
        operators = PROPERTIES.get(name, frozenset())
        self.site(
            "attribute", node, silent=LIKELY if operators else SILENT, names=frozenset({name, "__getattr__", "__get__"}),
            operators=operators, line=node.end_lineno,
        )  # fmt: skip

    def binary(self, node: ast.BinOp, operator: str, left: ast.expr, right: ast.expr) -> None:
        if self.scalars.is_scalar(left) and self.scalars.is_scalar(right):
            return
        found = OPERATORS[operator]
        literal = _type_of(right) or _type_of(left)
        silent = SURE if operator == "MatMult" else RARE
        self.site("operator", node, silent=silent, names=found.names, operators=found.operators, literal=literal)

    def compared(self, node: ast.Compare) -> None:
        self.value(node.left)
        operands = [node.left, *node.comparators]
        ends = []
        for at, operator in enumerate(node.ops):
            left, right = operands[at], operands[at + 1]
            self.value(right)
            if not (self.scalars.is_scalar(left) and self.scalars.is_scalar(right)):
                found = OPERATORS[type(operator).__name__]
                self.site(
                    "operator", node, silent=SILENT if isinstance(operator, ast.In | ast.NotIn | ast.Is | ast.IsNot) else RARE,
                    names=found.names, operators=found.operators, literal=_type_of(right) or _type_of(left),
                )  # fmt: skip
            if at + 1 < len(node.ops):
                self.truth(node)
                ends.append(self.at)
        self.join(self.at, *ends)

    def any_or_all(self, values: Sequence[ast.expr]) -> None:
        ends = []
        for value in values[:-1]:
            self.condition(value)
            ends.append(self.at)
        self.value(values[-1])
        self.join(self.at, *ends)

    def condition(self, test: ast.expr) -> None:
        """A value whose truth is asked for."""
        match test:
            case ast.BoolOp(_, values):
                ends = []
                for value in values:
                    self.condition(value)
                    ends.append(self.at)
                self.join(*ends)
            case ast.UnaryOp(ast.Not(), operand):
                self.condition(operand)
            case _:
                self.value(test)
                if not self.scalars.is_scalar(test):
                    self.truth(test)

    def truth(self, node: ast.expr) -> None:
        self.site("truth", node, silent=SILENT, names=frozenset({"__bool__", "__len__"}), operators=TRUTH)

    def sometimes(self, node: ast.expr) -> None:
        before = self.at
        self.value(node)
        self.join(before, self.at)

    def formatted(self, part: ast.expr) -> None:
        if not isinstance(part, ast.FormattedValue):
            return
        self.value(part.value)
        if isinstance(part.format_spec, ast.JoinedStr):
            for inner in part.format_spec.values:
                self.formatted(inner)
        if not self.scalars.is_scalar(part.value):
            self.site("other", part, silent=SILENT, names=frozenset({"__format__", "__str__", "__repr__"}), again=0.1)

    def suspended(self, node: ast.expr, value: ast.expr | None) -> None:
        if value is not None:
            self.value(value)
        if not isinstance(node, ast.Yield):
            self.site("call", node, silent=RARE, anything=0.5, names=frozenset({"__await__", "__iter__", "__next__"}), again=0.1)
            return
        self.automaton.ends.append(self.at)
        before, self.at = self.at, self.node()
        self.edge(before, self.at, THROWN)  # in one frame only where generators are not told apart
        self.automaton.starts.append((self.at, node.lineno))

    # Loops, comprehensions, items

    def iterated(self, node: ast.expr) -> None:
        self.value(node)
        if not self.scalars.is_scalar(node):
            self.site("iteration", node, silent=SILENT, names=frozenset({"__iter__"}), operators=frozenset({"unbind"}), anything=3.0)

    def next_item(self, node: ast.expr, target: ast.expr) -> None:
        if self.scalars.is_scalar(node):
            return
        names = frozenset({"__next__", "<genexpr>", "<lambda>", "__getitem__", "next"}) | _all_names(node)
        self.site("iteration", node, silent=SILENT, names=names, operators=ITEMS, again=0.05, anything=1.2)

    def comprehended(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """A frame of its own up to Python 3.11, in line from 3.12 on; generators stay frames, run where they are drawn."""
        self.iterated(node.generators[0].iter)
        if isinstance(node, ast.GeneratorExp):
            return
        before = self.at
        self.site("call", node, silent=0.3, names=frozenset({COMPREHENSIONS[type(node)]}))
        framed = self.at
        self.at = self.node()
        self.edge(before, self.at, UNPACKED)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.comprehension(node.generators, parts, own_frame=False)
        self.join(framed, self.at)

    def comprehension(self, generators: Sequence[ast.comprehension], parts: Sequence[ast.expr], *, own_frame: bool) -> None:
        """The loops of a comprehension; the first one's iterable is evaluated outside."""
        heads, ends = [], []
        for at, generator in enumerate(generators):
            if at:
                self.iterated(generator.iter)
            head = self.node()
            self.edge(self.at, head)
            heads.append(head)
            self.at = head
            self.next_item(generator.iter, generator.target)
            ends.append(self.at)
            self.unpacked(generator.target)
            for condition in generator.ifs:
                self.condition(condition)
                self.edge(self.at, head)
        self.values(list(parts))
        if own_frame and isinstance(self.function, ast.GeneratorExp):
            self.automaton.ends.append(self.at)
            before, self.at = self.at, self.node()
            self.edge(before, self.at, THROWN)
            self.automaton.starts.append((self.at, self.function.lineno))
        self.edge(self.at, heads[-1])
        for outer, end in zip(heads[:-1], ends[1:], strict=True):
            self.edge(end, outer)
        self.at = self.node()
        self.edge(ends[0], self.at)

    def store(self, target: ast.expr) -> None:
        match target:
            case ast.Attribute():
                self.value(target.value)
                self.store_attribute(target)
            case ast.Subscript(held, index):
                self.value(held)
                self.index_parts(index)
                self.store_item(target)
            case ast.Tuple(elements) | ast.List(elements):
                self.unpacked(target)
                for element in elements:
                    if not isinstance(element, ast.Tuple | ast.List):
                        self.store(element)

    def store_attribute(self, target: ast.Attribute) -> None:
        names = frozenset({target.attr, "__setattr__", "__delattr__", "__set__"})
        self.site("attribute", target, silent=SILENT, names=names, operators=PROPERTIES.get(f"{target.attr}=", frozenset()), line=target.end_lineno)

    def unpacked(self, target: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self.site("iteration", target, silent=SILENT, names=frozenset({"__iter__", "__next__", "__len__"}), operators=frozenset({"unbind"}), again=0.05)
            for element in target.elts:
                self.unpacked(element)

    def index_parts(self, index: ast.expr) -> None:
        self.value(index)

    def subscript(self, node: ast.Subscript) -> None:
        if self.scalars.is_scalar(node.value):
            return
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        sliced = any(not isinstance(part, ast.Constant | ast.Name | ast.Attribute | ast.BinOp | ast.UnaryOp) for part in parts)
        names = frozenset({"__getitem__", "__missing__", "wrapped", "__class_getitem__"})
        for part in parts:
            operators, silent = _index_operators(part)
            self.site("subscript", node, silent=silent if len(parts) > 1 or sliced else min(silent, RARE), names=names, operators=operators, literal=_index_text(part), again=0.3)
        self.site("subscript", node, silent=SILENT, operators=SUBSCRIPTS["end"], again=0.1)

    def store_item(self, node: ast.Subscript) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            operators, silent = _index_operators(part)
            self.site("subscript", node, silent=min(silent, RARE), operators=operators | STORES, literal=_index_text(part), again=0.1, names=frozenset({"__setitem__", "__delitem__"}))
        self.site("subscript", node, silent=SILENT, operators=STORES, again=0.1)


MODULES = frozenset({"torch", "F", "nn", "np", "numpy", "math", "os", "sys", "time", "random", "functools", "itertools"})
CONVERSIONS = frozenset({"__float__", "__int__", "__bool__", "__index__", "__str__", "__repr__", "__format__"})
ITERATIONS = frozenset({"__iter__", "__next__", "__len__", "__getitem__", "<genexpr>", "<lambda>"})
ITEMS = frozenset({"select", "unbind"})


def _dunders_of(callee: ast.expr) -> frozenset[str]:
    """Methods of its argument that a built-in type calls."""
    if not isinstance(callee, ast.Name) or callee.id not in BUILT_IN_TYPES:
        return frozenset()
    return ITERATIONS if "unbind" in BUILT_IN_TYPES[callee.id] else CONVERSIONS


def _index_operators(part: ast.expr) -> tuple[frozenset[str], float]:
    """What one element of an index runs, and how surprising it is that it does not."""
    match part:
        case ast.Constant(None):
            return SUBSCRIPTS["none"], LIKELY
        case ast.Constant(value) if value is Ellipsis:
            return frozenset(), SILENT
        case ast.Constant(bool()):
            return SUBSCRIPTS["other"], RARE
        case ast.Constant(int()) | ast.UnaryOp(ast.USub(), ast.Constant(int())):
            return SUBSCRIPTS["integer"], RARE
        case ast.Constant():
            return frozenset(), SILENT
        case ast.Slice(None, None, None):
            return SUBSCRIPTS["slice"], RARE
        case ast.Slice():
            return SUBSCRIPTS["slice"], LIKELY
        case _:
            return SUBSCRIPTS["other"], RARE


def _index_text(part: ast.expr) -> str:
    """A literal index as the recording shows it."""
    match part:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return str(value)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            return str(-value)
        case _:
            return ""


def _type_of(value: ast.expr) -> str:
    """C++ type that a literal operand has in the recording, empty for what is no literal."""
    match value:
        case ast.UnaryOp(_, operand):
            return _type_of(operand)
        case ast.Constant(bool()):
            return "bool"
        case ast.Constant(int()):
            return "long int"
        case ast.Constant(float()):
            return "double"
        case _:
            return ""


def _names_of(callee: ast.expr) -> frozenset[str]:
    """Names under which what is called may show up."""
    match callee:
        case ast.Name(name) | ast.Attribute(_, name):
            return frozenset({name})
        case ast.Call(inner):
            return _names_of(inner)
        case _:
            return frozenset()


def _all_names(node: ast.AST) -> frozenset[str]:
    """Names of everything that is called anywhere in an expression: generators run where they are drawn from."""
    return frozenset(name for each in ast.walk(node) if isinstance(each, ast.Call) for name in _names_of(each.func))


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Attribute(held, name):
            return ast.copy_location(ast.Attribute(held, name, ast.Load()), target)
        case _:
            return target


def _first_line(function: ast.AST) -> int:
    """The line that the recording gives the function: that of its first decorator, else its own."""
    decorators = getattr(function, "decorator_list", [])
    return min((node.lineno for node in decorators), default=getattr(function, "lineno", 1))
