"""Answers of the web API besides the report itself. The frontend's types are generated from these."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.report.figures import (
    CpuFigures,
    DeviceKernelRow,
    DeviceMemoryRow,
    KernelFamilyRow,
    ModuleRow,
    OperatorGroup,
    OperatorRow,
)
from tb_tidy_plugin.report.model import Problem, RunReport
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import KnownBy, Precision

BenchmarkObstacle: TypeAlias = Literal["off", "reachable", "no_torch"]
BenchmarkProgress: TypeAlias = Literal["queued", "measuring", "done", "failed", "cancelled"]
LoadState: TypeAlias = Literal["queued", "reading", "analysing", "done", "error"]


class ProfileState(Model, frozen=True):
    """Progress of the analysis of one trace file.

    Attributes:
        span_index: position of the span among its worker's, from 1, as torch-tb-profiler numbers them; null if the
            file's name has no span.
        size: the file's size on disk in bytes.
        fraction: work done, 0 to 1.
        stage: the current work in words (`Reading 12 of 35 MB`), empty if there is none.
        problem: why it failed, or what could not be read of it; both `done` and `error` may have one.
        version: changes with each new analysis: the file, or a measurement of it, has changed.
        recording: changes whenever the file has changed.
        reported: true if its report exists; while its state is not `done`, the tables beside the report are still made.
    """

    worker: str
    span: str
    span_index: int | None
    state: LoadState
    size: int
    fraction: float
    stage: str
    problem: Problem | None
    version: int
    recording: int
    reported: bool


class RunState(Model, frozen=True):
    """One run: a folder with trace files."""

    run: str
    profiles: list[ProfileState]


class RunsAnswer(Model, frozen=True):
    """`GET api/runs`: the content of the logdir. `scanning` is true during the first search.

    With `look=calm` nobody waits for a new search, which starts if the last one is long over. A page that polls thus
    never keeps a slow disk busy.
    """

    logdirs: list[str]
    scanning: bool
    runs: list[RunState]


class LoggedRun(Model, frozen=True):
    """What the job logged beside its traces: the last values of a few scalars, and hyperparameters, by name."""

    scalars: dict[str, float]
    hparams: dict[str, str | float | bool]


class BoardRow(Model, frozen=True):
    """One run at a glance: of the recording that the page opens, the first worker's latest span.

    Attributes:
        recorded_ms: time of the recording, in ms since 1970; null if unknown.
        state: progress of its analysis.
        known: true if the figures are known; without them the fields from `device` to `finding` are empty or null.
        step_ns: median step, without the profiler if that is known; null without steps.
        saving_ns: expected saving of all fixes together per step; null without an estimate.
        findings: number of findings.
        action, finding: what to do first, and the id of that finding.
        problem: why the recording, or else another one of the run, could not be read, or not completely; empty if all
            could.
        logged: what the job logged; null if nothing is known of it.
    """

    run: str
    worker: str
    span: str
    recorded_ms: int | None
    state: LoadState
    known: bool
    device: str
    step_ns: int | None
    saving_ns: int | None
    findings: int
    action: str
    finding: str
    problem: str
    logged: LoggedRun | None


class BoardAnswer(Model, frozen=True):
    """`GET api/board`: all runs at a glance, in the order of `GET api/runs`.

    Figures come from reports in memory or in the cache. The request starts the analysis of the eight newest runs, or of
    all with `analyse=all`. `unasked` is the number of runs without figures that wait for that, `pending` that of
    running analyses.
    """

    runs: list[BoardRow]
    pending: int
    unasked: int


class ReportAnswer(Model, frozen=True):
    """`GET api/report`: states of the requested profiles, and the reports of those that are done.

    The run's own outcomes and findings are those of all its analysed ranks, requested or not: `ranks`.
    `report.ranks` is null: `GET api/ranks` answers it.
    `pending` is the number of the run's traces that were not analysed yet, except unreadable ones.
    """

    states: list[ProfileState]
    report: RunReport
    ranks: list[int]
    pending: int


class ExportAnswer(Model, frozen=True):
    """`GET api/export`: the report of a profile, with what is known of its run, as a page of its own.

    `muted` of the query are ids of findings to leave out, separated by commas. The page comes inside JSON, so that no
    address of TensorBoard's ever is a page of ours.
    """

    html: str


class RanksAnswer(Model, frozen=True):
    """`GET api/ranks`: the ranks of a run that were analysed, null if there are fewer than two.

    `pending` is the number of the run's traces that were not analysed yet.
    """

    ranks: Ranks | None
    pending: int


class RuleSection(Model, frozen=True):
    """One section of a rule's page; `text` is Markdown."""

    heading: str
    text: str


class ThresholdInfo(Model, frozen=True):
    """A number that users may set: its name in the configuration, its default, and the reason for that."""

    name: str
    default: int | float
    reason: str


class RuleInfo(Model, frozen=True):
    """One rule with its page."""

    rule: str
    code: str
    category: str
    title: str
    needs: list[str]
    sections: list[RuleSection]
    thresholds: list[ThresholdInfo]


class RulesAnswer(Model, frozen=True):
    """`GET api/rules`."""

    rules: list[RuleInfo]


class SourceAnswer(Model, frozen=True):
    """`GET api/source`: the text of one source file named in a finding's places.

    `lines` is the whole file, empty if it may not or cannot be read; `reason` then says why and what to do.
    `changed` is true if the file is newer than the recording. `path` is the file's path on the server, for
    editors there; null if it may not be shown, or is not text.
    """

    file: str
    available: bool
    reason: str | None
    changed: bool
    lines: list[str]
    path: str | None


class LineColumns(Model, frozen=True):
    """Costs of the lines of one file: one entry per line in each column, in order of lines.

    Times by pass and `total_ns` are sums over the ledger's steps; calls, their time and device time are over the whole
    recording.

    Attributes:
        wall_ns: duration of the recording.
        line: numbers of the lines, from 1.
        host_ns: time of the calls on the line, including all that they call in turn.
        device_ns: time of the kernels, copies and fills that they launch.
        calls: their number.
        shared: number of lines that a kernel of compiled code on the line computes; its time counts for one of them.
        known_by: the least certain way in which calls of replayed graphs are attributed to the line; null without any.
        left_out: functions whose lines are not counted, since going through their calls would have taken too long.
        steps: number of the ledger's steps. step_ns: their length.
        total_ns: time of the steps on the line and in the user's own functions that it calls.
        forward_ns, backward_ns, optimizer_ns, loading_ns, other_ns: time of the steps on the line itself. The backward
            pass counts on the line of its forward operator.
        ties: other lines that fit a part of it equally well.
        functions, functions_ns: functions of the file, and their time of the steps on lines that are not known.
    """

    wall_ns: int
    line: list[int]
    host_ns: list[int]
    device_ns: list[int]
    calls: list[int]
    shared: list[int]
    known_by: list[KnownBy | None]
    left_out: list[str]
    steps: int
    step_ns: int
    total_ns: list[int]
    forward_ns: list[int]
    backward_ns: list[int]
    optimizer_ns: list[int]
    loading_ns: list[int]
    other_ns: list[int]
    ties: list[list[int]]
    functions: list[str]
    functions_ns: list[int]


class LinesAnswer(Model, frozen=True):
    """`GET api/lines`: costs of the lines of one source file; null if no call could be placed in it."""

    file: str
    costs: LineColumns | None


class FileCost(Model, frozen=True):
    """The costliest line of a source file: time of its calls, with all that they call, and of the work they launch.

    `total_ns` is its time of the ledger's steps, by which lines and files are in order.
    """

    file: str
    line: int
    host_ns: int
    device_ns: int
    total_ns: int


class FilesAnswer(Model, frozen=True):
    """`GET api/files`: the source files in which calls were placed, the costliest first.

    `wall_ns` is the length of the recording, `step_ns` that of its `steps`; 0 without files.
    """

    wall_ns: int
    files: list[FileCost]
    steps: int
    step_ns: int


class StackFrame(Model, frozen=True):
    """One of the user's own functions, and its calling line; `precision` and `ties` as those of a place."""

    file: str
    line: int
    function: str
    precision: Precision
    ties: list[int]


class StackAnswer(Model, frozen=True):
    """`GET api/stack`: callers of a place of a finding, nearest first, for the most expensive match there.

    `more` is the number of further callers.
    """

    frames: list[StackFrame]
    more: int


class EventRow(Model, frozen=True):
    """One matched event. `lane` is the host thread or device stream in words, `shapes` the input shapes as text.

    `id` identifies the event on the timeline, in this recording.
    """

    id: int
    name: str
    start_ns: int
    duration_ns: int
    step: str | None
    lane: str
    shapes: str
    place: str


class EventsAnswer(Model, frozen=True):
    """`GET api/events`: one page of a finding's matched events, sorted by the server."""

    total: int
    offset: int
    rows: list[EventRow]


class OperatorsAnswer(Model, frozen=True):
    """`GET api/operators`: one page of one grouping, sorted and filtered by the server.

    Regardless of the filter: `host_ns` and `device_ns` are the sums of self times, the latter null without a device,
    and `empty` the columns in which no row has a value. `left_out` is the number of rows with less host time that are
    not listed, found or counted in `total`: there are too many. `missing` says why the grouping is absent and which
    option records it, null if it is there.
    """

    group: OperatorGroup
    total: int
    offset: int
    rows: list[OperatorRow]
    left_out: int
    missing: str | None
    host_ns: int = 0
    device_ns: int | None = None
    empty: list[str] = msgspec.field(default_factory=list)


class KernelsAnswer(Model, frozen=True):
    """`GET api/kernels`: one page of the device's work, sorted and filtered by the server.

    Regardless of the filter: `families` are all, and `empty` the columns in which no row has a value. `missing` says
    why there is nothing and which option records it, null if there is something.
    """

    total: int
    offset: int
    rows: list[DeviceKernelRow]
    families: list[KernelFamilyRow]
    missing: str | None
    empty: list[str] = msgspec.field(default_factory=list)


class ModulesAnswer(Model, frozen=True):
    """`GET api/modules`: all modules in pre-order; `missing` says why there are none."""

    rows: list[ModuleRow]
    missing: str | None


class MemoryAnswer(Model, frozen=True):
    """`GET api/memory`: one entry per device with memory events, and per device of a memory snapshot.

    `missing` says why there are no events, `snapshot_problem` why a snapshot beside the trace is not used.
    """

    devices: list[DeviceMemoryRow]
    missing: str | None
    snapshot_problem: str | None = None


class CpuAnswer(Model, frozen=True):
    """`GET api/cpu`: work of the CPU."""

    cpu: CpuFigures


class CompareAnswer(Model, frozen=True):
    """`GET api/compare?base=RUN&candidate=RUN`: the differences, with one page of operators and kernels.

    Each side takes `…_rank` (a worker's name, or the number of a rank; all by default), `…_span` and `…_steps` (`3-7`
    or `5`, by the numbers in the steps' names; all by default). `q` finds operators and kernels by
    name and shapes; `offset` and `limit` select those to return, largest difference first.

    Attributes:
        operators, kernels: number of matching rows.
    """

    comparison: Comparison
    offset: int
    operators: int
    kernels: int


class Mutes(Model, frozen=True):
    """Findings by id and checks by name that users have muted. Also the form of `.torchtidy.json`."""

    findings: list[str]
    rules: list[str]


class MuteChange(Model, frozen=True):
    """`POST api/mutes`: what to mute and what to show again; creates `.torchtidy.json` if it does not exist."""

    mute: Mutes
    unmute: Mutes


class MutesAnswer(Model, frozen=True):
    """`GET api/mutes`: mutes that apply to everybody.

    Attributes:
        kept: true if mutes are stored beside the runs; otherwise each browser stores its own.
        can_keep: true if they could be: the folder of the runs is on this machine and can be written.
        path: the file that holds them or would hold them, null if the runs are elsewhere.
    """

    kept: bool
    can_keep: bool
    path: str | None
    mutes: Mutes


class RetryRequest(Model, frozen=True):
    """`POST api/retry`: repeat an analysis that failed; answered by its `ProfileState`."""

    run: str
    worker: str
    span: str


class CancelRequest(Model, frozen=True):
    """`POST api/cancel`: stop an analysis that waits or runs; answered by its `ProfileState`."""

    run: str
    worker: str
    span: str


class ErrorInfo(Model, frozen=True):
    """What went wrong, and what to do about it."""

    code: int
    message: str
    advice: str


class BenchmarkRequest(Model, frozen=True):
    """`POST api/benchmarks`: measure the statements of a finding; answered by a `BenchmarkState`.

    `device` is `cuda`, `cuda:1`, `rocm`, `mps`, `xpu` or `cpu`; empty for the recording's kind, else for any that
    exists.
    """

    run: str
    worker: str
    span: str
    finding: str
    device: Annotated[str, msgspec.Meta(max_length=16)] = ""
    budget_s: Annotated[float, msgspec.Meta(ge=0.01, le=60)] = 2.0


class BenchmarkCancel(Model, frozen=True):
    """`POST api/benchmarks/cancel`; answered by a `BenchmarkState`, which may still be `measuring`."""

    job: int


class BenchmarkState(Model, frozen=True):
    """Progress of a benchmark; `GET api/benchmarks/progress?job=…` streams these, one a line, until it is over.

    `ahead` is the number of others that are measured before it, `measurement` is set once it is `done`, `problem` if it
    `failed` or was `cancelled`, or is `done` but could not be stored.
    """

    job: int
    run: str
    worker: str
    span: str
    finding: str
    state: BenchmarkProgress = "queued"
    stage: str = ""
    fraction: float = 0.0
    ahead: int = 0
    measurement: Measurement | None = None
    problem: ErrorInfo | None = None


class BenchmarkRefusal(Model, frozen=True):
    """Why no benchmark can be started here, and what to do about it."""

    reason: BenchmarkObstacle
    message: str
    advice: str


class BenchmarkStatements(Model, frozen=True):
    """Statements measured for a finding; `of_events` is true if a saving can use the result.

    `devices` are those of this machine that a `BenchmarkRequest` may name; empty until a first benchmark has seen them.
    """

    before: str
    after: str
    setup: str
    of_events: bool
    devices: list[str]


class BenchmarksAnswer(Model, frozen=True):
    """`GET api/benchmarks`: the benchmarks of one profile.

    Requested while nothing is measured, it starts a new analysis of the profile, with a new version, if the report
    lacks known measurements.

    Attributes:
        refusal: why none can be started here, null if they can.
        command: measures this profile's findings from a shell; with `--finding ID`, that one alone.
        kind: the recording's kind of device; results from other kinds are in no saving.
        findings: statements to measure, by finding.
        jobs: those started since TensorBoard's start, in their order.
        measurements: stored results, by finding.
    """

    refusal: BenchmarkRefusal | None
    command: str
    kind: str
    findings: dict[str, BenchmarkStatements]
    jobs: list[BenchmarkState]
    measurements: dict[str, Measurement]


class ErrorAnswer(Model, frozen=True):
    """Every answer with a status of 400 or more."""

    error: ErrorInfo
