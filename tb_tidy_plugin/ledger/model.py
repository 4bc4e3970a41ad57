"""The ledger in the report: part of the public contract, like `report/model.py`.

All times are integers in nanoseconds relative to the profile's start. A field may be added in a later version but is
never renamed. Two sums always hold: over the entries, `ns_total` is the window's length; over the entries,
`ns_by_step[i]` is the length of step `i`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from tb_tidy_plugin.words.causes import AtWork, Cause, CauseGroup, Colour, Kind, Proof
from tb_tidy_plugin.words.vocabulary import Confidence, GapReason, KnownBy, MachineSource, StepSource

RecordingKind: TypeAlias = Literal[
    "steady", "start-up", "compilation", "capture", "thinned", "no-device", "unknown-device", "empty"
]
OwnerKnownBy: TypeAlias = Literal["stack", "operator", "kernel-name", "mark", "neighbours", "none"]
OwnerPass: TypeAlias = Literal["forward", "backward", "optimizer", "loading", "other"]
OWNER_PASSES: tuple[OwnerPass, ...] = get_args(OwnerPass)
Bound: TypeAlias = Literal["compute", "memory", "fp32-cores"]

ONE_TIME_RECORDINGS: frozenset[RecordingKind] = frozenset({"start-up", "compilation", "capture"})
"""Recordings of work that a job does only once."""


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every value in the ledger."""


class Window(Value, frozen=True):
    """The time that the ledger accounts for."""

    start_ns: int
    end_ns: int


class LeftOut(Value, frozen=True):
    """Recorded time before or after the window, and why it is not part of it."""

    ns: int
    reason: str


class LedgerStep(Value, frozen=True):
    """One step, from the end of the one before: `host_ns` is its mark's length, `device_ns` its device's busy time."""

    name: str
    start_ns: int
    end_ns: int
    host_ns: int
    device_ns: int


class StepLength(Value, frozen=True):
    """Median and mean over `n` steps."""

    median: int
    mean: int
    n: int


class Function(Value, frozen=True):
    """A Python function as the recording names it.

    `line` is where it is defined; null for a function that was running when recording began, of which only the line
    where it stood then is known.
    """

    function: str
    file: str
    line: int | None


class Owner(Value, frozen=True):
    """The owner of time: every name that the recording gives, null or empty if it gives none.

    Calls of one operator with the same shapes, on one line and in one pass, are one owner. Work of the backward pass
    belongs to the line of its forward operator.

    Attributes:
        place: where it is, in words: the line and its text, or the function. work: what it is, in words.
        pass_: of the training step; null if no event of the host is known.
        file, function: of the user's own code, else of the nearest library.
        line: the line in it that makes the call; null if it is not known.
        exact: true if `line` is recorded or the only one that fits; false with `ties`, lines that fit equally well.
        text: the source text of `line`.
        shapes, dtype: of the operator's tensors (`64×3×224×224, 64`), and of the first.
        calls: their number in the window. share: of the entry, 0 to 1.
        operator: of busy time the innermost operator around the launch, of idle time the outermost around the instant.
        kernel: of busy time the kernel or copy, of idle time the work that the device waits for.
        library: the nearest function outside PyTorch and the standard library. own: the nearest in the user's own code.
        thread: the host thread. mark: the innermost annotation.
        known_by: source of the first name. neighbours: events before and after silence.
        ns: this owner's part of the entry.
        replayed: how the operator is known if a graph launched the work; null for work launched by itself.
    """

    place: str = ""
    work: str = ""
    pass_: OwnerPass | None = msgspec.field(name="pass", default=None)
    file: str | None = None
    line: int | None = None
    exact: bool = False
    ties: tuple[int, ...] = ()
    text: str = ""
    function: str | None = None
    operator: str | None = None
    shapes: str = ""
    dtype: str = ""
    calls: int = 0
    share: float = 0.0
    kernel: str | None = None
    library: Function | None = None
    own: Function | None = None
    thread: str | None = None
    mark: str | None = None
    known_by: OwnerKnownBy = "none"
    ns: int = 0
    neighbours: str | None = None
    replayed: KnownBy | None = None

    @property
    def name(self) -> str:
        """Place and work in one line; empty if nothing is known."""
        return " · ".join(filter(None, (self.place, self.work)))


def is_own_function(owners: Sequence[Owner]) -> bool:
    """True if the first owner is a function in the user's own files, not one of an installed package."""
    return bool(owners) and owners[0].own is not None and owners[0].library in (None, owners[0].own)


class Limit(Value, frozen=True):
    """Distance of the entry's work from the limit of its device.

    Attributes:
        share_reached: least possible time by time taken, 0 to 1; null if only the kind of units is known.
        bound: what limits it. known_share: part of the entry's time for which this is known.
        by: `shapes` for a roofline, `name` if it follows from kernels' names.
    """

    share_reached: float | None
    bound: Bound
    known_share: float
    by: Literal["shapes", "name"]


class Rate(Value, frozen=True):
    """Rate of an entry's operators on the host, by the shapes of their inputs.

    Attributes:
        flops_per_second: estimated operations by the operators' time. bytes_per_second: memory that they must at least
            read and write, by the same. Both over the operators for which it is known; null without any.
        known_share: part of the entry's time in operators for which at least one of the two is known.
        threads: threads that PyTorch may use inside an operator; null if that was not recorded.
    """

    flops_per_second: float | None
    bytes_per_second: float | None
    known_share: float
    threads: int | None


class Communication(Value, frozen=True):
    """Exposed communication as transfer and waiting for other ranks; from one rank, `wait_ns` is a lower bound."""

    transfer_ns: int | None
    wait_ns: int
    by: Literal["ranks", "at-least"]


class Gap(Value, frozen=True):
    """Time above the floor, over the window, and its reason; `text` is the reason in words."""

    reason: GapReason
    ns: int
    text: str


class StepFloor(Value, frozen=True):
    """The least time that the machine needs for a mean step.

    Attributes:
        ns: the floor. named_ns: time above it whose reason is known.
        share_known: part of the step whose floor is known, 0 to 1; the rest counts as above the floor, unexplained.
        source: how the machine's limits are known.
        text: what this says of the step, in a sentence; empty if too little of it is known.
    """

    ns: int
    named_ns: int
    share_known: float
    source: MachineSource
    text: str


class Piece(Value, frozen=True):
    """One uninterrupted piece of an entry; `event` names what ran, or what the device waited for.

    `event_id` is that event's position among all events of the file, as in the timeline; null without one.
    """

    start_ns: int
    end_ns: int
    event: str
    event_id: int | None = None


class Entry(Value, frozen=True):
    """One line of the ledger: all time of one cause and kind.

    Attributes:
        id: `cause` or `cause:kind`, equal in all recordings. title: the same in words. label: the same, short for a
            legend. group: its group in a bar. colour: of its part of a bar. at_work: what works in that time.
        ns_total: over the window. ns_per_step: over the number of steps, rounded down. ns_by_step: in each step.
        share: of the window, 0 to 1. count: uninterrupted pieces.
        owner: the one with most of the time. owners: largest first, until 80 % of the entry is named or there are
            eight.
        proof_text: the proof in words; empty without one.
        limit: of the device, for its work. rate: of operators on the host.
        floor_ns: the least time that the machine needs for the entry, over the window. floor_known_ns: the part of
            `ns_total` whose floor is known. gaps: reasons for the time above the floor, which add up to it, largest
            first.
        hidden_ns: over the window, the same work behind other work; already part of other entries.
        finding_id: the finding that fixes most of it. advice: what to do. nothing_to_fix: why nothing is to be done, or
            why that is unknown. At least one of the three is set for the largest entry and for those above a tenth of
            the window.
        evidence: the three longest pieces.
    """

    id: str
    title: str
    label: str
    cause: Cause
    kind: Kind | None
    group: CauseGroup
    colour: Colour
    at_work: AtWork
    ns_total: int
    ns_per_step: int
    ns_by_step: list[int]
    share: float
    count: int
    owner: Owner
    proof: Proof
    proof_text: str
    confidence: Confidence
    limit: Limit | None = None
    rate: Rate | None = None
    communication: Communication | None = None
    hidden_ns: int = 0
    finding_id: str | None = None
    advice: str | None = None
    nothing_to_fix: str | None = None
    evidence: list[Piece] = msgspec.field(default_factory=list)
    owners: list[Owner] = msgspec.field(default_factory=list)
    floor_ns: int = 0
    floor_known_ns: int = 0
    gaps: list[Gap] = msgspec.field(default_factory=list)

    @property
    def is_unnamed(self) -> bool:
        """True if nothing explains the time."""
        return self.group is CauseGroup.UNNAMED or self.kind is Kind.OTHER


class LedgerGroup(Value, frozen=True):
    """A group of entries, as a bar shows it."""

    group: CauseGroup
    label: str
    colour: Colour


def ledger_groups_of(entries: Iterable[Entry]) -> list[LedgerGroup]:
    """The groups of entries, in the order of a bar."""
    there = {each.group for each in entries}
    return [LedgerGroup(group=each, label=each.label, colour=each.colour) for each in CauseGroup if each in there]


class Ledger(Value, frozen=True):
    """Account of the time of a profile's steps; without steps, of its window.

    Attributes:
        step_source: source of the steps; a `repeating_unit` may be a layer and not a step. step_source_text: the same
            in words.
        recording: the kind of time that was recorded; only `steady` shows how the job runs. `empty` has no entries.
        banner: the same in a sentence, null for `steady`.
        is_one_time: true if it is of work that a job does only once: its figures are not those of each step.
        hidden_device: the device, in words, if one worked or may have worked and none is named; null for others.
        steps: without gaps from the window's start to its end. step_ns: their length.
        host_step_ns: the median mark on the host, null without marks; shorter if the host runs ahead.
        unnamed_ns: time of the window that no entry explains.
        entries: largest first. groups: theirs, in the order of a bar.
    """

    window: Window
    step_source: StepSource
    step_source_text: str
    recording: RecordingKind
    banner: str | None
    is_one_time: bool
    hidden_device: str | None
    left_out: list[LeftOut]
    steps: list[LedgerStep]
    step_ns: StepLength
    host_step_ns: int | None
    unnamed_ns: int
    entries: list[Entry]
    groups: list[LedgerGroup]


def ordinary_steps(ledger: Ledger, warmup: Collection[str]) -> list[int]:
    """Positions of the steps whose names are not in `warmup`; of all steps if all are warm-up."""
    everything = range(len(ledger.steps))
    return [at for at in everything if ledger.steps[at].name not in warmup] or list(everything)
