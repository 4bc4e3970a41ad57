"""The traces in the logdirs and the state of each: found, queued, analysed, kept, evicted."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count, groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin import child
from tb_tidy_plugin.errors import NotFoundError, TidyError, TraceError
from tb_tidy_plugin.plugin.analysis import (
    STOPPED,
    WORKER,
    AnalysisOutcome,
    AnalysisSettings,
    FileAnalysis,
    kept_outcome,
    remembered,
)
from tb_tidy_plugin.plugin.analysis_worker import AnalysisProgress, AnalysisResult, Failure, FirstFindings, printable
from tb_tidy_plugin.plugin.board import UNASKED, Glance, glance_of, recorded_ms, shown_of
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import (
    BoardAnswer,
    BoardRow,
    LoadState,
    LoggedRun,
    ProfileState,
    RanksAnswer,
    ReportAnswer,
    RunsAnswer,
    RunState,
)
from tb_tidy_plugin.plugin.run_findings import RunFindings, RunPart
from tb_tidy_plugin.plugin.scan import NOTHING_YET, Catalog, FoundFile, Key, look
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.report.model import Problem, ProfileReport
from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.files import TraceFile

FRESH_S = 2.0  # a look at the logdirs that is not older than this is current
LOOK_PATIENCE_S = 0.5  # most time that a request waits for a new look; on a slow disk, it gets the last one
PERIOD_S = 10.0  # between looks without a request
REST_RATIO = 20  # and at least this many times the duration of a look, for large trees on slow disks
_HEARTBEAT_S = 10.0  # a stream of progress sends a line this often, so that it ends if its reader is gone
KEPT_BYTES = 256 << 20  # of results; a result is 50 kB to a few MB
SMALL_BYTES = 64 << 20  # most text expected of a small trace; the largest of these take 2 s and 150 MB


class ProfileEntry(msgspec.Struct, frozen=True):
    """One trace and the progress of its analysis.

    `recording` is the first version with the file as it is now; `reported` is true if its findings are known.
    """

    found: FoundFile
    version: int
    recording: int
    state: LoadState = "queued"
    fraction: float = 0.0
    stage: str = ""
    problem: Problem | None = None
    reported: bool = False

    @property
    def is_over(self) -> bool:
        """True if there is nothing to wait for."""
        return self.state in {"done", "error"}

    def described(self) -> ProfileState:
        """The state as the API answers it."""
        return ProfileState(
            worker=self.found.file.worker,
            span=self.found.file.span,
            span_index=self.found.span_index,
            state=self.state,
            size=self.found.stamp.size,
            fraction=self.fraction,
            stage=self.stage,
            problem=self.problem,
            version=self.version,
            recording=self.recording,
            reported=self.reported,
        )


class KeptResult(msgspec.Struct, frozen=True):
    """A result, its file, and its size in memory."""

    file: TraceFile
    result: AnalysisResult
    size: int


class StillAnalysingError(TidyError):
    """The answer needs an analysis that is not finished."""


class Profiles:
    """All methods may be called from any thread. Nothing is read before `start`."""

    def __init__(
        self,
        logdirs: Sequence[Logdir],
        command: Sequence[str] = WORKER,
        kept_bytes: int = KEPT_BYTES,
        configuration: Path | None = None,
        source_roots: Sequence[Path] = (),
        cache: Cache = NOWHERE,
    ) -> None:
        """`command` starts a worker, which uses `configuration`, `source_roots` and `cache`."""
        self.configuration = configuration
        self.asked = AnalysisSettings(configuration, tuple(source_roots), cache)
        self._logdirs = tuple(logdirs)
        self._workers = child.Spare(command)
        self._is_watched = False
        self._kept_bytes = kept_bytes
        self._most_large = max(1, (os.cpu_count() or 1) // 2)  # at a time; one more may run if it is small
        self._changed = threading.Condition()
        self._versions = count(1)
        self._entries: dict[Key, ProfileEntry] = {}
        self._wanted: OrderedDict[Key, None] = OrderedDict()  # the last one is next
        self._running: dict[Key, FileAnalysis] = {}
        self._large: set[Key] = set()  # subset of the running ones
        self._kept: OrderedDict[Key, KeptResult] = OrderedDict()  # least recently used first
        self._early: dict[Key, ProfileReport] = {}  # of analyses whose tables are still made
        self._parts: dict[Key, RunPart] = {}  # of all analysed traces, kept or evicted
        self._glances: dict[Key, Glance] = {}  # of all traces with a report, kept or evicted
        self._to_look_up: dict[Key, None] = {}  # whose report may be in the cache
        self._looked_up: set[tuple[Key, int]] = set()  # with the recording
        self._renewed: dict[Key, str] = {}  # reason for the last renewal of each
        self._run_findings = RunFindings(configuration)
        self._has_traces = False
        self._looks = 0
        self._looked_at = 0.0  # on the monotonic clock
        self._look_took_s = 0.0
        self._look_now = False

    def start(self) -> None:
        """Starts to look at the logdirs in the background, periodically."""
        threading.Thread(target=self._keep_looking, daemon=True, name="torchtidy-scan").start()

    def watch(self) -> None:
        """Notes that the page was opened: from now on a worker waits for the next trace, if there are any."""
        self._is_watched = True
        self._have_worker_wait()

    def _have_worker_wait(self) -> None:
        if self._is_watched and self._has_traces:
            self._workers.prepare()

    # Answers

    @property
    def scanning(self) -> bool:
        """True during the first look."""
        return not self._looks

    @property
    def has_traces(self) -> bool:
        """True if the last look found any trace, or a link that may lead to some; costs nothing."""
        return self._has_traces

    def runs(self, *, calm: bool = False) -> RunsAnswer:
        """Everything in the logdirs; runs without a readable trace come last, since the tab opens the first.

        With `calm` the answer is that of the last look, and a new one starts if looks are cheap.
        """
        if calm:
            self._look_calmly()
        else:
            self._refresh()
        with self._changed:
            groups = [
                (run, [entry for _, entry in group])
                for run, group in groupby(self._entries.items(), key=lambda item: item[0].run)
            ]
            groups.sort(key=lambda group: all(entry.found.problem is not None for entry in group[1]))
            runs = [RunState(run=run, profiles=[entry.described() for entry in entries]) for run, entries in groups]
            logdirs = [printable(logdir.path) for logdir in self._logdirs]
            return RunsAnswer(logdirs=logdirs, scanning=self.scanning, runs=runs)

    def board(self, logged: Mapping[str, LoggedRun], *, every: bool = False) -> BoardAnswer:
        """All runs at a glance; starts the analysis of the newest unknown ones, or of all with `every`."""
        self._refresh()
        with self._changed:
            runs = self._by_run()
            shown = [shown_of(keys) for keys in runs.values()]
            times = {key: recorded_ms(self._entries[key].found) for key in shown}
            newest = sorted(shown, key=lambda key: times[key] or 0, reverse=True)
            unknown = [key for key in newest if key not in self._glances and self._entries[key].state != "error"]
            asked = set(unknown if every else [key for key in unknown if key in newest[:UNASKED]])
            for key in unknown:
                if key in asked:
                    self._want(key, first=False)
                else:
                    self._look_up(key)
            under_way = {key for key in unknown if key in asked or key in self._running or key in self._wanted}
            rows = [
                self._row(key, times[key], logged.get(key.run), [self._entries[each] for each in runs[key.run]])
                for key in shown
            ]
        return BoardAnswer(runs=rows, pending=len(under_way), unasked=len(unknown) - len(under_way))

    def _by_run(self) -> dict[str, list[Key]]:
        runs: dict[str, list[Key]] = {}
        for key in self._entries:
            runs.setdefault(key.run, []).append(key)
        return runs

    def _row(self, key: Key, at_ms: int | None, logged: LoggedRun | None, of_run: Sequence[ProfileEntry]) -> BoardRow:
        known = self._glances.get(key)
        glance = known or Glance("", step_ns=None, saving_ns=None, findings=0, action="", finding="", problem="")
        problems = [each.problem.error for each in (self._entries[key], *of_run) if each.problem is not None]
        glance = replace(glance, problem=next(iter(problems), glance.problem))
        return BoardRow(
            run=key.run,
            worker=key.worker,
            span=key.span,
            recorded_ms=at_ms,
            state=self._entries[key].state,
            known=known is not None,
            logged=logged,
            **msgspec.structs.asdict(glance),
        )

    def _look_up(self, key: Key) -> None:
        """Looks for a report in the cache, in the background, once for each recording."""
        name = (key, self._entries[key].recording)
        if name in self._looked_up:
            return
        self._looked_up.add(name)
        self._to_look_up[key] = None
        if len(self._to_look_up) == 1:
            threading.Thread(target=self._look_all_up, daemon=True, name="torchtidy-board").start()

    def _look_all_up(self) -> None:
        while True:
            with self._changed:
                key = next(iter(self._to_look_up), None)
                if key is None:
                    return
                entry = self._entries.get(key)
            result = None if entry is None else kept_outcome(entry.found.file, self.asked)
            with self._changed:
                if entry is not None and result is not None and self._is_current(key, entry):
                    self._glances[key] = glance_of(result.report, result.problem)
                del self._to_look_up[key]

    def report(
        self, run: str, worker: str | None = None, span: str | None = None, *, every_rank: bool = False
    ) -> ReportAnswer:
        """The known reports; starts the analysis of the others, with `every_rank` also that of the run's other ranks.

        Raises:
            NotFoundError: there is no such trace.
        """
        self._refresh()
        with self._changed:
            of_run = [key for key in self._entries if key.run == run]
            keys = [key for key in of_run if worker in {None, key.worker} and span in {None, key.span}]
            if not keys:
                raise _no_such(run, worker, span)
            if every_rank:
                for key in reversed(of_run):
                    if key not in self._parts:  # an evicted result leaves its part for the run
                        self._want(key, first=False)
            for key in reversed(keys):
                self._want(key)
            states = [self._entries[key].described() for key in keys]
            profiles = self._reports(keys)
            parts, pending = self._parts_of(of_run)
        about, ranks = self._run_findings.about(run, parts)  # slow, so without the lock
        report = msgspec.structs.replace(about, profiles=profiles, ranks=None)  # ranks have an answer of their own
        return ReportAnswer(states=states, report=report, ranks=ranks, pending=pending)

    def ranks(self, run: str) -> RanksAnswer:
        """The comparison of a run's analysed ranks; starts nothing.

        Raises:
            NotFoundError: there is no such run.
        """
        self._refresh()
        with self._changed:
            of_run = [key for key in self._entries if key.run == run]
            if not of_run:
                raise _no_such(run)
            parts, pending = self._parts_of(of_run)
        about, _ = self._run_findings.about(run, parts)
        return RanksAnswer(ranks=about.ranks, pending=pending)

    def about_run(self, run: str) -> AboutRun:
        """What rules over several ranks say about a run, from its analysed ranks."""
        with self._changed:
            parts, _ = self._parts_of([key for key in self._entries if key.run == run])
        return self._run_findings.compared(run, parts)

    def _parts_of(self, keys: Sequence[Key]) -> tuple[dict[Key, RunPart], int]:
        """The parts of these traces for their run, and the number of traces that are not analysed yet."""
        parts = {key: self._parts[key] for key in keys if key in self._parts}
        return parts, sum(key not in parts and self._entries[key].state != "error" for key in keys)

    def _reports(self, keys: Sequence[Key]) -> list[ProfileReport]:
        """The known reports; the early report of a running analysis is newer than that of a finished one."""
        kept = {key: self._kept[key].result.report for key in keys if key in self._kept}
        early = {key: self._early[key] for key in keys if key in self._early}
        known = kept | early
        return [known[key] for key in keys if key in known]

    def keys_of(self, run: str, span: str = "") -> list[Key]:
        """The run's traces, of one span if it is given.

        Raises:
            NotFoundError: there are none.
        """
        self._refresh()
        with self._changed:
            keys = [key for key in self._entries if key.run == run and span in {"", key.span}]
        if not keys:
            raise _no_such(run, None, span)
        return keys

    def progress(self, key: Key) -> Iterator[ProfileState]:
        """The state now and after each change, until there is nothing to wait for or the trace is gone.

        Raises:
            NotFoundError: at once, if there is no such trace.
        """
        with self._changed:
            if key not in self._entries:
                raise _no_such(*key)
        return self._progress(key)

    def _progress(self, key: Key) -> Iterator[ProfileState]:
        last: ProfileEntry | None = None
        while last is None or not last.is_over:
            with self._changed:
                self._want(key, first=last is None)
                self._changed.wait_for(partial(self._has_changed, key, last), _HEARTBEAT_S)
                last = self._entries.get(key)
            if last is None:
                return
            yield last.described()

    def _has_changed(self, key: Key, last: ProfileEntry | None) -> bool:
        return self._entries.get(key) != last

    def kept(self, key: Key, patience_s: float) -> KeptResult:
        """A finished analysis; waits for a running one, or repeats an evicted one.

        Raises:
            NotFoundError: there is no such trace.
            TraceError: it could not be read.
            StillAnalysingError: it takes longer than `patience_s`.
        """
        deadline = time.monotonic() + patience_s
        with self._changed:
            while (entry := self._entries.get(key)) is not None:
                self._want(key)
                if key in self._kept:
                    return self._kept[key]
                if entry.state == "error" and entry.problem is not None:
                    raise TraceError(entry.problem.error, entry.problem.advice)
                if (left_s := deadline - time.monotonic()) <= 0:
                    raise StillAnalysingError("The trace is still being analysed.", "Ask again in a moment.")
                self._changed.wait(left_s)
            raise _no_such(*key)

    def renew(self, key: Key, reason: str) -> None:
        """Repeats a finished analysis because there is new data besides its trace; once for each reason.

        Until it is done, answers use the earlier result.
        """
        with self._changed:
            entry = self._entries.get(key)
            if entry is None or entry.found.problem or not entry.is_over or self._renewed.get(key) == reason:
                return
            self._renewed[key] = reason
            self._again(key, entry)

    def retry(self, key: Key) -> ProfileState:
        """Repeats a failed analysis; a trace in any other state stays as it is.

        Raises:
            NotFoundError: there is no such trace.
        """
        self._refresh()
        with self._changed:
            entry = self._entries.get(key)
            if entry is None:
                raise _no_such(*key)
            if entry.state == "error" and entry.found.problem is None:
                self._again(key, replace(entry, problem=None))
            return self._entries[key].described()

    def cancel(self, key: Key) -> ProfileState:
        """Stops an analysis that waits or runs; a trace in any other state stays as it is.

        Raises:
            NotFoundError: there is no such trace.
        """
        with self._changed:
            entry = self._entries.get(key)
            if entry is None:
                raise _no_such(*key)
            self._wanted.pop(key, None)
            if not entry.is_over:
                if key in self._running:
                    self._running[key].stop()
                self._finish(key, STOPPED)
                self._changed.notify_all()
            return self._entries[key].described()

    def _again(self, key: Key, entry: ProfileEntry) -> None:
        """Puts a trace whose analysis is over in the queue, as a new version."""
        self._entries[key] = replace(entry, version=next(self._versions), state="queued", fraction=0.0, stage="")
        if key in self._running:  # the stopped worker has not ended yet
            self._wanted[key] = None
        self._want(key)
        self._changed.notify_all()

    # Looking

    def _refresh(self) -> None:
        with self._changed:
            if self._looks and time.monotonic() - self._looked_at < FRESH_S:
                return
            before = self._looks
            self._look_now = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._looks > before, LOOK_PATIENCE_S)

    def _look_calmly(self) -> None:
        with self._changed:
            if self._looks and time.monotonic() - self._looked_at >= max(FRESH_S, REST_RATIO * self._look_took_s):
                self._look_now = True
                self._changed.notify_all()

    def _keep_looking(self) -> None:
        last = NOTHING_YET
        while True:
            began = time.monotonic()
            catalog: Catalog | None
            try:
                catalog = look(self._logdirs, self.configuration, last)
            except OSError:
                catalog = None
            took_s = time.monotonic() - began
            with self._changed:
                if catalog is not None:
                    self._take_over(catalog)
                    last = catalog
                self._looks += 1
                self._looked_at = time.monotonic()
                self._look_took_s = took_s
                self._look_now = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._look_now, max(PERIOD_S, REST_RATIO * took_s))

    def _take_over(self, catalog: Catalog) -> None:
        before, self._entries = self._entries, {}
        for key, found in catalog.items():
            old = before.pop(key, None)
            if old is not None and (old.found.stamp, old.found.file) == (found.stamp, found.file):
                self._entries[key] = replace(old, found=found)
            else:
                state: LoadState = "error" if found.problem else "queued"
                version = next(self._versions)
                self._entries[key] = ProfileEntry(found, version, version, state, problem=found.problem)
                self._give_up(key)
        for key in before:
            self._give_up(key)
            self._wanted.pop(key, None)
        had_traces, self._has_traces = (
            self._has_traces,
            any(found.problem is None or found.is_link for found in catalog.values()),
        )
        if not had_traces:
            self._have_worker_wait()
        self._start_wanted()

    def _give_up(self, key: Key) -> None:
        """Forgets the results for an earlier state of the file, and restarts its running analysis."""
        self._kept.pop(key, None)
        self._early.pop(key, None)
        self._parts.pop(key, None)
        self._glances.pop(key, None)
        if key in self._running:
            self._running[key].stop()
            self._wanted[key] = None

    # Analysing

    def _want(self, key: Key, *, first: bool = True) -> None:
        if key in self._kept:
            self._kept.move_to_end(key)
        entry = self._entries.get(key)
        if entry is None or entry.is_over or key in self._running:
            return
        is_new = key not in self._wanted
        self._wanted[key] = None
        if first or is_new:
            self._wanted.move_to_end(key)
        self._start_wanted()

    def _start_wanted(self) -> None:
        for key in [key for key in reversed(self._wanted) if self._can_start(key)]:
            entry = self._entries[key]
            is_large = entry.found.likely_text > SMALL_BYTES
            if len(self._running) > self._most_large or (is_large and len(self._large) == self._most_large):
                continue  # so that large traces never keep small ones waiting
            del self._wanted[key]
            if is_large:
                self._large.add(key)
            analysis = self._running[key] = FileAnalysis(entry.found.file, self._workers, self.asked)
            threading.Thread(target=self._analyse, args=(key, entry, analysis), daemon=True).start()

    def _can_start(self, key: Key) -> bool:
        """True if there is a file to read that no worker reads: it may be gone, or have become a skipped link."""
        entry = self._entries.get(key)
        return entry is not None and entry.found.problem is None and key not in self._running

    def _analyse(self, key: Key, entry: ProfileEntry, analysis: FileAnalysis) -> None:
        outcome: AnalysisOutcome = STOPPED
        try:
            outcome = remembered(analysis, lambda news: self._note(key, entry, news))
        finally:
            with self._changed:
                del self._running[key]
                self._large.discard(key)
                if self._is_current(key, entry):
                    self._finish(key, outcome)
                self._start_wanted()
                self._changed.notify_all()

    def _is_current(self, key: Key, entry: ProfileEntry) -> bool:
        return key in self._entries and self._entries[key].version == entry.version

    def _note(self, key: Key, entry: ProfileEntry, news: AnalysisProgress | FirstFindings) -> None:
        if isinstance(news, FirstFindings):
            self._have_worker_wait()
        with self._changed:
            if not self._is_current(key, entry):
                return
            if isinstance(news, FirstFindings):
                self._early[key] = news.report
                self._entries[key] = replace(self._entries[key], reported=True, problem=news.problem)
            else:
                self._entries[key] = replace(
                    self._entries[key], state=news.state, stage=news.stage, fraction=news.fraction
                )
            self._changed.notify_all()

    def _finish(self, key: Key, outcome: AnalysisOutcome) -> None:
        entry = self._entries[key]
        file = entry.found.file
        self._early.pop(key, None)
        if isinstance(outcome, Failure):
            path = printable(str(file.path))
            problem = Problem(path=path, error=outcome.error, advice=outcome.advice, recovered_events=0)
            self._entries[key] = replace(entry, state="error", stage="", problem=problem, reported=False)
            return
        self._entries[key] = replace(
            entry, state="done", stage="", fraction=1.0, problem=outcome.problem, reported=True
        )
        self._parts[key] = RunPart(entry.version, outcome.summaries)
        self._glances[key] = glance_of(outcome.report, outcome.problem)
        size = sum(memoryview(columns).nbytes for columns in outcome.events.values()) + outcome.tables.size
        size += memoryview(outcome.step_costs).nbytes
        self._kept[key] = KeptResult(file, outcome, size)
        self._make_room()

    def _make_room(self) -> None:
        """Evicts the least recently used results; a request for one repeats its analysis."""
        while len(self._kept) > 1 and sum(kept.size for kept in self._kept.values()) > self._kept_bytes:
            key, _ = self._kept.popitem(last=False)
            self._entries[key] = replace(self._entries[key], state="queued", fraction=0.0, problem=None, reported=False)


def _no_such(run: str, worker: str | None = None, span: str | None = None) -> NotFoundError:
    named = [f"run `{run}`", f"worker `{worker}`" if worker else "", f"span `{span}`" if span else ""]
    return NotFoundError(f"There is no {', '.join(filter(None, named))} in the logdir.", "Reload the list of runs.")
