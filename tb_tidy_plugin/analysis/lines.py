"""Cost of each line of the user's files, and the line of each operator's call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.ledger.account import account_of, passes_of
from tb_tidy_plugin.ledger.calls import PassTimes, backward_nodes
from tb_tidy_plugin.ledger.model import OWNER_PASSES
from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of
from tb_tidy_plugin.profile.compiled.operators import user_operators
from tb_tidy_plugin.profile.graphs.replay import known_by_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.generated import Generated, generated_of
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct, numbered
from tb_tidy_plugin.words.vocabulary import KnownBy, Precision


class OperatorPlace(Model, frozen=True):
    """One operator that user code calls. `tie` names equally likely lines; empty if one is likeliest.

    `generated` is set for kernels that `torch.compile` chose or generated.
    """

    start_ns: int
    name: str
    file: str
    line: int
    end_line: int
    function: str
    precision: Precision
    tie: list[int]
    generated: Generated | None = None


class OperatorPlaces(Model, frozen=True):
    """The operators that user code calls: `start_ns` of each counts from `origin_ns`, both in ns."""

    origin_ns: int
    operators: list[OperatorPlace]


PASSES = tuple(f"{name}_ns" for name in OWNER_PASSES)
"""Fields of `PassTime`."""


class PassTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time of the ledger's steps by pass, in ns over all steps: each nanosecond counts once, where it passes."""

    forward_ns: int = 0
    backward_ns: int = 0
    optimizer_ns: int = 0
    loading_ns: int = 0
    other_ns: int = 0

    @property
    def own_ns(self) -> int:
        """All passes."""
        return sum(getattr(self, name) for name in PASSES)


def summed_times(times: Iterable[PassTime]) -> PassTime:
    """The sum of each pass."""
    found = PassTime()
    for each in times:
        found = PassTime(**{name: getattr(found, name) + getattr(each, name) for name in PASSES})
    return found


class LineCost(PassTime, frozen=True):
    """Cost of one line: its calls over the whole recording, and its part of the ledger's steps.

    The time by pass is that of the line itself, without the lines of the user's own functions that it calls. The
    backward pass counts on the line of the forward operator whose gradient it computes.

    Attributes:
        host_ns: time of the calls, including all that they call in turn.
        device_ns: time of the kernels, copies and fills that they launch.
        calls: their number.
        shared: most lines that one compiled kernel of this line computes; 1 without such kernels. The kernel's time
            counts for its main line.
        known_by: the least certain way in which calls of replayed graphs are attributed to the line; None without any.
        total_ns: time of the ledger's steps, with that of the user's own functions that the line calls.
        ties: other lines that fit a part of it equally well.
    """

    file: str
    line: int
    host_ns: int
    device_ns: int
    calls: int
    shared: int = 1
    known_by: KnownBy | None = None
    total_ns: int = 0
    ties: tuple[int, ...] = ()


class FunctionTime(PassTime, frozen=True):
    """Time of the ledger's steps in one of the user's own functions, on lines of it that are not known."""

    file: str
    function: str


class StepTime(PassTime, frozen=True):
    """Time of the ledger's steps: lines, functions and the time outside the user's own code add up to it.

    Attributes:
        steps: their number. ns: their length.
        functions: the user's own functions with time whose line is not known, most time first.
        elsewhere: time outside the user's own code, and of nothing that was recorded.
    """

    steps: int = 1
    ns: int = 0
    functions: list[FunctionTime] = msgspec.field(default_factory=list)
    elsewhere: PassTime = PassTime()

    def less(self, *parts: PassTime) -> PassTime:
        """What the parts leave of each pass."""
        taken = summed_times(parts)
        return PassTime(**{name: getattr(self, name) - getattr(taken, name) for name in PASSES})


class Annotations(Model, frozen=True):
    """`tb-tidy annotate --format json`: what the text shows, and `OperatorPlaces`."""

    schema: int
    wall_ns: int
    step: StepTime
    lines: list[LineCost]
    origin_ns: int
    operators: list[OperatorPlace]


class LineCosts(msgspec.Struct, frozen=True):
    """Costs by file and line. `left_out` are functions that the time did not suffice for, most expensive first."""

    lines: list[LineCost]
    left_out: list[Frame]
    step: StepTime = StepTime()


def operator_places(profile: Profile, aligner: Aligner) -> OperatorPlaces:
    """The places of all operators that the user's own code runs, in order of start, as far as they are known."""
    rows = user_operators(profile, _is_own)
    rows = rows[np.argsort(profile.table.start_ns[rows], kind="stable")]
    found = ((row, aligner.place_of(row)) for row in rows.tolist())
    return OperatorPlaces(
        origin_ns=profile.table.origin_ns,
        operators=[
            _operator_place(profile, row, place) for row, place in found if place is not None and place.own_code
        ],
    )


def _is_own(name: str) -> bool:
    frame = parse_frame(name)
    return frame is not None and frame.own_code


def _operator_place(profile: Profile, row: int, place: Frame) -> OperatorPlace:
    return OperatorPlace(
        start_ns=profile.start_ns(row),
        name=profile.table.names[profile.table.name[row]],
        file=place.file,
        line=place.line,
        end_line=place.end_line or place.line,
        function=place.function,
        precision=place.precision,
        tie=list(place.ties),
        generated=generated_of(place),
    )


def line_costs(profile: Profile, aligner: Aligner, budget_s: float = math.inf) -> LineCosts:
    """The costs of all lines on which something was recorded.

    A call counts for its own line and for the lines that lead to it. If a function calls itself, its calls count for a
    line once for each time that the line is reached.

    Args:
        profile: the recording.
        aligner: finds the lines.
        budget_s: processor time that this may take, in s. Functions that take most of the recording come first. Each
            is counted whole or left out, so a line's cost never lacks a part of its calls.
    """
    deadline = time.thread_time() + budget_s
    sums: dict[tuple[str, int], list[int]] = {}
    left_out: list[Frame] = []
    _add(profile, sums, _kernels(profile, aligner))
    for frame, rows in _own_frames(profile):
        found = _calls_in(aligner, frame, rows, deadline)
        if found is None:
            left_out.append(frame)
        else:
            _add(profile, sums, found)
    of_steps = _Steps(profile, aligner, frozenset(left_out))
    none = [0, 0, 0, 1, ABSENT]
    costs = list[LineCost]()
    for file, line in sorted({*sums, *of_steps.lines}):
        host_ns, device_ns, calls, shared, known = sums.get((file, line), none)
        costs.append(
            LineCost(
                file, line, host_ns, device_ns, calls, shared, known_by_of(known), **of_steps.figures((file, line))
            )
        )
    return LineCosts(costs, left_out, of_steps.whole)


_Line: TypeAlias = tuple[str, int]
_MOST_OUTWARD = 100
"""Most functions around a call whose lines get its time."""


class _Steps:
    """Time of the ledger's steps on the user's own lines.

    Args:
        profile, aligner: of one recording.
        unread: functions whose lines are not looked for.
    """

    def __init__(self, profile: Profile, aligner: Aligner, unread: frozenset[Frame]) -> None:
        self._profile, self._aligner, self._places, self._unread = profile, aligner, aligner.places, unread
        self._numbers: dict[_Line, int] = {}
        self._ties: dict[_Line, set[int]] = {}
        times, ledger = passes_of(profile), account_of(profile).ledger
        number = np.append(self._places.number, np.int32(ABSENT))[times.place]
        own = np.array([frame.own_code for frame in self._places.frames] + [False])[number]
        functions = self._by_call(times, np.flatnonzero(own))
        self._enclosing()
        self._line_ns = np.zeros((len(self._numbers), len(OWNER_PASSES)), np.int64)
        known = self._line != ABSENT
        np.add.at(self._line_ns, self._line[known], self._ns[known])
        self.whole = StepTime(
            **_by_pass(_sums(times.pass_, times.ns)),
            steps=max(len(ledger.steps), 1),
            ns=ledger.window.end_ns - ledger.window.start_ns,
            functions=functions,
            elsewhere=PassTime(**_by_pass(_sums(times.pass_[~own], times.ns[~own]))),
        )

    @property
    def lines(self) -> Collection[_Line]:
        """The lines with time."""
        return self._numbers.keys()

    def figures(self, line: _Line) -> dict[str, Any]:
        """Fields of the `LineCost` of a line."""
        at = self._numbers.get(line)
        if at is None:
            return {}
        ties = tuple(sorted(self._ties.get(line, ())))
        return {**_by_pass(self._line_ns[at]), "total_ns": int(self._total_ns[at]), "ties": ties}

    def _by_call(self, times: PassTimes, own: Rows) -> list[FunctionTime]:
        """Adds up the time of each call, finds its line, and returns the functions whose lines are not known."""
        frame, call, place = (each[own].astype(np.int64) for each in (times.frame, times.call, times.place))
        size = self._profile.tree.size
        generated = compiled_graphs_of(self._profile).call[place] != ABSENT
        alike = np.where(generated, size + place, self._places.number[place])  # without a row of the function
        keys, of = numbered(np.where(call != ABSENT, call, np.where(frame != ABSENT, size + frame, 2 * size + alike)))
        first = np.empty(len(keys), np.int64)
        first[of[::-1]] = np.arange(len(own))[::-1]
        # Of each call: its time by pass, the row of its function, an event, and the number of its line.
        self._ns = np.zeros((len(keys), len(OWNER_PASSES)), np.int64)
        np.add.at(self._ns, (of, times.pass_[own]), times.ns[own])
        self._frame, self._event = frame[first], place[first]
        self._line = np.full(len(keys), ABSENT)
        unknown: dict[tuple[str, str], Times] = {}
        for at, row in enumerate(self._event.tolist()):
            found = self._read(self._places.of(row), partial(self._aligner.place_of, row))
            self._line[at] = self._number(found)
            if self._line[at] == ABSENT and found is not None:
                key = (found.file, found.function)
                unknown[key] = unknown.get(key, 0) + self._ns[at]
        functions = [FunctionTime(*key, **_by_pass(ns)) for key, ns in unknown.items()]
        return sorted(functions, key=lambda each: (-each.own_ns, each.file, each.function))

    def _read(self, place: Frame | None, looked_for: Callable[[], Frame | None]) -> Frame | None:
        """The place with its line, unless no lines of its function are looked for."""
        return place if place is None or place in self._unread else looked_for() or place

    def _number(self, place: Frame | None) -> int:
        """The number of a place's line, the first of equally likely ones; `ABSENT` if it is not known."""
        if place is None or place.precision == "definition":
            return ABSENT
        line = (place.file, place.line)
        if len(place.ties) > 1:
            self._ties.setdefault(line, set()).update(set(place.ties) - {place.line})
        return self._numbers.setdefault(line, len(self._numbers))

    def _enclosing(self) -> None:
        """Adds the time of each call to its line and to those that lead to it, once to each of them."""
        number_of, above, line_of_call = self._callers()
        spent = self._ns.sum(axis=1)
        sums: dict[int, int] = {}

        def add(line: Rows, ns: Times) -> None:
            total = np.zeros(len(self._numbers) + 1, np.int64)  # the last one is for unknown lines
            np.add.at(total, line, ns)
            for at in np.flatnonzero(total[:-1]).tolist():
                sums[at] = sums.get(at, 0) + int(total[at])

        add(self._line, spent)
        at, ns, seen = number_of[self._frame], spent, [self._line]
        for _ in range(_MOST_OUTWARD):
            going = np.flatnonzero(at != ABSENT)
            if not len(going):
                break
            at, ns, seen = at[going], ns[going], [each[going] for each in seen]
            line = line_of_call[at]
            is_new = np.all([line != each for each in seen], axis=0)
            add(line[is_new], ns[is_new])
            seen.append(line)
            at = above[at]
        for each in np.flatnonzero(self._frame == ABSENT).tolist():
            lines = {self._number(frame) for frame in self._aligner.stack_of(int(self._event[each]))}
            for number in lines - {ABSENT, int(self._line[each])}:
                sums[number] = sums.get(number, 0) + int(spent[each])
        self._total_ns = [sums.get(number, 0) for number in range(len(self._numbers))]

    def _callers(self) -> tuple[Rows, Rows, Rows]:
        """Numbers of the user's functions with time, by row, and one more entry; of each its caller, and that line.

        `ABSENT` is the number of rows that are none of these functions, and of unknown callers and lines.
        """
        number_of = np.full(self._profile.tree.size + 1, ABSENT)
        rows = distinct(self._frame[self._frame != ABSENT]).tolist()
        number_of[rows] = np.arange(len(rows))
        nodes = backward_nodes(self._profile)
        above, lines = list[int](), list[int]()
        for row in rows:  # grows
            caller, line = self._caller(row, int(nodes[row]))
            if caller != ABSENT and number_of[caller] == ABSENT:
                number_of[caller] = len(rows)
                rows.append(caller)
            above.append(int(number_of[caller]))
            lines.append(line)
        return number_of, np.array(above, np.int64), np.array(lines, np.int64)

    def _caller(self, row: int, node: int) -> tuple[int, int]:
        """The row of the user's function around one of the user's functions, and the number of the call's line.

        What runs in the backward pass was called by the line of its forward operator.
        """
        found = self._aligner.caller_of(row)
        if node == ABSENT or (found is not None and found[0] > node):
            if found is None:
                return ABSENT, ABSENT
            place = self._read(self._places.of(found[0]), partial(self._aligner.place_of_call, *found))
            return found[0], self._number(place)
        forward = self._profile.forward_of(node)
        if forward is None:
            return ABSENT, ABSENT
        place = self._read(self._places.of(forward), partial(self._aligner.place_of, forward))
        is_own = place is not None and place.own_code
        return (int(self._places.row[forward]), self._number(place)) if is_own else (ABSENT, ABSENT)


def _sums(pass_: NDArray[np.int8], ns: Times) -> Times:
    """The sum of each pass."""
    found = np.zeros(len(OWNER_PASSES), np.int64)
    np.add.at(found, pass_, ns)
    return found


def _by_pass(ns: Times) -> dict[str, Any]:
    """Fields of a `PassTime`."""
    return dict(zip(PASSES, ns.tolist(), strict=True))


def _add(profile: Profile, sums: dict[tuple[str, int], list[int]], calls: Sequence[tuple[int, Frame]]) -> None:
    device_ns, known = _device_ns(profile, [row for row, _ in calls]), profile.replayed.known
    for (row, place), on_device_ns in zip(calls, device_ns, strict=True):
        cost = sums.setdefault((place.file, place.line), [0, 0, 0, 1, ABSENT])
        cost[0] += profile.duration_ns(row)
        cost[1] += on_device_ns
        cost[2] += 1
        cost[3] = max(cost[3], 1 + len(place.also))
        cost[4] = max(cost[4], int(known[row]))


def _kernels(profile: Profile, aligner: Aligner) -> list[tuple[int, Frame]]:
    """The kernels of compiled code with a known line."""
    launch = compiled_graphs_of(profile).launch
    rows = np.flatnonzero((launch != ABSENT) & (np.append(launch, ABSENT)[profile.tree.parent] != launch))
    places = ((row, aligner.place_of(row)) for row in rows.tolist())
    return [(row, place) for row, place in places if place is not None and place.precision != "definition"]


def _own_frames(profile: Profile) -> list[tuple[Frame, list[int]]]:
    """The user's own functions with the rows of their frames, most total time first."""
    table = profile.table
    frames = {number: parse_frame(name) for number, name in enumerate(table.names)}
    own = {number: frame for number, frame in frames.items() if frame is not None and frame.own_code}
    is_own = (table.category == Category.PYTHON) & among(table.name, list(own))
    rows = np.flatnonzero(is_own[: profile.tree.size])
    rows_of: dict[Frame, list[int]] = {}
    for row, number in zip(rows.tolist(), table.name[rows].tolist(), strict=True):
        rows_of.setdefault(own[number], []).append(row)
    durations = table.duration_ns
    return sorted(rows_of.items(), key=lambda item: -int(durations[item[1]].sum()))


def _calls_in(aligner: Aligner, frame: Frame, rows: Sequence[int], deadline: float) -> list[tuple[int, Frame]] | None:
    """The calls of a function with their lines, the first of equally likely ones; None if the time is over."""
    found: list[tuple[int, Frame]] = []
    for row in rows:
        if time.thread_time() > deadline:
            return None
        found += aligner.calls_in(row, frame)
    return found


def _device_ns(profile: Profile, rows: Sequence[int]) -> list[int]:
    """Device time in ns that each host event causes."""
    if "device" not in profile.recorded:
        return [0] * len(rows)
    return [_covered_ns(profile, profile.device_activity_of(row)) for row in rows]


def _covered_ns(profile: Profile, rows: Rows) -> int:
    """Same as `Profile.covered`, but cheaper for the usual call, which launches at most one kernel."""
    if len(rows) > 1:
        return profile.covered(rows).total_ns
    return int(profile.table.durations_of(rows).sum())
