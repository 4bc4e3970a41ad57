"""The report: the public contract that JSON, text, the web page and every later consumer read.

All times are integers in nanoseconds relative to the profile's start; costs and savings are per step. A field may be
added in a later version but is never renamed. `docs/report.schema.json` is generated from this file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.report.code_model import CodeFixes
from tb_tidy_plugin.report.generated import Generated
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.report.serving_model import Serving
from tb_tidy_plugin.report.step_model import Breakdown, Lane, Outlier, Steps
from tb_tidy_plugin.report.value import Model, Severity
from tb_tidy_plugin.trace.settings import Settings
from tb_tidy_plugin.vocabulary import Basis, Confidence, KnownBy, Precision

SCHEMA_VERSION = 1

Status: TypeAlias = Literal["found", "clean", "not_checked", "failed"]
Recorded: TypeAlias = Literal["stacks", "shapes", "memory", "device", "steps"]


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
    `generated` is there for code that `torch.compile` generated; a `definition` is then the function that was compiled.
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
    generated: Generated | None = None


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

    `share` is `cost_ns` divided by the recorded step time, null where there are no steps.
    `id` is stable between recordings of the same job: it hashes rule, subject, file and function.
    `action` is what to do in a few words, verb first; empty in reports from before it was known.
    `ranks` are those whose doing it is, for findings about a run; empty for findings about one profile.
    `known_by` is the least certain way in which operators of replayed graphs among the matches are known, null where
    all were recorded as they are.
    `measurement` is what the statements with and without the pattern took where they were run, null where nobody did;
    it is part of the saving only where the basis of that says so.
    `code_fixes` are changes of the user's own files, null for rules that change no code, and in summaries.
    `small` is true where fixing it is expected to save something, but less than 3 % of a step: such findings stand
    folded below the others.
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
    known_by: KnownBy | None = None
    code_fixes: CodeFixes | None = None
    small: bool = False
    action: str = ""

    @property
    def title(self) -> str:
        """Advice, in a few words."""
        return self.action or self.message


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
    the median of steps that were not recorded, which the profiler does not slow down. `step_ns` is the step that
    savings, speedups and severities are of: the true one where that is shorter than the recorded one, which is the
    median step of the ledger. `outliers` are the steps that differ most from the others, at
    most twenty, in order of time. `ledger` accounts for every nanosecond of the steps. `serving` is null where no
    server marks iterations and no graph is replayed.
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
    step_ns: int | None = None
    outliers: list[Outlier] = msgspec.field(default_factory=list)
    ledger: Ledger | None = None
    serving: Serving | None = None


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
