"""Places in the source that may make an event, and the paths between them."""

from __future__ import annotations

import ast
from typing import Literal, TypeAlias

import msgspec

_Kind: TypeAlias = Literal["call", "operator", "subscript", "attribute", "truth", "iteration", "other"]

Called: TypeAlias = Literal["", "torch", "python", "method", "variable"]

SILENT, RARE, LIKELY, SURE = 0.05, 0.25, 0.7, 1.6
"""Costs of a site's silence: it usually makes no event, it may make one, it should, it always does."""

THROWN = 2.0
"""Cost of leaving a body by an exception."""

MOST_SITES = 1200
"""Most nodes of an automaton; larger bodies are data, and would take seconds."""


class TooLargeError(Exception):
    """A body of more than `MOST_SITES` nodes; clean-up code is copied to each exit, so that few lines may be enough."""


class Site(msgspec.Struct, frozen=True):
    """A place in the source that may make an event.

    Attributes:
        kind: kind of the instruction.
        begin, end: nodes of the automaton before and after it.
        line, end_line: 1-based; `line` is that of the instruction in Python's own terms.
        names: names of Python functions, built-ins or modules that it may run.
        operators: names of operators, without `aten::`, that it may run itself.
        literal: C++ type of a literal operand, and the text of a literal index, empty for none.
        again: cost of making another event at once; None if it cannot.
        rarely: further operators that it runs with unusual values.
        calls: the callee, as far as it is written: a function of torch, a built-in of Python, the method of a value, or
            the content of a variable.
        anything: cost of running a function of any name, for calls through a variable; None if it cannot.
    """

    kind: _Kind
    begin: int
    end: int
    line: int
    end_line: int
    names: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    literal: str = ""
    again: float | None = None
    anything: float | None = None
    rarely: frozenset[str] = frozenset()
    calls: Called = ""


class Automaton(msgspec.Struct):
    """Nodes are numbers; an edge leads from one to another at a cost, without an event; a site leads on with one.

    Attributes:
        starts: nodes at which a frame may begin, and the line it then has: the first line, or that of a `yield`.
        ends: nodes at which it may end.
    """

    nodes: int = 1
    edges: list[tuple[int, int, float]] = msgspec.field(default_factory=list)
    sites: list[Site] = msgspec.field(default_factory=list)
    starts: list[tuple[int, int]] = msgspec.field(default_factory=list)
    ends: list[int] = msgspec.field(default_factory=list)


class Walker:
    """Builds an automaton while walking through code. `at` is the current node."""

    def __init__(self) -> None:
        self.automaton = Automaton()
        self.at = 0

    def node(self) -> int:
        self.automaton.nodes += 1
        if self.automaton.nodes > MOST_SITES:
            raise TooLargeError
        return self.automaton.nodes - 1

    def edge(self, begin: int, end: int, cost: float = 0.0) -> None:
        self.automaton.edges.append((begin, end, cost))

    def join(self, *ends: int) -> None:
        """Continues where several paths meet."""
        self.at = self.node()
        for end in ends:
            self.edge(end, self.at)

    def site(  # noqa: PLR0913 - one call of it per kind of site, all by name
        self,
        kind: _Kind,
        node: ast.AST,
        *,
        silent: float,
        names: frozenset[str] = frozenset(),
        operators: frozenset[str] = frozenset(),
        literal: str = "",
        again: float | None = None,
        anything: float | None = None,
        rarely: frozenset[str] = frozenset(),
        line: int | None = None,
        calls: Called = "",
    ) -> None:
        begin, end = self.at, self.node()
        first = line if line is not None else getattr(node, "lineno", 0)
        last = getattr(node, "end_lineno", None) or first
        site = Site(
            kind, begin, end, first, max(first, last), names, operators, literal, again, anything, rarely, calls
        )
        self.automaton.sites.append(site)
        self.edge(begin, end, silent)
        self.at = end
