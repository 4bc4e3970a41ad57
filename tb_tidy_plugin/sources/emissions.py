"""Operators that Python's operators run on tensors, by their recorded names without `aten::`.

`tests/sources/test_emissions.py` runs each of them in torch and compares this table with the recording.
"""

from __future__ import annotations

import msgspec

NOTHING: frozenset[str] = frozenset()


class Emission(msgspec.Struct, frozen=True):
    """Operators, and methods written in Python, that an operator of the language runs, and more if it is in place."""

    operators: frozenset[str]
    names: frozenset[str]
    in_place: frozenset[str] = NOTHING
    in_place_names: frozenset[str] = NOTHING


def _binary(dunder: str, *operators: str) -> Emission:
    in_place = {f"{name}_" for name in operators} | {f"__i{dunder}__"}
    names = {f"__{dunder}__", f"__r{dunder}__", IN_PYTHON}
    return Emission(frozenset(operators), frozenset(names), frozenset(in_place), frozenset({f"__i{dunder}__"}))


def _comparison(dunder: str, *operators: str) -> Emission:
    return Emission(
        frozenset(operators), frozenset({*(f"__{name}__" for name in operators), f"__{dunder}__", IN_PYTHON})
    )


IN_PYTHON = "wrapped"
"""Name in recordings of operators written in Python in `torch/_tensor.py`: `1 - x`, `x ** 2`, `x // 2`."""

CONTAINED = Emission(frozenset({"eq", "any", "item", "is_nonzero"}), frozenset({"__contains__"}))
IDENTITY = Emission(NOTHING, NOTHING)

OPERATORS = {
    "Add": _binary("add", "add"),
    "Sub": _binary("sub", "sub", "rsub"),
    "Mult": _binary("mul", "mul"),
    "Div": _binary("truediv", "div", "reciprocal", "mul"),
    "FloorDiv": _binary("floordiv", "floor_divide"),
    "Mod": _binary("mod", "remainder"),
    "Pow": _binary("pow", "pow"),
    "MatMult": _binary("matmul", "matmul"),
    "LShift": _binary("lshift", "__lshift__", "bitwise_left_shift"),
    "RShift": _binary("rshift", "__rshift__", "bitwise_right_shift"),
    "BitAnd": _binary("and", "__and__", "bitwise_and"),
    "BitOr": _binary("or", "__or__", "bitwise_or"),
    "BitXor": _binary("xor", "__xor__", "bitwise_xor"),
    "Eq": _comparison("eq", "eq"),
    "NotEq": _comparison("ne", "ne"),
    "Lt": _comparison("lt", "lt", "gt"),
    "LtE": _comparison("le", "le", "ge"),
    "Gt": _comparison("gt", "gt", "lt"),
    "GtE": _comparison("ge", "ge", "le"),
    "In": CONTAINED,
    "NotIn": CONTAINED,
    "Is": IDENTITY,
    "IsNot": IDENTITY,
    "USub": Emission(frozenset({"neg"}), frozenset({"__neg__"})),
    "UAdd": Emission(frozenset({"positive"}), frozenset({"__pos__"})),
    "Invert": Emission(frozenset({"bitwise_not"}), frozenset({"__invert__"})),
}
"""Emissions by the name of the operator's class in `ast`."""

TRUTH = frozenset({"is_nonzero"})

UNPACKED = frozenset({"unbind"})

PROPERTIES = {
    "T": frozenset({"numpy_T"}),
    "mT": frozenset({"mT"}),
    "H": frozenset({"matrix_H"}),
    "mH": frozenset({"mH"}),
    "real": frozenset({"real"}),
    "imag": frozenset({"imag"}),
    "data=": frozenset({"_has_compatible_shallow_copy_type"}),
    "grad=": frozenset({"_has_compatible_shallow_copy_type"}),
}
"""Attributes that run an operator when read, or with `=` when set."""

FROM_PYTHON = frozenset({"empty", "to", "lift_fresh", "detach_", "fill_"})
"""Operators that convert a list, a number or a truth value to a tensor."""

SUBSCRIPTS = {
    "none": frozenset({"unsqueeze"}),
    "integer": frozenset({"select"}),
    "slice": frozenset({"slice"}),
    "list": frozenset({"index"}) | FROM_PYTHON,
    "other": frozenset({"select", "slice", "index"}),
    "end": frozenset({"index", "alias", "lift_fresh"}),
}
"""Operators by the kind of an element of the index, and what comes once at the end."""

STORES = frozenset({"copy_", "fill_", "index_put_", "lift_fresh"})

RARELY = frozenset({"select", "slice", "unsqueeze", "item", "alias"}) | FROM_PYTHON
"""Operators of a subscript whose variables hold something unusual."""

NUMBERS = frozenset({"item", "is_nonzero"})

BUILT_IN_TYPES = {
    **dict.fromkeys(("int", "float", "complex", "range"), frozenset({"item"})),
    "bool": TRUTH,
    **dict.fromkeys(
        ("list", "tuple", "set", "frozenset", "dict", "zip", "enumerate", "map", "filter", "iter"), UNPACKED
    ),
    "reversed": frozenset({"flip"}),
    **dict.fromkeys(("str", "type", "object", "super", "property", "slice", "bytes", "memoryview"), NOTHING),
}
"""Built-in types, whose calls make no event of their own, with the operators that they run on a tensor."""

LIBRARY_TYPES = frozenset(
    {"chain", "islice", "product", "combinations", "permutations", "cycle", "repeat", "count", "accumulate",
     "takewhile", "dropwhile", "starmap", "zip_longest", "groupby", "pairwise", "compress", "partial", "itemgetter",
     "attrgetter", "methodcaller", "deque", "defaultdict", "OrderedDict", "SimpleNamespace", "Path"}
)  # fmt: skip
"""Types of the standard library that are written in C, whose calls make no event either."""

LIBRARIES_OF_TYPES = frozenset({"itertools", "functools", "operator", "collections", "types"})

DRAWN_THROUGH = {"map": NOTHING, "filter": TRUTH}
"""Built-in types that call a function of the user's for each item, and the operators they run on its result."""
