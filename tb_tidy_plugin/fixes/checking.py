"""Checks for NaN and infinity of one tensor after the other, behind one check of the norm of all of them.

The norm is finite only if all tensors are, so that the checks run only where one of them may fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

import libcst as cst

from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.fixes.code import WIDTH, Code, method_of

NORM = "nn.utils.get_total_norm"
BAD, _GOOD = frozenset({"isnan", "isinf"}), frozenset({"isfinite"})
_READS = frozenset({"item", "bool"})
LISTED = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "values", "items"})
"""Methods that may be called twice for the same results."""

UNCLEAR = "The loop does more than check one tensor for NaN or infinity."


def guarded(code: Code, spot: Spot) -> Change:
    """The change of a loop that only checks tensors, or of `any` or `all` of such checks.

    Raises:
        Unfixable: the lines hold something else.
    """
    around = list(_around(code, spot))
    if any(isinstance(node, cst.If) and NORM in code.source(node.test) for node in around):
        raise Unfixable("The checks already follow a check of all tensors.")
    for node in around:
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            break
        if isinstance(node, cst.For):
            return _loop_guarded(code, node)
        if isinstance(node, cst.Call) and code.source(node.func) in {"any", "all"} and len(node.args) == 1:
            return _call_guarded(code, node)
    raise Unfixable("The lines are not in a loop of checks.")


def _around(code: Code, spot: Spot) -> Iterator[cst.CSTNode]:
    """The calls on the lines, the statements that contain them, and the nodes around those."""
    statements = code.statements_on(spot.lines)
    if len(statements) != 1:
        return
    yield from (node for node in code.inside(statements[0]) if isinstance(node, cst.Call))
    yield from (statements[0], *code.around(statements[0]))


def _loop_guarded(code: Code, loop: cst.For) -> Change:
    if loop.orelse is not None or loop.asynchronous is not None or not isinstance(loop.body, cst.IndentedBlock):
        raise Unfixable(UNCLEAR)
    tensor = _one(code, loop, _checked_by(code, loop.body))
    test = f"not {_is_finite(code, tensor, loop.target, loop.iter, code.source(loop))}"
    if len(indentation := code.indentation(loop)) + len(test) > WIDTH:
        outer = f"{code.newline}{indentation}"
        test = test.replace("(", f"({outer}{code.module.default_indent}", 1)[:-1] + f"{outer})"
    return _change(code.under(loop, f"if {test}:"), code.source(loop.iter))


def _call_guarded(code: Code, call: cst.Call) -> Change:
    given, joins = call.args[0].value, code.source(call.func)
    if not isinstance(given, (cst.GeneratorExp, cst.ListComp)) or given.for_in.inner_for_in is not None:
        raise Unfixable("`any` or `all` does not take a single loop.")
    tensor = _one(code, given.elt, _tested(code, given.elt, is_bad=joins == "any"))
    items = given.for_in
    is_finite = _is_finite(code, tensor, items.target, items.iter, code.source(call), items.ifs)
    before = f"not {is_finite} and " if joins == "any" else f"bool({is_finite}) or "
    start, end = code.span(call)
    above = code.parent(call)
    if isinstance(above, cst.BooleanOperation) and NORM in code.source(above.left):
        raise Unfixable("The checks already follow a check of all tensors.")
    if isinstance(above, (cst.If, cst.Assign, cst.Return, cst.Assert)):
        return _change([Splice(start, start, before)], code.source(items.iter))
    return _change([Splice(start, start, f"({before}"), Splice(end, end, ")")], code.source(items.iter))


def _change(splices: list[Splice], items: str) -> Change:
    check = f"PyTorch is 2.6 or newer, and `{items}` gives floating-point tensors, a second time as well."
    return Change(tuple(splices), SAME_RESULTS, check)


def _is_finite(
    code: Code,
    tensor: str,
    target: cst.BaseExpression,
    items: cst.BaseExpression,
    text: str,
    conditions: Sequence[cst.CompIf] = (),
) -> str:
    """The check of all tensors at once, as an expression."""
    is_plain = isinstance(items, (cst.Name, cst.Attribute))
    if not is_plain and not (isinstance(items, cst.Call) and method_of(items) in LISTED):
        raise Unfixable("The loop's iterable may not be usable a second time.")
    listed, name = code.source(items), code.source(target)
    given = [code.source(each.test) for each in conditions]
    if tensor.endswith(".grad") or f"{tensor} is not None" in text or f"{tensor} is None" in text:
        given = [f"{tensor} is not None", *(each for each in given if each != f"{tensor} is not None")]
    if tensor != name or given:
        listed = f"[{tensor} for {name} in {listed}{''.join(f' if {each}' for each in given)}]"
    torch = code.module_called("torch")
    return f"{torch}.isfinite({torch}.{NORM}({listed}))"


def _one(code: Code, checks: cst.CSTNode, tensors: Iterator[str]) -> str:
    """The one tensor that the checks are about; they may also test whether it is None."""
    found = set(tensors)
    asked = {code.source(node.left) for node in code.below(checks) if _is_none_test(node)}
    if len(found) != 1 or not asked <= found:
        raise Unfixable(UNCLEAR)
    return found.pop()


def _checked_by(code: Code, body: cst.BaseSuite) -> Iterator[str]:
    """The tensors that the statements of a loop check.

    Raises:
        Unfixable: a statement may do something even if all of them are finite.
    """
    for line in body.body:
        if isinstance(line, cst.SimpleStatementLine):
            for part in line.body:
                if not isinstance(part, cst.Assert):
                    raise Unfixable(UNCLEAR)
                yield from _tested(code, part.test, is_bad=False)
        elif not isinstance(line, cst.If) or line.orelse is not None:
            raise Unfixable(UNCLEAR)
        elif _is_none_test(line.test) and isinstance(line.body, cst.BaseSuite):
            if not _only_continues(line.body):
                yield from _checked_by(code, line.body)
        else:
            yield from _tested(code, line.test, is_bad=True)


def _only_continues(body: cst.BaseSuite) -> bool:
    parts = [part for line in body.body for part in getattr(line, "body", [line])]
    return len(parts) == 1 and isinstance(parts[0], cst.Continue)


def _is_none_test(test: cst.CSTNode) -> TypeGuard[cst.Comparison]:
    """True if an expression is `x is None` or `x is not None`."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    [right] = test.comparisons
    is_none = isinstance(right.comparator, cst.Name) and right.comparator.value == "None"
    return is_none and isinstance(right.operator, (cst.Is, cst.IsNot))


def _tested(code: Code, test: cst.BaseExpression, *, is_bad: bool) -> Iterator[str]:
    """The tensors of a test that is true only if one is not finite (`is_bad`), or always if all are finite.

    Raises:
        Unfixable: the test has another form.
    """
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _tested(code, test.expression, is_bad=not is_bad)
    elif isinstance(test, cst.BooleanOperation):
        sides = [each for each in (test.left, test.right) if not _is_none_test(each)]
        one_is_enough = isinstance(test.operator, cst.And) is is_bad
        if len(sides) != (1 if one_is_enough else 2):
            raise Unfixable(UNCLEAR)
        for each in sides:
            yield from _tested(code, each, is_bad=is_bad)
    elif isinstance(test, cst.Call) and method_of(test) in _READS and not test.args:
        yield from _tested(code, code.receiver(test), is_bad=is_bad)
    elif isinstance(test, cst.Call) and code.source(test.func) == "bool" and len(test.args) == 1:
        yield from _tested(code, test.args[0].value, is_bad=is_bad)
    else:
        joined = _of(code, test, "any" if is_bad else "all")
        if joined is None:
            raise Unfixable(UNCLEAR)
        yield from _elements(code, joined, is_bad=is_bad)


def _elements(code: Code, mask: cst.BaseExpression, *, is_bad: bool) -> Iterator[str]:
    """The tensor whose elements a mask tests for not being finite (`is_bad`), or for being finite."""
    if isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert):
        yield from _elements(code, mask.expression, is_bad=not is_bad)
        return
    if isinstance(mask, cst.BinaryOperation) and isinstance(mask.operator, cst.BitOr if is_bad else cst.BitAnd):
        yield from _elements(code, mask.left, is_bad=is_bad)
        yield from _elements(code, mask.right, is_bad=is_bad)
        return
    found = [each for name in (BAD if is_bad else _GOOD) if (each := _of(code, mask, name)) is not None]
    if len(found) != 1 or not isinstance(found[0], (cst.Name, cst.Attribute)):
        raise Unfixable(UNCLEAR)
    yield code.source(found[0])


def _of(code: Code, call: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """The tensor `x` of `torch.name(x)` or `x.name()`; None for anything else."""
    if not isinstance(call, cst.Call):
        return None
    if code.qualified(call.func) == f"torch.{name}":
        return call.args[0].value if len(call.args) == 1 else None
    return code.receiver(call) if method_of(call) == name and not call.args else None
