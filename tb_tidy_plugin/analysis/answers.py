"""Questions that commands ask of each trace. Answers are small enough to come from a worker, and kept as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.analysis.lines import LineCost, OperatorPlaces, line_costs, operator_places
from tb_tidy_plugin.analysis.runs import summaries_of
from tb_tidy_plugin.analysis.step_costs import StepCosts
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.profile.run import RankSummary
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.rulekit.recipe import Recipe


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers. `problem` names what could not be read of the file; null where all of it could."""

    problem: Problem | None


class Reported(Answer, frozen=True, kw_only=True):
    """Base of answers with the report on the trace."""

    report: ProfileReport


class RankAnswer(Reported, frozen=True):
    """Base of answers with a report and the summary for rules over ranks: some 100 kB, whatever the trace's size."""

    summaries: list[RankSummary]


class TablesAnswer(Reported, frozen=True):
    """A report with the tables beside it."""

    figures: Figures


class CostsAnswer(RankAnswer, frozen=True):
    """A report with the content of each step, for a comparison."""

    costs: StepCosts


class FixesAnswer(RankAnswer, frozen=True):
    """A report with what fixes are made from.

    Attributes:
        facts: by the finding's id.
        captured: texts of the files that these findings name, as they ran, where the capture kept them.
    """

    facts: dict[str, Recipe]
    captured: dict[str, str]


class RecipesAnswer(Answer, frozen=True):
    """Recipes for the statements of findings, by the finding's id, those that cost most first.

    `kind` is the recording's kind of device.
    """

    recipes: dict[str, Recipe]
    kind: str


class NotedAnswer(Answer, frozen=True, kw_only=True):
    """Base of answers about lines. `notes` name files beside the trace that are not used, and say why."""

    notes: list[str]


class LinesAnswer(NotedAnswer, frozen=True):
    """The cost of each line, out of `wall_ns`.

    Attributes:
        has_stacks: whether Python stacks were recorded.
        captured: texts of the user's own files as they ran, by name, where the capture kept them.
    """

    costs: list[LineCost]
    wall_ns: int
    has_stacks: bool
    captured: dict[str, str]


class PlacesAnswer(NotedAnswer, frozen=True):
    """The line of each operator."""

    places: OperatorPlaces


A_co = TypeVar("A_co", bound=Answer, covariant=True)


@dataclass(frozen=True, slots=True)
class Question(Generic[A_co]):
    """A question about one trace.

    Attributes:
        kind: names entries of the cache; small letters.
        answer: the type of the answers.
        of: answers it; a function of a module, since it goes to workers by its name.
        by_measurements: whether measurements change the answer.
    """

    kind: str
    answer: type[A_co]
    of: Callable[[Analysis], A_co]
    by_measurements: bool = True


def _tables(analysis: Analysis) -> TablesAnswer:
    figures = figures_of(analysis.profile, tuple(analysis.traced.values()))
    return TablesAnswer(problem=analysis.problem, report=analysis.report, figures=figures)


def _costs(analysis: Analysis) -> CostsAnswer:
    report = analysis.report
    return CostsAnswer(
        problem=analysis.problem,
        report=report,
        summaries=summaries_of(analysis.profile, report),
        costs=analysis.step_costs,
    )


def _fixes(analysis: Analysis) -> FixesAnswer:
    report = analysis.report
    facts = {key: each.facts for key, each in analysis.traced.items() if each.facts is not None}
    files = {place.file for key in facts for place in analysis.traced[key].finding.places}
    return FixesAnswer(
        problem=analysis.problem,
        report=report,
        summaries=summaries_of(analysis.profile, report),
        facts=facts,
        captured={file: text for file, text in analysis.sources.captured.items() if file in files},
    )


def _recipes(analysis: Analysis) -> RecipesAnswer:
    """In the order of costs, which measurements do not change, as they change savings."""
    found = sorted(analysis.traced.values(), key=lambda each: (-each.finding.cost_ns, each.finding.id))
    recipes = {each.finding.id: each.recipe for each in found if each.recipe is not None}
    return RecipesAnswer(problem=analysis.problem, recipes=recipes, kind=analysis.profile.platform)


def _lines(analysis: Analysis) -> LinesAnswer:
    profile = analysis.profile
    costs = line_costs(profile, analysis.aligner).lines
    return LinesAnswer(
        problem=analysis.problem,
        costs=costs,
        wall_ns=profile.time_spent.wall_ns,
        has_stacks="stacks" in profile.recorded,
        captured=dict(analysis.sources.captured),
        notes=_notes(analysis),
    )


def _places(analysis: Analysis) -> PlacesAnswer:
    places = operator_places(analysis.profile, analysis.aligner)
    return PlacesAnswer(problem=analysis.problem, places=places, notes=_notes(analysis))


def _notes(analysis: Analysis) -> list[str]:
    """Notes so far: the search for lines, which comes first, adds sources that cannot be read."""
    return [*analysis.profile.metadata.notes, *analysis.sources.complaints]


FIXES = Question("report", FixesAnswer, _fixes)
TABLES = Question("tables", TablesAnswer, _tables)
COSTS = Question("costs", CostsAnswer, _costs)
RECIPES = Question("recipes", RecipesAnswer, _recipes, by_measurements=False)
LINES = Question("lines", LinesAnswer, _lines, by_measurements=False)
PLACES = Question("places", PlacesAnswer, _places, by_measurements=False)
