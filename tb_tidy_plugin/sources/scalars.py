"""Names in a function that certainly hold plain numbers, strings or lists of them, and so never run an operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tb_tidy_plugin.torchfacts import aten

SCALAR_CALLS = frozenset(
    {"len", "int", "float", "bool", "str", "range", "id", "ord", "hash", "isinstance", "repr", "perf_counter"}
)
RANGES = frozenset({"reversed", "sorted", "zip", "list", "tuple", "set"})
SCALAR_METHODS = frozenset(
    {"size", "dim", "numel", "item", "tolist", "element_size", "stride", "nelement", "ndimension", "get_device",
     "perf_counter", "format", "join", "strip", "keys"}
)  # fmt: skip
SCALAR_ATTRIBUTES = frozenset(
    {"shape", "ndim", "dtype", "device", "requires_grad", "is_cuda", "training", "is_leaf", "itemsize", "nbytes", "pi",
     "inf", "nan"}
)  # fmt: skip
CONTAINERS = frozenset({"list", "tuple", "sorted", "dict", "set", "frozenset"})
_VIEWS = frozenset({"zip", "enumerate", "reversed"})
CONTAINER_METHODS = frozenset({"items", "keys", "values", "tolist"})
"""Methods of dictionaries and tensors that return a container; so do operators such as `split`."""
MOST_ROUNDS = 30  # code has no longer chains of names that depend on each other
_ROUNDINGS = frozenset({"min", "max", "abs", "round", "sum", "pow", "divmod"})


class Scalars:
    """Answers for the expressions of one function. A name counts only if everything ever bound to it counts."""

    def __init__(self, function: ast.AST) -> None:
        bindings = _bindings(function)
        self._names = self._containers = frozenset(bindings)
        # Each expression is examined once: a sum of 400 terms, examined at each of its signs, took 10 s.
        self._known_scalars: dict[ast.expr, bool] = {}
        self._known_containers: dict[ast.expr, bool] = {}
        for _ in range(MOST_ROUNDS):  # a name is out as soon as one of its bindings is
            names = frozenset(each for each in self._names if all(map(self._counts, bindings[each])))
            containers = frozenset(each for each in self._containers if all(map(self._contains, bindings[each])))
            if (names, containers) == (self._names, self._containers):
                return
            self._bind(names, containers)
        self._bind(frozenset(), frozenset())

    def _bind(self, names: frozenset[str], containers: frozenset[str]) -> None:
        """From now on these names count, and no others."""
        self._names, self._containers = names, containers
        self._known_scalars.clear()
        self._known_containers.clear()

    def _counts(self, value: ast.expr | bool) -> bool:
        return value if isinstance(value, bool) else self.is_scalar(value)

    def _contains(self, value: ast.expr | bool) -> bool:
        return not isinstance(value, bool) and self.is_container(value)

    def is_plain(self, value: ast.expr) -> bool:
        """True if neither the value itself nor drawing its items nor testing its truth runs an operator."""
        return self.is_scalar(value) or self.is_container(value)

    def is_container(self, value: ast.expr) -> bool:
        """True if `value` certainly is a list, tuple, dictionary or set, whatever it holds."""
        known = self._known_containers.get(value)
        if known is not None:
            return known
        match value:
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                known = True
            case ast.Name(name):
                known = name in self._containers
            case ast.Call(ast.Name(name), arguments):
                known = name in CONTAINERS or (name in _VIEWS and all(map(self.is_plain, arguments)))
            case ast.Call(ast.Attribute(_, name)):
                known = name in CONTAINER_METHODS or aten.is_a("list", aten.PREFIX + name)
            case ast.BinOp(left, _, right):
                known = self.is_plain(left) and self.is_plain(right)
            case ast.IfExp(_, body, orelse):
                known = self.is_container(body) and self.is_container(orelse)
            case ast.Subscript(held, ast.Slice()):
                known = self.is_container(held)
            case _:
                known = False
        self._known_containers[value] = known
        return known

    def is_scalar(self, value: ast.expr) -> bool:  # noqa: C901, PLR0912 - one case per kind of node
        """True if `value` certainly is neither a tensor nor holds one."""
        known = self._known_scalars.get(value)
        if known is not None:
            return known
        match value:
            case ast.Constant() | ast.JoinedStr():
                known = True
            case ast.Name(name):
                known = name in self._names
            case ast.BinOp(left, _, right):
                known = self.is_scalar(left) and self.is_scalar(right)
            case ast.UnaryOp(_, operand):
                known = self.is_scalar(operand)
            case ast.Compare(left, _, others):
                known = all(map(self.is_scalar, (left, *others)))
            case ast.BoolOp(_, values):
                known = all(map(self.is_scalar, values))
            case ast.IfExp(_, body, orelse):
                known = self.is_scalar(body) and self.is_scalar(orelse)
            case ast.Tuple(elements) | ast.List(elements):
                known = all(map(self.is_scalar, elements))
            case ast.Attribute(_, name):
                known = name in SCALAR_ATTRIBUTES
            case ast.Subscript(held, _) | ast.Starred(held):
                known = self.is_scalar(held)
            case ast.Call(ast.Name(name), arguments):
                known = name in SCALAR_CALLS or (name in _ROUNDINGS | RANGES and all(map(self.is_scalar, arguments)))
            case ast.Call(ast.Attribute(ast.Name("math" | "os" | "time" | "random"), _)):
                known = True
            case ast.Call(ast.Attribute(_, name)):
                known = name in SCALAR_METHODS
            case _:
                known = False
        self._known_scalars[value] = known
        return known


def _bindings(function: ast.AST) -> Mapping[str, list[ast.expr | bool]]:
    """Everything bound to each name of the function; True and False if it is known without an expression."""
    found: dict[str, list[ast.expr | bool]] = {}
    for name, value in (*_parameters(function), *_assigned(function)):
        found.setdefault(name, []).append(value)
    return found


def _parameters(function: ast.AST) -> Iterator[tuple[str, ast.expr | bool]]:
    """Parameters count by their default: other kinds of arguments are rare. `self` never counts."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [False] * (len(plain) - len(arguments.defaults)) + [_is_number(value) for value in arguments.defaults]
    yield from ((argument.arg, default) for argument, default in zip(plain, defaults, strict=True))
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, value is not None and _is_number(value)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra.arg, False


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and value.value is not None


def _assigned(function: ast.AST) -> Iterator[tuple[str, ast.expr | bool]]:
    for node in _own_nodes(function):
        match node:
            case ast.Assign(targets, value):
                for target in targets:
                    yield from _to(target, value)
            case ast.AnnAssign(target, _, value) if value is not None:
                yield from _to(target, value)
            case ast.AugAssign(ast.Name(name), _, value) | ast.NamedExpr(ast.Name(name), value):
                yield name, value
            case ast.For(target, iterated) | ast.AsyncFor(target, iterated) | ast.comprehension(target, iterated):
                yield from _iterated(target, iterated)
            case ast.withitem(_, ast.expr() as target):
                yield from ((name, False) for name in _names(target))
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name, False
            case ast.ExceptHandler(_, str(name)) | ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):
                yield name, False
            case _:  # binds no name
                pass


def _to(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | bool]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for each, part in zip(target.elts, value.elts, strict=True):
            yield from _to(each, part)
    else:  # unpacked: each name is an item of its source, and assignments to attributes and items bind no name
        yield from ((name, _item_of(value)) for name in _names(target))


def _item_of(source: ast.expr) -> ast.expr:
    return ast.Starred(source)


def _iterated(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[str, ast.expr | bool]]:
    match target, iterated:
        case ast.Tuple([ast.Name(index), rest]), ast.Call(ast.Name("enumerate"), [over, *_]):
            yield index, True
            yield from _iterated(rest, over)
        case _, ast.Tuple(elements) | ast.List(elements):
            for element in elements:
                yield from _to(target, element)
        case _:
            yield from ((name, _item_of(iterated)) for name in _names(target))


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a body, without those of functions and classes defined in it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
