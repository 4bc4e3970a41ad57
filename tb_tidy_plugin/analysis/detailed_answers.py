"""Questions about steps, lines and places; the modules that compute the answers define their types."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.analysis.answers import Answer, Question, RankAnswer
from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.analysis.lines import LineCost, OperatorPlaces, StepTime, line_costs, operator_places
from tb_tidy_plugin.analysis.runs import summaries_of
from tb_tidy_plugin.analysis.step_costs import StepCosts


class CostsAnswer(RankAnswer, frozen=True):
    """A report with the content of each step, for a comparison."""

    costs: StepCosts


class NotedAnswer(Answer, frozen=True, kw_only=True):
    """Base of answers about lines. `notes` name files beside the trace that are not used, and say why."""

    notes: list[str]


class LineCostsAnswer(NotedAnswer, frozen=True):
    """The cost of each line, out of `wall_ns`.

    Attributes:
        step: the time of the ledger's steps, of which lines have parts.
        has_stacks: True if Python stacks were recorded.
        captured: texts of the user's own files as they ran, by name, where the capture stored them.
    """

    costs: list[LineCost]
    step: StepTime
    wall_ns: int
    has_stacks: bool
    captured: dict[str, str]


class PlacesAnswer(LineCostsAnswer, frozen=True, kw_only=True):
    """The cost of each line, and the line of each operator."""

    places: OperatorPlaces


def _costs(analysis: Analysis) -> CostsAnswer:
    report = analysis.report
    return CostsAnswer(
        problem=analysis.problem,
        report=report,
        summaries=summaries_of(analysis.profile, report),
        costs=analysis.step_costs,
    )


def _lines(analysis: Analysis) -> LineCostsAnswer:
    profile = analysis.profile
    costs = line_costs(profile, analysis.aligner)
    return LineCostsAnswer(
        problem=analysis.problem,
        costs=costs.lines,
        step=costs.step,
        wall_ns=profile.wall_ns,
        has_stacks="stacks" in profile.recorded,
        captured=dict(analysis.sources.captured),
        notes=_notes(analysis),
    )


def _places(analysis: Analysis) -> PlacesAnswer:
    places = operator_places(analysis.profile, analysis.aligner)
    return PlacesAnswer(**msgspec.structs.asdict(_lines(analysis)), places=places)


def _notes(analysis: Analysis) -> list[str]:
    """Notes so far: the search for lines, which comes first, adds sources that cannot be read."""
    return [*analysis.profile.metadata.notes, *analysis.sources.complaints]


COSTS = Question("costs", CostsAnswer, _costs)
LINES = Question("lines", LineCostsAnswer, _lines, by_measurements=False)
PLACES = Question("places", PlacesAnswer, _places, by_measurements=False)
