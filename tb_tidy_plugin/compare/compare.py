"""Baseline against candidate: `compared(Asked, Asked) -> Comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin import __version__
from tb_tidy_plugin.compare.entries import ledger_change
from tb_tidy_plugin.compare.findings import (
    FindingPair,
    changes,
    left_out_alike,
    paired,
    part_together,
    predicted_ns,
    together_cost,
)
from tb_tidy_plugin.compare.machine import MachineRatio, machine_of
from tb_tidy_plugin.compare.model import (
    COMPARISON_VERSION,
    Comparison,
    ComparisonVerdict,
    FindingChange,
    Ratio,
    SettingChange,
    Side,
    WorkChange,
)
from tb_tidy_plugin.compare.operators import kernel_changes, operator_changes
from tb_tidy_plugin.compare.recording import Chosen, Recording, StepRange, chosen_steps, durations_by_recording
from tb_tidy_plugin.compare.settings import other_machine, ranks_by_run, setting_changes
from tb_tidy_plugin.compare.steps import around, is_vague, step_ratio, verdict_of
from tb_tidy_plugin.compare.work import work_change
from tb_tidy_plugin.profile.steps.steps import median_ns_of
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.report.model import Finding, Problem
from tb_tidy_plugin.rules import all_run_rules
from tb_tidy_plugin.words.units import plural

FEW_STEPS = 5
ENOUGH_STEPS = 10  # as the docs ask for
MOST_NAMED = 3  # runs in a note

MOST_CHANCE = 0.05
"""A finding of some steps is gone or new only if its absence from the other side's steps is less likely than this."""


class Asked(msgspec.Struct, frozen=True):
    """One side of a comparison.

    Attributes:
        path: its name.
        recordings: its traces.
        steps: the steps that count; None for all.
        unread: number of traces that could not be read, or not with all files beside them.
        of_runs: what rules over several ranks say about its runs; it is known for all steps only.
        problem: the first problem in reading, and what to do about it; None without any.
        lost: number of traces that could not be read at all.
    """

    path: str
    recordings: Sequence[Recording]
    steps: StepRange | None = None
    unread: int = 0
    of_runs: Sequence[AboutRun] = ()
    problem: Problem | None = None
    lost: int = 0


def compared(base: Asked, candidate: Asked) -> Comparison:
    """Differences from `base` to `candidate`.

    Steps of all runs and ranks of a side count together; a finding that several of them share counts once, at its mean
    cost.

    Raises:
        StepsError: one side has none of the requested steps.
    """
    one, other = (chosen_steps(side.recordings, side.steps, side.path) for side in (base, candidate))
    before, after = ([time for each in side for time in each.durations_ns] for side in (one, other))
    warm = [[each.without_warm_up for each in side] for side in (one, other)]
    settings = setting_changes(one, other)
    is_one = _paths(one) == _paths(other)
    machine = None if is_one or other_machine(settings) else machine_of(*warm)
    ratio = step_ratio(
        durations_by_recording(warm[0]), durations_by_recording(warm[1]), machine, within_recording=is_one
    )
    if ratio is not None:
        ratio = around(ratio, float(np.median(after) / np.median(before)))
    pairs = [
        pair if pair.base and pair.candidate else _explained(pair, (base, one), (candidate, other))
        for pair in paired(_findings(base, one), _findings(candidate, other))
    ]
    base_ns, candidate_ns = median_ns_of(before), median_ns_of(after)
    work = None if is_one else _timed(work_change(one, other, settings), ratio)
    verdict: ComparisonVerdict = "different_work" if work is not None else verdict_of(ratio)
    realised_ns = None if base_ns is None or candidate_ns is None or work is not None else base_ns - candidate_ns
    ledger = ledger_change(one, other)
    return Comparison(
        schema=COMPARISON_VERSION,
        version=__version__,
        base=_side(base, one, before),
        candidate=_side(candidate, other, after),
        verdict=verdict,
        step_ratio=ratio,
        notes=[
            *_pooled(one, other),
            *_notes(settings, machine),
            *few_steps(before, after, ratio),
            *_unread(base, candidate),
            *_unseen_work(verdict, one, other),
            *_hidden_operators(one, other),
            *([] if ledger else [NOT_ACCOUNTED]),
        ],
        work=work,
        predicted_ns=predicted_ns(pairs, part_together(each.recording.report for each in one)),
        realised_ns=realised_ns,
        findings=[_located(change, one if change.only == "base" else other) for change in changes(pairs, realised_ns)],
        operators=operator_changes(one, other),
        kernels=kernel_changes(one, other),
        settings=settings,
        ledger=ledger,
    )


NOT_ACCOUNTED = (
    "The ledger takes its steps from other marks than those that were chosen, so the time of the step is not compared "
    "entry by entry. Choose no steps to compare it."
)

_Known: TypeAlias = tuple[Asked, Sequence[Chosen]]
"""One side, and its steps that count."""


def _explained(pair: FindingPair, base: _Known, candidate: _Known) -> FindingPair:
    """A finding of one side, with what is known about it on the other."""
    finding, here, (asked, there) = (
        (pair.base, base, candidate) if pair.candidate is None else (pair.candidate, candidate, base)
    )
    assert finding is not None
    of_runs = [each for run in asked.of_runs for each in run.left_out]
    left_out = left_out_alike(finding, [*of_runs, *(each for side in there for each in side.left_out)])
    if left_out is not None:
        return replace(pair, left_out=left_out)
    name = "candidate" if pair.candidate is None else "baseline"
    return replace(pair, unseen=_unseen(finding, here[1], asked, there, name))


def _unseen(finding: Finding, here: Sequence[Chosen], asked: Asked, there: Sequence[Chosen], name: str) -> str:
    """Why the recordings of the side called `name` do not show whether they have a finding; empty if they do."""
    is_of_ranks = finding.rule in _run_rules()
    reports = asked.of_runs if is_of_ranks else [side.recording.report for side in there]
    outcomes = [each for report in reports for each in report.outcomes if each.rule == finding.rule]
    if is_of_ranks and asked.steps is not None:
        return "Checks of several ranks are known for all steps only."
    if is_of_ranks and not outcomes:
        return f"The check needs several ranks of one run; the {name} has none."
    if not any(each.status in {"found", "clean"} for each in outcomes):
        reasons = dict.fromkeys(each.reason for each in outcomes if each.reason)
        failed = any(each.status == "failed" for each in outcomes)
        said = f"The check failed on the {name}" if failed else f"Not checked on the {name}"
        return f"{said}: {' '.join(reasons)}" if reasons else f"{said}."
    if any(each.id == finding.id for side in there for each in side.recording.report.findings):
        return f"The {name} has it in other steps than these."
    return _too_rare(finding, here, there, name)


def _too_rare(finding: Finding, here: Sequence[Chosen], there: Sequence[Chosen], name: str) -> str:
    """What says that a finding of some steps may be absent from the other side's steps by chance; else empty."""
    known = [found for side in here if (found := side.occurs_in(finding.id)) is not None]
    steps, others = sum(found[1] for found in known), sum(len(side.steps) for side in there)
    having = sum(found[0] for found in known)
    if not having or (1 - having / steps) ** others <= MOST_CHANCE:
        return ""
    side = "candidate" if name == "baseline" else "baseline"
    return (
        f"{having} of the {side}'s {plural(steps, 'step')} {'have' if having > 1 else 'has'} it; the {name}'s "
        f"{plural(others, 'step')} may lack it by chance. Record more steps."
    )


@cache
def _run_rules() -> frozenset[str]:
    return frozenset(rule.name() for rule in all_run_rules())


def _timed(work: WorkChange | None, ratio: Ratio | None) -> WorkChange | None:
    """The change of work with the ratio of times per unit."""
    if work is None or work.units is None or ratio is None:
        return work
    per_unit = Ratio(value=ratio.value / work.units, low=ratio.low / work.units, high=ratio.high / work.units)
    return replace(work, time_per_unit=per_unit)


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
        ranks=max(ranks_by_run(of).values(), default=1),
    )


def _findings(asked: Asked, side: Sequence[Chosen]) -> list[Finding]:
    """Each finding once, by its identity: as where it costs most, with the mean over the recordings that have it."""
    of_runs = [finding for run in asked.of_runs for finding in run.findings] if asked.steps is None else []
    found: dict[str, list[Finding]] = {}
    for finding in (*of_runs, *(finding for each in side for finding in each.findings)):
        found.setdefault(finding.id, []).append(finding)
    return [together_cost(alike) for alike in found.values()]


def _located(change: FindingChange, side: Sequence[Chosen]) -> FindingChange:
    """The finding with the recording where it costs most, so that it can be opened there."""
    found = [(finding.cost_ns, each.recording) for each in side for finding in each.findings if finding.id == change.id]
    if not found:
        return change
    _, recording = max(found, key=lambda each: each[0])
    report = recording.report
    return msgspec.structs.replace(change, run=recording.run, worker=report.worker, span=report.span)


def _notes(settings: Sequence[SettingChange], machine: MachineRatio | None) -> Iterator[str]:
    """Notes to read before any number."""
    for change in settings:
        yield f"Different {change.name}: {change.base or 'none'} against {change.candidate or 'none'}."
    if machine is not None and machine.is_different:
        yield (
            f"Work that is the same on both sides takes {machine.ratio:.2g} times as long on the candidate: its "
            f"machine was {'slower or busier' if machine.ratio > 1 else 'faster or less busy'}. "
            "The interval accounts for that."
        )


def _pooled(*sides: Sequence[Chosen]) -> Iterator[str]:
    """What to know about a side of several runs: they need not be recordings of one program."""
    runs = [[run or "." for run in dict.fromkeys(each.recording.run for each in side)] for side in sides]
    told = dict(zip(("the baseline", "the candidate"), runs, strict=True))
    for side, found in ({"both sides": runs[0]} if runs[0] == runs[1] else told).items():
        if len(found) > 1:
            shown = [f"`{run}`" for run in found[:MOST_NAMED]]
            more = len(found) - len(shown)
            listed = f"{', '.join(shown)} and {more} more" if more else f"{', '.join(shown[:-1])} and {shown[-1]}"
            yield (
                f"The steps of {len(found)} runs count together on {side}: {listed}. "
                "If these are not recordings of one program, compare one run with one run."
            )


def few_steps(before: Sequence[int], after: Sequence[int], ratio: Ratio | None) -> Iterator[str]:
    """The advice if there are few steps, given the durations on both sides, or steps that differ too much."""
    fewest = min(len(before), len(after))
    if ratio is not None and is_vague(ratio):
        counted = f"{len(before)} and {plural(len(after), 'step')}"
        if fewest < FEW_STEPS:
            yield f"{counted} are too few to compare times. Record {ENOUGH_STEPS} or more on each side."
        elif fewest < ENOUGH_STEPS:
            yield f"{counted} are too few for how much they differ. Record {ENOUGH_STEPS} or more on each side."
        else:
            yield f"The {counted} differ too much among themselves to compare times. Record both sides again, in turns."
    elif 0 < fewest < FEW_STEPS:
        yield f"Only {fewest} step{'s' if fewest > 1 else ''} on one side: record more for a narrower interval."


def _unseen_work(verdict: ComparisonVerdict, *sides: Sequence[Chosen]) -> Iterator[str]:
    """A verdict means little if nobody knows whether both sides do the same work."""
    lacking = [
        name
        for name, side in zip(("baseline", "candidate"), sides, strict=True)
        if not any("shapes" in each.recording.report.recorded for each in side)
    ]
    if lacking and verdict in {"faster", "slower"}:
        yield (
            f"The {' and the '.join(lacking)} {'have' if len(lacking) > 1 else 'has'} no input shapes, so whether the "
            "work per step changed is unknown. Record with `record_shapes=True`."
        )


MOST_REPLAYED = 0.1
"""Part of the device's time in replayed graphs without operators from which operators are not comparable."""


def _hidden_operators(*sides: Sequence[Chosen]) -> Iterator[str]:
    """A sentence if the operators of one side are hidden in replayed graphs, and those of the other are not."""
    hides = [max(map(_replayed_part, side), default=0.0) > MOST_REPLAYED for side in sides]
    if any(hides) and not all(hides):
        name = "baseline" if hides[0] else "candidate"
        yield (
            f"Replayed graphs of the {name} do not show their operators: in the table of operators, their kernels "
            "count for the operator that launches the graph. Compare kernels, or record the capture of the graphs, too."
        )


def _replayed_part(each: Chosen) -> float:
    """The part of the device's time that belongs to replayed graphs whose operators are not known."""
    report = each.recording.report
    if report.serving is None or report.serving.graphs is None:
        return 0.0
    unknown_ns = sum(found.time_ns for found in report.serving.graphs.attribution if found.known_by is None)
    return unknown_ns / max(sum(step.device_ns for step in report.ledger.steps), 1)


def _unread(*sides: Asked) -> Iterator[str]:
    for side, name in zip(sides, ("baseline", "candidate"), strict=True):
        if side.unread:
            yield f"{side.unread} trace(s) of the {name} could not be read, or not completely."
