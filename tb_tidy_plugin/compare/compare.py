"""Baseline against candidate: `compared(Asked, Asked) -> Comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin import __version__
from tb_tidy_plugin.compare.entries import ledger_change
from tb_tidy_plugin.compare.findings import changes, paired, part_together, predicted_ns, together_cost
from tb_tidy_plugin.compare.machine import Machine, machine_of
from tb_tidy_plugin.compare.model import COMPARISON_VERSION, Comparison, FindingChange, SettingChange, Side
from tb_tidy_plugin.compare.operators import kernel_changes, operator_changes, part_changes
from tb_tidy_plugin.compare.recording import Chosen, Recording, StepRange, chosen_steps, durations_by_recording
from tb_tidy_plugin.compare.settings import other_machine, setting_changes
from tb_tidy_plugin.compare.steps import step_ratio, verdict_of
from tb_tidy_plugin.profile.steps import median_ns_of
from tb_tidy_plugin.report.model import Finding, Problem
from tb_tidy_plugin.rules import all_run_rules

FEW_STEPS = 5


class Asked(msgspec.Struct, frozen=True):
    """One side of a comparison.

    Attributes:
        path: its name.
        recordings: its traces.
        steps: the steps that count; None for all steps after the warm-up.
        unread: number of traces that could not be read, or not with all files beside them.
        of_runs: findings about several ranks together; they are known for all steps only.
        problem: the first problem in reading, and what to do about it; None without any.
    """

    path: str
    recordings: Sequence[Recording]
    steps: StepRange | None = None
    unread: int = 0
    of_runs: Sequence[Finding] = ()
    problem: Problem | None = None


def compared(base: Asked, candidate: Asked) -> Comparison:
    """Differences from `base` to `candidate`.

    Steps of all ranks count together; a finding that several ranks share counts once, at its mean cost.

    Raises:
        StepsError: one side has none of the requested steps.
    """
    one, other = (chosen_steps(side.recordings, side.steps, side.path) for side in (base, candidate))
    recorded_before, recorded_after = durations_by_recording(one), durations_by_recording(other)
    before, after = ([time for each in side for time in each] for side in (recorded_before, recorded_after))
    settings = setting_changes(one, other)
    is_one = _paths(one) == _paths(other)
    machine = None if is_one or other_machine(settings) else machine_of(one, other)
    ratio = step_ratio(recorded_before, recorded_after, machine, within_recording=is_one)
    checked = _rules_that_see(other)
    pairs = [
        replace(pair, is_seen=pair.base is None or pair.base.rule in checked)
        for pair in paired(_findings(base, one), _findings(candidate, other))
    ]
    base_ns, candidate_ns = median_ns_of(before), median_ns_of(after)
    realised_ns = None if base_ns is None or candidate_ns is None else base_ns - candidate_ns
    return Comparison(
        schema=COMPARISON_VERSION,
        version=__version__,
        base=_side(base, one, before),
        candidate=_side(candidate, other, after),
        verdict=verdict_of(ratio),
        step_ratio=ratio,
        notes=[*_notes(settings, machine), *_few(before, after), *_unread(base, candidate)],
        predicted_ns=predicted_ns(pairs, part_together(each.recording.report for each in one)),
        realised_ns=realised_ns,
        findings=[_located(change, one if change.state == "gone" else other) for change in changes(pairs, realised_ns)],
        breakdown=part_changes(one, other),
        operators=operator_changes(one, other),
        kernels=kernel_changes(one, other),
        settings=settings,
        ledger=ledger_change(one, other),
    )


def _rules_that_see(side: Sequence[Chosen]) -> set[str]:
    """The rules that could be checked in any recording; those about several ranks if there are several."""
    outcomes = (outcome for each in side for outcome in each.recording.report.outcomes)
    seeing = {outcome.rule for outcome in outcomes if outcome.status in {"found", "clean"}}
    ranks = {each.recording.report.rank for each in side} - {None}
    return seeing | ({rule.name() for rule in all_run_rules()} if len(ranks) > 1 else set())


def _paths(side: Sequence[Chosen]) -> list[str]:
    return [each.recording.report.path for each in side]


def _side(asked: Asked, of: Sequence[Chosen], steps: Sequence[int]) -> Side:
    return Side(
        path=asked.path,
        runs=list(dict.fromkeys(each.recording.run for each in of)),
        profiles=len(of),
        steps=len(steps),
        median_ns=median_ns_of(steps),
        host_median_ns=median_ns_of([time for each in of for time in each.host_ns]),
        chosen=str(asked.steps or ""),
        warming_up=sum(each.warming_up for each in of),
    )


def _findings(asked: Asked, side: Sequence[Chosen]) -> list[Finding]:
    """Each finding once, by its identity: as where it costs most, with the mean over the recordings that have it."""
    of_runs = asked.of_runs if asked.steps is None else ()
    found: dict[str, list[Finding]] = {}
    for finding in (*of_runs, *(finding for each in side for finding in each.findings)):
        found.setdefault(finding.id, []).append(finding)
    return [together_cost(alike) for alike in found.values()]


def _located(change: FindingChange, side: Sequence[Chosen]) -> FindingChange:
    """The finding with the recording where it costs most, so that it can be opened there."""
    found = [
        (finding.cost_ns, each.recording.report)
        for each in side
        for finding in each.findings
        if finding.id == change.id
    ]
    if not found:
        return change
    _, report = max(found, key=lambda each: each[0])
    return msgspec.structs.replace(change, worker=report.worker, span=report.span)


def _notes(settings: Sequence[SettingChange], machine: Machine | None) -> Iterator[str]:
    """Notes to read before any number."""
    for change in settings:
        yield f"Different {change.name}: {change.base or 'none'} against {change.candidate or 'none'}."
    if machine is not None and machine.is_different:
        yield (
            f"Work that is the same on both sides takes {machine.ratio:.2g} times as long on the candidate: its "
            f"machine was {'slower or busier' if machine.ratio > 1 else 'faster or less busy'}. "
            "The interval accounts for that."
        )


def _few(before: Sequence[int], after: Sequence[int]) -> Iterator[str]:
    fewest = min(len(before), len(after))
    if 0 < fewest < FEW_STEPS:
        yield f"Only {fewest} step{'s' if fewest > 1 else ''} on one side: record more for a narrower interval."


def _unread(*sides: Asked) -> Iterator[str]:
    for side, name in zip(sides, ("baseline", "candidate"), strict=True):
        if side.unread:
            yield f"{side.unread} trace(s) of the {name} could not be read, or not completely."
