"""The list of what statements may use: a second defence besides the rules, which insert numbers but never text.

A trace is somebody else's file. If a rule ever put its text into a statement, this would prevent its execution. It is
an allow-list: modules, paths below them to the last attribute, methods of values, and syntax. So nobody needs to know
what else a module leads to (`torch.builtins`, `torch.os`, …).
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tb_tidy_plugin.profile.work.training import WITH_FOREACH
from tb_tidy_plugin.rulekit import TORCH_DTYPES, Benchmark
from tb_tidy_plugin.rulekit.statements import OF_ONE, OF_TWO
from tb_tidy_plugin.torchfacts import aten

_MOST_CHARACTERS = 20_000
LONGEST_SHOWN = 60

_MODULES = frozenset({"numpy", "time", "torch", "torch.nn.functional", "torch.utils.data"})
"""Modules that may be imported; as a whole, under any name."""

_BUILTINS = frozenset(
    {
        "bool", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range", "reversed", "sum", "tuple",
        "zip",
    }
)  # fmt: skip

RESERVED = frozenset(vars(builtins)) - _BUILTINS - {"_"}
"""Other names of Python: a parameter with such a name would have it in its function only."""


def _below(module: str, names: Iterable[str]) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names)


FUNCTIONAL = aten.names(
    "known", "elu gelu hardsigmoid hardswish hardtanh leaky_relu mish scaled_dot_product_attention silu softplus"
)

CALLED = (
    _below("torch", map(aten.short_name, OF_ONE | OF_TWO))
    | _below(
        "torch",
        {
            "cat", "clamp", "compile", "cuda.synchronize", "eq", "from_numpy", "ge", "gt", "le", "lerp", "lt", "ne",
            "no_grad", "ones", "pow", "rand", "randn", "randn_like", "set_float32_matmul_precision", "tensor", "where",
            "zeros", "zeros_like",
        },
    )
    | _below("torch.nn", {f"{kind}{dims}d" for kind in ("BatchNorm", "Conv") for dims in (1, 2, 3)})
    | _below("torch.nn", {f"{kind}{end}" for kind in ("GRU", "LSTM", "RNN") for end in ("", "Cell")})
    | _below("torch.nn.functional", map(aten.short_name, FUNCTIONAL))
    | _below("torch.optim", WITH_FOREACH.values())
    | {"numpy.asarray", "numpy.stack", "time.perf_counter", "torch.utils.data.DataLoader"}
)  # fmt: skip
"""Functions and classes below the modules; they may only be called."""

VALUES = (
    _below("torch", TORCH_DTYPES.values())
    | _below("numpy", {"float32", "float64", "int32", "int64"})
    | {"torch.utils.data.Dataset"}
)
"""Values that may appear anywhere: dtypes, and a base class."""

_METHODS = frozenset(
    {
        "add_", "append", "as_strided", "backward", "bool", "contiguous", "dtype", "item", "masked_fill", "numpy",
        "softmax", "sort", "step", "sum", "to", "tolist", "topk", "transpose", "tril", "triu", "zero_grad",
    }
)  # fmt: skip
"""Attributes of everything except modules."""

SET = frozenset({"grad"})
"""Attributes that may be set."""

DEFINED = frozenset({"__getitem__", "__len__"})
"""Names with two underscores that functions may have: those of a data set."""

WITHOUT_OPTIONS = frozenset({"torch.compile"})
"""Functions that may get no keywords: with `backend`, `torch.compile` imports any name."""

SYNTAX = (
    ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Import, ast.alias, ast.Pass, ast.If, ast.For, ast.While,
    ast.Break, ast.Continue, ast.With, ast.withitem, ast.FunctionDef, ast.ClassDef, ast.arguments, ast.arg, ast.Return,
    ast.Name, ast.Attribute, ast.Call, ast.keyword, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.List,
    ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Load, ast.Store,
)  # fmt: skip


def complaint_about(pair: Benchmark) -> str | None:
    """The reason why the statements of a pair are not run, None if they may be."""
    texts = (pair.setup, pair.before, pair.after)
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        return "they are too long"
    try:
        refused = next(_refused([ast.parse(text) for text in texts]), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "they are not valid Python"
    return None if refused is None else f"they use `{refused}`, which is not on the list of what statements may use"


def _refused(trees: Sequence[ast.Module]) -> Iterator[str]:
    """Names and syntax that are on no list."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules: dict[str, str] = {}
    for name, module in (each for node in nodes if isinstance(node, ast.Import) for each in _imported(node)):
        if modules.setdefault(name, module) != module:
            yield name  # it would stand for two modules
    names = _Names(modules, frozenset(name for node in nodes for name in _given_by(node)) | _BUILTINS | {"device"})
    for tree in trees:
        yield from names.refused(tree)


def _imported(node: ast.Import) -> Iterator[tuple[str, str]]:
    """Names that an import binds, and the modules that they stand for."""
    for each in node.names:
        top = each.name.partition(".")[0]
        yield (each.asname, each.name) if each.asname else (top, top)


def _given_by(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds to values."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


class _Names(msgspec.Struct, frozen=True):
    """The names of a pair: those of modules with what they stand for, and those of values."""

    modules: Mapping[str, str]
    given: frozenset[str]

    def refused(self, node: ast.AST) -> Iterator[str]:
        """Names and syntax of a node and all below it that are on no list."""
        if not isinstance(node, SYNTAX):
            yield _shown(node)
            return
        yield from self._refused_here(node)
        for each in self._below(node):
            yield from self.refused(each)

    def _refused_here(self, node: ast.AST) -> Iterator[str]:
        yield from (name for name in _given_by(node) if name in self.modules or _is_pythons(name))
        match node:
            case ast.Import():
                yield from (f"import {each.name}" for each in node.names if each.name not in _MODULES)
                yield from (name for name, _ in _imported(node) if _is_pythons(name))
            case ast.Name() if node.id in self.modules or node.id not in self.given:
                yield node.id  # a module counts only with the used attribute
            case ast.FunctionDef() | ast.ClassDef():
                yield from (f"@{_shown(each)}" for each in node.decorator_list)
                yield from (_shown(each) for each in getattr(node, "keywords", ()))
            case ast.Call() if path := self._path(node.func):
                if path not in CALLED:
                    yield path
                elif path in WITHOUT_OPTIONS and node.keywords:
                    yield _shown(node)
            case ast.Attribute():
                yield from self._refused_attribute(node)
            case _:
                pass  # its parts are checked

    def _refused_attribute(self, node: ast.Attribute) -> Iterator[str]:
        path, is_set = self._path(node), isinstance(node.ctx, ast.Store)
        if path is None and node.attr not in (SET if is_set else _METHODS):
            yield f".{node.attr}"
        elif path is not None and (is_set or path not in VALUES):
            yield path

    def _below(self, node: ast.AST) -> Iterable[ast.AST]:
        """The parts of a node; none of a path below a module."""
        if isinstance(node, ast.Call) and self._path(node.func):
            return [*node.args, *node.keywords]
        return [] if self._path(node) else ast.iter_child_nodes(node)

    def _path(self, node: ast.AST) -> str | None:
        """The path of an attribute below a module, None for attributes of values."""
        if not isinstance(node, ast.Attribute):
            return None
        above = node.value
        head = self.modules.get(above.id) if isinstance(above, ast.Name) else self._path(above)
        return None if head is None else f"{head}.{node.attr}"


def _is_pythons(name: str) -> bool:
    """True if Python itself may use the name, wherever it gets another meaning."""
    return name in RESERVED or (name.startswith("__") and name not in DEFINED)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
