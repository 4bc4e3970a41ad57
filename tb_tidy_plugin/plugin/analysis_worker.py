"""Analysis of one trace file in a process of its own, so that its memory and its crashes never affect TensorBoard.

`python -m tb_tidy_plugin.plugin.analysis_worker` reads one line from its input (an `AnalysisRequest`), writes one JSON
message per line, the last of which is an `AnalysisResult` or a `Failure`, and ends. Meanwhile it imports all that
analysis needs: while it waits for the line, or while it reads the trace.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.plugin.models import StackAnswer, StackFrame
from tb_tidy_plugin.plugin.tables import Tables, tables_of
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.system import allocator, allowance, child
from tb_tidy_plugin.system.collector import held_off
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.threads import SWITCH_S, cores
from tb_tidy_plugin.trace.cache import Cache, State
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.limits import held_to
from tb_tidy_plugin.trace.remote import AnyPath, path_or_url, size_of
from tb_tidy_plugin.words.errors import ConfigurationError, TraceError
from tb_tidy_plugin.words.recipe import Recipe
from tb_tidy_plugin.words.units import Bytes

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.answers import FixesAnswer
    from tb_tidy_plugin.analysis.assemble import Analysis
    from tb_tidy_plugin.sources.align import Aligner

PROGRESS_PERIOD_S = 0.1
READING_PART = 0.6  # of the whole work; 50 to 75 % of the time, depending on the findings
CHECKED_PART = 0.8  # the rest is the tables: 0.1 s to 0.4 s on traces of 40,000 to 200,000 events
LINES_BUDGET_S = 0.5  # for the costs of lines; takes 0.2 s on the sample runs, with the usual 500 own frames
ADDING_UP = "Adding up operators"
MOST_CALLERS = 20
NICE = 5  # TensorBoard goes first


class AnalysisRequest(msgspec.Struct, frozen=True):
    """A file and its names, the configuration to check it with, and the folders of sources.

    `path`, `configuration`, `source_roots` and `cache` are in bytes, since a path need not be text.
    """

    run: str
    worker: str
    span: str
    path: bytes
    configuration: bytes | None = None
    source_roots: tuple[bytes, ...] = ()
    cache: bytes | None = None
    device: str = ""


class AnalysisProgress(msgspec.Struct, frozen=True, tag="progress"):
    """Progress of the analysis; `fraction` is that of the whole work, 0 to 1."""

    state: Literal["reading", "analysing"]
    stage: str
    fraction: float


class FirstFindings(msgspec.Struct, frozen=True, tag="findings"):
    """The part that most users wait for, sent before the tables are made."""

    report: ProfileReport
    problem: Problem | None


class AnalysisResult(msgspec.Struct, frozen=True, tag="result", forbid_unknown_fields=True):
    """A finished analysis.

    Attributes:
        report: the report for all readers, with the changes of the user's own code, which `FirstFindings` lacks.
        problem: the part of the file that could not be read.
        source_files: the names of all Python files that the trace names.
        events: `EventColumns` by the finding's id, left as text until a request needs them.
        tables: the tables beside the report.
        stacks: callers of each place of a finding, by the finding's id.
        summaries: `RankSummary`s for rules over the run's ranks, left as text: hundreds of ranks may be in memory.
        captured_sources: text of the user's own files as they ran, by name, where the capture stored them.
        recipes: sources of a finding's statements, by its id; results are stored, but statements never.
        kind: the kind of device of the recording.
        step_costs: `StepCosts`, which comparisons need, left as text.
        looked_at: the sources that lines were found in, see `Analysis.looked_at`.
    """

    report: ProfileReport
    problem: Problem | None
    source_files: list[str]
    events: dict[str, msgspec.Raw]
    tables: Tables
    stacks: dict[str, list[StackAnswer]]
    summaries: msgspec.Raw
    captured_sources: dict[str, str] = {}
    recipes: dict[str, Recipe] = {}
    kind: str = ""
    step_costs: msgspec.Raw = msgspec.Raw(b"null")
    looked_at: dict[str, State] = {}


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """Nothing in the file could be used."""

    error: str
    advice: str


AnalysisMessage: TypeAlias = AnalysisProgress | FirstFindings | AnalysisResult | Failure
_Send: TypeAlias = Callable[[AnalysisMessage], object]

OUT_OF_MEMORY = Failure("There is not enough memory to analyse this trace.", "Free memory, or record fewer steps.")


@held_off()
def main() -> None:
    """Serves one request; none if its input ends before."""
    output = child.private_output()
    child.step_back(nice=NICE)
    sys.setswitchinterval(SWITCH_S)
    if cores() > 1:
        Thread(target=_import_all, name="torchtidy-import", daemon=True).start()
    else:
        _import_all()
    line = child.question()
    if not line:
        return
    child.end_with_input()
    allowance.enforce()
    allocator.spare_memory()

    def send(message: AnalysisMessage) -> None:
        output.write(msgspec.json.encode(message) + b"\n")
        output.flush()

    send_analysis(decode(line, AnalysisRequest), send)


def _import_all() -> None:
    """Imports what `send_analysis` needs, so that a spare process is ready before its request."""
    from tb_tidy_plugin.analysis import answers, assemble, code_fixes, lines, runs, tables  # noqa: F401 - imported ahead
    from tb_tidy_plugin.configuration import checks  # noqa: F401
    from tb_tidy_plugin.plugin import events  # noqa: F401
    from tb_tidy_plugin.rules import catalogue

    catalogue()


@held_off()
def send_analysis(request: AnalysisRequest, send: _Send) -> None:
    """Sends progress, then the findings, then the whole result, or the reason if there is none."""
    from tb_tidy_plugin.analysis.reading import trace_in
    from tb_tidy_plugin.configuration.checks import job_of
    from tb_tidy_plugin.configuration.devices import checked_device
    from tb_tidy_plugin.configuration.files import Configuration, read_configuration

    file = TraceFile(request.run, request.worker, request.span, path_or_url(os.fsdecode(request.path)))
    configuration, folder = (
        None if path is None else Path(os.fsdecode(path)) for path in (request.configuration, request.cache)
    )
    roots = tuple(Path(os.fsdecode(root)) for root in request.source_roots)
    try:
        checked = job_of(Configuration() if configuration is None else read_configuration(configuration))
        progress = throttled(file.path, send, lambda: len(checked.of_profiles))
        device = checked_device(request.device, checked.devices, "`--torchtidy_device`") or checked.device
        job = replace(checked, source_roots=roots, cache=Cache(folder), progress=progress, device=device)
        with held_to(job.limits):
            read = trace_in(file, job)
            from tb_tidy_plugin.analysis.assemble import analysis_of

            analysis = analysis_of(file, job, read)
            findings = first_findings(analysis)
            send(findings)
            send(AnalysisProgress("analysing", ADDING_UP, CHECKED_PART))
            send(result_of(analysis, findings))
    except (ConfigurationError, TraceError) as problem:
        send(Failure(printable(problem.error), printable(problem.advice)))
    except MemoryError:
        send(OUT_OF_MEMORY)


def throttled(path: AnyPath, send: _Send, rules: Callable[[], int]) -> Callable[[TraceFile, str, float], None]:
    """A progress function that sends about ten messages a second, and each change of the stage at once.

    `rules` returns the number of rules, which is asked for when the first one is checked.
    """
    size = size_of(path)
    last_stage, last_s = "", 0.0

    def report(_file: TraceFile, stage: str, fraction: float) -> None:
        nonlocal last_stage, last_s
        now = time.monotonic()
        if stage == last_stage and now - last_s < PROGRESS_PERIOD_S:
            return
        last_stage, last_s = stage, now
        if stage == "reading":
            text = f"Reading {Bytes(round(fraction * size))} of {Bytes(size)}"
            send(AnalysisProgress("reading", text, fraction * READING_PART))
        else:
            count = rules()
            text = f"Checking rule {round(fraction * count) + 1} of {count}"
            send(AnalysisProgress("analysing", text, READING_PART + fraction * (CHECKED_PART - READING_PART)))

    return report


def first_findings(analysis: Analysis) -> FirstFindings:
    """The report; from here on, its paths are text."""
    problem = analysis.problem
    return FirstFindings(
        report=msgspec.structs.replace(analysis.report, path=printable(analysis.report.path)),
        problem=problem and msgspec.structs.replace(problem, path=printable(problem.path)),
    )


def result_of(analysis: Analysis, findings: FirstFindings) -> AnalysisResult:
    """The result for TensorBoard's process."""
    from tb_tidy_plugin.analysis.answers import FIXES
    from tb_tidy_plugin.analysis.code_fixes import with_code_fixes
    from tb_tidy_plugin.analysis.lines import line_costs
    from tb_tidy_plugin.analysis.tables import figures_of
    from tb_tidy_plugin.plugin.events import columns_of

    profile, job = analysis.profile, analysis.job
    answer = FIXES.of(analysis)
    (fixed,) = with_code_fixes([answer], job)
    return AnalysisResult(
        report=msgspec.structs.replace(findings.report, findings=fixed.findings),
        problem=findings.problem,
        source_files=_source_files(analysis),
        events={
            finding: msgspec.Raw(msgspec.json.encode(columns_of(profile, traced.rows, analysis.aligner.place_of)))
            for finding, traced in analysis.traced.items()
        },
        recipes={finding: traced.recipe for finding, traced in analysis.traced.items() if traced.recipe is not None},
        kind=profile.platform,
        tables=tables_of(
            figures_of(profile, tuple(analysis.traced.values())),
            line_costs(profile, analysis.aligner, LINES_BUDGET_S),
            profile.wall_ns,
        ),
        stacks={
            finding: [stack_around(analysis.aligner, anchor) for anchor in traced.anchors]
            for finding, traced in analysis.traced.items()
        },
        summaries=msgspec.Raw(msgspec.json.encode(answer.summaries)),
        step_costs=msgspec.Raw(msgspec.json.encode(analysis.step_costs)),
        captured_sources={source.file: source.text for source in profile.metadata.captured.sources},
        looked_at={**_files_of_fixes(analysis, answer), **analysis.looked_at},
    )


def _files_of_fixes(analysis: Analysis, answer: FixesAnswer) -> dict[str, State]:
    """The state of each file that a fix is for: no line was looked up in files whose text the capture stored."""
    from tb_tidy_plugin.sources.lookup import source_state

    findings = (each for each in answer.report.findings if each.id in answer.facts)
    names = {place.file for finding in findings for place in finding.places}
    return {name: source_state(name, analysis.file, analysis.job.source_roots) for name in sorted(names)}


def stack_around(aligner: Aligner, row: int) -> StackAnswer:
    """The callers of the user's own function around an event."""
    callers = aligner.stack_of(row, 1 + MOST_CALLERS)[1:]
    frames = [
        StackFrame(file=at.file, line=at.line, function=at.function, precision=at.precision, ties=list(at.ties))
        for at in callers[:MOST_CALLERS]
    ]
    return StackAnswer(frames=frames, more=len(callers) - len(frames))


def _source_files(analysis: Analysis) -> list[str]:
    """Files of all Python frames, and of places, which may come from stacks without events."""
    from tb_tidy_plugin.sources.frames import parse_frame

    frames = (parse_frame(name) for name in analysis.profile.table.names)
    in_stacks = {frame.file for frame in frames if frame is not None}
    in_places = {place.file for finding in analysis.report.findings for place in finding.places}
    return sorted(in_stacks | in_places)


def printable(text: str) -> str:
    """`text` with bytes that are not text replaced: a path may hold any bytes, JSON may not."""
    return os.fsencode(text).decode("utf-8", "replace")


if __name__ == "__main__":
    main()
