"""What operators of the language run on tensors, as recordings name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emission:
    """Operators without `aten::`, and methods, that an operator of the language runs, and more when it is in place."""

    operators: frozenset[str]
    names: frozenset[str]
    in_place: frozenset[str] = frozenset()
    in_place_names: frozenset[str] = frozenset()


def _binary(dunder: str, *operators: str) -> Emission:
    names = {f"__{dunder}__", f"__r{dunder}__", "wrapped"}
    return Emission(
        frozenset(operators),
        frozenset(names),
        frozenset(f"{name}_" for name in operators) | {f"__i{dunder}__"},
        frozenset({f"__i{dunder}__"}),
    )


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
    "Eq": Emission(frozenset({"eq"}), frozenset({"__eq__", "wrapped"})),
    "NotEq": Emission(frozenset({"ne"}), frozenset({"__ne__", "wrapped"})),
    "Lt": Emission(frozenset({"lt", "gt"}), frozenset({"__lt__", "__gt__", "wrapped"})),
    "LtE": Emission(frozenset({"le", "ge"}), frozenset({"__le__", "__ge__", "wrapped"})),
    "Gt": Emission(frozenset({"gt", "lt"}), frozenset({"__gt__", "__lt__", "wrapped"})),
    "GtE": Emission(frozenset({"ge", "le"}), frozenset({"__ge__", "__le__", "wrapped"})),
    "In": Emission(frozenset({"eq", "any", "is_nonzero"}), frozenset({"__contains__"})),
    "NotIn": Emission(frozenset({"eq", "any", "is_nonzero"}), frozenset({"__contains__"})),
    "Is": Emission(frozenset(), frozenset()),
    "IsNot": Emission(frozenset(), frozenset()),
    "USub": Emission(frozenset({"neg"}), frozenset({"__neg__"})),
    "UAdd": Emission(frozenset({"positive"}), frozenset({"__pos__"})),
    "Invert": Emission(frozenset({"bitwise_not", "logical_not"}), frozenset({"__invert__"})),
}
TRUTH = frozenset({"is_nonzero"})
PROPERTIES = {
    "T": frozenset({"numpy_T", "t"}),
    "mT": frozenset({"mT", "transpose"}),
    "H": frozenset({"matrix_H"}),
    "mH": frozenset({"mH"}),
    "real": frozenset({"real"}),
    "imag": frozenset({"imag"}),
    "data": frozenset({"detach", "alias"}),
    "data=": frozenset({"_has_compatible_shallow_copy_type"}),
    "grad=": frozenset({"_has_compatible_shallow_copy_type"}),
}
SUBSCRIPTS = {
    "none": frozenset({"unsqueeze"}),
    "integer": frozenset({"select"}),
    "slice": frozenset({"slice"}),
    "other": frozenset(
        {"select", "index", "slice", "nonzero", "nonzero_numpy", "lift_fresh", "unsqueeze", "masked_select"}
    ),
    "end": frozenset({"index", "alias", "lift_fresh"}),
}
STORES = frozenset(
    {
        "copy_",
        "fill_",
        "index_put_",
        "lift_fresh",
        "detach_",
        "to",
        "_to_copy",
        "unsqueeze",
        "view",
        "masked_fill_",
        "expand",
        "item",
        "index",
        "slice",
        "select",
    }
)
BUILT_IN_TYPES = {
    "int": frozenset({"item"}),
    "float": frozenset({"item"}),
    "bool": frozenset({"is_nonzero", "item"}),
    "complex": frozenset({"item"}),
    **{
        name: frozenset({"unbind"})
        for name in (
            "list",
            "tuple",
            "set",
            "frozenset",
            "dict",
            "zip",
            "enumerate",
            "map",
            "filter",
            "reversed",
            "iter",
        )
    },
    **{
        name: frozenset()
        for name in ("range", "str", "type", "object", "super", "property", "slice", "bytes", "memoryview")
    },
}
