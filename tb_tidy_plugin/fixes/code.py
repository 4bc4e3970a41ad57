"""A user's module as a syntax tree, in which fixers look up calls, names and statements.

LibCST, which the extra `fix` installs, gives the places; the change is made in the text (`fixes.change`), so that
comments, line ends and everything else keep their form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
    QualifiedNameSource,
    WhitespaceInclusivePositionProvider,
)

from tb_tidy_plugin.fixes.change import Splice, Unfixable
from tb_tidy_plugin.fixes.python_text import LINE_END, NESTED, tree_of, unparsable
from tb_tidy_plugin.sources.constructors import Constructors, Made, Unclear

_MOST_NODES = 50_000
"""Most nodes of a file's syntax tree: LibCST takes up to 0.5 ms for each. Scripts of 4,000 lines have fewer."""

WIDTH = 100
"""Longest line in characters: longer new calls take several lines."""

Call = cst.Call
_Span = tuple[int, int, int, int]
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


class Code:
    """One module.

    Raises:
        Unfixable: the text is not Python that can be read here.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._constructors = Constructors(tree_of(text))
            if len(self._constructors.nodes) > _MOST_NODES:
                raise Unfixable("The file is too large to change.")
            wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
            self._positions = wrapper.resolve(PositionProvider)
            self._whole = wrapper.resolve(WhitespaceInclusivePositionProvider)
            self._parents = wrapper.resolve(ParentNodeProvider)
            self._names = wrapper.resolve(QualifiedNameProvider)
        except (ValueError, cst.ParserSyntaxError) as problem:
            raise unparsable(problem) from None
        except (RecursionError, MemoryError):
            raise Unfixable(NESTED) from None
        self.module = wrapper.module
        self._starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        if self.module.code != text:
            raise Unfixable("The file cannot be read without changing it.")

    @cached_property
    def nodes(self) -> list[cst.CSTNode]:
        """All nodes, parents first, in the order of the text."""
        return self.below(self.module)

    def below(self, top: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and all below it, parents first, in the order of the text."""
        found: list[cst.CSTNode] = []
        left = [top]
        while left:
            node = left.pop()
            found.append(node)
            left += reversed(node.children)
        return found

    @property
    def calls(self) -> list[cst.Call]:
        return [node for node in self.nodes if isinstance(node, cst.Call)]

    @property
    def newline(self) -> str:
        """The line end of the file."""
        return str(self.module.default_newline)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of a node in the text; of an expression with its parentheses."""
        table = self._whole if isinstance(node, cst.BaseExpression) else self._positions
        place = table[node]
        return (
            self._starts[place.start.line - 1] + place.start.column,
            self._starts[place.end.line - 1] + place.end.column,
        )

    def source(self, node: cst.CSTNode) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def lines(self, node: cst.CSTNode) -> range:
        """The lines of a node, 1-based."""
        place = self._positions[node]
        return range(place.start.line, place.end.line + 1)

    def line_start(self, offset: int) -> int:
        """The offset at which the line of `offset` starts."""
        return max(start for start in self._starts if start <= offset)

    def line_end(self, offset: int) -> int:
        """The offset after the end of the line of `offset`."""
        return next((start for start in self._starts if start > offset), len(self.text))

    def indentation(self, node: cst.CSTNode) -> str:
        """The white space before the first character of the node's line."""
        line = self.text[self.line_start(self.span(node)[0]) :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around it; None for the module."""
        found = self._parents.get(node)
        return found if isinstance(found, cst.CSTNode) else None

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around it, innermost first."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def qualified(self, node: cst.CSTNode) -> str:
        """The imported name that an expression stands for, such as `torch.optim.SGD`; empty if there is none."""
        start = node
        while isinstance(start, cst.Attribute):
            start = start.value
        known = self._names.get(node, ()) if isinstance(start, cst.Name) else ()  # LibCST names `f().x` `f.x`
        found = known() if callable(known) else known  # LibCST computes it on first use
        names = {name.name for name in found if name.source is QualifiedNameSource.IMPORT}
        return names.pop() if len(names) == 1 else ""

    def callee(self, call: cst.Call) -> str:
        """The callee of a call: its imported name, else its text."""
        return self.qualified(call.func) or self.source(call.func)

    def imported_as(self, name: str) -> str:
        """The name under which the module level imports the module `name`; empty if it does not."""
        for node in self.nodes:
            if isinstance(node, cst.Import) and self.parent(self.parent(node) or node) is self.module:
                for alias in node.names:
                    if self.source(alias.name) == name:
                        return self.source(alias.asname.name) if alias.asname else name
        return ""

    def functions(self, name: str) -> list[cst.FunctionDef]:
        return [node for node in self.nodes if isinstance(node, cst.FunctionDef) and node.name.value == name]

    def statement_on(self, line: int) -> Statement | None:
        """The innermost statement on a line; None without one."""
        found: Statement | None = None
        for node in self.nodes:
            if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) and line in self.lines(node):
                found = node
        return found

    def statements_on(self, lines: Iterable[int]) -> list[Statement]:
        """The innermost statements on these lines, each once."""
        found = (self.statement_on(line) for line in lines)
        return list(dict.fromkeys(each for each in found if each is not None))

    def inside(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A statement's own nodes, without the statements in its body."""
        found: list[cst.CSTNode] = []
        left = [node]
        while left:
            each = left.pop()
            if each is not node and isinstance(each, (cst.BaseSuite, cst.BaseCompoundStatement)):
                continue
            found.append(each)
            left += reversed(each.children)
        return found

    def calls_on(self, lines: Iterable[int]) -> list[cst.Call]:
        """The calls in the statements on these lines."""
        return [
            node
            for statement in self.statements_on(lines)
            for node in self.inside(statement)
            if isinstance(node, cst.Call)
        ]

    def methods_on(self, lines: Iterable[int], name: str) -> list[cst.Call]:
        """The calls on these lines of a method of this name."""
        return [call for call in self.calls_on(lines) if method_of(call) == name]

    def indexed_on(self, lines: Iterable[int]) -> list[tuple[cst.Call, str]]:
        """The calls on these lines whose result is directly indexed, each with the index: `f(x)[0]` with `[0]`."""
        return [
            (node.value, self.text[self.span(node.value)[1] : self.span(node)[1]])
            for statement in self.statements_on(lines)
            for node in self.inside(statement)
            if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Call)
        ]

    def assigned(self, target: str) -> list[cst.BaseExpression]:
        """All values that the module assigns to `target`, a name or an attribute."""
        found = []
        for node in self.nodes:
            if isinstance(node, cst.Assign):
                targets = [self.source(each.target) for each in node.targets]
            elif isinstance(node, cst.AnnAssign) and node.value is not None:
                targets = [self.source(node.target)]
            else:
                continue
            if target in targets and node.value is not None:
                found.append(node.value)
        return found

    def bound(self, name: str) -> int:
        """Number of times that a name or attribute is bound: by assignments, loops, parameters and the like."""
        kinds = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.CompFor)
        targets = [self.source(node.target) for node in self.nodes if isinstance(node, kinds)]
        targets += [node.name.value for node in self.nodes if isinstance(node, cst.Param)]
        targets += [
            self.source(element.value)
            for node in self.nodes
            if isinstance(node, cst.Tuple) and isinstance(self.parent(node), (cst.AssignTarget, cst.For, cst.CompFor))
            for element in node.elements
        ]
        return targets.count(name)

    def constructor(self, used: Iterable[cst.BaseExpression], wanted: Made) -> cst.Call:
        """The one call that created an object.

        Args:
            used: expressions on the finding's lines that may be the object.
            wanted: the kind of object.

        Raises:
            Unfixable: this file does not show which call it was.
        """
        by_span = {_span(node): node for node in self._constructors.nodes if isinstance(node, ast.expr)}
        known = [by_span[self._ast_span(each)] for each in used if self._ast_span(each) in by_span]
        try:
            made = _span(self._constructors.constructor(known, wanted))
        except Unclear as reason:
            raise Unfixable(str(reason)) from None
        return next(call for call in self.calls if self._ast_span(call) == made)

    def _ast_span(self, node: cst.CSTNode) -> _Span:
        """The place of a node in the terms of `ast`: lines from 1, and bytes."""
        place = self._positions[node]
        ends = (place.start.line, place.start.column), (place.end.line, place.end.column)
        starts = (self._starts[line - 1] for line, _ in ends)
        (first, start), (last, end) = (
            (line, len(self.text[begin : begin + column].encode()))
            for begin, (line, column) in zip(starts, ends, strict=True)
        )
        return first, start, last, end

    def argument(self, call: cst.Call, keyword: str) -> cst.Arg | None:
        """The argument of a call for a keyword; None without one."""
        return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == keyword), None)

    def with_arguments(self, call: cst.Call, given: Mapping[str, str], *, instead_of: str = "") -> list[Splice]:
        """Adds keyword arguments to a call, or changes them where it has the value `instead_of`.

        Raises:
            Unfixable: the call already has one of them with another value, or may have it through `**`.
        """
        splices: list[Splice] = []
        new: list[str] = []
        for keyword, value in given.items():
            if (arg := self.argument(call, keyword)) is None:
                new.append(f"{keyword}={value}")
            elif (text := self.source(arg.value)) == instead_of:
                splices.append(Splice(*self.span(arg.value), value))
            else:
                raise Unfixable(f"The call already has `{keyword}={text}`.")
        if any(arg.star for arg in call.args):
            raise Unfixable("The call takes arguments through `*` or `**`, which may contain the same argument.")
        if any(isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar for arg in call.args):
            raise Unfixable("The call's only argument is a generator without parentheses.")
        return [*splices, *(self._appended(call, new) if new else ())]

    def _appended(self, call: cst.Call, new: Sequence[str]) -> list[Splice]:
        """Arguments after the last one; on lines of their own if the last one has one."""
        _, end = self.span(call)
        if call.rpar:  # parentheses around the call itself
            raise Unfixable("The call has its own parentheses.")
        if not call.args:
            return [Splice(end - 1, end - 1, ", ".join(new))]
        last = call.args[-1]
        start, value_end = self.span(last)[0], self.span(last.value)[1]
        has_comma = isinstance(last.comma, cst.Comma)
        line = self.text[self.line_start(start) : start]
        if line.strip(" \t") or not LINE_END.search(self.text[value_end:end]):  # the line is shared with others
            if has_comma:
                comma = value_end + self.text[value_end:end].index(",")
                return [Splice(comma + 1, comma + 1, f" {', '.join(new)},")]
            return [Splice(value_end, value_end, f", {', '.join(new)}")]
        behind = self.line_end(value_end)
        ends = [",", "," if has_comma else ""]
        lines = [f"{line}{each}{ends[each is new[-1]]}{self.newline}" for each in new]
        added = Splice(behind, behind, "".join(lines))
        return [added] if has_comma else [Splice(value_end, value_end, ","), added]

    def without_argument(self, call: cst.Call, arg: cst.Arg) -> list[Splice]:
        """Removes an argument from a call.

        Raises:
            Unfixable: there is a comment beside it.
        """
        at = call.args.index(arg)
        opening = self.span(call.func)[1]
        opening += self.text[opening:].index("(") + 1
        if len(call.args) == 1:
            start, end = opening, self.span(call)[1] - 1
        elif at:
            start, end = self.span(call.args[at - 1].value)[1], self.span(arg.value)[1]
        else:
            start, end = self.span(arg)[0], self.span(call.args[1])[0]
        if "#" in self.text[start:end]:
            raise Unfixable("The argument has a comment beside it.")
        return [Splice(start, end, "")]

    def without_call(self, call: cst.Call) -> Splice:
        """Removes the call of a method; the object of the method stays.

        Raises:
            Unfixable: there is a comment in it.
        """
        place = self._positions[call].end  # before parentheses around the call
        start, end = self.span(self.receiver(call))[1], self._starts[place.line - 1] + place.column
        if "#" in self.text[start:end]:
            raise Unfixable(f"The call of `{method_of(call)}` has a comment beside it.")
        return Splice(start, end, "")

    def indexed_by_names(self, lines: Iterable[int]) -> list[tuple[cst.Subscript, cst.BaseExpression]]:
        """The expressions `x[index]` that these lines read, with the index: a name, an attribute, a call or an item."""
        found = []
        for statement in self.statements_on(lines):
            for node in self.inside(statement):
                index = _only_index(node)
                if isinstance(node, cst.Subscript) and index is not None and self._is_read(node):
                    found.append((node, index))
        return found

    def _is_read(self, node: cst.CSTNode) -> bool:
        """True unless a statement binds the expression, changes it in place, deletes or annotates it."""
        binding = (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor)
        below: cst.CSTNode = node
        for above in self.around(node):
            if isinstance(above, (cst.AssignTarget, cst.Annotation, cst.Del)):
                return False
            if isinstance(above, binding) and above.target is below:
                return False
            below = above
        return True

    def wrapped(self, statement: Statement, header: str) -> list[Splice]:
        """Puts a statement on its own lines under `header`, such as `with torch.no_grad():`.

        Raises:
            Unfixable: the statement shares its lines, or contains text whose lines cannot be indented.
        """
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            raise Unfixable("The line is not a complete statement.")
        for around in self.around(statement):
            if isinstance(around, cst.With) and any(self.source(item.item) in header for item in around.items):
                raise Unfixable("The statement is already in such a block.")
        return self.under(statement, header)

    def under(self, statement: Statement, header: str) -> list[Splice]:
        """Puts a statement under `header`, with all statements in it.

        Raises:
            Unfixable: the statement shares its lines, or contains text whose lines cannot be indented.
        """
        start, end = self.span(statement)
        first = self.line_start(start)
        if self.text[first:start].strip(" \t"):
            raise Unfixable("The statement shares its line with another one.")
        for node in self.below(statement):
            is_text = isinstance(node, (cst.SimpleString, cst.FormattedString))
            if is_text and len(self.lines(node)) > 1:
                raise Unfixable("The statement contains a multi-line string.")
        if "\\" in self.text[start:end] and "\\\n" in self.text[start:end].replace("\r\n", "\n"):
            raise Unfixable("The statement continues after a backslash.")
        indentation, step = self.text[first:start], str(self.module.default_indent)
        splices = [Splice(first, first, f"{indentation}{header}{self.newline}{step}")]
        inner = [at for at in self._starts if first < at < end]
        return [*splices, *(Splice(at, at, step) for at in inner if self.text[at:].lstrip(" \t")[:1] not in "\r\n")]

    def before(self, statement: cst.CSTNode, text: str) -> Splice:
        """A line before a statement, with the same indentation."""
        at = self.line_start(self.span(statement)[0])
        return Splice(at, at, f"{self.indentation(statement)}{text}{self.newline}")

    def after_imports(self, text: str) -> Splice:
        """A line after the last import at module level.

        Raises:
            Unfixable: there is no import on a line of its own.
        """
        at = self._end_of_imports()
        return Splice(at, at, f"{self.newline}{text}{self.newline}")

    def importing(self, module: str, name: str) -> tuple[str, list[Splice]]:
        """The name under which the module level imports a module; if it does not, `name`, and the import.

        Raises:
            Unfixable: `name` stands for something else, or there is no import at module level.
        """
        if known := self.imported_as(module):
            return known, []
        if any(isinstance(node, cst.Name) and node.value == name for node in self.nodes):
            raise Unfixable(f"The file does not import `{module}`, and already uses the name `{name}`.")
        at = self._end_of_imports()
        return name, [Splice(at, at, f"import {module} as {name}{self.newline}")]

    def _end_of_imports(self) -> int:
        imports = [
            each
            for each in self.module.body
            if isinstance(each, cst.SimpleStatementLine)
            and all(isinstance(part, (cst.Import, cst.ImportFrom)) for part in each.body)
        ]
        if not imports:
            raise Unfixable("The file has no import at module level.")
        at = self.line_end(self.span(imports[-1])[1])
        if at == len(self.text) and not self.text.endswith(("\n", "\r")):
            raise Unfixable("The file ends with its imports.")
        return at

    def without_statement(self, lines: Iterable[int], *methods: str) -> Splice:
        """Removes the one statement on these lines that only calls a method; its comment stays.

        Raises:
            Unfixable: there is none, or its block would be empty.
        """
        found = []
        for line in self.statements_on(lines):
            part = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call) and method_of(part.value) in methods:
                found.append((line, part))
        if len(found) != 1:
            raise Unfixable(f"The lines do not contain a single statement that only calls `{methods[0]}`.")
        line, part = found[0]
        block = self.parent(line)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)) or len(block.body) == 1:
            raise Unfixable("The call is the only statement of its block.")
        start, end = self.span(part)
        first, last = self.line_start(start), self.line_end(end)
        if self.text[first:start].strip(" \t"):
            raise Unfixable("The statement shares its line with another one.")
        if self.text[end:last].strip():
            return Splice(start, end + len(self.text[end:last]) - len(self.text[end:last].lstrip(" \t;")), "")
        return Splice(first, last, "")

    def read_at_once(self, lines: Iterable[int], method: str, whole: str) -> list[Splice]:
        """Calls `whole` on a loop's iterable, instead of `method` on each of its items; empty if that is impossible.

        The loop is on these lines, or around them, and does nothing else with its item.
        """
        for call in self.methods_on(lines, method):
            item = self.receiver(call)
            loop = self._loop_with(item)
            if call.args or loop is None or not isinstance(loop.iter, (cst.Name, cst.Attribute, cst.Call)):
                continue
            name, body = self.source(item), self._function_around(loop)
            uses = [node for node in self.below(body) if isinstance(node, cst.Name) and node.value == name]
            reads = [above for node in uses if (above := self._call_on(node, method)) is not None]
            is_plain = not isinstance(loop.iter, cst.Call) or bool(method_of(loop.iter))
            if is_plain and len(uses) == len(reads) + 1 and self._is_inside(reads, loop):
                end = self.span(loop.iter)[1]
                dropped = [Splice(self.span(self.receiver(each))[1], self.span(each)[1], "") for each in reads]
                return [Splice(end, end, f".{whole}()"), *dropped]
        return []

    def _loop_with(self, item: cst.BaseExpression) -> cst.For | cst.CompFor | None:
        """The innermost loop around an expression that has it as its target."""
        if not isinstance(item, cst.Name):
            return None
        for node in self.around(item):
            found = node.for_in if isinstance(node, cst.BaseSimpleComp) else node
            if isinstance(found, (cst.For, cst.CompFor)) and self.source(found.target) == item.value:
                return found
        return None

    def _function_around(self, node: cst.CSTNode) -> cst.CSTNode:
        return next((each for each in self.around(node) if isinstance(each, cst.FunctionDef)), self.module)

    def _call_on(self, name: cst.Name, method: str) -> cst.Call | None:
        """The call of `method` without arguments on a name."""
        above = self.parent(name)
        call = self.parent(above) if isinstance(above, cst.Attribute) and above.value is name else None
        is_call = isinstance(call, cst.Call) and call.func is above and not call.args and method_of(call) == method
        return call if is_call and isinstance(call, cst.Call) else None

    def _is_inside(self, calls: Iterable[cst.Call], loop: cst.For | cst.CompFor) -> bool:
        """True if all calls are in the body of a loop, or in its comprehension."""
        whole = self.parent(loop) if isinstance(loop, cst.CompFor) else loop.body
        return all(any(each is whole for each in self.around(call)) for call in calls)

    def arguments(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The values of a call's arguments; for a name that is assigned once and not used elsewhere, its value."""
        return [self._only_value(arg.value) for arg in call.args]

    def _only_value(self, expression: cst.BaseExpression) -> cst.BaseExpression:
        if not isinstance(expression, cst.Name):
            return expression
        known = self.assigned(expression.value)
        uses = sum(isinstance(node, cst.Name) and node.value == expression.value for node in self.nodes)
        return known[0] if (len(known), uses) == (1, 2) else expression

    def receiver(self, call: cst.Call) -> cst.BaseExpression:
        """The object whose method a call calls; for a call of a function, the function."""
        return call.func.value if isinstance(call.func, cst.Attribute) else call.func

    def iterated_on(self, lines: Iterable[int]) -> list[cst.BaseExpression]:
        """The iterables of the `for` statements on these lines, or around them, innermost first."""
        statements = self.statements_on(lines)
        loops = [each for each in statements if isinstance(each, cst.For)]
        loops += [each for statement in statements for each in self.around(statement) if isinstance(each, cst.For)]
        return [loop.iter for loop in loops]

    def module_called(self, name: str) -> str:
        """The name under which the module level imports the module `name`.

        Raises:
            Unfixable: it does not import it.
        """
        found = self.imported_as(name)
        if not found:
            raise Unfixable(f"The file does not import `{name}`.")
        return found

    def collects(self, call: cst.Call) -> bool:
        """True if a call's result is only added to a sum (`+=`) or to a list (`append`)."""
        above = self.parent(call)
        if isinstance(above, cst.AugAssign):
            return isinstance(above.operator, cst.AddAssign) and above.value is call
        outer = self.parent(above) if isinstance(above, cst.Arg) else None
        return isinstance(outer, cst.Call) and method_of(outer) == "append" and isinstance(self.parent(outer), cst.Expr)

    def used_by(self, call: cst.Call) -> cst.Call | None:
        """The call that takes a call's result as its first argument, directly or in the next statement."""
        above = self.parent(call)
        outer = self.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(outer, cst.Call) and outer.args[0] is above:
            return outer
        line = self.parent(above) if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
        body = self.parent(line) if isinstance(line, cst.SimpleStatementLine) else None
        if not (isinstance(body, (cst.IndentedBlock, cst.Module)) and isinstance(line, cst.SimpleStatementLine)):
            return None
        assert isinstance(above, cst.Assign)
        target, at = self.source(above.targets[0].target), list(body.body).index(line)
        for node in self.inside(body.body[at + 1]) if at + 1 < len(body.body) else ():
            if isinstance(node, cst.Call) and node.args and self.source(node.args[0].value) == target:
                return node
        return None

    def made_by(self, used: cst.BaseExpression) -> cst.Call:
        """The one call whose result a name or an attribute is.

        Raises:
            Unfixable: it is not assigned here exactly once, or not from a call.
        """
        name, values = self.source(used), self.assigned(self.source(used))
        if len(values) != 1 or not isinstance(values[0], cst.Call):
            raise Unfixable(f"This file does not show which call creates `{name}`.")
        return values[0]

    def items(self, expression: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The items of a list or tuple display; empty for any other expression."""
        if not isinstance(expression, (cst.List, cst.Tuple)):
            return []
        return [each.value for each in expression.elements]

    def is_list(self, expression: cst.BaseExpression) -> bool:
        """True if an expression is a list or a comprehension of one."""
        return isinstance(expression, (cst.List, cst.ListComp))

    def is_call(self, expression: cst.CSTNode) -> TypeGuard[cst.Call]:
        return isinstance(expression, cst.Call)

    def is_pure(self, function: cst.FunctionDef) -> bool:
        """True if a function only assigns names and returns, so that a compiler takes it as a whole."""
        if function.asynchronous or not isinstance(function.body, cst.IndentedBlock):
            return False
        lines = function.body.body
        parts = [part for line in lines if isinstance(line, cst.SimpleStatementLine) for part in line.body]
        are_simple = all(isinstance(line, cst.SimpleStatementLine) for line in lines)
        return are_simple and all(
            isinstance(part, (cst.Assign, cst.AnnAssign, cst.Return)) or _is_text(part) for part in parts
        )


def only_statements(body: cst.BaseSuite) -> list[cst.BaseSmallStatement]:
    """The statements of a body; empty if one of them has a body of its own."""
    if isinstance(body, cst.SimpleStatementSuite):
        return list(body.body)
    found = [part for line in body.body if isinstance(line, cst.SimpleStatementLine) for part in line.body]
    return found if all(isinstance(line, cst.SimpleStatementLine) for line in body.body) else []


def method_of(call: cst.Call) -> str:
    """The name of the method that a call calls; empty for a call of a function."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _only_index(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The index of `x[index]` if it may be a tensor; None if it is a slice, a number, a string or a tuple."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or isinstance(node.slice[0].comma, cst.Comma):
        return None
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or index.star:
        return None
    return index.value if isinstance(index.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) else None


def _span(node: ast.expr) -> _Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _is_text(part: object) -> bool:
    return isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString)
