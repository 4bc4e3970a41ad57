"""Comparisons for the page: computed by a process of their own, and kept while their recordings are the same."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from tb_tidy_plugin.compare.model import Comparison, KernelChange, OperatorChange
from tb_tidy_plugin.compare.recording import StepsError, step_range
from tb_tidy_plugin.configuration.limits import limits_in
from tb_tidy_plugin.plugin.comparison_worker import (
    COMPARISON_WORK,
    ComparisonAnswer,
    NoSuchSteps,
    OverLimit,
    SideAsked,
)
from tb_tidy_plugin.plugin.models import CompareAnswer
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.record import KeptResult
from tb_tidy_plugin.report.chosen import searchable
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.allowance import limit_of
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.errors import NotFoundError, TidyError, TraceError
from tb_tidy_plugin.words.visible import Lines, log_called

log = log_called("tensorboard.torchtidy")

_Change = TypeVar("_Change", OperatorChange, KernelChange)

COMPARISON_COMMAND = child.command_for("tb_tidy_plugin.plugin.comparison_worker")
_MOST_KEPT = 8
MOST_RECORDINGS = 64  # on each side: more would not fit beside everything else in memory


class ComparisonError(TidyError):
    """A comparison that cannot be made."""


class AskedSide(msgspec.Struct, frozen=True):
    """One side as the page asks for it: a run, one of its ranks (all if empty), a range of steps.

    `rank` is a worker's name as in `api/runs`, else the number of a rank.
    """

    run: str
    rank: str = ""
    span: str = ""
    steps: str = ""


class RowFilter(msgspec.Struct, frozen=True):
    """Filter for operators and kernels: their name or shapes contain `text`, in any case."""

    text: str
    offset: int
    limit: int


class _Read(msgspec.Struct, frozen=True):
    """One side's analyses, the number of its unreadable traces, and what rules over several ranks say."""

    side: AskedSide
    kept: list[KeptResult]
    unread: int
    of_runs: list[AboutRun]


class _Known(msgspec.Struct, frozen=True):
    """A comparison without its rows, the rows as text, and its sources."""

    made_from: tuple[KeptResult, ...]
    comparison: Comparison
    operators: bytes
    kernels: bytes


class Comparisons:
    """May be called from any thread; questions wait for each other, since each takes most of a core."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[AskedSide, AskedSide], _Known] = OrderedDict()

    def answer(self, base: AskedSide, candidate: AskedSide, rows: RowFilter, patience_s: float) -> CompareAnswer:
        """Differences from `base` to `candidate`.

        Raises:
            NotFoundError: there is no such run or rank.
            StepsError: the text is not a range of steps, or the range has no steps.
            TraceError: one of the traces could not be read.
            StillAnalysingError: an analysis takes longer than `patience_s`; it goes on.
            ComparisonError: there are too many recordings, or the process could not be started, broke or reached a
                limit.
        """
        for side in (base, candidate):
            if side.steps:
                step_range(side.steps)
        deadline = time.monotonic() + patience_s
        sides = [self._read(side, deadline) for side in (base, candidate)]
        made_from = tuple(kept for read in sides for kept in read.kept)
        with self._lock:
            known = self._known.get((base, candidate))
            if known is None or known.made_from != made_from:
                known = _worked_out(sides, made_from, self._profiles.configuration)
            self._known[base, candidate] = known
            self._known.move_to_end((base, candidate))
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return _page(known, rows)

    def _read(self, side: AskedSide, deadline: float) -> _Read:
        """The analyses of one side. Leaves out unreadable traces, unless all are unreadable."""
        keys = self._profiles.keys_of(side.run, side.span)
        named = [key for key in keys if key.worker == side.rank]
        wanted = named or keys
        if len(wanted) > MOST_RECORDINGS:
            raise ComparisonError(
                f"The run `{side.run}` has {len(wanted)} recordings; at most {MOST_RECORDINGS} are compared at once.",
                "Choose one rank.",
            )
        found, problems = list[KeptResult](), list[TraceError]()
        for key in wanted:
            try:
                found.append(self._profiles.kept(key, max(deadline - time.monotonic(), 0)))
            except TraceError as problem:
                problems.append(problem)
        if side.rank and not named:
            found = [kept for kept in found if str(kept.result.report.rank) == side.rank]
        if found:
            of_runs = [] if side.rank or side.span else [self._profiles.about_run(side.run)]
            return _Read(side, found, len(problems), of_runs)
        if problems and (named or not side.rank):
            raise problems[0]
        raise NotFoundError(f"The run `{side.run}` has no rank `{side.rank}`.", "Reload the list of runs.")


def _worked_out(sides: Sequence[_Read], made_from: tuple[KeptResult, ...], configuration: Path | None) -> _Known:
    base, candidate = (
        SideAsked(
            read.side.run,
            [_recording(read.side, each) for each in read.kept],
            read.unread,
            read.side.steps,
            read.of_runs,
        )
        for read in sides
    )
    comparison = _asked(base, candidate, configuration)
    return _Known(
        made_from=made_from,
        comparison=msgspec.structs.replace(comparison, operators=[], kernels=[]),
        operators=msgspec.json.encode(comparison.operators),
        kernels=msgspec.json.encode(comparison.kernels),
    )


def _recording(side: AskedSide, kept: KeptResult) -> msgspec.Raw:
    return msgspec.Raw(
        msgspec.json.encode({"run": side.run, "report": kept.result.report, "costs": kept.result.step_costs})
    )


def _asked(base: SideAsked, candidate: SideAsked, configuration: Path | None) -> Comparison:
    """The answer of a separate process; waits for its end, and logs its stderr."""
    file = None if configuration is None else os.fsencode(configuration)
    question = msgspec.json.encode({"configuration": file, "base": base, "candidate": candidate})
    process = child.Child(COMPARISON_COMMAND)
    try:
        with process.asked(question) as lines:
            said = b"".join(lines)
    except child.StartError as problem:
        raise ComparisonError(f"The comparison could not be started: {problem}.", "Try again.") from None
    ended = process.ended
    assert ended is not None  # nobody stops it
    if ended.complaint:
        log.warning("torchtidy: comparison: %s", Lines(ended.complaint))
    if (limit := limit_of(ended.code)) is not None:
        reached = limits_in(configuration).reached(limit, COMPARISON_WORK)
        raise ComparisonError(reached.error, reached.advice)
    try:
        answer: ComparisonAnswer = decode(said, ComparisonAnswer)
    except msgspec.MsgspecError:
        raise ComparisonError("The comparison failed with an internal error.", "See the server's log.") from None
    if isinstance(answer, NoSuchSteps):
        raise StepsError(answer.error, answer.advice)
    if isinstance(answer, OverLimit):
        raise ComparisonError(answer.error, answer.advice)
    return answer.comparison


def _holding(rows: Sequence[_Change], text: str) -> list[_Change]:
    wanted = searchable(text)
    return [row for row in rows if wanted in searchable(f"{row.name} {row.shapes}")]


def _page(known: _Known, rows: RowFilter) -> CompareAnswer:
    operators = _holding(decode(known.operators, list[OperatorChange]), rows.text)
    kernels = _holding(decode(known.kernels, list[KernelChange]), rows.text)
    page = slice(rows.offset, rows.offset + rows.limit)
    return CompareAnswer(
        comparison=msgspec.structs.replace(known.comparison, operators=operators[page], kernels=kernels[page]),
        offset=rows.offset,
        operators=len(operators),
        kernels=len(kernels),
    )
