"""From a path to the report on all that is there; each failure named beside the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.assemble import (
    NOTHING_IGNORED,
    PathProgress,
    ReportProgress,
    analyze_file,
    for_file,
    problem_of,
    problems_of,
)
from tb_tidy_plugin.analysis.engines import HERE, Engine, GivenUp, each, is_one_enough
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.remembered import Remembered
from tb_tidy_plugin.analysis.runs import run_report, summaries_of
from tb_tidy_plugin.errors import TraceError
from tb_tidy_plugin.profile.run import RankSummary
from tb_tidy_plugin.report import model
from tb_tidy_plugin.rulekit import AnyRule, Rule, RunRule
from tb_tidy_plugin.rulekit.carried import CarriedRules
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.limits import USUAL, Limits, held_to, likely_text
from tb_tidy_plugin.trace.remote import absolute, place_of, size_of

OWN_RULES = f"{catalogue.__module__}."
FEWER = "Give it more memory with `--jobs 1`, or record fewer steps."
WORKER_BYTES = 160 << 20  # of a worker that has read nothing yet
WORKER_RATIO = 8  # bytes of memory per byte of JSON, at the most; docs/scale.md has the measurement


def analyze_path(  # noqa: PLR0913, PLR0917 - as `analyze_file`
    path: str | os.PathLike[str],
    rules: Sequence[AnyRule] | None = None,
    progress: PathProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
    engine: Engine = HERE,
    limits: Limits = USUAL,
    *,
    follow_links: bool = False,
) -> model.Report:
    """The report on a trace file, a run folder or a logdir.

    Args:
        path: where to look.
        rules: which rules to check, over profiles and over runs; all by default.
        progress: called with the file, the stage and its fraction; of several workers' files once for each.
        ignores: findings that are not wanted.
        source_roots: folders in which sources may be read, besides each trace's own; they tell lines inside functions.
        engine: where the traces are analysed, and answers are kept; the report is the same.
        limits: how much a trace may hold.
        follow_links: whether links in `path` may lead out of it.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are in `Report.problems`.
        EngineError: the engine cannot be used.
    """
    chosen = [rule() for rule in catalogue()] if rules is None else rules
    of_profiles = [rule for rule in chosen if isinstance(rule, Rule)]
    of_runs = [rule for rule in chosen if isinstance(rule, RunRule)]
    runs: list[model.RunReport] = []
    problems: list[model.Problem] = []
    files = find_traces(place_of(path), follow_links=follow_links)
    asked = Asked(CarriedRules(of_profiles), ignores, tuple(source_roots), engine.cache, limits)
    ranks = ranks_of(files, asked, engine, progress)
    for run, found in groupby(zip(files, ranks, strict=True), key=lambda each: each[0].run):
        of_run = [rank for _, rank in found]
        profiles = [rank.report for rank in of_run if rank.report]
        summaries = [summary for rank in of_run for summary in rank.summaries]
        problems += [problem for rank in of_run for problem in rank.problems]
        if profiles:
            runs.append(run_report(run, profiles, summaries, of_runs, ignores))
    return model.Report(schema=model.SCHEMA_VERSION, version=__version__, runs=runs, problems=problems)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be known of each trace of a run; goes to the workers."""

    rules: CarriedRules
    ignores: PathIgnores
    source_roots: tuple[Path, ...]
    cache: Cache = NOWHERE
    limits: Limits = USUAL

    @property
    def remembered(self) -> Remembered[Rank]:
        """The answers to this that are known already."""
        rules = [(each.name(), type(each).__module__, each.settings) for each in self.rules.rules]
        is_ours = all(module.startswith(OWN_RULES) for _, module, _ in rules)
        ignored = sorted((glob, sorted(names)) for glob, names in self.ignores.rules.items())
        return Remembered(self.cache, "report", Rank, (rules, ignored) if is_ours else None, self.source_roots)


@dataclass(frozen=True, slots=True)
class Rank:
    """What comes back from the worker that analysed a trace: some 100 kB, whatever the size of the trace."""

    report: model.ProfileReport | None = None
    summaries: Sequence[RankSummary] = ()
    problems: Sequence[model.Problem] = ()


def ranks_of(
    files: Sequence[TraceFile], asked: Asked, engine: Engine = HERE, progress: PathProgress | None = None
) -> list[Rank]:
    """What becomes of each file, in their order.

    Raises:
        EngineError: the engine cannot be used.
    """
    sizes = [likely_text(file.path.name, size_of(file.path)) for file in files]
    needed = WORKER_BYTES + WORKER_RATIO * max(sizes, default=0)
    if is_one_enough(engine, len(files), needed):
        return [_rank(asked, file, for_file(progress, file)) for file in files]
    found: dict[int, Rank] = {}
    from_anywhere = [replace(file, path=absolute(file.path)) for file in files]
    for number, rank in each(engine, partial(_rank_elsewhere, asked, engine), from_anywhere, needed):
        found[number] = _lost(files[number], rank) if isinstance(rank, GivenUp) else _named_as(files[number], rank)
        if progress is not None:
            progress(files[number], f"{len(found)} of {len(files)} analysed:", len(found) / len(files))
    return [found[number] for number in range(len(files))]


def _rank(asked: Asked, file: TraceFile, progress: ReportProgress | None = None) -> Rank:
    remembered = asked.remembered
    key = remembered.key(file)
    if (known := remembered.load(file, key)) is not None:
        return known
    try:
        with held_to(asked.limits):
            how = (asked.ignores, asked.source_roots, asked.cache, asked.limits)
            analysis = analyze_file(file, asked.rules.rules, progress, *how)
            rank = Rank(analysis.report, summaries_of(analysis.profile, analysis.report), problems_of(analysis))
    except TraceError as problem:
        return Rank(problems=[problem_of(file, problem)])
    remembered.keep(file, key, rank, analysis.sources)
    return rank


def _rank_elsewhere(asked: Asked, engine: Engine, file: TraceFile) -> Rank:
    """The same in a worker, which may see other files, and whose lack of memory is its own."""
    if engine.is_elsewhere and isinstance(file.path, Path) and not file.path.exists():
        error = f"The workers of `{engine}` do not see this file."
        advice = "Give a folder that they share with this machine, or an address such as `s3://bucket/run`."
        return Rank(problems=[problem_of(file, TraceError(error, advice))])
    try:
        return _rank(asked, file)
    except MemoryError:
        return Rank(problems=[problem_of(file, TraceError("There is not enough memory for this trace.", FEWER))])


def _named_as(file: TraceFile, rank: Rank) -> Rank:
    """With the path as the user gave it; a worker may be in another folder."""
    name = str(file.path)
    report = rank.report and msgspec.structs.replace(rank.report, path=name)
    return Rank(report, rank.summaries, [msgspec.structs.replace(each, path=name) for each in rank.problems])


def _lost(file: TraceFile, given_up: GivenUp) -> Rank:
    """What is said of a trace whose worker ended."""
    error = f"The worker that analysed this trace ended, most likely for want of memory ({given_up.reason})."
    return Rank(problems=[problem_of(file, TraceError(error, FEWER))])
