"""A loop that averages one tensor after the other, as one call for all of them."""

from __future__ import annotations

import libcst as cst
import msgspec

from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.fixes.code import WIDTH, Code, method_of, only_statements

CHECK = "Both lists hold equally many floating-point tensors, of equal shapes and dtypes."
PAIR = 2
SIMPLE = (cst.Name, cst.Attribute, cst.Integer, cst.Float)
_NEAR = 1e-9


class Mix(msgspec.Struct, frozen=True):
    """Operation of a loop on a pair of tensors: `average += (value - average) * weight`.

    Attributes:
        average, value: the tensors. weight: of the value. kept: the factor of the average; None if it is implied.
    """

    average: cst.BaseExpression
    value: cst.BaseExpression
    weight: cst.BaseExpression
    kept: cst.BaseExpression | None = None


def averaged(code: Code, spot: Spot) -> Change:
    """The change of `for average, value in zip(averages, values)` with one average in its body.

    Raises:
        Unfixable: the loop does something else, or the two factors may not add up to 1.
    """
    loop = _loop(code, spot)
    pairs = _pairs(code, loop)
    names = [_names(target) for target, _ in pairs]
    mix = _mix(code, only_statements(loop.body), names[0] | names[1])
    if mix is None or (mix.kept is not None and not _are_complements(code, mix.kept, mix.weight)):
        raise Unfixable("The loop does more than average one tensor, or its factors may not add up to 1.")
    sides = [_side(_names(tensor), names) for tensor in (mix.average, mix.value)]
    if sorted(sides) != [0, 1] or (_names(mix.weight) & (names[0] | names[1])):
        raise Unfixable("The loop does not average the tensors of `zip`.")
    start, end = code.span(loop)[0], code.span(loop.body.body[-1])[1]
    if "#" in code.text[start:end]:
        raise Unfixable("The loop contains a comment.")
    tensors = [
        _listed(code, tensor, *pairs[side]) for tensor, side in zip((mix.average, mix.value), sides, strict=True)
    ]
    arguments = [*tensors, _bare(code, mix.weight)]
    function = f"{code.module_called('torch')}._foreach_lerp_"
    new, indentation = f"{function}({', '.join(arguments)})", code.indentation(loop)
    if len(indentation) + len(new) > WIDTH:
        inner = f"{code.newline}{indentation}{code.module.default_indent}"
        new = f"{function}({''.join(f'{inner}{each},' for each in arguments)}{code.newline}{indentation})"
    return Change((Splice(start, end, new),), SAME_UP_TO_ROUNDING, CHECK)


def _loop(code: Code, spot: Spot) -> cst.For:
    statements = code.statements_on(spot.lines)
    for node in (*statements, *(above for each in statements for above in code.around(each))):
        if isinstance(node, cst.For) and node.orelse is None and node.asynchronous is None:
            return node
    raise Unfixable("The lines are not in a separate loop.")


def _pairs(code: Code, loop: cst.For) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The loop's items and the iterables that `zip` takes them from, in pairs."""
    call, targets = loop.iter, code.items(loop.target)
    if not isinstance(call, cst.Call) or code.source(call.func) != "zip" or len(targets) != PAIR:
        raise Unfixable("The loop does not iterate over a `zip` of two.")
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if len(given) != PAIR or any(arg.star for arg in call.args):
        raise Unfixable("The loop does not iterate over a `zip` of two.")
    return list(zip(targets, given, strict=True))


def _mix(code: Code, parts: list[cst.BaseSmallStatement], names: set[str]) -> Mix | None:
    """The average in the statements of a loop, if they do nothing else; `names` are those of the loop's items."""
    calls = [part.value for part in parts if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call)]
    if len(calls) != len(parts) or len(parts) not in {1, PAIR}:
        return None
    first, last = calls[0], calls[-1]
    given, keywords = [arg.value for arg in last.args], [arg.keyword.value if arg.keyword else "" for arg in last.args]
    average = code.receiver(last)
    match method_of(last), keywords, len(parts):
        case "lerp_", ["", "" | "weight"], 1:
            return Mix(average, given[0], given[1])
        case "copy_", [""], 1:
            return _sum(code, average, given[0], names)
        case "add_", ["", "alpha"], 1 if isinstance(average, cst.Call):
            first = average
        case "add_", ["", "alpha"], 2 if code.source(average) == code.source(code.receiver(first)):
            pass
        case _:
            return None
    if method_of(first) != "mul_" or len(first.args) != 1 or first.args[0].keyword:
        return None
    return Mix(code.receiver(first), given[0], given[1], first.args[0].value)


def _sum(code: Code, average: cst.BaseExpression, value: cst.BaseExpression, names: set[str]) -> Mix | None:
    """The average that `copy_` writes: `kept * average + weight * value`, in any order."""
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return None
    found: dict[bool, tuple[cst.BaseExpression, cst.BaseExpression]] = {}
    for term in (value.left, value.right):
        if not isinstance(term, cst.BinaryOperation) or not isinstance(term.operator, cst.Multiply):
            return None
        tensor, factor = (term.left, term.right) if names & _names(term.left) else (term.right, term.left)
        found[_object(code, tensor) == _object(code, average)] = (factor, tensor)
    if len(found) != PAIR:
        return None
    return Mix(average, found[False][1], found[False][0], found[True][0])


def _object(code: Code, tensor: cst.BaseExpression) -> str:
    return code.source(tensor).removesuffix(".data").removesuffix(".detach()")


def _are_complements(code: Code, first: cst.BaseExpression, second: cst.BaseExpression) -> bool:
    """True if two factors add up to 1: two numbers, or one and `1 -` that one."""
    for one, other in ((first, second), (second, first)):
        if isinstance(one, SIMPLE) and isinstance(other, cst.BinaryOperation):
            is_one = isinstance(other.left, (cst.Integer, cst.Float)) and float(other.left.value) == 1
            is_rest = isinstance(other.operator, cst.Subtract) and _bare(code, other.right) == _bare(code, one)
            if is_one and is_rest:
                return True
    if isinstance(first, (cst.Integer, cst.Float)) and isinstance(second, (cst.Integer, cst.Float)):
        return abs(float(first.value) + float(second.value) - 1) < _NEAR
    return False


def _bare(code: Code, expression: cst.BaseExpression) -> str:
    """The text of an expression without parentheses around it."""
    inside = expression.with_changes(lpar=[], rpar=[])
    return code.module.code_for_node(inside)


def _names(node: cst.CSTNode) -> set[str]:
    found, left = set(), [node]
    while left:
        each = left.pop()
        if isinstance(each, cst.Name):
            found.add(each.value)
        left += [each.value] if isinstance(each, cst.Attribute) else each.children
    return found


def _side(used: set[str], names: list[set[str]]) -> int:
    """Position, in the pair, of the side that a tensor belongs to; -1 for none or both."""
    known = [side for side, each in enumerate(names) if used & each]
    return known[0] if len(known) == 1 else -1


def _listed(code: Code, tensor: cst.BaseExpression, target: cst.BaseExpression, items: cst.BaseExpression) -> str:
    """A list of the tensors."""
    each, name = code.source(tensor), code.source(target)
    if each == name:
        return f"list({code.source(items)})"
    return f"[{each} for {name} in {code.source(items)}]"
