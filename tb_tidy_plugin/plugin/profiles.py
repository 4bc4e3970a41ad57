"""The traces in the logdirs and the state of each: found, queued, analysed, kept, evicted."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.plugin.analysis import (
    NOT_STARTED,
    STOPPED,
    UNCONFIGURED,
    WORKER,
    AnalysisOutcome,
    AnalysisSettings,
    FileAnalysis,
    kept_outcome,
    remembered,
)
from tb_tidy_plugin.plugin.analysis_worker import AnalysisProgress, FirstFindings, printable
from tb_tidy_plugin.plugin.board import UNASKED, Glance, glance_of, recorded_ms, shown_of
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import (
    BoardAnswer,
    BoardRow,
    LoggedRun,
    ProfileState,
    RanksAnswer,
    ReportAnswer,
    RunsAnswer,
    RunState,
)
from tb_tidy_plugin.plugin.record import KeptResult, TraceRecord
from tb_tidy_plugin.plugin.run_findings import RunFindings, RunPart
from tb_tidy_plugin.plugin.scan import NOTHING_YET, Catalog, Key, look
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.system import child
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.words.errors import NotFoundError, TidyError, TraceError

FRESH_S = 2.0  # a look at the logdirs that is not older than this is current
LOOK_PATIENCE_S = 0.5  # most time that a request waits for a new look; on a slow disk, it gets the last one
PERIOD_S = 10.0  # between looks without a request
REST_RATIO = 20  # and at least this many times the duration of a look, for large trees on slow disks
_HEARTBEAT_S = 10.0  # a stream of progress sends a line this often, so that it ends if its reader is gone
KEPT_BYTES = 256 << 20  # of results; a result is 50 kB to a few MB
SMALL_BYTES = 64 << 20  # most text expected of a small trace; the largest of these take 2 s and 150 MB


class StillAnalysingError(TidyError):
    """The answer needs an analysis that is not finished."""


class _Running(msgspec.Struct, frozen=True, eq=False):
    """An analysis under way; complete before its thread starts. It has a worker even after its record was replaced."""

    key: Key
    record: TraceRecord
    analysis: FileAnalysis
    is_large: bool


class Profiles:
    """All methods may be called from any thread. Nothing is read before `start`.

    One lock, that of `_changed`, guards the records with all their fields, the queue, the running analyses, the
    look-ups and the times of looks. It is held for bookkeeping only: files, workers' messages, the cache and rules over
    several ranks are read without it. `_changed` is notified of each change of a record, and of each look.
    """

    def __init__(
        self,
        logdirs: Sequence[Logdir],
        command: Sequence[str] = WORKER,
        kept_bytes: int = KEPT_BYTES,
        asked: AnalysisSettings = UNCONFIGURED,
    ) -> None:
        """`command` starts a worker, which uses the settings `asked`."""
        self.configuration = asked.configuration
        self.asked = asked
        self._logdirs = tuple(logdirs)
        self._workers = child.Spare(command)
        self._is_watched = False
        self._kept_bytes = kept_bytes
        self._most_large = max(1, (os.cpu_count() or 1) // 2)  # at a time; one more may run if it is small
        self._run_findings = RunFindings(asked.configuration)
        self._changed = threading.Condition()
        self._versions = count(1)
        self._uses = count(1)
        self._records: dict[Key, TraceRecord] = {}  # in the order of the page
        self._queue: OrderedDict[Key, None] = OrderedDict()  # traces that wait for a worker; the last one is next
        self._running: list[_Running] = []
        self._to_look_up: deque[TraceRecord] = deque()  # whose report may be in the cache
        self._is_looking_up = False
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
            groups = list(self._by_run().items())
            groups.sort(key=lambda group: all(record.found.problem is not None for record in group[1].values()))
            runs = [
                RunState(run=run, profiles=[record.described() for record in records.values()])
                for run, records in groups
            ]
            logdirs = [printable(logdir.path) for logdir in self._logdirs]
            return RunsAnswer(logdirs=logdirs, scanning=self.scanning, runs=runs)

    def board(self, logged: Mapping[str, LoggedRun], *, every: bool = False) -> BoardAnswer:
        """All runs at a glance; starts the analysis of the newest unknown ones, or of all with `every`."""
        self._refresh()
        with self._changed:
            runs = self._by_run()
            shown = {key: self._records[key] for key in (shown_of(list(keys)) for keys in runs.values())}
            times = {key: recorded_ms(record.found) for key, record in shown.items()}
            newest = sorted(shown, key=lambda key: times[key] or 0, reverse=True)
            unknown = [key for key in newest if shown[key].glance is None and shown[key].state != "error"]
            asked = set(unknown if every else [key for key in unknown if key in newest[:UNASKED]])
            for key in unknown:
                if key in asked:
                    self._want(key, first=False)
                else:
                    self._look_up(shown[key])
            under_way = asked.union(key for key in unknown if key in self._queue or shown[key].analysis is not None)
            rows = [
                _row(key, record, times[key], logged.get(key.run), runs[key.run].values())
                for key, record in shown.items()
            ]
        return BoardAnswer(runs=rows, pending=len(under_way), unasked=len(unknown) - len(under_way))

    def _by_run(self) -> dict[str, dict[Key, TraceRecord]]:
        runs: dict[str, dict[Key, TraceRecord]] = {}
        for key, record in self._records.items():
            runs.setdefault(key.run, {})[key] = record
        return runs

    def _look_up(self, record: TraceRecord) -> None:
        """Looks for a report in the cache, in the background, once for each record."""
        if not record.is_looked_up:
            record.is_looked_up = True
            self._to_look_up.append(record)
            self._start_look_up()

    def _start_look_up(self) -> None:
        if self._to_look_up and not self._is_looking_up:
            record = self._to_look_up.popleft()
            self._is_looking_up = _started(partial(self._look_in_cache, record, record.found.file), "torchtidy-board")

    def _look_in_cache(self, record: TraceRecord, file: TraceFile) -> None:
        result = None
        try:
            result = kept_outcome(file, self.asked)
        finally:
            with self._changed:
                if result is not None and record.glance is None:
                    record.glance = glance_of(result.report, result.problem)
                self._is_looking_up = False
                self._start_look_up()

    def report(
        self, run: str, worker: str | None = None, span: str | None = None, *, every_rank: bool = False
    ) -> ReportAnswer:
        """The known reports; starts the analysis of the others, with `every_rank` also that of the run's other ranks.

        Raises:
            NotFoundError: there is no such trace.
        """
        self._refresh()
        with self._changed:
            of_run = self._of_run(run)
            keys = [key for key in of_run if worker in {None, key.worker} and span in {None, key.span}]
            if not keys:
                raise _no_such(run, worker, span)
            if every_rank:
                for key in reversed(of_run):
                    if of_run[key].part is None:  # an evicted result leaves its part for the run
                        self._want(key, first=False)
            for key in reversed(keys):
                self._want(key)
            states = [of_run[key].described() for key in keys]
            profiles = [known for key in keys if (known := of_run[key].report) is not None]
            parts, pending = _parts_of(of_run)
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
            of_run = self._of_run(run)
            if not of_run:
                raise _no_such(run)
            parts, pending = _parts_of(of_run)
        about, _ = self._run_findings.about(run, parts)
        return RanksAnswer(ranks=about.ranks, pending=pending)

    def about_run(self, run: str) -> AboutRun:
        """What rules over several ranks say about a run, from its analysed ranks."""
        with self._changed:
            parts, _ = _parts_of(self._of_run(run))
        return self._run_findings.compared(run, parts)

    def _of_run(self, run: str) -> dict[Key, TraceRecord]:
        return {key: record for key, record in self._records.items() if key.run == run}

    def keys_of(self, run: str, span: str = "") -> list[Key]:
        """The run's traces, of one span if it is given.

        Raises:
            NotFoundError: there are none.
        """
        self._refresh()
        with self._changed:
            keys = [key for key in self._records if key.run == run and span in {"", key.span}]
        if not keys:
            raise _no_such(run, None, span)
        return keys

    def progress(self, key: Key) -> Iterator[ProfileState]:
        """The state now and after each change, until there is nothing to wait for or the trace is gone.

        Raises:
            NotFoundError: at once, if there is no such trace.
        """
        with self._changed:
            self._record(key)
        return self._progress(key)

    def _progress(self, key: Key) -> Iterator[ProfileState]:
        last: ProfileState | None = None
        while last is None or last.state not in {"done", "error"}:
            with self._changed:
                self._want(key, first=last is None)
                self._changed.wait_for(partial(self._has_changed, key, last), _HEARTBEAT_S)
                if key not in self._records:
                    return
                last = self._records[key].described()
            yield last

    def _has_changed(self, key: Key, last: ProfileState | None) -> bool:
        return key not in self._records or self._records[key].described() != last

    def _record(self, key: Key) -> TraceRecord:
        """The record of a trace.

        Raises:
            NotFoundError: there is no such trace.
        """
        record = self._records.get(key)
        if record is None:
            raise _no_such(*key)
        return record

    def kept(self, key: Key, patience_s: float) -> KeptResult:
        """A finished analysis; waits for a running one, or repeats an evicted one.

        Raises:
            NotFoundError: there is no such trace.
            TraceError: it could not be read.
            StillAnalysingError: it takes longer than `patience_s`.
        """
        deadline = time.monotonic() + patience_s
        with self._changed:
            while True:
                record = self._record(key)
                self._want(key)
                if record.result is not None:
                    return record.result
                if record.state == "error" and record.problem is not None:
                    raise TraceError(record.problem.error, record.problem.advice)
                if (left_s := deadline - time.monotonic()) <= 0:
                    raise StillAnalysingError("The trace is still being analysed.", "Ask again in a moment.")
                self._changed.wait(left_s)

    def renew(self, key: Key, reason: str) -> None:
        """Repeats a finished analysis because there is new data besides its trace; once for each reason.

        Until it is done, answers use the earlier result.
        """
        with self._changed:
            record = self._records.get(key)
            if record is None or record.found.problem or not record.is_over or record.renewed == reason:
                return
            record.renewed = reason
            self._repeat(key, record)

    def retry(self, key: Key) -> ProfileState:
        """Repeats a failed analysis; a trace in any other state stays as it is.

        Raises:
            NotFoundError: there is no such trace.
        """
        self._refresh()
        with self._changed:
            record = self._record(key)
            if record.state == "error" and record.found.problem is None:
                record.problem = None
                self._repeat(key, record)
            return record.described()

    def cancel(self, key: Key) -> ProfileState:
        """Stops an analysis that waits or runs; a trace in any other state stays as it is.

        Raises:
            NotFoundError: there is no such trace.
        """
        with self._changed:
            record = self._record(key)
            self._queue.pop(key, None)
            if not record.is_over:
                record.cancel()
                self._changed.notify_all()
            return record.described()

    def _repeat(self, key: Key, record: TraceRecord) -> None:
        """Puts a trace whose analysis is over in the queue, as a new version."""
        record.repeat(next(self._versions))
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
            had_traces = self._has_traces
            with self._changed:
                if catalog is not None:
                    self._take_over(catalog)
                    last = catalog
                self._looks += 1
                self._looked_at = time.monotonic()
                self._look_took_s = took_s
                self._look_now = False
                self._changed.notify_all()
            if not had_traces:
                self._have_worker_wait()
            with self._changed:
                self._changed.wait_for(lambda: self._look_now, max(PERIOD_S, REST_RATIO * took_s))

    def _take_over(self, catalog: Catalog) -> None:
        before, self._records = self._records, {}
        for key, found in catalog.items():
            old = before.pop(key, None)
            if old is not None and (old.found.stamp, old.found.file) == (found.stamp, found.file):
                old.found = found  # its number among the spans may be another
                self._records[key] = old
                continue
            self._records[key] = TraceRecord.of(found, next(self._versions))
            if old is not None and old.analysis is not None:
                old.abandon()
                self._queue[key] = None
        for key, gone in before.items():
            gone.abandon()
            self._queue.pop(key, None)
        self._has_traces = any(found.problem is None or found.is_link for found in catalog.values())
        self._start_next()

    # Analysing

    def _want(self, key: Key, *, first: bool = True) -> None:
        """Notes that a trace is in use, and has it analysed if that is needed: next, or `first` of all that wait."""
        record = self._records.get(key)
        if record is None:
            return
        record.used = next(self._uses)
        if record.is_over or record.analysis is not None:
            return
        if first or key not in self._queue:
            self._queue[key] = None
            self._queue.move_to_end(key)
        self._start_next()

    def _start_next(self) -> None:
        """Starts the analyses that may start; large traces never take the last place, which is for small ones."""
        for key in [key for key in reversed(self._queue) if self._can_start(key)]:
            record = self._records[key]
            is_large = record.found.likely_text > SMALL_BYTES
            large = sum(each.is_large for each in self._running)
            if len(self._running) > self._most_large or (is_large and large == self._most_large):
                continue
            del self._queue[key]
            record.analysis = FileAnalysis(record.found.file, self._workers, self.asked)
            running = _Running(key, record, record.analysis, is_large)
            self._running.append(running)
            if not _started(partial(self._analyse, running), "torchtidy-analysis"):
                self._running.remove(running)
                record.finish(NOT_STARTED)

    def _can_start(self, key: Key) -> bool:
        """True if there is a file to read that no worker reads: it may be gone, or have become a skipped link."""
        return self._records[key].found.problem is None and all(each.key != key for each in self._running)

    def _analyse(self, running: _Running) -> None:
        outcome: AnalysisOutcome = STOPPED
        try:
            outcome = remembered(running.analysis, partial(self._note, running))
        finally:
            with self._changed:
                self._running.remove(running)
                if _is_awaited(running):
                    running.record.finish(outcome)
                    running.record.used = next(self._uses)
                    self._make_room()
                self._start_next()
                self._changed.notify_all()

    def _note(self, running: _Running, news: AnalysisProgress | FirstFindings) -> None:
        if isinstance(news, FirstFindings):
            self._have_worker_wait()
        with self._changed:
            if _is_awaited(running):
                running.record.note(news)
                self._changed.notify_all()

    def _make_room(self) -> None:
        """Evicts the least recently used results; a request for one repeats its analysis."""
        kept = [(record, record.result.size) for record in self._records.values() if record.result is not None]
        kept.sort(key=lambda each: each[0].used)
        total = sum(size for _, size in kept)
        for record, size in kept[:-1]:
            if total <= self._kept_bytes:
                break
            record.evict()
            total -= size


def _is_awaited(running: _Running) -> bool:
    """False if the analysis was cancelled, or its file has changed."""
    return running.record.analysis is running.analysis


def _started(work: Callable[[], object], name: str) -> bool:
    """Starts a thread; False if the system has none left."""
    try:
        threading.Thread(target=work, daemon=True, name=name).start()
    except RuntimeError:
        return False
    return True


def _row(
    key: Key, record: TraceRecord, at_ms: int | None, logged: LoggedRun | None, of_run: Iterable[TraceRecord]
) -> BoardRow:
    glance = record.glance or Glance("", step_ns=None, saving_ns=None, findings=0, action="", finding="", problem="")
    problems = [each.problem.error for each in (record, *of_run) if each.problem is not None]
    glance = replace(glance, problem=next(iter(problems), glance.problem))
    return BoardRow(
        run=key.run,
        worker=key.worker,
        span=key.span,
        recorded_ms=at_ms,
        state=record.state,
        known=record.glance is not None,
        logged=logged,
        **msgspec.structs.asdict(glance),
    )


def _parts_of(records: Mapping[Key, TraceRecord]) -> tuple[dict[Key, RunPart], int]:
    """The parts of these traces for their run, and the number of traces that are not analysed yet."""
    parts = {key: record.part for key, record in records.items() if record.part is not None}
    return parts, sum(key not in parts and record.state != "error" for key, record in records.items())


def _no_such(run: str, worker: str | None = None, span: str | None = None) -> NotFoundError:
    named = [f"run `{run}`", f"worker `{worker}`" if worker else "", f"span `{span}`" if span else ""]
    return NotFoundError(f"There is no {', '.join(filter(None, named))} in the logdir.", "Reload the list of runs.")
