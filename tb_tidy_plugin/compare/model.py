"""The comparison: what JSON, text and Markdown read. Times are integers in nanoseconds, per step."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.ledger.model import Cause, Kind
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.report.value import Model, Severity
from tb_tidy_plugin.vocabulary import KnownBy, Verdict

COMPARISON_VERSION = 1

FindingState: TypeAlias = Literal["gone", "new", "better", "worse", "same", "not_checked"]
"""`not_checked`: only the baseline has it, and the candidate's recordings do not show whether it is gone."""


class Ratio(Model, frozen=True):
    """Candidate divided by baseline, with the interval in which it lies 19 times in 20."""

    value: float
    low: float
    high: float


class Side(Model, frozen=True):
    """One of the two: where it is from, and its steps.

    Attributes:
        path: what was asked for: a path, or a run of the logdir.
        profiles: trace files, one per rank and span.
        steps: how many count. warming_up: how many do not since they warm up; none where steps were asked for.
        median_ns: the ledger's step. host_median_ns: the mark on the host of the same steps, null without marks; it is
            shorter where the host runs ahead of its device.
        chosen: the steps that were asked for (`3-7`), empty where all but warm-up count.
    """

    path: str
    runs: list[str]
    profiles: int
    steps: int
    median_ns: int | None
    chosen: str
    host_median_ns: int | None = None
    warming_up: int = 0


class FindingChange(Model, frozen=True):
    """One finding of either side.

    Attributes:
        id: the candidate's finding, or the baseline's where it is gone; the same for both unless code has moved.
        message: the check's, with the figures of all steps. action: what to do in a few words, verb first.
        places: where it is now, or where it was.
        base_ns, candidate_ns: what it costs per step; null on the side that does not have it.
        predicted_ns: what the baseline expected its fix to save, null for new findings.
        realised_ns: its part of what the step really became shorter by, for findings that are gone or better: in
            proportion to the predictions where there are several, since only their sum can be measured.
        worker, span: the recording of that side where it costs most; empty for what several ranks show together.
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
    worker: str = ""
    span: str = ""
    action: str = ""


class PartChange(Model, frozen=True):
    """What one part of a step took on average, on both sides; 0 where it does not occur."""

    lane: str
    part: str
    base_ns: int
    candidate_ns: int


class OwnerChange(Model, frozen=True):
    """What one owner has of an entry: an operator, else a function, an annotation or a kernel.

    A time is null where the ledger of that side, which names five owners, does not name this one. `known_by` is the
    least certain way in which either side knows it from the capture of a replayed graph, null where both recorded it.
    """

    name: str
    base_ns: int | None
    candidate_ns: int | None
    known_by: KnownBy | None = None


class EntryChange(Model, frozen=True):
    """One entry of the mean step on both sides; 0 where it does not occur.

    Attributes:
        id, title, cause, kind: as in the ledger. Entries are paired by cause and kind.
        owners: paired by name, the largest difference first; at most the entry together.
    """

    id: str
    title: str
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
    """Self time per step of one operator with one set of shapes, on both sides; 0 where it is not called.

    `device_*` are null where there is no device. `known_by` as in `OwnerChange`.
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
    """Time per step of one kernel, copy or fill, as operators with one set of shapes launched it; 0 where none did.

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
    """Something of the job or its recording that is not the same on both sides, in words; empty where it is not known.

    Attributes:
        name: what it is: `torch version`, `loader batch_size`.
    """

    name: str
    base: str
    candidate: str


class Comparison(Model, frozen=True):
    """`tb-tidy compare --format json`.

    Attributes:
        verdict: what can be said of the step times, noise allowed for.
        step_ratio: null where one side has no steps.
        notes: what makes the numbers doubtful, to be read before them: other devices, other kinds of steps.
        predicted_ns: what the baseline expected of the fixes of all findings that are gone or better, together: at most
            the sum of their `predicted_ns`, since findings share time.
        realised_ns: what the step became shorter by, negative where it became longer; null without steps.
        findings: largest promise first.
        operators, kernels: largest difference first; from the command line the first two hundred.
        settings: what was changed between the two, where both recordings know it.
        ledger: what the step's time goes to on both sides, in place of `breakdown`; null where a report has no ledger.
    """

    schema: int
    version: str
    base: Side
    candidate: Side
    verdict: Verdict
    step_ratio: Ratio | None
    notes: list[str]
    predicted_ns: int
    realised_ns: int | None
    findings: list[FindingChange]
    breakdown: list[PartChange]
    operators: list[OperatorChange]
    kernels: list[KernelChange]
    settings: list[SettingChange]
    ledger: LedgerChange | None = None


def first_rows(comparison: Comparison, most: int) -> Comparison:
    """The comparison with at most this many operators and kernels, the largest differences."""
    return msgspec.structs.replace(comparison, operators=comparison.operators[:most], kernels=comparison.kernels[:most])
