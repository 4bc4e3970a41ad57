"""Measures what fixing the findings of traces saves: each pair of statements once, however many findings share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin.analysis.checker import Failed, unless_broken
from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringProgress, MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import PairMeasurement
from tb_tidy_plugin.rulekit import AnyRule, Benchmark, Rule
from tb_tidy_plugin.rulekit.recipe import pair_of
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.recipe import Recipe

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.answers import RecipesAnswer
    from tb_tidy_plugin.analysis.paths import Analysed

BUDGET_S = 2.0


class Pair(msgspec.Struct, frozen=True):
    """One pair of statements, its findings (by trace), and the kind of device that they were recorded on.

    `kind` is that of the first trace with this pair.
    """

    rule: str
    statements: Benchmark
    findings: Mapping[AnyPath, tuple[str, ...]]
    kind: str


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a measurement. `asked` is the device; empty for the recording's kind, or any that exists."""

    asked: str = ""
    budget_s: float = BUDGET_S


OnPair: TypeAlias = Callable[[int, Pair, MeasuringProgress], object]
"""Called with the number of the pair, from 0, and the progress of its measurement."""

PairResult: TypeAlias = tuple[Pair, Measurement | NotMeasured]


def pairs_in(
    found: Iterable[Analysed[RecipesAnswer]], rules: Iterable[AnyRule], finding: str | None = None
) -> list[Pair]:
    """The pairs that `rules` make for all findings, or for the one with this id, by trace and cost."""
    kinds = [type(rule) for rule in rules]
    pairs: dict[tuple[str, Benchmark], tuple[str, dict[AnyPath, tuple[str, ...]]]] = {}
    for file, answer in ((each.file, each.answer) for each in found if each.answer is not None):
        for name, pair in made_again(answer.recipes, kinds).items():
            if finding in {None, name}:
                _, findings = pairs.setdefault((answer.recipes[name].rule, pair), (answer.kind, {}))
                findings[file.path] = (*findings.get(file.path, ()), name)
    return [Pair(rule, pair, findings, kind) for (rule, pair), (kind, findings) in pairs.items()]


def made_again(recipes: Mapping[str, Recipe], rules: Iterable[type[AnyRule]]) -> dict[str, Benchmark]:
    """The statements that `rules` make from recipes, by the same ids, for recipes that they know and can use.

    A recipe may come from somebody else's file: its content gets into statements only through its rule.
    """
    by_name = {rule.name(): rule for rule in rules if issubclass(rule, Rule)}
    pairs = {}
    for finding, recipe in recipes.items():
        if (rule := by_name.get(recipe.rule)) is not None:
            pair = unless_broken(rule(), partial(pair_of, recipe, rule))
            if pair is not None and not isinstance(pair, Failed):
                pairs[finding] = pair
    return pairs


def measured(pairs: Iterable[Pair], how: Measuring, progress: OnPair) -> Iterator[PairResult]:
    """Measures one pair after the other."""
    for number, pair in enumerate(pairs):
        run = PairMeasurement(request_for(pair.rule, pair.statements, pair.kind, how))
        yield pair, run.result(partial(progress, number, pair))


def request_for(rule: str, pair: Benchmark, kind: str, how: Measuring) -> MeasuringRequest:
    """The request to the process that measures."""
    return MeasuringRequest(rule=rule, pair=pair, asked=how.asked, preferred=kind, budget_s=how.budget_s)
