"""Expressions as sites, in Python's order of evaluation."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tb_tidy_plugin.sources.callees import (
    PYTHON,
    all_names,
    called_as,
    called_names,
    dunders_of,
    operators_of_type,
    run_when_drawn,
    silence_of,
    type_of,
)
from tb_tidy_plugin.sources.emissions import (
    IN_PYTHON,
    NOTHING,
    NUMBERS,
    OPERATORS,
    PROPERTIES,
    STORES,
    SUBSCRIPTS,
    TRUTH,
    UNPACKED,
)
from tb_tidy_plugin.sources.scalars import Scalars
from tb_tidy_plugin.sources.sites import LIKELY, RARE, SILENT, SURE, THROWN, Walker
from tb_tidy_plugin.sources.subscripts import elements_of

GETTERS = frozenset({"__getitem__", "__missing__", "__class_getitem__", IN_PYTHON})
SETTERS = frozenset({"__setitem__", "__delitem__"})

IN_LINE = 0.4
"""Cost of a comprehension without a frame of its own, as in Python 3.12 and later."""

OF_OBJECTS = (ast.In, ast.NotIn, ast.Is, ast.IsNot)  # comparisons that hardly ever run an operator

COMPREHENSIONS = {ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>"}

_MODULES = frozenset(
    {"torch", "F", "nn", "np", "numpy", "math", "os", "sys", "time", "random", "functools", "itertools"}
)
ITEMS = frozenset({"select", "unbind"})
OF_KEYS = frozenset({"__index__", "__hash__", "__eq__"})


class Expressions(Walker):
    """Walks expressions. Those that certainly hold no tensor make no site."""

    def __init__(self, function: ast.AST) -> None:
        super().__init__()
        self.function = function
        self.scalars = Scalars(function)

    def values(self, nodes: Sequence[ast.expr | None]) -> None:
        for node in nodes:
            if node is not None:
                self.value(node)

    def value(self, node: ast.expr) -> None:  # noqa: C901, PLR0912, PLR0915 - one case per kind of node
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
            case ast.NamedExpr(_, value):
                self.value(value)
            case ast.Starred(value):
                self.value(value)
                self.drawn(node, value)
            case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements):
                self.values(elements)
            case ast.Slice(lower, upper, step):
                self.values([lower, upper, step])
            case _:  # names and constants
                pass

    def call(self, node: ast.Call) -> None:
        callee = node.func
        if isinstance(callee, ast.Attribute):
            self.value(callee.value)
            self.attribute(callee, callee.attr)
        elif not isinstance(callee, ast.Name):
            self.value(callee)
        self.values([*node.args, *(keyword.value for keyword in node.keywords)])
        line = callee.end_lineno if isinstance(callee, ast.Attribute) else None
        operators = operators_of_type(callee)
        if operators is None:
            self.site(
                "call", node, silent=silence_of(callee), names=called_names(callee), again=1.0,
                anything=self.through_variable(callee), line=line, calls=called_as(callee),
            )  # fmt: skip
            return
        names, drawn = run_when_drawn(*node.args)
        self.site(
            "call", node, silent=SILENT, names=called_names(callee) | dunders_of(callee) | names,
            operators=operators | drawn, again=0.1, line=line,
        )  # fmt: skip

    def through_variable(self, callee: ast.expr) -> float:
        """Cost of running a function of another name: a variable may hold any."""
        match callee:
            case ast.Name(name) if name in PYTHON:
                return 1.5
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
        """Most attributes are plain; properties and attributes of modules run Python, a few run operators."""
        if isinstance(node.value, ast.Name) and node.value.id in _MODULES:
            return
        operators = PROPERTIES.get(name, frozenset())
        self.site(
            "attribute", node, silent=LIKELY if operators else SILENT, operators=operators,
            names=frozenset({name, "__getattr__", "__get__"}), line=node.end_lineno,
        )  # fmt: skip

    def binary(self, node: ast.BinOp, operator: str, left: ast.expr, right: ast.expr) -> None:
        if self.scalars.is_plain(left) and self.scalars.is_plain(right):
            return
        found = OPERATORS[operator]
        literal = type_of(right) or type_of(left)
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
                    "operator", node, silent=SILENT if isinstance(operator, OF_OBJECTS) else RARE,
                    names=found.names, operators=found.operators, literal=type_of(right) or type_of(left),
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
        """A value whose truth is tested."""
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
                if not self.scalars.is_plain(test):
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
            self.site(
                "call",
                node,
                silent=RARE,
                anything=0.5,
                names=frozenset({"__await__", "__iter__", "__next__"}),
                again=0.1,
            )
            return
        self.automaton.ends.append(self.at)
        before, self.at = self.at, self.node()
        self.edge(before, self.at, THROWN)  # in one frame only if generators are not distinguished
        self.automaton.starts.append((self.at, node.lineno))

    # Loops, comprehensions, items

    def iterated(self, node: ast.expr) -> None:
        self.value(node)
        if not self.scalars.is_plain(node):
            self.site(
                "iteration",
                node,
                silent=SILENT,
                names=frozenset({"__iter__"}),
                operators=frozenset({"unbind"}),
                anything=3.0,
            )

    def next_item(self, node: ast.expr, target: ast.expr) -> None:
        if self.scalars.is_plain(node):
            return
        names = frozenset({"__next__", "<genexpr>", "<lambda>", "__getitem__", "next"}) | all_names(node)
        _, operators = run_when_drawn(node)
        self.site("iteration", node, silent=SILENT, names=names, operators=ITEMS | operators, again=0.05, anything=1.2)

    def drawn(self, node: ast.expr, source: ast.expr | None) -> None:
        """All items of something, taken at once."""
        if source is None or not self.scalars.is_plain(source):
            names, operators = (NOTHING, NOTHING) if source is None else run_when_drawn(source)
            self.site(
                "iteration", node, silent=SILENT, names=names | {"__iter__", "__next__", "__len__"},
                operators=operators | UNPACKED, again=0.05,
            )  # fmt: skip

    def comprehended(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """A frame of its own up to Python 3.11, in line from 3.12; generators run where their items are used."""
        self.iterated(node.generators[0].iter)
        if isinstance(node, ast.GeneratorExp):
            return
        before = self.at
        self.site("call", node, silent=0.3, names=frozenset({COMPREHENSIONS[type(node)]}))
        framed = self.at
        self.at = self.node()
        self.edge(before, self.at, IN_LINE)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.comprehension(node.generators, parts, own_frame=False)
        self.join(framed, self.at)

    def comprehension(
        self, generators: Sequence[ast.comprehension], parts: Sequence[ast.expr], *, own_frame: bool
    ) -> None:
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

    def store(self, target: ast.expr, source: ast.expr | None = None) -> None:
        match target:
            case ast.Attribute():
                self.value(target.value)
                self.store_attribute(target)
            case ast.Subscript(held, index):
                self.value(held)
                self.index_parts(index)
                self.store_item(target)
            case ast.Tuple(elements) | ast.List(elements):
                self.unpacked(target, source)
                for element in elements:
                    if not isinstance(element, ast.Tuple | ast.List):
                        self.store(element)
            case _:  # a name
                pass

    def store_attribute(self, target: ast.Attribute) -> None:
        names = frozenset({target.attr, "__setattr__", "__delattr__", "__set__"})
        self.site(
            "attribute",
            target,
            silent=SILENT,
            names=names,
            operators=PROPERTIES.get(f"{target.attr}=", frozenset()),
            line=target.end_lineno,
        )

    def unpacked(self, target: ast.expr, source: ast.expr | None = None) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self.drawn(target, source)
            for element in target.elts:
                self.unpacked(element)

    def index_parts(self, index: ast.expr) -> None:
        self.value(index)

    def subscript(self, node: ast.Subscript) -> None:
        if self.scalars.is_scalar(node.value):
            return
        if self.scalars.is_container(node.value):
            self.site("subscript", node, silent=SILENT, names=OF_KEYS, operators=NUMBERS)
            return
        for each in elements_of(node.slice):
            self.site(
                "subscript", node, silent=each.silent, names=GETTERS, operators=each.operators, rarely=each.rarely,
                literal=each.literal, again=0.3,
            )  # fmt: skip
        self.site("subscript", node, silent=SILENT, operators=SUBSCRIPTS["end"], again=0.1)

    def store_item(self, node: ast.Subscript) -> None:
        if self.scalars.is_container(node.value):
            self.site("subscript", node, silent=SILENT, names=OF_KEYS, operators=NUMBERS)
            return
        for each in elements_of(node.slice):
            self.site(
                "subscript", node, silent=min(each.silent, RARE), names=SETTERS, operators=each.operators | STORES,
                rarely=each.rarely, literal=each.literal, again=0.1,
            )  # fmt: skip
        self.site("subscript", node, silent=SILENT, operators=STORES, again=0.1)
