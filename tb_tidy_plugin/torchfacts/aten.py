"""Effects of PyTorch's own operators on their input tensors.

`aten_table.py` holds the facts, one operator a line; `python -m tb_tidy_plugin.dev generate` takes them from PyTorch's
schema. A trace names operators without their overloads, so a fact about a name covers all overloads: the name may write
to, or share memory with, whatever one of them may, and is pointwise only if none of them reduces. An operator that the
table does not know, of an extension or of a newer PyTorch, may write to every tensor it is given and return a view of
it.

Lists of operators elsewhere in the package are made by `names` and `by_name`, which state what the chosen operators
have in common; a test holds each list against the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, TypeAlias, TypeVar

from tb_tidy_plugin.torchfacts.aten_table import OPERATOR_TABLE

Trait: TypeAlias = Literal[
    "known", "shares", "view", "in_place", "pointwise", "factory", "random", "reduction", "product", "read", "list"
]
"""Common properties of operators:

- known: it is in the table, nothing more.
- shares: a result may share memory with an input.
- view: each result always shares memory with an input.
- in_place: it writes to its first input. Nearly all others may write to tensors given for their results.
- pointwise: each element of the result comes from the elements at that place.
- factory: given no tensor, or for the shape of one, it makes a new one. Its elements may be random, or not set at all.
- random: it draws random numbers.
- reduction: it takes sums, maxima and the like along dimensions.
- product: it multiplies matrices: products, convolutions, recurrent networks, attention.
- read: it may return only when the host knows values of its input: an element, whether two tensors are equal, how many
  elements the result has.
- list: it returns several tensors as one list.
"""

PREFIX = "aten::"
OVERLOAD = re.compile(r"^(aten::\w+)\.\w+$")

_Value = TypeVar("_Value")
Positions: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True)
class Operator:
    """Facts about an operator.

    Attributes:
        kinds: see `Trait`; only "shares" if it is not in the table.
        written: positions of the inputs that it may write to, None for all of them.
        shared: positions of the inputs that a result may share memory with, None for all of them.
    """

    kinds: frozenset[str]
    written: Positions | None
    shared: Positions | None

    def may_write(self, position: int) -> bool:
        """True if it may write to the input at `position`."""
        return self.written is None or position in self.written

    def may_share(self, position: int) -> bool:
        """True if a result may share memory with the input at `position`."""
        return self.shared is None or position in self.shared


UNKNOWN = Operator(frozenset({"shares"}), None, None)
"""Facts about an operator that is not in the table: the worst case."""


@lru_cache(maxsize=1 << 14)
def operator(name: str) -> Operator:
    """Facts about the operator `name`, with or without its overload; `UNKNOWN` if it is not in the table."""
    facts = _table().get(without_overload(name))
    return UNKNOWN if facts is None else operator_of(facts)


@cache
def operator_of(facts: str) -> Operator:
    """The facts in a line of the table: `pointwise writes=0,3`. Few lines are distinct, so few are parsed."""
    words = dict(word.partition("=")[::2] for word in facts.split())
    written, shared = (_positions(words.get(word, "")) for word in ("writes", "shares"))
    return Operator(frozenset({"known", *words} - {"writes"}), written, shared)


def is_a(kind: Trait, name: str) -> bool:
    """True if the operator `name`, with or without its overload, is of this kind."""
    return kind in operator(name).kinds


def all_of(kind: Trait) -> frozenset[str]:
    """The names of all operators of a kind in the table."""
    return frozenset(name for name, facts in _table().items() if kind in operator_of(facts).kinds)


def names(kind: Trait, plain: str) -> frozenset[str]:
    """A choice of operators of one kind: `names("view", "select slice")` for `aten::select` and `aten::slice`.

    A test checks that they are of this kind, so that importing this need not read the table.
    """
    del kind  # for the reader, and for the test
    return frozenset(PREFIX + each for each in plain.split())


def by_name(kind: Trait, values: Mapping[str, _Value]) -> dict[str, _Value]:
    """The same for operators that each have a value: `by_name("product", {"mm": 0})` for `{"aten::mm": 0}`."""
    del kind
    return {PREFIX + each: value for each, value in values.items()}


@lru_cache(maxsize=1 << 16)
def without_overload(name: str) -> str:
    """`aten::add` for `aten::add.Tensor`; other names stay the same. Cached, since few distinct names repeat often."""
    return OVERLOAD.sub(r"\1", name)


def without_writing(name: str) -> str:
    """`aten::add` for `aten::add_`: the operator that computes the same into a new tensor."""
    return name[:-1] if name.startswith(PREFIX) and name.endswith("_") and not name.endswith("__") else name


def short_name(name: str) -> str:
    """`add` for `aten::add`, as in texts for people; other operators keep their names."""
    return name.removeprefix(PREFIX)


@cache
def _table() -> Mapping[str, str]:
    lines = (line.partition(" ") for line in OPERATOR_TABLE.split("\n") if line)
    return {PREFIX + name: facts for name, _, facts in lines}


def _positions(text: str) -> Positions:
    return frozenset(map(int, text.split(","))) if text else frozenset()
