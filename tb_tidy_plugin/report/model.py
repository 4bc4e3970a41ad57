"""The report: the public contract that JSON, text, the web page and every later consumer read.

All times are integers in nanoseconds relative to the profile's start; costs and savings are per step. A field may be
added in a later version but is never renamed. `docs/report.schema.json` is generated from this file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.estimate.saving import Basis
from tb_tidy_plugin.report.step_model import Breakdown, Lane, Outlier, Steps
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.rulekit.rule import Confidence
from tb_tidy_plugin.sources.frames import Precision
from tb_tidy_plugin.trace.settings import Settings

SCHEMA_VERSION = 1

Severity: TypeAlias = Literal["high", "medium", "low", "info"]
Status: TypeAlias = Literal["found", "clean", "not_checked", "failed"]
Recorded: TypeAlias = Literal["stacks", "shapes", "memory", "device", "steps"]
RankPart: TypeAlias = Literal["loading", "host", "compute", "copies", "communication", "idle"]


class Note(Model, frozen=True, tag_field="kind", tag="note"):
    """Sentences with the numbers and thresholds that made the rule speak."""

    text: str


class CodeChange(Model, frozen=True, tag_field="kind", tag="code_change"):
    """The example of the rule's page: code that has the pattern, and the same code without it."""

    before: str
    after: str
    caveat: str | None = None


Detail: TypeAlias = Note | CodeChange


class Place(Model, frozen=True):
    """Where in the user's source the matches of a finding are.

    `line` is 1-based. `precision` says how it is known: `definition` is the line that the recording gives the enclosing
    function, which is where it is defined, or where it was when the recording began; never the calling line itself.
    `own_code` is false when no frame outside installed packages was recorded. `duration_ns` is per step. `ties` are
    lines that are as likely, between `line` and `end_line`; empty where one line or statement is the likeliest.
    `text` is the line as the source had it when it was read, without its indentation; empty where it is not known.
    """

    file: str
    line: int
    end_line: int
    function: str
    precision: Precision
    own_code: bool
    matches: int
    duration_ns: int
    text: str = ""
    ties: list[int] = msgspec.field(default_factory=list)


class Saving(Model, frozen=True):
    """What removing a finding is worth, per step.

    `speedup` is step time now divided by the step time expected without the finding, null where there is no step time.
    """

    expected_ns: int
    low_ns: int
    high_ns: int
    speedup: float | None
    basis: list[Basis]


class Finding(Model, frozen=True):
    """Matches of one rule in one function, grouped.

    `share` is `cost_ns` divided by the median step time, null where there are no steps.
    `id` is stable between recordings of the same job: it hashes rule, subject, file and function.
    `ranks` are those whose doing it is, for findings about a run; empty for findings about one profile.
    `measurement` is what the statements with and without the pattern took where they were run, null where nobody did;
    it is part of the saving only where the basis of that says so.
    """

    id: str
    rule: str
    category: str
    severity: Severity
    confidence: Confidence
    message: str
    fix: str
    matches: int
    matches_per_step: float
    places: list[Place]
    cost_ns: int
    share: float | None
    saving: Saving | None
    details: list[Detail]
    ranks: list[int] = msgspec.field(default_factory=list)
    measurement: Measurement | None = None


class Outcome(Model, frozen=True):
    """What one rule said about one profile, or about the ranks of a run.

    `reason` is set for `not_checked` and `failed`, and for `clean` and `found` where some of what was found is left
    out: not worth reporting, another rule's, or not wanted.
    """

    rule: str
    status: Status
    reason: str | None = None


class Device(Model, frozen=True):
    """One device of the profile. `name` is empty where the trace has none."""

    kind: str
    index: int
    name: str
    compute_capability: str | None


class Quality(Model, frozen=True):
    """How far the recording can be trusted.

    Attributes:
        partial: the file ended early; only what came before the end is reported.
        dropped_events: events that could not be used (negative durations, times of zero, unreadable).
        parent_mismatch: share of Python frames whose recorded parent differs from the rebuilt one, null without stacks.
        notes: sentences for the user.
    """

    partial: bool
    dropped_events: int
    parent_mismatch: float | None
    notes: list[str]


class ProfileReport(Model, frozen=True):
    """One trace file: one worker (rank) and one span of one run.

    `settings` and `true_step_ns` are null where the job was not recorded with `tb_tidy_plugin.capture`; the latter is
    the median of steps that were not recorded, which the profiler does not slow down. `outliers` are the steps that
    differ most from the others, at most twenty, in order of time.
    """

    worker: str
    span: str
    rank: int | None
    path: str
    events: int
    duration_ns: int
    origin_ns: int
    recorded: list[Recorded]
    devices: list[Device]
    steps: Steps
    breakdown: Breakdown
    quality: Quality
    outcomes: list[Outcome]
    findings: list[Finding]
    lanes: list[Lane] = msgspec.field(default_factory=list)
    residual: float | None = None
    joint_saving: Saving | None = None
    settings: Settings | None = None
    true_step_ns: int | None = None
    outliers: list[Outlier] = msgspec.field(default_factory=list)


class Arrivals(Model, frozen=True):
    """One rank at the collectives of the steps besides the warm-up; times are per step, on average.

    Attributes:
        met: how many of them it took part in.
        last: to how many it came last.
        late_ns: how much later than the middle rank it came, to all collectives of a step together; negative before it.
        waited_ns: how long each other rank waited for it.
        waits_ns: how long it waited for others.
    """

    met: int
    last: int
    late_ns: int
    waited_ns: int
    waits_ns: int


class RankRow(Model, frozen=True):
    """One rank beside the others: medians over its steps besides the warm-up.

    Attributes:
        step_ns: null where there are no steps.
        parts_ns: what the step is spent on; a part that never occurs is left out.
        memory_peak_bytes: the most that was allocated on the fullest device, null where memory was not recorded.
        arrivals: null where the rank meets no other in a collective that all leave together.
        clock_ahead_ns: how far its clock is ahead of the first rank's, null where nothing tells.
        clock_error_ns: how wrong that may be; 0 for the first rank itself.
        findings: how many the rank's own report has.
    """

    rank: int
    worker: str
    span: str
    step_ns: int | None
    parts_ns: dict[RankPart, int]
    memory_peak_bytes: int | None
    arrivals: Arrivals | None
    clock_ahead_ns: int | None
    clock_error_ns: int | None
    findings: int


class Imbalance(Model, frozen=True):
    """How unevenly the ranks share one thing: the rank with the most of it, against the middle rank.

    `ratio` is null where the middle rank has none. `notable` says that the difference is worth a look; `text` is it in
    words. Values are ns per step, or bytes for `memory`.
    """

    what: RankPart | Literal["memory"]
    rank: int
    most: int
    middle: int
    ratio: float | None
    notable: bool
    text: str


class MeetingPlace(Model, frozen=True):
    """Collectives that one place of the source begins with as many bytes each: who comes last to them.

    `waited_ns` is how long a rank waits in them per step, on average of all but the last. `bytes` is null where shapes
    were not recorded, `file` empty and `line` null where the place was not.
    """

    kind: str
    group: str
    bytes: int | None
    file: str
    line: int | None
    met: int
    last_rank: int
    last: int
    waited_ns: int


class SharedFinding(Model, frozen=True):
    """One finding that profiles of several ranks have, or one of them: on which, and where it costs most.

    `id`, `message`, `severity` and times, per step, are those of `worst_rank`; `text` says `on 7 of 8 ranks, worst
    rank 3`.
    """

    id: str
    rule: str
    severity: Severity
    message: str
    ranks: list[int]
    worst_rank: int
    cost_ns: int
    saving_ns: int
    text: str


class Ranks(Model, frozen=True):
    """The ranks of a run beside each other; of several recordings of each the latest that most ranks have.

    Attributes:
        world_size: how many ranks the job had by the recordings, null where they do not say or disagree.
        missing: how many of them were not recorded; `present` names them.
        present: who is here and who is missing, as a sentence.
        notes: what makes the comparison doubtful, as sentences.
        step_ns: the median step of all ranks, null where there are no steps in common.
        steps: how many steps besides the warm-up have collectives in which ranks meet.
        rows: in order of rank.
        places: the longest waiting first.
        findings: worst first.
    """

    world_size: int | None
    missing: int
    present: str
    notes: list[str]
    step_ns: int | None
    steps: int
    rows: list[RankRow]
    imbalances: list[Imbalance]
    places: list[MeetingPlace]
    findings: list[SharedFinding]


class RunReport(Model, frozen=True):
    """All profiles of what TensorBoard calls a run: one folder.

    `outcomes` and `findings` are what rules over several ranks say; both are empty, and `ranks` is null, where only one
    rank was recorded. Their times are per step, their shares those of the median step of all ranks.
    """

    run: str
    profiles: list[ProfileReport]
    outcomes: list[Outcome] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    ranks: Ranks | None = None


class Problem(Model, frozen=True):
    """A trace that could not be read, or not wholly."""

    path: str
    error: str
    advice: str
    recovered_events: int


class Report(Model, frozen=True):
    """Everything that was found under one path."""

    schema: int
    version: str
    runs: list[RunReport]
    problems: list[Problem]
