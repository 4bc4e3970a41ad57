"""A tensor that a loop extends with one `torch.cat` after the other, as a list and one call after the loop."""

from __future__ import annotations

import libcst as cst

from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.fixes.code import Code
from tb_tidy_plugin.torchfacts import aten

_FACTORIES = frozenset(
    f"torch.{aten.short_name(name)}" for name in aten.names("factory", "arange empty full ones rand randn zeros")
)
_IN_PLACE = "Nothing writes to a piece in place after the loop took it."


def collected(code: Code, spot: Spot) -> Change:
    """The change of a loop `x = torch.cat([x, piece])`: the first `x` is the first piece, so that results are the same.

    Raises:
        Unfixable: the loop does something else with `x`, or `x` does not start right before it.
    """
    assign, call, pieces = _growing(code, spot)
    name, piece = (code.source(each) for each in pieces)
    line = code.parent(assign)
    block = code.parent(line) if line is not None else None
    loop = code.parent(block) if block is not None else None
    outside = code.parent(loop) if loop is not None else None
    if not isinstance(loop, (cst.For, cst.While)) or not isinstance(outside, (cst.IndentedBlock, cst.Module)):
        raise Unfixable("The call is not directly in a loop.")
    if loop.orelse is not None:
        raise Unfixable("The loop has an `else`.")
    if "\n" in code.text[slice(*code.span(assign))] or "#" in code.text[slice(*code.span(call))]:
        raise Unfixable("The call takes several lines.")
    uses = [node for node in _below(loop) if isinstance(node, cst.Name) and node.value == name]
    leaves = [node for node in _below(loop) if isinstance(node, (cst.Return, cst.Yield, cst.FunctionDef, cst.Lambda))]
    if len(uses) != 2 or leaves:
        raise Unfixable(f"The loop does more with `{name}` than extend it, or may leave the function.")
    start = _start(code, outside, loop, name)
    end = code.span(loop)[1]
    behind = code.line_end(end)
    if not code.text[:behind].endswith(("\n", "\r")):
        raise Unfixable("The file ends with the loop.")
    further = code.text[code.span(call.args[0].value)[1] : code.span(call)[1] - 1]
    joined = f"{code.indentation(loop)}{name} = {code.source(call.func)}({name}{further}){code.newline}"
    first, last = code.span(start)
    return Change(
        (
            Splice(first, first, "["),
            Splice(last, last, "]"),
            Splice(*code.span(assign), f"{name}.append({piece})"),
            Splice(behind, behind, joined),
        ),
        SAME_RESULTS,
        "" if _is_new(code, pieces[1]) and _is_new(code, start) else _IN_PLACE,
    )


def _is_new(code: Code, expression: cst.BaseExpression) -> bool:
    """True if an expression creates a tensor that nothing else can write to."""
    if isinstance(expression, cst.Call):
        return code.qualified(expression.func) in _FACTORIES
    return isinstance(expression, cst.BinaryOperation)


def _growing(code: Code, spot: Spot) -> tuple[cst.Assign, cst.Call, tuple[cst.BaseExpression, cst.BaseExpression]]:
    found = []
    for call in code.calls_on(spot.lines):
        assign = code.parent(call)
        if code.qualified(call.func) != "torch.cat" or not isinstance(assign, cst.Assign) or not call.args:
            continue
        items = code.items(call.args[0].value)
        target = assign.targets[0].target
        is_name = isinstance(target, cst.Name) and len(assign.targets) == 1
        if is_name and len(items) == 2 and code.source(items[0]) == code.source(target):
            found.append((assign, call, (items[0], items[1])))
    if len(found) != 1:
        raise Unfixable("The lines do not contain a single `x = torch.cat([x, piece])`.")
    return found[0]


def _below(node: cst.CSTNode) -> list[cst.CSTNode]:
    found, left = [], [node]
    while left:
        found.append(left.pop())
        left += found[-1].children
    return found


def _start(
    code: Code, block: cst.IndentedBlock | cst.Module, loop: cst.For | cst.While, name: str
) -> cst.BaseExpression:
    """The value that the name has when the loop starts."""
    at = block.body.index(loop)
    for statement in reversed(block.body[:at]):
        part = (
            statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        )
        if isinstance(part, cst.Assign) and [code.source(each.target) for each in part.targets] == [name]:
            return part.value
        if any(isinstance(node, cst.Name) and node.value == name for node in _below(statement)):
            break
    raise Unfixable(f"`{name}` does not get its first value right before the loop.")
