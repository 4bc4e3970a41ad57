"""The comparison for JSON, text and Markdown. Times are integers in nanoseconds, per step."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.report.value import Model, Severity
from tb_tidy_plugin.words.causes import Cause, Kind
from tb_tidy_plugin.words.vocabulary import KnownBy, Verdict

COMPARISON_VERSION = 1

FindingState: TypeAlias = Literal["gone", "new", "better", "worse", "same", "below_limit", "covered", "not_checked"]
"""`below_limit` and `covered`: both sides have it, and one side's report leaves it out, because it is below a limit of
the rule or because findings of another rule cover it. `not_checked`: only one side has it, and the recordings of the
other do not show whether it is there.
"""


class Ratio(Model, frozen=True):
    """Candidate divided by baseline, with its 95 % interval."""

    value: float
    low: float
    high: float


class Side(Model, frozen=True):
    """One of the two sides: its source and its steps.

    Attributes:
        path: a path, or a run of the logdir.
        runs: their steps count together. ranks: most ranks of one run; recordings that state no rank are one.
        profiles: trace files, one per rank and span of each run.
        steps: number of steps that count. warming_up: how many of them warm up, and have no part in the interval; 0 if
            steps were requested.
        median_ns: the ledger's step. host_median_ns: the mark on the host of the same steps, null without marks; it is
            shorter if the host runs ahead of its device.
        chosen: the requested steps (`3-7`), empty for all.
    """

    path: str
    runs: list[str]
    profiles: int
    steps: int
    median_ns: int | None
    chosen: str
    host_median_ns: int | None = None
    warming_up: int = 0
    ranks: int = 1


class FindingChange(Model, frozen=True):
    """One finding of either side.

    Attributes:
        id: the candidate's finding, or the baseline's if it is gone; the same for both unless code has moved.
        message: the check's, with the figures of all steps. action: the advice in a few words, verb first.
        places: current places, or former ones.
        base_ns, candidate_ns: cost per step, reported or not; null on the side that does not have it.
        predicted_ns: saving that the baseline expected of its fix, null for new findings.
        realised_ns: its part of the real reduction of the step, for findings that are gone, better, or below the limit
            at a clearly lower cost: in proportion to the predictions if there are several, since only their sum can
            be measured.
        only: the side whose report has it; null if both have it.
        reason: why a finding that only one report has is neither gone nor new; empty for others.
        run, worker, span: the recording of that side where it costs most, the run as in the side's `runs`; empty for
            findings about several ranks.
    """

    id: str
    rule: str
    state: FindingState
    message: str
    severity: Severity
    function: str
    base_ns: int | None
    candidate_ns: int | None
    predicted_ns: int | None
    realised_ns: int | None
    places: list[Place]
    run: str = ""
    worker: str = ""
    span: str = ""
    action: str = ""
    reason: str = ""
    only: Literal["base", "candidate"] | None = None


class OwnerChange(Model, frozen=True):
    """One owner's part of an entry: an operator, else a function, an annotation or a kernel.

    A time is null if the ledger of that side, which names five owners, does not name this one. `known_by` is the least
    certain way in which either side knows it from the capture of a replayed graph, null if both recorded it.
    """

    name: str
    base_ns: int | None
    candidate_ns: int | None
    known_by: KnownBy | None = None


class EntryChange(Model, frozen=True):
    """One entry of the mean step on both sides; 0 if it does not occur.

    Attributes:
        id, title, cause, kind: as in the ledger. Entries are paired by cause and kind.
        label: as in the ledger, but the title for work of a CPU, whose kinds are those of a device, too.
        owners: paired by name, largest difference first; they add up to at most the entry.
    """

    id: str
    title: str
    label: str
    cause: Cause
    kind: Kind | None
    base_ns: int
    candidate_ns: int
    owners: list[OwnerChange]


class LedgerChange(Model, frozen=True):
    """The mean steps by their ledgers. The entries of each side add up to its step, and differences to the difference.

    Attributes:
        entries: largest difference first.
    """

    base_step_ns: int
    candidate_step_ns: int
    entries: list[EntryChange]


class OperatorChange(Model, frozen=True):
    """Self time per step of one operator with one set of shapes, on both sides; 0 if it is not called.

    `device_*` are null without a device. `known_by` as in `OwnerChange`.
    """

    name: str
    shapes: str
    base_calls: float
    candidate_calls: float
    base_ns: int
    candidate_ns: int
    base_device_ns: int | None
    candidate_device_ns: int | None
    known_by: KnownBy | None = None


class KernelChange(Model, frozen=True):
    """Time per step of one kernel, copy or fill, launched by operators with one set of shapes; 0 if none did.

    `known_by` as in `OwnerChange`: how the shapes are known.
    """

    name: str
    shapes: str
    base_calls: float
    candidate_calls: float
    base_ns: int
    candidate_ns: int
    known_by: KnownBy | None = None


class SettingChange(Model, frozen=True):
    """A difference in the job or its recording, in words; a side is empty if its value is unknown.

    Attributes:
        name: name of the setting: `torch version`, `loader batch_size`.
    """

    name: str
    base: str
    candidate: str


class WorkChange(Model, frozen=True):
    """Another amount of work per step.

    Attributes:
        kind: `rows`: more or fewer samples or tokens for the same weights. `passes`: the same products more or less
            often. `inputs`: inputs of another size. `model`: other weights or layers.
        text: the change in words.
        operations: the candidate's operations per step divided by the baseline's; null if unknown.
        unit: the unit of work, if a step has a known number of it on both sides; else empty.
        units: the candidate's number of them divided by the baseline's; null without a unit.
        time_per_unit: ratio of the times per unit of work; null without a unit, or without steps.
    """

    kind: Literal["rows", "passes", "inputs", "model"]
    text: str
    operations: float | None = None
    unit: str = ""
    units: float | None = None
    time_per_unit: Ratio | None = None


ComparisonVerdict: TypeAlias = Literal[Verdict, "different_work"]
"""`different_work`: the sides do not do the same work per step, so that neither is faster or slower."""


class Comparison(Model, frozen=True):
    """`tb-tidy compare --format json`.

    Attributes:
        verdict: comparison of the step times, allowing for noise.
        work: the change of the work per step; null if it is the same, or if the recordings do not show it.
        step_ratio: null if one side has no steps.
        notes: reasons to doubt the numbers, to be read before them: other devices, other kinds of steps.
        predicted_ns: saving that the baseline expected of all findings that are gone or better together: at most
            the sum of their `predicted_ns`, since findings share time.
        realised_ns: reduction of the step, negative if it became longer; null without steps, and for different work.
        findings: largest prediction first.
        operators, kernels: largest difference first; from the command line the first two hundred.
        settings: differences between the two, if both recordings know the setting.
        ledger: entries of the step on both sides; null if the ledger of a side does not have the steps that count.
    """

    schema: int
    version: str
    base: Side
    candidate: Side
    verdict: ComparisonVerdict
    step_ratio: Ratio | None
    notes: list[str]
    predicted_ns: int
    realised_ns: int | None
    findings: list[FindingChange]
    operators: list[OperatorChange]
    kernels: list[KernelChange]
    settings: list[SettingChange]
    ledger: LedgerChange | None = None
    work: WorkChange | None = None


def first_rows(comparison: Comparison, most: int) -> Comparison:
    """The comparison with at most this many operators and kernels, the largest differences."""
    return msgspec.structs.replace(comparison, operators=comparison.operators[:most], kernels=comparison.kernels[:most])
