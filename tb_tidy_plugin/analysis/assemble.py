"""From a trace to its report: read, checked and described."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.breakdown import breakdown_of, lanes_of
from tb_tidy_plugin.analysis.checker import Clean, Failed, Found, NotChecked, Outcome, check_rule, unless_broken
from tb_tidy_plugin.analysis.described import devices_of, steps_of
from tb_tidy_plugin.analysis.findings import (
    Evidence,
    Known,
    by_saving,
    described,
    groups_of,
    left_out_of,
    measured_in,
    saving_in_report,
    worth_reporting,
)
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.outliers import has_outliers, outliers_of
from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.analysis.step_costs import StepCosts, step_costs_of
from tb_tidy_plugin.benchmarks.store import Measurements
from tb_tidy_plugin.errors import TraceError
from tb_tidy_plugin.estimate.saving import Estimates, intervals_of
from tb_tidy_plugin.ledger.account import account_of, linked
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.lanes import covered, step_parts
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report import model
from tb_tidy_plugin.report.ownership import owners_first, without_owned
from tb_tidy_plugin.rulekit import Match, Rows, Rule
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.lookup import sources_of
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.cache import NOWHERE, UNREAD, Cache, State
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.limits import USUAL, Limits, held_to
from tb_tidy_plugin.trace.remote import place_of, size_of

ReportProgress: TypeAlias = Callable[[str, float], object]
"""Called with what is being done (`reading`, `analysing`) and how much of it is done, 0 to 1."""

PathProgress: TypeAlias = Callable[[TraceFile, str, float], object]
"""The same for many files: called with the file, too."""

NOTHING_IGNORED = PathIgnores()

RANK_IN_NAME = re.compile(r"rank[-_]?(\d{1,9})", re.IGNORECASE)
RECORDED_ORDER: tuple[model.Recorded, ...] = ("stacks", "shapes", "memory", "device", "steps")


@dataclass(frozen=True, slots=True)
class Analysis:
    """One trace's report, with what is needed to show its evidence.

    Attributes:
        report: what everybody reads.
        profile: the profile it was made from.
        evidence: rows of each finding's events, by the finding's id.
        problem: what could not be read of the file, None where all of it could.
        aligner: knows the line of each event.
        sources: states of what was looked at on disk, by the name that the trace has for it, and of other files that
            could not be read this time.
        costs: gives `step_costs`.
    """

    report: model.ProfileReport
    profile: Profile
    evidence: Mapping[str, Evidence] = field(repr=False)
    problem: model.Problem | None
    aligner: Aligner = field(repr=False)
    sources: Mapping[str, State] = field(repr=False)
    costs: Callable[[], StepCosts] = field(repr=False)

    @property
    def step_costs(self) -> StepCosts:
        """What each of its steps holds; worked out when first asked for, since most reports do without."""
        return self.costs()


def analyses(  # noqa: PLR0913 - as `analyze_file`
    path: str | os.PathLike[str],
    rules: Sequence[Rule] | None = None,
    progress: PathProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
    limits: Limits = USUAL,
    *,
    follow_links: bool = False,
) -> Iterator[tuple[TraceFile, Analysis | model.Problem]]:
    """Each trace at `path` and what became of it, in the order of runs, workers and spans.

    Links in `path` may lead out of it where `follow_links` says so.

    Raises:
        NotFoundError: nothing is there.
    """
    for file in find_traces(place_of(path), follow_links=follow_links):
        try:
            with held_to(limits):
                analysis = analyze_file(file, rules, for_file(progress, file), ignores, source_roots, limits=limits)
            yield file, analysis
        except TraceError as problem:
            yield file, problem_of(file, problem)


def problems_of(analysis: Analysis | model.Problem) -> list[model.Problem]:
    """What could not be read of a trace: nothing, a part, or all of it."""
    if isinstance(analysis, model.Problem):
        return [analysis]
    return [analysis.problem] if analysis.problem else []


def for_file(progress: PathProgress | None, file: TraceFile) -> ReportProgress | None:
    """The progress of one of many files."""
    return None if progress is None else lambda stage, fraction: progress(file, stage, fraction)


def analyze_file(  # noqa: PLR0913, PLR0917 - each is a choice of its own
    file: TraceFile,
    rules: Sequence[Rule] | None = None,
    progress: ReportProgress | None = None,
    ignores: PathIgnores = NOTHING_IGNORED,
    source_roots: Sequence[Path] = (),
    cache: Cache = NOWHERE,
    limits: Limits = USUAL,
) -> Analysis:
    """The analysis of one trace file.

    Raises:
        TraceError: nothing in the file can be used.
    """
    report = progress or _silent
    size = max(size_of(file.path), 1)
    # In one expression: nobody else holds the table while it is put in order.
    profile = Profile(
        read_with_side_files(file.path, lambda done: report("reading", min(done / size, 1.0)), cache, limits)
    )
    chosen = [rule() for rule in all_rules()] if rules is None else rules
    captured = profile.metadata.captured
    sources = sources_of(file, source_roots, captured.sources)
    aligner = Aligner(profile, sources)
    measurements = Measurements(file.path, profile.platform)
    estimates = Estimates(profile, profile.pace.true_ns)
    known = Known(aligner.place_of, measurements.of, estimates)
    outcomes, ranked = checked(profile, chosen, lambda fraction: report("analysing", fraction), ignores, known)
    costs = once(partial(step_costs_of, profile, ranked))
    found = _profile_report(file, profile, outcomes, ranked, estimates)
    if has_outliers(found.steps):
        found = msgspec.structs.replace(found, outliers=outliers_of(found.steps, found.lanes, costs()))
    unread = [*profile.metadata.unread, *(each.file.name for each in measurements.unused if each.unread)]
    sources.looked_at.update(dict.fromkeys(unread, UNREAD))
    return Analysis(
        report=_noted(found, *(each.said for each in measurements.unused), *sources.complaints),
        profile=profile,
        evidence={evidence.finding.id: evidence for evidence in ranked},
        problem=_partly(file, profile),
        aligner=aligner,
        sources=sources.looked_at,
        costs=costs,
    )


def checked(
    profile: Profile,
    rules: Sequence[Rule],
    progress: Callable[[float], object] = lambda _: None,
    ignores: PathIgnores = NOTHING_IGNORED,
    known: Known | None = None,
) -> tuple[dict[str, Outcome], list[Evidence]]:
    """What each rule says, by name, and the findings worth reporting, in the order of `by_saving`."""
    outcomes: dict[str, Outcome] = {}
    for at, rule in enumerate(rules):
        progress(at / len(rules))
        outcomes[rule.name()] = check_rule(profile, rule)
    known = known or Known(estimates=Estimates(profile))
    ranked: list[Evidence] = []
    spoken: dict[str, Rows] = {}
    for rule in owners_first(rules):
        if isinstance(outcome := outcomes[rule.name()], Found):
            outcomes[rule.name()], kept = _reported(profile, rule, outcome.matches, spoken, ignores, known)
            if kept:
                spoken[rule.name()] = np.concatenate([each.rows for each in kept])
            ranked += kept
    return outcomes, sorted(ranked, key=by_saving)


def _reported(
    profile: Profile,
    rule: Rule,
    matches: Sequence[Match],
    spoken: Mapping[str, Rows],
    ignores: PathIgnores,
    known: Known,
) -> tuple[Outcome, list[Evidence]]:
    """What of a rule's matches is reported, beside the findings that were `spoken` of before."""
    left, owned = without_owned(profile, rule.name(), matches, spoken)

    def findings() -> tuple[list[Evidence], str | None]:
        groups = groups_of(profile, left, known.locate)
        wanted = [group for group in groups if not ignores.cover(rule.name(), group.files)]
        kept, small, further = worth_reporting(rule, wanted)
        left_out = left_out_of(rule, owned, small, len(groups) - len(wanted), further)
        return described(profile, rule, kept, known), left_out

    found = unless_broken(rule, findings)
    if isinstance(found, Failed):
        return found, []
    kept, left_out = found
    return Found(tuple(left), left_out) if kept else Clean(left_out), kept


def _silent(_stage: str, _fraction: float) -> None:
    """Progress that nobody watches."""


def problem_of(file: TraceFile, problem: TraceError) -> model.Problem:
    """A file that could not be read at all."""
    return model.Problem(path=str(file.path), error=problem.error, advice=problem.advice, recovered_events=0)


def _partly(file: TraceFile, profile: Profile) -> model.Problem | None:
    if profile.table.partial is None:
        return None
    return model.Problem(
        path=str(file.path),
        error=f"{profile.table.partial}; what comes before is shown.",
        advice="Record again for the whole picture; the job may have ended while the trace was written.",
        recovered_events=len(profile.table),
    )


def _profile_report(
    file: TraceFile,
    profile: Profile,
    outcomes: Mapping[str, Outcome],
    ranked: Sequence[Evidence],
    estimates: Estimates,
) -> model.ProfileReport:
    table = profile.table
    joint = estimates.joint_saving(*(evidence.fix for evidence in ranked))
    lanes = step_parts(table, profile.steps)
    return model.ProfileReport(
        worker=file.worker,
        span=file.span,
        rank=rank_of(file, profile),
        path=str(file.path),
        events=len(table),
        duration_ns=profile.time_spent.wall_ns,
        origin_ns=table.origin_ns,
        recorded=[name for name in RECORDED_ORDER if name in profile.recorded],
        devices=devices_of(profile),
        steps=steps_of(profile),
        breakdown=breakdown_of(profile, lanes),
        lanes=lanes_of(profile, lanes),
        quality=quality_of(profile, estimates),
        outcomes=[_outcome(rule, outcome) for rule, outcome in outcomes.items()],
        findings=[evidence.finding for evidence in ranked],
        residual=estimates.residual,
        joint_saving=None if joint is None else saving_in_report(profile, joint, *measured_in(ranked)),
        settings=table.metadata.captured.settings,
        true_step_ns=profile.pace.true_ns,
        step_ns=profile.pace.step_ns,
        ledger=_ledger(profile, ranked),
    )


def _noted(report: model.ProfileReport, *complaints: str) -> model.ProfileReport:
    """The report with more notes on its quality, each once."""
    notes = dict.fromkeys((*report.quality.notes, *complaints))
    quality = msgspec.structs.replace(report.quality, notes=list(notes))
    return msgspec.structs.replace(report, quality=quality)


def _ledger(profile: Profile, ranked: Sequence[Evidence]) -> Ledger:
    """The ledger, each entry with the finding that covers most of it."""
    times = {each.finding.id: (_time_of(profile, each), _saved_ns(each.finding)) for each in ranked}
    return linked(account_of(profile), times)


def _time_of(profile: Profile, evidence: Evidence) -> Intervals:
    """When a finding's time passes: what its matches lose, else their device work, else they themselves."""
    if evidence.fix.lost is not None:
        return intervals_of(evidence.fix.lost)
    rows = evidence.rows
    on_host = rows[rows < profile.tree.size]
    work = np.concatenate([rows[rows >= profile.tree.size], profile.device_activity_of_all(on_host)])
    return covered(profile.table, work if len(work) else rows)


def _saved_ns(finding: model.Finding) -> int:
    return finding.saving.expected_ns if finding.saving else 0


def _outcome(rule: str, outcome: Outcome) -> model.Outcome:
    match outcome:
        case Found(_, left_out):
            return model.Outcome(rule=rule, status="found", reason=left_out)
        case Clean(reason):
            return model.Outcome(rule=rule, status="clean", reason=reason)
        case NotChecked(reason):
            return model.Outcome(rule=rule, status="not_checked", reason=reason)
        case Failed(error):
            return model.Outcome(rule=rule, status="failed", reason=error)


def rank_of(file: TraceFile, profile: Profile) -> int | None:
    """The rank by the trace's own metadata, else by the file's name, else None."""
    if profile.metadata.rank is not None:
        return profile.metadata.rank
    match = RANK_IN_NAME.search(file.path.name)
    return int(match[1]) if match else None
