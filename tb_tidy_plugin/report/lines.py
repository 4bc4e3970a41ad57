"""What the lines of the user's own files cost, and which line each operator was called on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import Model
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame, Precision, parse_frame
from tb_tidy_plugin.trace.columns import Category


class OperatorPlace(Model, frozen=True):
    """One operator that user code calls. `tie` names the lines that are as likely, empty where one is likeliest."""

    start_ns: int
    name: str
    file: str
    line: int
    end_line: int
    function: str
    precision: Precision
    tie: list[int]


class OperatorPlaces(Model, frozen=True):
    """`tb-tidy annotate --format json`: `start_ns` of an operator counts from `origin_ns`, both in ns."""

    origin_ns: int
    operators: list[OperatorPlace]


@dataclass(frozen=True, slots=True)
class LineCost:
    """What the calls on one line take, over the whole recording.

    Attributes:
        host_ns: time of the calls, with all that they call in turn.
        device_ns: time of the kernels, copies and fills that they launch.
        calls: their number.
    """

    file: str
    line: int
    host_ns: int
    device_ns: int
    calls: int


def operator_places(profile: Profile, aligner: Aligner) -> OperatorPlaces:
    """The places of all operators that no other operator runs, in the order of their start, where there is one."""
    rows = np.flatnonzero(profile.calls.outermost)
    rows = rows[np.argsort(profile.table.start_ns[rows], kind="stable")]
    found = ((row, aligner.place_of(row)) for row in rows.tolist())
    return OperatorPlaces(
        origin_ns=profile.table.origin_ns,
        operators=[
            _operator_place(profile, row, place) for row, place in found if place is not None and place.own_code
        ],
    )


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
    )


def line_costs(profile: Profile, aligner: Aligner) -> list[LineCost]:
    """The costs of all lines on which something was recorded, by file and line.

    A call counts on its own line and, as part of what they take, on the lines that lead to it; a function that calls
    itself counts on a line once for each time that the line is reached.
    """
    sums: dict[tuple[str, int], list[int]] = {}
    for child, place in _calls(profile, aligner):
        device = profile.device_activity_of(child)
        cost = sums.setdefault((place.file, place.line), [0, 0, 0])
        cost[0] += profile.duration_ns(child)
        cost[1] += profile.covered(device).total_ns if len(device) else 0
        cost[2] += 1
    return [LineCost(file, line, *cost) for (file, line), cost in sorted(sums.items())]


def _calls(profile: Profile, aligner: Aligner) -> Iterator[tuple[int, Frame]]:
    """What the user's own frames call, with its place; of lines that are as likely the first."""
    for row in np.flatnonzero(profile.table.category[: profile.tree.size] == Category.PYTHON).tolist():
        frame = parse_frame(profile.name(row))
        if frame is not None and frame.own_code:
            yield from aligner.calls_in(row, frame)
