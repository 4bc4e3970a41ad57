"""Results of earlier TensorBoards: an analysis whose answer is known needs no worker."""

from __future__ import annotations

from tb_tidy_plugin.analysis.remembered import Remembered
from tb_tidy_plugin.configuration.files import read_configuration
from tb_tidy_plugin.errors import ConfigurationError
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.plugin.analysis import Analysis, Asked, OnNews, Outcome
from tb_tidy_plugin.plugin.worker import Result


def remembered(analysis: Analysis, on_news: OnNews) -> Outcome:
    """The outcome of an analysis: what is kept of an earlier one, else that of a worker, which is kept."""
    known = _known(analysis.asked)
    key = known.key(analysis.file)
    if (result := known.load(analysis.file, key)) is not None:
        return result
    outcome = analysis.outcome(on_news)
    if isinstance(outcome, Result):
        known.keep(analysis.file, key, outcome, outcome.looked_at)
    return outcome


def _known(asked: Asked) -> Remembered[Result]:
    return Remembered(asked.cache, "result", Result, _settings(asked), asked.source_roots)


def _settings(asked: Asked) -> object:
    """What the configuration asks for, and whether changes of code can be made.

    None where the configuration cannot be read, or names rules whose code is unknown here.
    """
    if asked.configuration is None:
        return [has_libcst()]
    try:
        settings = read_configuration(asked.configuration).settings
    except ConfigurationError:
        return None
    return None if settings.rules else [has_libcst(), settings]
