"""What a rule makes statements from, in a form that can be kept and sent: numbers and text, and no statement.

A cache, and whatever else lies on a disk, may hold what somebody else wrote. So only these are ever kept, and the rule
makes its statements again where they are needed. This is the one place that turns evidence into data and back.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from tb_tidy_plugin.rulekit.rule import Benchmark, Rule
from tb_tidy_plugin.units import Sizes

MOST = 100

Integer: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1 << 16)]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=100)]
Numbers: TypeAlias = Annotated[tuple[Integer, ...], msgspec.Meta(max_length=MOST)]
Pair: TypeAlias = Annotated[tuple[Integer | float | Text | Numbers, ...], msgspec.Meta(max_length=MOST)]
Several: TypeAlias = Annotated[tuple[Integer | float | Text | Pair, ...], msgspec.Meta(max_length=1 << 12)]
Kept: TypeAlias = Integer | float | bool | Text | Several | None
"""What a field holds: one value, several of them, or several groups of them, such as a number and a shape."""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a rule's `benchmark` reads.

    Attributes:
        rule: its name.
        settings: see `AnyRule.settings`.
        facts: the evidence of the match that costs most, by field.
    """

    rule: Name
    settings: Annotated[dict[Name, Integer | float], msgspec.Meta(max_length=MOST)]
    facts: Annotated[dict[Name, Kept], msgspec.Meta(max_length=MOST)]

    def pair(self, kind: type[Rule]) -> Benchmark | None:
        """The statements that the rule `kind` makes of this; None where it has no evidence.

        Raises:
            ValidationError: the facts are not those of its evidence.
        """
        return None if kind.evidence() is None else kind(self.settings).benchmark(self.evidence(kind))

    def evidence(self, kind: type[Rule]) -> Any:  # noqa: ANN401 - each rule has its own
        """The facts as the evidence of the rule `kind`; None where it has none.

        Raises:
            ValidationError: the facts are not those of its evidence.
        """
        evidence = kind.evidence()
        return None if evidence is None else msgspec.convert(self.facts, evidence, dec_hook=_typed)


def recipe_of(rule: Rule, evidence: object) -> Recipe | None:
    """What the statements for this evidence are made from.

    None for a rule that makes none, and where a number or text is beyond what is kept.

    Raises:
        TypeError: a field is neither a number, a text nor a tuple of them.
    """
    if type(rule).benchmark is Rule.benchmark or type(rule).evidence() is None:
        return None
    return facts_of(rule, evidence)


def facts_of(rule: Rule, evidence: object) -> Recipe | None:
    """The same for any rule: without evidence, there are no facts.

    Raises:
        TypeError: a field is neither a number, a text nor a tuple of them.
    """
    facts = {} if type(rule).evidence() is None else msgspec.to_builtins(evidence, enc_hook=_plain)
    try:
        return msgspec.convert({"rule": rule.name(), "settings": dict(rule.settings), "facts": facts}, Recipe)
    except msgspec.ValidationError:
        return None


def _plain(value: object) -> int | float | tuple[object, ...]:
    """A number or sizes without their unit."""
    if isinstance(value, tuple):
        return tuple(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"evidence holds a `{type(value).__name__}`, which is neither a number, a text nor a tuple")


def _typed(kind: type[Any], value: object) -> Any:  # noqa: ANN401 - whichever type the field has
    """A number or sizes with the unit of their field."""
    plain: Any = tuple[int, ...] if kind is Sizes else float if issubclass(kind, float) else int
    return kind(msgspec.convert(value, plain))
