"""Cost of each line of the user's files, and the line of each operator's call."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of
from tb_tidy_plugin.profile.compiled.operators import user_operators
from tb_tidy_plugin.profile.graphs.replay import known_by_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.generated import Generated, generated_of
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among
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


class LineCost(msgspec.Struct, frozen=True):
    """Cost of the calls on one line, over the whole recording.

    Attributes:
        host_ns: time of the calls, including all that they call in turn.
        device_ns: time of the kernels, copies and fills that they launch.
        calls: their number.
        shared: most lines that one compiled kernel of this line computes; 1 without such kernels. The kernel's time
            counts for its main line.
        known_by: the least certain way in which calls of replayed graphs are attributed to the line; None without any.
    """

    file: str
    line: int
    host_ns: int
    device_ns: int
    calls: int
    shared: int = 1
    known_by: KnownBy | None = None


class Annotations(Model, frozen=True):
    """`tb-tidy annotate --format json`: what the text shows, and `OperatorPlaces`."""

    schema: int
    wall_ns: int
    lines: list[LineCost]
    origin_ns: int
    operators: list[OperatorPlace]


class LineCosts(msgspec.Struct, frozen=True):
    """Costs by file and line. `left_out` are functions that the time did not suffice for, most expensive first."""

    lines: list[LineCost]
    left_out: list[Frame]


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
        calls = _calls_in(aligner, frame, rows, deadline)
        if calls is None:
            left_out.append(frame)
        else:
            _add(profile, sums, calls)
    costs = [
        LineCost(file, line, host_ns, device_ns, calls, shared, known_by_of(known))
        for (file, line), (host_ns, device_ns, calls, shared, known) in sorted(sums.items())
    ]
    return LineCosts(costs, left_out)


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
