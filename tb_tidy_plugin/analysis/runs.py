"""Rules over the ranks of a run: from one report per rank to the run's own outcomes and findings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.checker import Failed, NotChecked, unless_broken, what_lacks
from tb_tidy_plugin.analysis.findings import ID_DIGITS, left_out_of, order_of, severity_of, speedup_of
from tb_tidy_plugin.analysis.ignores import NOTHING_IGNORED, PathIgnores
from tb_tidy_plugin.analysis.left_out import left_out_as
from tb_tidy_plugin.analysis.rank_parts import typical_entries, typical_step
from tb_tidy_plugin.analysis.ranks import ranks_of
from tb_tidy_plugin.ledger.advice import on_communication
from tb_tidy_plugin.ledger.model import Communication
from tb_tidy_plugin.profile.memory.usage import peak_bytes_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.ranks.collectives import Collectives, collectives_of
from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.summary import (
    MOST_COLLECTIVES,
    CollectiveColumns,
    CollectiveSite,
    Operation,
    RankFinding,
    RankSummary,
    StepSummary,
)
from tb_tidy_plugin.report import model
from tb_tidy_plugin.report.left_out import AboutRun, LeftOutFinding
from tb_tidy_plugin.rulekit import RunMatch, RunRule
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.thresholds import relaxed_settings
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.trace.columns import ABSENT, Numbers, Rows
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.causes import Cause
from tb_tidy_plugin.words.units import Nanoseconds

STATUSES: tuple[model.Status, ...] = ("not_checked", "clean", "failed", "found")
"""Of several recordings of one run, the last of these statuses counts."""

LONG_AGO_NS = 10**17
"""Times before 1973 are not of a clock that several recordings share."""

EXPOSED = "exposed-communication"
_MOST_FINDINGS = 100  # of one rank; a report usually has fewer than 20
RECORDABLE = ("stacks", "shapes", "memory", "device", "steps")


def summaries_of(profile: Profile, report: model.ProfileReport) -> list[RankSummary]:
    """The summary of one trace for rules over a run; empty if the trace does not state its rank."""
    return [] if report.rank is None else [rank_summary(profile, report, report.rank)]


def rank_summary(profile: Profile, report: model.ProfileReport, rank: int) -> RankSummary:
    """One rank's part of a run."""
    found = collectives_of(profile)
    step = profile.step_of(found.rows)
    position = _positions(step, found)
    kept = _kept(step, position)
    rows = found.rows[kept]
    operations, numbers = _operations(profile, found, kept)
    step_ns, typical = typical_step(report)
    lengths = {each.name: each.end_ns - each.start_ns for each in report.ledger.steps}
    return RankSummary(
        rank=rank,
        worker=report.worker,
        span=report.span,
        recorded=list(report.recorded),
        origin_ns=profile.metadata.base_ns + report.origin_ns,
        steps=[
            StepSummary(item.name, item.start_ns, lengths.get(item.name, item.duration_ns), item.oddity == "warmup")
            for item in report.steps.items
        ],
        entries=typical_entries(report),
        operations=operations,
        collectives=CollectiveColumns(
            operation=numbers.tolist(),
            step=step[kept].tolist(),
            position=position[kept].tolist(),
            start_ns=profile.table.start_ns[rows].tolist(),
            end_ns=profile.table.end_ns[rows].tolist(),
            exposed_ns=found.exposed_ns[kept].tolist(),
        ),
        step_ns=step_ns,
        typical=typical,
        memory_peak_bytes=peak_bytes_of(profile),
        world_size=profile.metadata.world_size,
        findings=[_rank_finding(finding) for finding in report.findings[:_MOST_FINDINGS]],
    )


def _rank_finding(finding: model.Finding) -> RankFinding:
    saving_ns = finding.saving.expected_ns if finding.saving else 0
    return RankFinding(finding.id, finding.rule, finding.severity, finding.message, finding.cost_ns, saving_ns)


def _operations(profile: Profile, found: Collectives, kept: Rows) -> tuple[list[Operation], Numbers]:
    """The distinct operations among the kept collectives, and the number of each collective's operation."""
    table = NumberTable[Operation]()
    sites: dict[int, CollectiveSite | None] = {ABSENT: None}
    numbers = []
    for at in kept.tolist():
        issue = int(found.issue[at])
        above = ABSENT if issue == ABSENT else int(profile.tree.parent[issue])
        if above not in sites:
            sites[above] = _site(profile, above)
        operation = Operation(found.kinds[at], found.groups[at], int(found.sizes[at]), sites[above])
        numbers.append(table.number(operation))
    return list(table.values()), np.array(numbers, np.int32)


def _site(profile: Profile, row: int) -> CollectiveSite | None:
    frame = place_of(profile, row)
    return (
        None
        if frame is None
        else CollectiveSite(frame.file, frame.line, frame.function, frame.precision, frame.own_code)
    )


def _positions(step: Rows, found: Collectives) -> Rows:
    """Position of each collective among those of its step with the same kind and group."""
    count: dict[tuple[int, str, str], int] = {}
    positions = []
    for key in zip(step.tolist(), found.kinds, found.groups, strict=True):
        positions.append(count.get(key, 0))
        count[key] = positions[-1] + 1
    return np.array(positions, np.int64)


def _kept(step: Rows, position: Rows) -> Rows:
    """The collectives that fit into a summary: all, else those at every second, fourth, … position of each step."""
    stride = 1
    while len(kept := np.flatnonzero(position % stride == 0)) > MOST_COLLECTIVES and stride < len(step):
        stride *= 2
    return kept[:MOST_COLLECTIVES]


def runs_in(summaries: Sequence[RankSummary]) -> list[Run]:
    """The recordings that belong together: the first ones of all ranks, the second ones, and so on."""
    nth: dict[int, list[RankSummary]] = {}
    count: dict[int, int] = {}
    for summary in sorted(summaries, key=lambda each: (each.rank, each.origin_ns, each.span)):
        count[summary.rank] = count.get(summary.rank, 0) + 1
        nth.setdefault(count[summary.rank], []).append(summary)
    return [Run(ranks) for _, ranks in sorted(nth.items()) if len(ranks) > 1]


def told_apart(
    profiles: Sequence[model.ProfileReport], summaries: Sequence[RankSummary]
) -> tuple[Sequence[model.ProfileReport], Sequence[RankSummary]]:
    """The same, without the ranks that names give to several recordings of one time.

    One process records once at a time: such recordings are of several processes that all named their files alike.
    """
    spans: dict[int, list[tuple[int, int, model.ProfileReport]]] = {}
    by_key = {_key(profile): profile for profile in profiles}
    for each in summaries:
        profile = by_key.get((each.worker, each.span, each.rank))
        if each.world_size is None and profile is not None and each.origin_ns > LONG_AGO_NS:
            spans.setdefault(each.rank, []).append((each.origin_ns, each.origin_ns + profile.duration_ns, profile))
    doubtful: dict[tuple[str, str, int | None], str] = {}
    for rank, found in spans.items():
        at_once = [
            profile
            for start, end, profile in found
            if sum(other < end and start < stop for other, stop, _ in found) > 1
        ]
        note = (
            f"{len(at_once)} recordings of the same time are named as rank {rank}: their ranks are not known. Name "
            "files by rank, or initialise torch.distributed before recording."
        )
        doubtful |= dict.fromkeys(map(_key, at_once), note)
    if not doubtful:
        return profiles, summaries
    return (
        [
            _without_rank(profile, doubtful[_key(profile)]) if _key(profile) in doubtful else profile
            for profile in profiles
        ],
        [each for each in summaries if (each.worker, each.span, each.rank) not in doubtful],
    )


def _key(profile: model.ProfileReport) -> tuple[str, str, int | None]:
    return profile.worker, profile.span, profile.rank


def _without_rank(profile: model.ProfileReport, note: str) -> model.ProfileReport:
    quality = msgspec.structs.replace(profile.quality, notes=[*profile.quality.notes, note])
    return msgspec.structs.replace(profile, rank=None, quality=quality)


def run_report(
    run: str,
    profiles: Sequence[model.ProfileReport],
    summaries: Sequence[RankSummary],
    rules: Sequence[RunRule],
    ignores: PathIgnores = NOTHING_IGNORED,
) -> model.RunReport:
    """The report on a run: its profiles, and the outcomes of rules over its ranks.

    A run with one recorded rank has no outcomes. If several recordings of the ranks show the same finding, the most
    expensive one counts.
    """
    profiles, summaries = told_apart(profiles, summaries)
    runs = runs_in(summaries)
    outcomes: list[model.Outcome] = []
    found: dict[str, model.Finding] = {}
    for rule in rules if runs else ():
        answers = [_checked(each, rule, ignores) for each in runs]
        outcomes.append(max((outcome for outcome, _ in answers), key=lambda outcome: STATUSES.index(outcome.status)))
        for finding in sorted((each for _, findings in answers for each in findings), key=_cost):
            found[finding.id] = finding
    findings = sorted(found.values(), key=_cost, reverse=True)
    ranks = ranks_of(runs) if runs else None
    split = with_transfers(profiles, runs)
    return model.RunReport(run=run, profiles=split, outcomes=outcomes, findings=findings, ranks=ranks)


def about_run(
    report: model.RunReport,
    summaries: Sequence[RankSummary],
    rules: Sequence[RunRule],
    ignores: PathIgnores = NOTHING_IGNORED,
) -> AboutRun:
    """The part of a run's `report` that compares with another run's; each rule also looks with weaker limits."""
    ids = {finding.id for finding in report.findings}
    left_out: dict[str, LeftOutFinding] = {}
    for rule in rules:
        for run in runs_in(summaries):
            _, found = _checked(run, type(rule)(relaxed_settings(rule)), ignores)
            for finding in found:
                if finding.id not in ids and finding.cost_ns > 0:
                    left_out[finding.id] = left_out_as(finding)
    return AboutRun(outcomes=report.outcomes, findings=report.findings, left_out=list(left_out.values()))


def with_transfers(profiles: Sequence[model.ProfileReport], runs: Sequence[Run]) -> list[model.ProfileReport]:
    """The profiles; their ledgers split communication into transfer and waiting if all ranks of the job are present.

    A rank waits in a collective until the last one arrives. The wait is unknown in collectives that several ranks did
    not record together, so the split needs most of the exposed time to be in shared ones.
    """
    waits: dict[tuple[str, str, int], tuple[int, int]] = {}
    for run in runs:
        if all(rank.world_size == len(run.ranks) for rank in run.ranks):
            met = np.where(run.meetings.there, run.meetings.exposed_ns, 0).sum(axis=0).tolist()
            waited = run.meetings.waits_ns().sum(axis=0).tolist()
            for rank, *times in zip(run.ranks, waited, met, strict=True):
                waits[rank.worker, rank.span, rank.rank] = (times[0], times[1])
    return [_split(profile, waits) for profile in profiles]


def _split(profile: model.ProfileReport, waits: Mapping[tuple[str, str, int], tuple[int, int]]) -> model.ProfileReport:
    waited_ns, met_ns = waits.get(
        (profile.worker, profile.span, ABSENT if profile.rank is None else profile.rank), (0, 0)
    )
    if not met_ns:
        return profile
    entries, findings = [], list(profile.findings)
    for entry in profile.ledger.entries:
        if entry.cause is not Cause.COMMUNICATION or met_ns * 2 <= entry.ns_total:
            entries.append(entry)
            continue
        split = _transfer(entry.ns_total, waited_ns)
        entries.append(msgspec.structs.replace(entry, communication=split, advice=on_communication(split)))
        findings = [_without_waiting(finding, split, profile) for finding in findings]
    return msgspec.structs.replace(
        profile,
        ledger=msgspec.structs.replace(profile.ledger, entries=entries),
        findings=sorted(findings, key=order_of),
        joint_saving=_joint(profile, findings),
    )


def _joint(profile: model.ProfileReport, findings: Sequence[model.Finding]) -> model.Saving | None:
    """The saving of all fixes together, minus what `findings` save less than before; at most their sum."""
    joint, saved, before = profile.joint_saving, _expected(findings), _expected(profile.findings)
    if joint is None or sum(saved) == sum(before):
        return joint
    expected_ns = min(max(joint.expected_ns - sum(before) + sum(saved), *saved), sum(saved))
    low_ns, high_ns = min(joint.low_ns, expected_ns), max(joint.high_ns - sum(before) + sum(saved), expected_ns)
    speedup = speedup_of(profile.step_ns, expected_ns)
    return model.Saving(
        expected_ns=expected_ns, low_ns=low_ns, high_ns=high_ns, speedup=speedup, basis=list(joint.basis)
    )


def _expected(findings: Sequence[model.Finding]) -> list[int]:
    return [finding.saving.expected_ns for finding in findings if finding.saving is not None]


def _without_waiting(finding: model.Finding, split: Communication, profile: model.ProfileReport) -> model.Finding:
    """A finding about exposed communication, its saving limited to the transfer: no overlap makes a late rank earlier.

    If it is mostly waiting, a note says so.
    """
    if finding.rule != EXPOSED or finding.saving is None or split.transfer_ns is None:
        return finding
    steps = max(profile.ledger.step_ns.n, 1)
    transfer_ns, wait_ns = split.transfer_ns // steps, split.wait_ns // steps
    if wait_ns <= transfer_ns:
        return finding
    saved = finding.saving
    expected_ns = min(saved.expected_ns, transfer_ns)
    note = model.Note(
        text=f"By the starts of all ranks, {Nanoseconds(wait_ns)} of a step's exposed communication is waiting for "
        f"ranks that come later, and {Nanoseconds(transfer_ns)} is transfer. Overlapping it saves the transfer at most."
    )
    return msgspec.structs.replace(
        finding,
        severity=severity_of(expected_ns / profile.step_ns if profile.step_ns else None),
        saving=msgspec.structs.replace(
            saved,
            expected_ns=expected_ns,
            low_ns=min(saved.low_ns, expected_ns),
            high_ns=min(saved.high_ns, transfer_ns),
            speedup=speedup_of(profile.step_ns, expected_ns),
        ),
        details=[note, *finding.details],
    )


def _transfer(total_ns: int, waited_ns: int) -> Communication:
    wait_ns = min(waited_ns, total_ns)
    return Communication(transfer_ns=total_ns - wait_ns, wait_ns=wait_ns, by="ranks")


def _cost(finding: model.Finding) -> int:
    return finding.cost_ns


def _checked(run: Run, rule: RunRule, ignores: PathIgnores) -> tuple[model.Outcome, list[model.Finding]]:
    answer = unless_broken(rule, lambda: _answer(run, rule))
    if isinstance(answer, Failed):
        return model.Outcome(rule=rule.name(), status="failed", reason=answer.error), []
    if isinstance(answer, NotChecked):
        return model.Outcome(rule=rule.name(), status="not_checked", reason=answer.reason), []
    wanted = [each for each in answer if not ignores.cover(each.rule, [place.file for place in each.places])]
    kept = [finding for finding in wanted if finding.share is None or finding.share >= rule.min_share]
    left_out = left_out_of(rule, {}, small=len(wanted) - len(kept), ignored=len(answer) - len(wanted))
    return model.Outcome(rule=rule.name(), status="found" if kept else "clean", reason=left_out), kept


def _answer(run: Run, rule: RunRule) -> list[model.Finding] | NotChecked:
    recorded = frozenset(RECORDABLE).intersection(*(rank.recorded for rank in run.ranks))
    if reason := what_lacks(rule, recorded) or rule.not_applicable(run):
        return NotChecked(reason)
    return findings_about(run, rule)


def findings_about(run: Run, rule: RunRule) -> list[model.Finding]:
    """The rule's findings, worth reporting or not."""
    return [_finding(run, rule, match) for match in rule.detect(run)]


def _finding(run: Run, rule: RunRule, match: RunMatch) -> model.Finding:
    page = page_of(type(rule))
    place = match.place
    key = (rule.name(), match.subject, place.file if place else "", place.function if place else "")
    step_ns = run.step_ns or None
    return model.Finding(
        id=hashlib.sha256("\0".join(key).encode()).hexdigest()[:ID_DIGITS],
        rule=rule.name(),
        category=rule.category(),
        severity=severity_of(match.saving_ns / step_ns if step_ns else None),
        confidence=match.confidence,
        action=rule.filled_in(rule.action or rule.fix, match.evidence),
        message=rule.filled_in(rule.message, match.evidence),
        fix=rule.filled_in(rule.fix, match.evidence),
        matches=match.matches,
        matches_per_step=match.matches / max(match.steps, 1),
        places=[] if place is None else [_place(place, match)],
        cost_ns=match.cost_ns,
        share=match.cost_ns / step_ns if step_ns else None,
        saving=model.Saving(
            expected_ns=match.saving_ns,
            low_ns=0,
            high_ns=match.cost_ns,
            speedup=speedup_of(step_ns, match.saving_ns),
            basis=["bound"],
        ),
        details=[
            model.Note(text=rule.filled_in(rule.why, match.evidence).rstrip(".") + "."),
            model.CodeChange(before=page.before, after=page.after, caveat=rule.caveat or None),
        ],
        ranks=list(match.ranks),
    )


def _place(site: CollectiveSite, match: RunMatch) -> model.Place:
    return model.Place(
        file=site.file,
        line=site.line,
        end_line=site.line,
        function=site.function,
        precision=site.precision,
        own_code=site.own_code,
        matches=match.matches,
        duration_ns=match.cost_ns,
    )
