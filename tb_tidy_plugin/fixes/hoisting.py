"""A constant tensor created in each step, created once: before the loop or function, or as a buffer of its module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable, spliced
from tb_tidy_plugin.fixes.code import Code, method_of
from tb_tidy_plugin.torchfacts import aten

_Known = Callable[[str], bool]
"""True if a name or an attribute has the same value each time."""

_PARTS = (
    cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget, cst.Tuple, cst.List, cst.Element,
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.Slice, cst.Arg,
)  # fmt: skip
"""Nodes that are constant if all their parts are."""

_VALUES = (cst.Integer, cst.Float, cst.SimpleString)
_BUILTINS = frozenset({"abs", "float", "int", "len", "list", "max", "min", "range", "round", "slice", "sum", "tuple"})
_WORDS = frozenset({"True", "False", "None"})
_UNSET = aten.names("factory", "empty empty_like empty_permuted empty_strided")
UNWRITTEN = "Nothing writes to the tensor in place"
USED_ONCE = 2
"""Places of a name that is assigned, and read once."""

_LOOPS = (cst.For, cst.While)


def hoisted(code: Code, spot: Spot) -> Change:
    """The change of a line that creates a constant.

    Raises:
        Unfixable: the line's result may depend on the step, or on when it runs.
    """
    lines = code.statements_on(spot.lines)
    line = lines[0] if len(lines) == 1 else None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Unfixable("The lines do not contain a single statement.")
    function = next((each for each in code.around(line) if isinstance(each, cst.FunctionDef)), None)
    owner = _owner(code, function) if function is not None else None
    if function is None or owner is None:
        return _before(code, line)
    try:
        return _as_buffer(code, owner, function, line)
    except Unfixable as reason:
        try:
            return _before(code, line)
        except Unfixable:
            raise reason from None


def _owner(code: Code, function: cst.FunctionDef) -> cst.ClassDef | None:
    """The class that a function is a method of; None for any other function."""
    above = [each for _, each in zip(range(2), code.around(function), strict=False)]
    return above[-1] if isinstance(above[-1], cst.ClassDef) else None


def _before(code: Code, line: cst.SimpleStatementLine) -> Change:
    """The line before the outermost loop, or function, in which its result is always the same."""
    part = line.body[0]
    target = part.targets[0].target if isinstance(part, cst.Assign) and len(part.targets) == 1 else None
    if not isinstance(part, cst.Assign) or not isinstance(target, cst.Name):
        raise Unfixable("The line does not assign the constant to a name.")
    block = code.parent(line)
    outermost: cst.CSTNode | None = None
    while isinstance(block, cst.IndentedBlock):
        around = code.parent(block)
        is_function = isinstance(around, cst.FunctionDef) and outermost is None and not around.decorators
        is_function = is_function and isinstance(around, cst.FunctionDef) and _owner(code, around) is None
        if not (isinstance(around, _LOOPS) or is_function) or not _is_same_before(code, part.value, around):
            break
        assert around is not None
        outermost, block = around, code.parent(around)
    if outermost is None or not isinstance(code.parent(outermost), (cst.IndentedBlock, cst.Module)):
        raise Unfixable("The line uses names that are not known before its loop or function.")
    scope = code.module if isinstance(outermost, cst.FunctionDef) else _scope(code, line) or code.module
    _hold_kept(code, scope, target.value)
    start, end = code.span(line)
    moved = code.text[start : code.line_end(end)].rstrip("\r\n")
    if len(code.lines(line)) > 1:
        raise Unfixable("The constant spans several lines.")
    return Change(
        (_whole(code, line), code.before(outermost, moved)),
        SAME_RESULTS,
        f"{UNWRITTEN}, and its device and dtype are set before.",
    )


def _is_same_before(code: Code, value: cst.BaseExpression, around: cst.CSTNode | None) -> bool:
    """True if an expression has the same value before a loop or a function as in it."""
    if around is None or not _makes_tensor(code, value):
        return False
    start = code.span(around)[0]
    own = {name for node in code.below(around) for name in _bound_by(node)}
    scopes = {None, *(each for each in code.around(around) if isinstance(each, cst.FunctionDef))}
    earlier = {
        name
        for node in code.nodes
        if (names := _bound_by(node)) and not isinstance(node, cst.CompFor)
        if code.span(node)[0] < start and _scope(code, node) in scopes
        for name in names
    }
    return _is_constant(code, value, lambda name: _base(name) in earlier and _base(name) not in own and name not in own)


def _scope(code: Code, node: cst.CSTNode) -> cst.FunctionDef | None:
    return next((each for each in code.around(node) if isinstance(each, cst.FunctionDef)), None)


def _base(name: str) -> str:
    return name.partition(".")[0]


def _bound_by(node: cst.CSTNode) -> set[str]:
    """The names and attributes that a node itself binds."""
    if isinstance(node, cst.Param):
        return {node.name.value}
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.NamedExpr)):
        return _targets(node.target)
    if isinstance(node, cst.AsName):
        return _targets(node.name)
    return {node.name.value} if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else set()


def _targets(target: cst.BaseExpression) -> set[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for element in target.elements for name in _targets(element.value)}
    if isinstance(target, cst.Subscript):
        return _targets(target.value)
    if isinstance(target, cst.Attribute):
        return {f"{base}.{target.attr.value}" for base in _targets(target.value)}
    return {target.value} if isinstance(target, cst.Name) else set()


def _as_buffer(code: Code, owner: cst.ClassDef, function: cst.FunctionDef, line: cst.SimpleStatementLine) -> Change:
    """The constant as a buffer that the module's `__init__` creates."""
    methods = [node for node in owner.body.body if isinstance(node, cst.FunctionDef)]
    starts = [each for each in methods if each.name.value == "__init__"]
    is_module = any(code.qualified(base.value) == "torch.nn.Module" for base in owner.bases)
    if not is_module or len(starts) != 1 or function is starts[0] or not function.params.params:
        raise Unfixable("The line is not in a module of `torch.nn` with an `__init__`.")
    start, me = starts[0], function.params.params[0].name.value
    first = start.params.params[0].name.value if start.params.params else ""
    set_once = {name for node in code.below(start) for name in _bound_by(node) if name.startswith(f"{me}.")}
    others = {name for each in methods if each is not start for node in code.below(each) for name in _bound_by(node)}
    local = {name for node in code.below(function) for name in _bound_by(node)}
    if first != me or not isinstance(start.body, cst.IndentedBlock):
        raise Unfixable("The line is not in a module of `torch.nn` with an `__init__`.")

    def is_known(name: str) -> bool:
        is_set = any(name == each or name.startswith(f"{each}.") for each in set_once - others)
        return is_set if _base(name) == me else name not in local and code.bound(name) == 1 and _is_global(code, name)

    found, text, gone, named = _largest(code, function, line, is_known)
    if found is None:
        raise Unfixable("The result of the line may depend on the module's arguments.")
    name = _name(code, methods, function, found, named)
    if "\n" in text or "\r" in text or "#" in text:
        raise Unfixable("The constant spans several lines.")
    at = code.line_end(code.span(start.body.body[-1])[1])
    if not code.text[:at].endswith(("\n", "\r")):
        raise Unfixable("The file ends with `__init__`.")
    made = f'{me}.register_buffer("{name}", {text}, persistent=False)'
    indentation = code.indentation(start.body.body[0])
    return Change(
        (
            Splice(at, at, f"{indentation}{made}{code.newline}"),
            Splice(*code.span(found), f"{me}.{name}"),
            *(_whole(code, each) for each in gone),
        ),
        SAME_RESULTS,
        f"{UNWRITTEN}, what it is made of stays as `__init__` sets it, and the module is on the tensor's device.",
    )


def _largest(
    code: Code, function: cst.FunctionDef, line: cst.SimpleStatementLine, is_known: _Known
) -> tuple[cst.BaseExpression | None, str, list[cst.CSTNode], str]:
    """The largest constant that starts on a line: the expression, its text, the lines that it replaces, and its name.

    If a line names a constant for one further use, the constant continues there.
    """
    gone: list[cst.CSTNode] = []
    expressions = [node for node in code.inside(line) if isinstance(node, cst.BaseExpression)]
    found = next(
        (node for node in expressions if _makes_tensor(code, node) and _is_constant(code, node, is_known)), None
    )
    if found is None:
        return None, "", [], ""
    text, named = _without_devices(code, found), ""
    while isinstance(assign := code.parent(found), cst.Assign) and len(assign.targets) == 1:
        target, statement = assign.targets[0].target, code.parent(assign)
        if not isinstance(target, cst.Name) or statement is None:
            break
        _hold_kept(code, function, target.value)
        named, end = target.value, code.span(assign)[1]
        if code.text[end : code.line_end(end)].strip():
            break  # a comment, which stays with its line
        uses = _uses(code, function, named)
        larger = _around(code, uses[-1], named, is_known) if len(uses) == USED_ONCE else None
        if larger is None:
            break
        own = code.span(uses[-1])[0] - code.span(larger)[0]
        text = spliced(code.source(larger), [Splice(own, own + len(named), text)])
        gone.append(statement)
        found = larger
    above = code.parent(found)
    if isinstance(above, cst.Attribute) and above.attr.value.endswith("_"):
        raise Unfixable("The line writes to the tensor.")
    return found, text, gone, named


def _uses(code: Code, function: cst.FunctionDef, name: str) -> list[cst.Name]:
    """The places where a function reads or binds a name."""
    found = [node for node in code.below(function) if isinstance(node, cst.Name) and node.value == name]
    above = [(node, code.parent(node)) for node in found]
    return [
        node
        for node, outer in above
        if not (isinstance(outer, cst.Attribute) and outer.attr is node)
        and not (isinstance(outer, cst.Arg) and outer.keyword is node)
    ]


def _around(code: Code, use: cst.CSTNode, named: str, is_known: _Known) -> cst.BaseExpression | None:
    """The largest constant expression around a use of the constant `named` that is larger than the use."""
    found: cst.BaseExpression | None = None
    for node in code.around(use):
        if isinstance(node, (cst.BaseStatement, cst.BaseSmallStatement)):
            break
        if isinstance(node, cst.Call) and _is_constant(code, node, lambda name: name == named or is_known(name)):
            found = node
    return found


def _makes_tensor(code: Code, node: cst.BaseExpression) -> bool:
    return any(_is_factory(code, each) for each in code.below(node))


def _is_factory(code: Code, node: cst.CSTNode) -> bool:
    """True if an expression calls a function of `torch` that creates a tensor."""
    name = code.qualified(node.func) if isinstance(node, cst.Call) else ""
    return name.startswith("torch.") and aten.is_a("factory", f"aten::{name.removeprefix('torch.')}")


def _is_constant(code: Code, node: cst.CSTNode, is_known: _Known) -> bool:
    """True if an expression has the same value each time, by `is_known` for its names."""
    if isinstance(node, _VALUES) or (isinstance(node, cst.Name) and node.value in _WORDS):
        return True
    if isinstance(node, (cst.Name, cst.Attribute)):
        return bool(code.qualified(node)) or is_known(code.source(node))
    if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "device":
        return _is_device_of(node.value) or _is_constant(code, node.value, is_known)
    if isinstance(node, cst.Call):
        return _is_pure(code, node, is_known) and all(
            not arg.star and (arg.keyword is None or arg.keyword.value != "out") and _is_constant(code, arg, is_known)
            for arg in node.args
        )
    if not isinstance(node, _PARTS):
        return False
    kinds = (cst.BaseExpression, *_PARTS)
    left = [node.value] if isinstance(node, cst.Arg) else [each for each in node.children if isinstance(each, kinds)]
    return all(_is_constant(code, each, is_known) for each in left)


def _is_device_of(value: cst.BaseExpression) -> bool:
    """True if a device is that of a tensor, `x.device`: buffers move with their module."""
    return isinstance(value, cst.Attribute) and value.attr.value == "device"


def _is_pure(code: Code, call: cst.Call, is_known: _Known) -> bool:
    """True if a call gives the same result for the same arguments, and does nothing else."""
    name, method = code.qualified(call.func), method_of(call)
    if name.startswith("torch."):
        operator = f"aten::{name.removeprefix('torch.')}"
        is_set = not aten.is_a("random", operator) and operator not in _UNSET
        return (aten.is_a("known", operator) and is_set) or name in {"torch.tensor", "torch.device"}
    if name:
        return name.startswith("math.")
    if not method:
        return code.source(call.func) in _BUILTINS
    operator, receiver = f"aten::{method}", code.receiver(call)
    is_tensor = isinstance(receiver, (cst.Call, cst.Name, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation))
    is_free = not method.endswith("_") or _is_factory(code, _start_of(code, receiver))
    is_safe = not aten.is_a("random", operator) and not aten.is_a("read", operator)
    return is_tensor and is_free and is_safe and _is_constant(code, receiver, is_known)


def _start_of(code: Code, expression: cst.BaseExpression) -> cst.BaseExpression:
    """The expression at the start of a chain of methods."""
    while isinstance(expression, cst.Call) and not code.qualified(expression.func) and method_of(expression):
        expression = code.receiver(expression)
    return expression


def _is_global(code: Code, name: str) -> bool:
    lines = [line for line in code.module.body if isinstance(line, cst.SimpleStatementLine)]
    return any(name in _bound_by(node) for line in lines for node in code.below(line))


def _without_devices(code: Code, expression: cst.BaseExpression) -> str:
    """The text of an expression, without `device=x.device`."""
    start = code.span(expression)[0]
    splices = [
        splice
        for call in code.below(expression)
        if isinstance(call, cst.Call)
        and (arg := code.argument(call, "device")) is not None
        and _is_device_of(arg.value)
        for splice in code.without_argument(call, arg)
    ]
    return spliced(
        code.source(expression), [Splice(each.start - start, each.end - start, each.new) for each in splices]
    )


def _name(
    code: Code, methods: Sequence[cst.FunctionDef], function: cst.FunctionDef, found: cst.BaseExpression, named: str
) -> str:
    """A name for the buffer, unique among the module's constants: fixes are made one by one, and must fit together.

    It is named after the method that returns the constant, else after the constant, else after the function that
    creates it.
    """
    own, names = function.name.value, {each.name.value for each in methods}
    returns = [node for node in code.below(function) if isinstance(node, cst.Return)]
    if code.parent(found) in returns and len(returns) == 1:
        name = own
    elif named:
        binding = [each for each in methods if any(named in _bound_by(node) for node in code.below(each))]
        name = named if binding == [function] and named not in names else f"{own}_{named}"
    else:
        calls = [node for each in methods for node in code.below(each) if isinstance(node, cst.Call)]
        factories = [node for node in calls if _is_factory(code, node)]
        [first, *_] = [node for node in factories if code.span(node)[0] >= code.span(found)[0]]
        name = f"{code.source(first.func).rpartition('.')[2]}_{factories.index(first)}"
    if any(
        isinstance(node, cst.Name) and node.value == f"kept_{name}" for each in methods for node in code.below(each)
    ):
        raise Unfixable(f"The module already has `kept_{name}`.")
    return f"kept_{name}"


def _hold_kept(code: Code, scope: cst.CSTNode, name: str) -> None:
    """Raises Unfixable if a statement gives `name` another value, or writes to its tensor in place."""
    for node in code.below(scope):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)):
            is_written = not isinstance(node.target, cst.Name) or isinstance(node, cst.AugAssign)
            is_written = is_written and name in {_base(each) for each in _targets_in_place(node.target)}
        elif isinstance(node, cst.Call):
            is_method = method_of(node).endswith("_") and code.source(code.receiver(node)) == name
            out = code.argument(node, "out")
            is_written = is_method or (out is not None and code.source(out.value) == name)
        else:
            continue
        if is_written:
            raise Unfixable(f"The file writes to `{name}` in place.")
    if sum(name in _bound_by(node) for node in code.below(scope)) != 1:
        raise Unfixable(f"The file gives `{name}` more than one value.")


def _targets_in_place(target: cst.BaseExpression) -> set[str]:
    """The names that an assignment to items or attributes writes to."""
    if isinstance(target, (cst.Tuple, cst.List)):
        items = [element.value for element in target.elements]
        return {name for each in items if not isinstance(each, cst.Name) for name in _targets_in_place(each)}
    return _targets(target)


def _whole(code: Code, line: cst.CSTNode) -> Splice:
    """Removes a line with its comment.

    Raises:
        Unfixable: other statements share it, or its block would be empty.
    """
    start, end = code.span(line)
    first, last = code.line_start(start), code.line_end(end)
    behind, block = code.text[end:last].strip(), code.parent(line)
    if code.text[first:start].strip(" \t") or (behind and not behind.startswith("#")):
        raise Unfixable("The statement shares its line with another one.")
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or len(block.body) == 1:
        raise Unfixable("The line is the only statement of its block.")
    return Splice(first, last, "")
