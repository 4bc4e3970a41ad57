"""The web API: one table of all routes with their queries and handlers.

It defines Flask's rules, the checks of queries, `docs/openapi.json` and the client's types. No path in a query is
opened: runs, findings and files are looked up among the results of the search for traces and of the analyses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from tb_tidy_plugin.plugin import benchmark_routes, models, queries, tables, timeline_models, timeline_routes
from tb_tidy_plugin.plugin.analysis_worker import AnalysisResult, printable
from tb_tidy_plugin.plugin.comparisons import AskedSide, RowFilter
from tb_tidy_plugin.plugin.events import EventColumns, events_page
from tb_tidy_plugin.plugin.export import exported
from tb_tidy_plugin.plugin.queries import Query, given
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.served import ANALYSIS_PATIENCE_S, Served
from tb_tidy_plugin.report.flame import Flame
from tb_tidy_plugin.report.idle import IdleAnswer
from tb_tidy_plugin.report.roofline import Roofline
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.sources.files import Unavailable, read_source
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.errors import NotFoundError

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import AnyRule

CROP_NAME = "torchtidy-crop.pt.trace.json"

_Asked = TypeVar("_Asked", bound=msgspec.Struct)
_Answer = TypeVar("_Answer", bound=Model)


class Route(msgspec.Struct, Generic[_Asked, _Answer], frozen=True):
    """One route.

    Attributes:
        path: the address, relative to the app's mount point.
        asked: a `Query` for the address's parameters, or the model of the posted JSON.
        answer: the model of the answer, of each line of a stream; None if the answer is a trace.
        handler: gives the answer, the answer as JSON, or the states of a stream.
        streamed: True if the answer is a stream: one JSON object per line.
        file_name: the browser saves the answer as a file of this name instead of showing it.
    """

    path: str
    asked: type[_Asked]
    answer: type[_Answer] | None
    handler: Callable[[Served, _Asked], _Answer | bytes | Iterator[_Answer]]
    streamed: bool = False
    file_name: str = ""

    @property
    def is_posted(self) -> bool:
        """True for a POST: every route that acts. All others only read."""
        return not issubclass(self.asked, Query)


# Runs and rules


def _board(served: Served, asked: queries.BoardQuery) -> models.BoardAnswer:
    return served.profiles.board(served.logged(), every=asked.analyse == "all")


def _report(served: Served, asked: queries.ReportQuery) -> models.ReportAnswer:
    return served.profiles.report(asked.run, given(asked.worker), given(asked.span), every_rank=asked.ranks == "all")


def _retry(served: Served, asked: models.RetryRequest) -> models.ProfileState:
    return served.profiles.retry(Key(asked.run, asked.worker, asked.span))


def _cancel(served: Served, asked: models.CancelRequest) -> models.ProfileState:
    return served.profiles.cancel(Key(asked.run, asked.worker, asked.span))


def _rules(served: Served, _: Query) -> models.RulesAnswer:
    from tb_tidy_plugin.configuration.checks import known_rules
    from tb_tidy_plugin.configuration.files import Configuration, read_configuration

    file = served.profiles.configuration
    known = known_rules(Configuration() if file is None else read_configuration(file))
    return models.RulesAnswer(rules=[rule_info(rule) for rule in known])


def rule_info(rule: type[AnyRule]) -> models.RuleInfo:
    """A rule with its page."""
    from tb_tidy_plugin.rulekit.page import page_of as read_page
    from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of

    page = read_page(rule)
    return models.RuleInfo(
        rule=rule.name(),
        code=rule.code,
        category=rule.category(),
        title=page.title,
        needs=sorted(rule.needs),
        sections=[models.RuleSection(heading=heading, text=text) for heading, text in page.sections.items()],
        thresholds=[
            models.ThresholdInfo(name=shown_name(name), default=threshold.default, reason=threshold.reason)
            for name, threshold in thresholds_of(rule).items()
        ],
    )


def _export(served: Served, asked: queries.ExportQuery) -> models.ExportAnswer:
    return exported(served.profiles, asked.key, frozenset(asked.muted.split(",")), ANALYSIS_PATIENCE_S)


def _compare(served: Served, asked: queries.CompareQuery) -> models.CompareAnswer:
    base = AskedSide(asked.base, asked.base_rank, asked.base_span, asked.base_steps)
    candidate = AskedSide(asked.candidate, asked.candidate_rank, asked.candidate_span, asked.candidate_steps)
    return served.comparisons.answer(
        base, candidate, RowFilter(asked.q, asked.offset, asked.limit), ANALYSIS_PATIENCE_S
    )


# Details of a finding: source files, costs of their lines, callers, events


def _source(served: Served, asked: queries.FileQuery) -> models.SourceAnswer:
    kept = served.profiles.kept(asked.key, ANALYSIS_PATIENCE_S)
    result = kept.result
    found = read_source(asked.file, result.source_files, kept.file, served.source_roots, result.captured_sources)
    if isinstance(found, Unavailable):
        return models.SourceAnswer(
            file=asked.file, available=False, reason=found.reason, changed=False, lines=[], path=None
        )
    return models.SourceAnswer(
        file=asked.file,
        available=True,
        reason=None,
        changed=found.changed,
        lines=list(found.lines),
        path=_text_of(found.path),
    )


def _text_of(path: Path | None) -> str | None:
    """A path as text; None if it is not text: with a replaced character, it would name another file."""
    text = None if path is None else str(path)
    return text if text is not None and printable(text) == text else None


def _lines(served: Served, asked: queries.FileQuery) -> models.LinesAnswer:
    result = _result(served, asked)
    if asked.file not in result.source_files:
        raise NotFoundError(f"This profile names no file `{asked.file}`.", "Reload the report.")
    return tables.lines_answer(result.tables, asked.file)


def _files(served: Served, asked: queries.ProfileQuery) -> models.FilesAnswer:
    result = _result(served, asked)
    return tables.files_answer(result.tables, frozenset(result.source_files))


def _stack(served: Served, asked: queries.StackQuery) -> models.StackAnswer:
    stacks = _result(served, asked).stacks.get(asked.finding, [])
    if asked.place >= len(stacks):
        raise NotFoundError(
            f"This profile has no finding `{asked.finding}` with {asked.place + 1} places.", "Reload the report."
        )
    return stacks[asked.place]


def _events(served: Served, asked: queries.EventsQuery) -> models.EventsAnswer:
    columns = _result(served, asked).events.get(asked.finding)
    if columns is None:
        raise NotFoundError(f"This profile has no finding `{asked.finding}`.", "Reload the report.")
    found = decode(columns, EventColumns)
    return events_page(found, asked.offset, asked.limit, asked.order, descending=asked.descends)


# Tables beside the report


def _operators(served: Served, asked: queries.OperatorsQuery) -> models.OperatorsAnswer:
    page = tables.Page(asked.offset, asked.limit, asked.order, asked.descends, asked.filter, asked.kind)
    return tables.operators_answer(_result(served, asked).tables, asked.group, page)


def _kernels(served: Served, asked: queries.KernelsQuery) -> models.KernelsAnswer:
    page = tables.Page(
        asked.offset, asked.limit, asked.order, asked.descends, asked.filter, asked.family.word if asked.family else ""
    )
    return tables.kernels_answer(_result(served, asked).tables, page)


def _result(served: Served, asked: queries.ProfileQuery) -> AnalysisResult:
    return served.profiles.kept(asked.key, ANALYSIS_PATIENCE_S).result


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        "/api/runs",
        queries.RunsQuery,
        models.RunsAnswer,
        lambda served, asked: served.profiles.runs(calm=asked.look == "calm"),
    ),
    Route("/api/board", queries.BoardQuery, models.BoardAnswer, _board),
    Route("/api/report", queries.ReportQuery, models.ReportAnswer, _report),
    Route("/api/ranks", queries.RunQuery, models.RanksAnswer, lambda served, asked: served.profiles.ranks(asked.run)),
    Route(
        "/api/progress",
        queries.ProfileQuery,
        models.ProfileState,
        lambda served, asked: served.profiles.progress(asked.key),
        streamed=True,
    ),
    Route("/api/cancel", models.CancelRequest, models.ProfileState, _cancel),
    Route("/api/retry", models.RetryRequest, models.ProfileState, _retry),
    Route("/api/rules", Query, models.RulesAnswer, _rules),
    Route("/api/export", queries.ExportQuery, models.ExportAnswer, _export),
    Route("/api/source", queries.FileQuery, models.SourceAnswer, _source),
    Route("/api/lines", queries.FileQuery, models.LinesAnswer, _lines),
    Route("/api/files", queries.ProfileQuery, models.FilesAnswer, _files),
    Route("/api/stack", queries.StackQuery, models.StackAnswer, _stack),
    Route("/api/events", queries.EventsQuery, models.EventsAnswer, _events),
    Route("/api/operators", queries.OperatorsQuery, models.OperatorsAnswer, _operators),
    Route("/api/kernels", queries.KernelsQuery, models.KernelsAnswer, _kernels),
    Route(
        "/api/modules",
        queries.ProfileQuery,
        models.ModulesAnswer,
        lambda served, asked: tables.modules_answer(_result(served, asked).tables),
    ),
    Route(
        "/api/memory",
        queries.ProfileQuery,
        models.MemoryAnswer,
        lambda served, asked: tables.memory_answer(_result(served, asked).tables),
    ),
    Route(
        "/api/cpu",
        queries.ProfileQuery,
        models.CpuAnswer,
        lambda served, asked: tables.cpu_answer(_result(served, asked).tables),
    ),
    Route("/api/flame", queries.ProfileQuery, Flame, lambda served, asked: bytes(_result(served, asked).tables.flame)),
    Route(
        "/api/roofline",
        queries.ProfileQuery,
        Roofline,
        lambda served, asked: bytes(_result(served, asked).tables.roofline),
    ),
    Route(
        "/api/idle",
        queries.IdleQuery,
        IdleAnswer,
        lambda served, asked: tables.idle_answer(_result(served, asked).tables, asked.at_ns),
    ),
    Route("/api/timeline/lanes", queries.ProfileQuery, timeline_models.TimelineLanes, timeline_routes.lanes),
    Route("/api/timeline", queries.SliceQuery, timeline_models.TimelineSlice, timeline_routes.timeline),
    Route("/api/timeline/event", queries.EventQuery, timeline_models.TimelineEvent, timeline_routes.event),
    Route("/api/timeline/found", queries.FindQuery, timeline_models.TimelineFound, timeline_routes.found),
    Route("/api/timeline/marks", queries.MarksQuery, timeline_models.TimelineMarks, timeline_routes.marks),
    Route("/api/timeline/trace", queries.CropQuery, None, timeline_routes.cropped, file_name=CROP_NAME),
    Route("/api/compare", queries.CompareQuery, models.CompareAnswer, _compare),
    Route("/api/mutes", Query, models.MutesAnswer, lambda served, _: served.mutes.answer()),
    Route("/api/mutes", models.MuteChange, models.MutesAnswer, lambda served, asked: served.mutes.change(asked)),
    Route("/api/benchmarks", queries.ProfileQuery, models.BenchmarksAnswer, benchmark_routes.known),
    Route("/api/benchmarks", models.BenchmarkRequest, models.BenchmarkState, benchmark_routes.measure),
    Route(
        "/api/benchmarks/cancel",
        models.BenchmarkCancel,
        models.BenchmarkState,
        lambda served, asked: served.benchmarks.cancel(asked.job),
    ),
    Route(
        "/api/benchmarks/progress",
        queries.JobQuery,
        models.BenchmarkState,
        lambda served, asked: served.benchmarks.progress(asked.job),
        streamed=True,
    ),
)
