"""Evidence as data and back: the one place that converts between them.

Only recipes are stored and sent; the rule makes its statements again where they are needed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tb_tidy_plugin.rulekit.rule import Benchmark, Rule
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.words.recipe import Recipe
from tb_tidy_plugin.words.units import Sizes


def pair_of(recipe: Recipe, kind: type[Rule]) -> Benchmark | None:
    """The statements that the rule `kind` makes from a recipe; None without evidence.

    Raises:
        ValidationError: the facts are not those of its evidence.
    """
    return None if kind.evidence() is None else kind(recipe.settings).benchmark(evidence_of(recipe, kind))


def evidence_of(recipe: Recipe, kind: type[Rule]) -> Any:  # noqa: ANN401 - each rule has its own
    """The facts of a recipe as the evidence of the rule `kind`; None without evidence.

    Raises:
        ValidationError: the facts are not those of its evidence.
    """
    evidence = kind.evidence()
    return None if evidence is None else convert(recipe.facts, evidence, hook=_typed)


def recipe_of(rule: Rule, evidence: object) -> Recipe | None:
    """The recipe for the statements of this evidence.

    None for a rule without statements, and if a number or text exceeds the limits of a recipe.

    Raises:
        TypeError: a field is neither a number, a text nor a tuple of them.
    """
    if type(rule).benchmark is Rule.benchmark or type(rule).evidence() is None:
        return None
    return facts_of(rule, evidence)


def facts_of(rule: Rule, evidence: object) -> Recipe | None:
    """The recipe of any rule: without evidence, there are no facts.

    Raises:
        TypeError: a field is neither a number, a text nor a tuple of them.
    """
    facts = {} if type(rule).evidence() is None else msgspec.to_builtins(evidence, enc_hook=_plain)
    try:
        return convert({"rule": rule.name(), "settings": dict(rule.settings), "facts": facts}, Recipe)
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
    return kind(convert(value, plain))
