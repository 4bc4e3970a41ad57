"""What a rule makes statements from, in a form that can be kept and sent: numbers and text, and no statement.

A cache, and whatever else lies on a disk, may hold what somebody else wrote. So only these are ever kept, and the rule
makes its statements again where they are needed. This is the one place that turns facts into data and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from tb_tidy_plugin.rulekit.rule import Benchmark, Match, Rule
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.units import Bytes, Fact, Nanoseconds, Share

FactKind: TypeAlias = Literal["bytes", "ns", "share", "integer", "text"]

FACT_TYPES: Mapping[FactKind, tuple[type[Fact], type[int | float | str]]] = {
    "bytes": (Bytes, int),
    "ns": (Nanoseconds, int),
    "share": (Share, float),
    "integer": (int, int),
    "text": (str, str),
}
"""All types of facts, subtypes first, and what each is kept as."""

Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1 << 16)]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=100)]
MOST_FACTS = 100


class KeptFact(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A fact as a kind and a value of that kind."""

    kind: FactKind
    value: Integer | float | Text

    def __post_init__(self) -> None:
        """Called for each that is decoded, too.

        Raises:
            ValueError: the value is of another kind.
        """
        if type(self.value) is not FACT_TYPES[self.kind][1]:
            raise ValueError(f"`{self.kind}` of another type")

    @property
    def fact(self) -> Fact:
        """The typed value."""
        make, _ = FACT_TYPES[self.kind]
        return make(self.value)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a rule's `benchmark` reads.

    Attributes:
        rule: its name.
        settings: see `AnyRule.settings`.
        facts: those of the match that costs most.
    """

    rule: Name
    settings: Annotated[dict[Name, Integer | float], msgspec.Meta(max_length=MOST_FACTS)]
    facts: Annotated[dict[Name, KeptFact], msgspec.Meta(max_length=MOST_FACTS)]

    def pair(self, kind: type[Rule]) -> Benchmark | None:
        """The statements that the rule `kind` makes of this; whatever it raises where the facts are not its own."""
        facts = {name: kept.fact for name, kept in self.facts.items()}
        return kind(self.settings).benchmark(Match(anchor=ABSENT, events=(), facts=facts))


def recipe_of(rule: Rule, facts: Mapping[str, Fact]) -> Recipe | None:
    """What the statements for these facts are made from.

    None for a rule that makes none, and where a number or text is beyond what is kept.

    Raises:
        TypeError: a fact is none of `FACT_TYPES`.
    """
    if type(rule).benchmark is Rule.benchmark:
        return None
    recipe = Recipe(rule.name(), dict(rule.settings), {name: _kept(name, fact) for name, fact in facts.items()})
    try:
        return msgspec.convert(msgspec.to_builtins(recipe), Recipe)
    except msgspec.ValidationError:
        return None


def _kept(name: str, fact: Fact) -> KeptFact:
    for kind, (typed, plain) in FACT_TYPES.items():
        if isinstance(fact, typed):
            return KeptFact(kind, plain(fact))
    raise TypeError(f"the fact `{name}` is a `{type(fact).__name__}`, and none of {', '.join(FACT_TYPES)}")
