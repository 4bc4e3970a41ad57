"""From a trace to its report: reads, checks and describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.checker import Clean, Failed, Found, NotChecked, RuleOutcome, check_rule, unless_broken
from tb_tidy_plugin.analysis.described import devices_of_report, steps_of_report
from tb_tidy_plugin.analysis.findings import (
    Known,
    TracedFinding,
    by_saving,
    described,
    groups_of,
    left_out_of,
    measured_in,
    saving_in_report,
    within_step,
    without_yielded,
    worth_reporting,
    yielding_last,
)
from tb_tidy_plugin.analysis.ignores import NOTHING_IGNORED, PathIgnores
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.left_out import ReportedFindings, left_out_of_profile
from tb_tidy_plugin.analysis.outliers import has_outliers, outliers_of
from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.analysis.reading import trace_in
from tb_tidy_plugin.analysis.remembered import CACHED_GRAPH
from tb_tidy_plugin.analysis.serving import serving_of
from tb_tidy_plugin.analysis.step_costs import StepCosts, costs_of_matches, step_costs_of, with_costs_of_findings
from tb_tidy_plugin.benchmarks.store import Measurements
from tb_tidy_plugin.estimate.saving import SavingEstimates, intervals_of
from tb_tidy_plugin.ledger.account import account_of, linked, with_lines
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of
from tb_tidy_plugin.profile.devices import with_named_device
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.profile.host.critical import critical_time
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report import model
from tb_tidy_plugin.report.step_model import Steps
from tb_tidy_plugin.rulekit import Match, Rows, Rule, Unblock
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.cached_lines import with_cached_lines
from tb_tidy_plugin.sources.inductor_cache import folder_of_cache, graph_state
from tb_tidy_plugin.sources.lookup import FoundSources, sources_of
from tb_tidy_plugin.system.allocator import GROWTH_BYTES, give_back
from tb_tidy_plugin.system.threads import meanwhile, run_ahead
from tb_tidy_plugin.trace.beside import ReadTrace
from tb_tidy_plugin.trace.cache import UNREAD, State
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.graph_files import LOOKED_AT, captures_state
from tb_tidy_plugin.trace.graphs import replays_graphs
from tb_tidy_plugin.trace.names import rank_in_names
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.trace.this_machine import with_this_machine

RECORDED_ORDER: tuple[model.Recorded, ...] = ("stacks", "shapes", "memory", "device", "steps")


class Analysis(msgspec.Struct, frozen=True, dict=True):
    """One trace that was read. Each further value is computed once, on first use.

    Attributes:
        profile: the trace.
        aligner: finds the line of each event.
        sources: the sources that the trace names.
    """

    file: TraceFile
    job: Job
    profile: Profile
    aligner: Aligner
    sources: FoundSources

    @cached_property
    def report(self) -> model.ProfileReport:
        """The report, the same for all readers."""
        outcomes, ranked = self._checked
        found = _profile_report(self.file, self.profile, self._steps, outcomes, ranked, self._estimates)
        found = msgspec.structs.replace(found, ledger=_ledger(self.profile, ranked, self.aligner))
        give_back()
        if has_outliers(found.steps):
            found = msgspec.structs.replace(found, outliers=outliers_of(found.steps, found.ledger, self._contents))
        return _noted(found, *(each.said for each in self._measurements.unused), *self.sources.complaints)

    @property
    def traced(self) -> Mapping[str, TracedFinding]:
        """Each finding with its events, by the finding's id, in the order of `by_saving`."""
        return {traced.finding.id: traced for traced in self._ranked}

    @cached_property
    def step_costs(self) -> StepCosts:
        costs = with_costs_of_findings(self._contents, self.profile, self._ranked)
        costs_of = partial(costs_of_matches, self.profile)
        reported = ReportedFindings(self.profile, self._ranked, self._known, self.job.ignores, costs_of)
        left_out = left_out_of_profile(reported, self.job.of_profiles, self._checked[0])
        self.profile.forget_calls()
        return msgspec.structs.replace(costs, left_out=left_out)

    @property
    def _known(self) -> Known:
        return Known(self.aligner.place_of, self._measurements.of, self._estimates, self.sources)

    @cached_property
    def _contents(self) -> StepCosts:
        return step_costs_of(self.profile)

    @cached_property
    def _steps(self) -> Steps:
        return steps_of_report(self.profile)

    @cached_property
    def problem(self) -> model.Problem | None:
        """The part of the file that could not be read; None if all of it was read."""
        return _partly(self.file, self.profile)

    @property
    def looked_at(self) -> Mapping[str, State]:
        """States of the files that were looked up so far, by their names in the trace.

        Includes files that could not be read this time.
        """
        unread = [*self.profile.metadata.unread, *(each.file.name for each in self._measurements.unused if each.unread)]
        captures = {LOOKED_AT: captures_state(self.file.path)} if replays_graphs(self.profile.table) else {}
        keys = {call.key for call in compiled_graphs_of(self.profile).calls if call.key}
        graphs = {CACHED_GRAPH + key: graph_state(folder_of_cache(), key) for key in sorted(keys)}
        return {**self.sources.looked_at, **captures, **graphs, **dict.fromkeys(unread, UNREAD)}

    @cached_property
    def _measurements(self) -> Measurements:
        return Measurements(self.file.path, self.profile.platform)

    @cached_property
    def _estimates(self) -> SavingEstimates:
        return SavingEstimates(self.profile, self.profile.pace.true_ns)

    @cached_property
    def _checked(self) -> tuple[dict[str, RuleOutcome], list[TracedFinding]]:
        progress = partial(self.job.report, self.file, "analysing")
        of_all = (partial(account_of, self.profile), give_back, self._estimates.prepare, give_back)
        with meanwhile(*of_all) as is_beside:
            own = (lambda: self.profile.operators,) if is_beside else ()
            outcomes = looked(self.profile, self.job.of_profiles, progress, lambda: run_ahead(*own))
        self.profile.forget_calls()
        give_back()
        wanted = [lambda: self._contents] if has_outliers(self._steps) else []
        with meanwhile(*wanted):
            return with_findings(self.profile, self.job.of_profiles, outcomes, self.job.ignores, self._known)

    @property
    def _ranked(self) -> list[TracedFinding]:
        return self._checked[1]


def read_file(file: TraceFile, job: Job) -> Analysis:
    """Reads one trace file and returns its analysis.

    Raises:
        TraceError: nothing in the file can be used.
    """
    return analysis_of(file, job, trace_in(file, job))


def analysis_of(file: TraceFile, job: Job, read: ReadTrace) -> Analysis:
    """The analysis of a file that was `read`; takes its table, and stores its columns in the cache."""
    with meanwhile(read.keep):
        table = with_this_machine(with_replayed(read.taken()), file.worker)
        profile = Profile(with_named_device(table, job.device), job.devices)
        give_back()
        sources = sources_of(file, job.source_roots, profile.metadata.captured.sources)
        profile = with_cached_lines(profile, sources, folder_of_cache())
    read.keep()
    return Analysis(file, job, profile, Aligner(profile, sources), sources)


def checked(
    profile: Profile,
    rules: Sequence[Rule],
    progress: Callable[[float], object] = lambda _: None,
    ignores: PathIgnores = NOTHING_IGNORED,
    known: Known | None = None,
) -> tuple[dict[str, RuleOutcome], list[TracedFinding]]:
    """The outcome of each rule, by name, and the findings worth reporting, in the order of `by_saving`."""
    return with_findings(profile, rules, looked(profile, rules, progress), ignores, known)


def looked(
    profile: Profile,
    rules: Sequence[Rule],
    progress: Callable[[float], object] = lambda _: None,
    before_ledger: Callable[[], object] = lambda: None,
) -> dict[str, RuleOutcome]:
    """The matches of each rule, by name, in the order of `rules`; rules that read the ledger run last.

    `before_ledger` is called before the first of these: the ledger may still be computed in another thread.
    """
    outcomes: dict[str, RuleOutcome] = {}
    first, last = ([rule for rule in rules if bool(rule.reads_ledger) is reads] for reads in (False, True))
    for at, rule in enumerate((*first, *last)):
        if at == len(first):
            before_ledger()
        progress(at / len(rules))
        outcomes[rule.name()] = check_rule(profile, rule)
        give_back(GROWTH_BYTES)
    return {rule.name(): outcomes[rule.name()] for rule in rules}


def with_findings(
    profile: Profile,
    rules: Sequence[Rule],
    outcomes: Mapping[str, RuleOutcome],
    ignores: PathIgnores = NOTHING_IGNORED,
    known: Known | None = None,
) -> tuple[dict[str, RuleOutcome], list[TracedFinding]]:
    """The findings worth reporting among all matches, and the `outcomes` that follow from them."""
    outcomes = {**outcomes}
    known = known or Known(estimates=SavingEstimates(profile))
    ranked: list[TracedFinding] = []
    reported: dict[str, Rows] = {}
    for rule in yielding_last(rules):
        if isinstance(outcome := outcomes[rule.name()], Found):
            outcomes[rule.name()], kept = _reported(profile, rule, outcome.matches, reported, ignores, known)
            if kept:
                reported[rule.name()] = np.concatenate([each.claimed for each in kept])
            ranked += kept
    return outcomes, sorted(ranked, key=by_saving)


def _reported(
    profile: Profile,
    rule: Rule,
    matches: Sequence[Match],
    reported: Mapping[str, Rows],
    ignores: PathIgnores,
    known: Known,
) -> tuple[RuleOutcome, list[TracedFinding]]:
    """A rule's outcome and findings, without matches that the events of `reported` findings already cover."""
    left, yielded = without_yielded(profile, rule, matches, reported)

    def findings() -> tuple[list[TracedFinding], str | None]:
        groups = groups_of(profile, left, known.locate)
        wanted = [group for group in groups if not ignores.cover(rule.name(), group.files)]
        kept, small, further = worth_reporting(rule, wanted)
        left_out = left_out_of(rule, yielded, small, len(groups) - len(wanted), further)
        return described(profile, rule, kept, known), left_out

    found = unless_broken(rule, findings)
    if isinstance(found, Failed):
        return found, []
    kept, left_out = found
    return Found(tuple(left), left_out) if kept else Clean(left_out), kept


def _partly(file: TraceFile, profile: Profile) -> model.Problem | None:
    if profile.table.partial is None:
        return None
    return model.Problem(
        path=str(file.path),
        error=f"{profile.table.partial}; the part before is shown.",
        advice="Record again for a complete trace; the job may have ended while it was written.",
        recovered_events=len(profile.table),
    )


def _profile_report(
    file: TraceFile,
    profile: Profile,
    steps: Steps,
    outcomes: Mapping[str, RuleOutcome],
    ranked: Sequence[TracedFinding],
    estimates: SavingEstimates,
) -> model.ProfileReport:
    table = profile.table
    joint = estimates.joint_saving(*(traced.fix for traced in ranked))
    quality, residual = quality_of(profile, estimates), estimates.residual
    estimates.forget_graphs()
    give_back()
    return model.ProfileReport(
        worker=file.worker,
        span=file.span,
        rank=_rank_of(file, profile),
        path=str(file.path),
        events=len(table) - int(profile.replayed.inserted.sum()),
        duration_ns=profile.wall_ns,
        origin_ns=table.origin_ns,
        recorded=[name for name in RECORDED_ORDER if name in profile.recorded],
        devices=devices_of_report(profile),
        steps=steps,
        quality=quality,
        outcomes=[_outcome(rule, outcome) for rule, outcome in outcomes.items()],
        findings=[traced.finding for traced in ranked],
        residual=residual,
        joint_saving=None
        if joint is None
        else saving_in_report(profile, within_step(profile, joint), *measured_in(ranked)),
        settings=table.metadata.captured.settings,
        true_step_ns=profile.pace.true_ns,
        step_ns=profile.pace.step_ns,
        ledger=account_of(profile).ledger,
        floor=account_of(profile).floor,
        serving=serving_of(profile),
    )


def _noted(report: model.ProfileReport, *complaints: str) -> model.ProfileReport:
    """The report with further notes on its quality, without duplicates."""
    notes = dict.fromkeys((*report.quality.notes, *complaints))
    quality = msgspec.structs.replace(report.quality, notes=list(notes))
    return msgspec.structs.replace(report, quality=quality)


def _ledger(profile: Profile, ranked: Sequence[TracedFinding], aligner: Aligner) -> Ledger:
    """The ledger; each entry names the finding that covers most of it, and the lines that its time belongs to."""
    times = {each.finding.id: (_time_of(profile, each), _saved_ns(each.finding)) for each in ranked}
    account = account_of(profile)
    return with_lines(account, linked(account, times), aligner.place_of)


def _time_of(profile: Profile, traced: TracedFinding) -> Intervals:
    """A finding's time: the spans that its matches lose, else the critical time of its events and edits."""
    if traced.fix.lost is not None:
        return intervals_of(traced.fix.lost)
    edited = [edit.events for edit in traced.fix.edits if not isinstance(edit, Unblock)]
    return critical_time(profile, distinct(np.concatenate([traced.rows, *edited]).astype(np.int64)))


def _saved_ns(finding: model.Finding) -> int:
    return finding.saving.expected_ns if finding.saving else 0


def _outcome(rule: str, outcome: RuleOutcome) -> model.Outcome:
    match outcome:
        case Found(_, left_out):
            return model.Outcome(rule=rule, status="found", reason=left_out)
        case Clean(reason):
            return model.Outcome(rule=rule, status="clean", reason=reason)
        case NotChecked(reason):
            return model.Outcome(rule=rule, status="not_checked", reason=reason)
        case Failed(error):
            return model.Outcome(rule=rule, status="failed", reason=error)


def _rank_of(file: TraceFile, profile: Profile) -> int | None:
    """The rank by the trace's own metadata, else by the file's name, else by its folder's name, else None."""
    if profile.metadata.rank is not None:
        return profile.metadata.rank
    return rank_in_names(file.path)
