"""The report: the public contract for JSON, text, the web page and every later consumer.

All times are integers in nanoseconds relative to the profile's start; costs and savings are per step. A field may be
added in a later version but is never renamed. `docs/report.schema.json` is generated from this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.ledger.model import Ledger, StepFloor
from tb_tidy_plugin.report.code_model import CodeFixes
from tb_tidy_plugin.report.generated import Generated
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.report.serving_model import Serving
from tb_tidy_plugin.report.step_model import Outlier, Steps
from tb_tidy_plugin.report.value import Model, Severity
from tb_tidy_plugin.trace.settings import Settings
from tb_tidy_plugin.words.vocabulary import Basis, Confidence, KnownBy, MachineSource, Precision

SCHEMA_VERSION = 1

Status: TypeAlias = Literal["found", "clean", "not_checked", "failed"]
Recorded: TypeAlias = Literal["stacks", "shapes", "memory", "device", "steps"]


class Note(Model, frozen=True, tag_field="kind", tag="note"):
    """Sentences with the numbers and thresholds behind a finding."""

    text: str


class CodeChange(Model, frozen=True, tag_field="kind", tag="code_change"):
    """The example of the rule's page: code with the pattern, and the same code without it."""

    before: str
    after: str
    caveat: str | None = None


Detail: TypeAlias = Note | CodeChange


class Place(Model, frozen=True):
    """A place in the user's source with matches of a finding.

    `line` is 1-based. `precision` says how it is known: `definition` is the line that the recording gives the enclosing
    function, which is where it is defined, or where it was when the recording began; never the calling line itself.
    `own_code` is false if no frame outside installed packages was recorded. `duration_ns` is per step. `ties` are
    equally likely lines between `line` and `end_line`; empty if one line or statement is the likeliest. `text` is the
    line as the source had it when it was read, without its indentation; empty if unknown. `generated` is set for code
    that `torch.compile` generated; a `definition` is then the function that was compiled.
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
    """Saving from removing a finding, per step.

    `speedup` is step time now divided by the step time expected without the finding, null without a step time.
    """

    expected_ns: int
    low_ns: int
    high_ns: int
    speedup: float | None
    basis: list[Basis]


class Finding(Model, frozen=True):
    """Matches of one rule in one function, grouped.

    `share` is `cost_ns` divided by the recorded step time, null without steps.
    `id` is stable between recordings of the same job: it hashes rule, subject, file and function.
    `action` is the advice in a few words, verb first; empty in reports of versions without it.
    `ranks` are those that cause a finding about a run; empty for findings about one profile.
    `known_by` is the least certain way in which operators of replayed graphs among the matches are known, null if all
    were recorded themselves.
    `measurement` has the times of the statements with and without the pattern, null if nobody ran them; it is part of
    the saving only if the saving's basis says so. `code_fixes` are changes of the user's own files, null for rules that
    change no code, and in summaries. `small` is true if fixing it is expected to save something, but less than 3 % of a
    step: such findings are folded below the others.
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
        """Advice in a few words."""
        return self.action or self.message


class Outcome(Model, frozen=True):
    """The outcome of one rule on one profile, or on the ranks of a run.

    `reason` is set for `not_checked` and `failed`, and for `clean` and `found` if some matches are left out: not worth
    reporting, covered by another rule, or ignored.
    """

    rule: str
    status: Status
    reason: str | None = None


class Device(Model, frozen=True):
    """One device of the profile. `name` is empty if the trace has none.

    `limits` says how its peak rates are known; null if they are not.
    """

    kind: str
    index: int
    name: str
    compute_capability: str | None
    limits: MachineSource | None = None


class Quality(Model, frozen=True):
    """Reliability of the recording.

    Attributes:
        partial: the file ended early; the report covers only what came before the end.
        dropped_events: events that could not be used (negative durations, times of zero, unreadable).
        parent_mismatch: share of Python frames whose recorded parent differs from the rebuilt one, null without stacks.
        notes: sentences for the user.
        unknown_events: events of a category that is not known; no figure includes them.
    """

    partial: bool
    dropped_events: int
    parent_mismatch: float | None
    notes: list[str]
    unknown_events: int = 0


class ProfileReport(Model, frozen=True):
    """One trace file: one worker (rank) and one span of one run.

    `settings` and `true_step_ns` are null if the job was not recorded with `tb_tidy_plugin.capture`; the latter is the
    median of steps that were not recorded, which the profiler does not slow down. `step_ns` is the step that savings,
    speedups and severities refer to: the true one if that is shorter than the recorded one, which is the median step of
    the ledger. `outliers` are the steps that differ most from the others, at most twenty, in order of time. `ledger`
    accounts for every nanosecond of the steps; if it has no entries, its banner says why. `serving` is null if no
    server marks iterations and no graph is replayed. `floor` is null if the machine's limits are not known.
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
    quality: Quality
    outcomes: list[Outcome]
    findings: list[Finding]
    ledger: Ledger
    residual: float | None = None
    joint_saving: Saving | None = None
    settings: Settings | None = None
    true_step_ns: int | None = None
    step_ns: int | None = None
    outliers: list[Outlier] = msgspec.field(default_factory=list)
    serving: Serving | None = None
    floor: StepFloor | None = None


class RunReport(Model, frozen=True):
    """All profiles of a run as TensorBoard defines it: one folder.

    `outcomes` and `findings` are those of rules over several ranks; both are empty, and `ranks` is null, if only one
    rank was recorded. Their times are per step, their shares those of the median step of all ranks.
    """

    run: str
    profiles: list[ProfileReport]
    outcomes: list[Outcome] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    ranks: Ranks | None = None


class Problem(Model, frozen=True):
    """A trace that could not be read, or not completely."""

    path: str
    error: str
    advice: str
    recovered_events: int


def has_unread(problems: Iterable[Problem]) -> bool:
    """True if one of these traces could not be used at all; of a truncated one, a part was read."""
    return any(not each.recovered_events for each in problems)


class Report(Model, frozen=True):
    """Everything that was found under one path."""

    schema: int
    version: str
    runs: list[RunReport]
    problems: list[Problem]
