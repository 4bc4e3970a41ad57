"""Questions that commands ask of each trace. Answers are small enough to come from a worker, and stored as JSON.

The code that computes an answer is imported only if the cache lacks that answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from tb_tidy_plugin.profile.ranks.summary import RankSummary
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.sources.files import RecordedFile

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.words.recipe import Recipe


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers. `problem` names the part of the file that could not be read, if any."""

    problem: Problem | None


class Reported(Answer, frozen=True, kw_only=True):
    """Base of answers with the report on the trace."""

    report: ProfileReport


class RankAnswer(Reported, frozen=True):
    """Base of answers with a report and the summary for rules over ranks: about 100 kB, whatever the trace's size."""

    summaries: list[RankSummary]


class TablesAnswer(Reported, frozen=True):
    """A report and its tables."""

    figures: Figures


class FixesAnswer(RankAnswer, frozen=True):
    """A report and what its code changes are made from.

    Attributes:
        facts: by the finding's id.
        captured: texts of the files that these findings name, as they ran, where the capture stored them.
        recorded: what the recording says about the other files.
    """

    facts: dict[str, Recipe]
    captured: dict[str, str]
    recorded: dict[str, RecordedFile]

    def known(self, file: str) -> str | RecordedFile:
        """The text of a file as it ran, else what the recording says about it."""
        return self.captured[file] if file in self.captured else self.recorded.get(file, RecordedFile())


class RecipesAnswer(Answer, frozen=True):
    """Recipes for the statements of findings, by the finding's id, most expensive first.

    `kind` is the kind of device of the recording.
    """

    recipes: dict[str, Recipe]
    kind: str


A_co = TypeVar("A_co", bound=Answer, covariant=True)


class Question(msgspec.Struct, Generic[A_co], frozen=True):
    """A question about one trace.

    Attributes:
        kind: prefix of the cache entries' names; lower-case letters.
        answer: the type of the answers.
        of: computes the answer; a module-level function, since it goes to workers by name.
        by_measurements: True if measurements change the answer.
    """

    kind: str
    answer: type[A_co]
    of: Callable[[Analysis], A_co]
    by_measurements: bool = True


def _tables(analysis: Analysis) -> TablesAnswer:
    from tb_tidy_plugin.analysis.tables import figures_of

    figures = figures_of(analysis.profile, tuple(analysis.traced.values()))
    return TablesAnswer(problem=analysis.problem, report=analysis.report, figures=figures)


def _tables_by_line(analysis: Analysis) -> TablesAnswer:
    from tb_tidy_plugin.analysis.tables import figures_of

    figures = figures_of(analysis.profile, tuple(analysis.traced.values()), analysis.aligner)
    return TablesAnswer(problem=analysis.problem, report=analysis.report, figures=figures)


def _fixes(analysis: Analysis) -> FixesAnswer:
    from tb_tidy_plugin.analysis.runs import summaries_of
    from tb_tidy_plugin.sources.as_recorded import recorded_files

    report = analysis.report
    facts = {key: each.facts for key, each in analysis.traced.items() if each.facts is not None}
    files = {place.file for key in facts for place in analysis.traced[key].finding.places}
    captured = {file: text for file, text in analysis.sources.captured.items() if file in files}
    return FixesAnswer(
        problem=analysis.problem,
        report=report,
        summaries=summaries_of(analysis.profile, report),
        facts=facts,
        captured=captured,
        recorded=recorded_files(analysis.profile, analysis.file, files - set(captured)),
    )


def _recipes(analysis: Analysis) -> RecipesAnswer:
    """Recipes by cost, not by saving: measurements change savings, but not costs."""
    found = sorted(analysis.traced.values(), key=lambda each: (-each.finding.cost_ns, each.finding.id))
    recipes = {each.finding.id: each.recipe for each in found if each.recipe is not None}
    return RecipesAnswer(problem=analysis.problem, recipes=recipes, kind=analysis.profile.platform)


FIXES = Question("report", FixesAnswer, _fixes)
TABLES_OF_REPORT = Question("tables", TablesAnswer, _tables)
TABLES_BY_LINE = Question("tablesbyline", TablesAnswer, _tables_by_line)
"""The same with operators by the line inside each function, which takes longer."""
RECIPES = Question("recipes", RecipesAnswer, _recipes, by_measurements=False)
