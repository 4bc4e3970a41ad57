"""The place in the user's own source: of one event, and of every host event at once."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of
from tb_tidy_plugin.profile.events.intervals import positions_of_each
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.compiled import function_place, kernel_place, own_frame_between
from tb_tidy_plugin.sources.frames import Frame, goes_on, parse_frame, stack_of
from tb_tidy_plugin.trace.columns import ABSENT, Category, Numbers
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import NumberTable, numbers_where


class Places(msgspec.Struct, frozen=True):
    """The user's own frame around each host event, including the event, else the nearest one of any code.

    Attributes:
        number: number of each tree row's place in `frames`, `ABSENT` for none.
        row: the row of that frame, `ABSENT` if the recording has no such row.
        child: the row that the frame leads to: the event, or the compiled region around it.
        frames: all places.
    """

    number: Numbers
    row: Numbers
    child: Numbers
    frames: tuple[Frame, ...]

    def frame(self, number: int) -> Frame | None:
        return None if number == ABSENT else self.frames[number]

    def of(self, row: int) -> Frame | None:
        """The place of a host event."""
        return self.frame(int(self.number[row]))


class _CallStack(msgspec.Struct, gc=False):
    text: str | None = msgspec.field(name="Call stack", default=None)


def place_of(profile: Profile, row: int) -> Frame | None:
    """The user's own frame behind an event, else the nearest frame of any code, None without stacks.

    Device and runtime events belong to the host event that caused them. Generated code belongs to the line that it was
    generated for, else to the function that was compiled.
    """
    cause = row if row < profile.tree.size else int(profile.launched_by[row])
    if cause < 0:
        return None
    call = compiled_graphs_of(profile).around(cause)
    if call is not None and own_frame_between(profile, call.row, cause) == ABSENT:
        place = kernel_place(profile, cause) or function_place(profile, call)
        if place is not None or call.region != ABSENT:
            return place or place_of(profile, call.region)
    stack = stack_of(profile, cause)
    place = next((frame for frame in stack if frame.own_code), stack[0] if stack else None)
    is_break = place is not None and profile.category(cause) is Category.PYTHON and goes_on(profile.name(cause))
    return replace(place, precision="exact") if place is not None and is_break else place


@once
def places_of(profile: Profile) -> Places:
    """The places of all host events."""
    table, tree = profile.table, profile.tree
    frames = NumberTable[Frame]()
    is_python = table.category[: tree.size] == Category.PYTHON
    by_name = np.full(len(table.names), ABSENT, np.int32)
    for name in distinct(table.name[: tree.size][is_python]).tolist():
        frame = parse_frame(table.names[name])
        by_name[name] = ABSENT if frame is None else frames.number(frame)
    number = np.where(is_python, by_name[table.name[: tree.size]], np.int32(ABSENT))
    is_own = np.array([frame.own_code for frame in frames.values()] + [False])[number]
    child = np.arange(tree.size, dtype=np.int32)
    place = np.where(is_own, child, tree.nearest_ancestor(is_own))
    any_place = np.where(number != ABSENT, child, tree.nearest_ancestor(number != ABSENT))
    place = np.where(place != ABSENT, place, any_place)
    found = np.append(number, np.int32(ABSENT))[place]
    breaks = numbers_where(table.names, goes_on)
    for at in np.flatnonzero(is_own & among(table.name[: tree.size], breaks)).tolist():
        found[at] = frames.number(replace(frames.values()[number[at]], precision="exact"))
    if profile.has_call_stacks:
        found = np.where(found != ABSENT, found, _recorded_places(profile, frames))
    _generated(profile, frames, found, place, child)
    return Places(found, place, child, frames.values())


def _generated(profile: Profile, frames: NumberTable[Frame], number: Numbers, row: Numbers, child: Numbers) -> None:
    """Fills in the places of events in generated code, except in functions of the user's own that this calls.

    If the compiled function is a library's, the place is that of the region.
    """
    graphs = compiled_graphs_of(profile)
    if not graphs.calls:
        return
    firsts = np.array([call.row for call in graphs.calls] + [ABSENT])
    ours = np.flatnonzero((graphs.call != ABSENT) & (row < firsts[graphs.call]))
    functions = [function_place(profile, call) for call in graphs.calls]
    pairs = np.stack([graphs.call[ours], graphs.launch[ours]])
    _, first, of_pair = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    by_pair = positions_of_each(of_pair.reshape(-1))
    lines: dict[tuple[int, int], Frame | None] = {}
    for pair, at in enumerate(ours[first].tolist()):
        rows, in_call = ours[by_pair[pair]], int(graphs.call[at])
        kernel = id(graphs.graphs[in_call]), int(graphs.launch[at])
        if kernel not in lines:
            lines[kernel] = kernel_place(profile, at)
        place, region = lines[kernel] or functions[in_call], graphs.calls[in_call].region
        if place is not None:
            number[rows], row[rows] = frames.number(place), ABSENT
        elif region != ABSENT:
            number[rows], row[rows], child[rows] = number[region], row[region], region


def _recorded_places(profile: Profile, frames: NumberTable[Frame]) -> Numbers:
    """Numbers of places by the `Call stack` that operators had in 2021 and have with `verbose=True`."""
    tree = profile.tree
    stacks = NumberTable[str | None]()
    texts = (entry.text for entry in profile.table.args.decoded(np.arange(tree.size), _CallStack))
    stack = stacks.numbers(texts, tree.size)
    by_stack = np.array([_place_in(text, frames) for text in stacks.values()] + [ABSENT], np.int32)
    has_stack = stack != stacks.number(None)
    at = np.where(has_stack, np.arange(tree.size), tree.nearest_ancestor(has_stack))
    return np.where(at == ABSENT, np.int32(ABSENT), by_stack[stack[at]])


def _place_in(stack: str | None, frames: NumberTable[Frame]) -> int:
    parsed = [frame for name in (stack or "").split(";") if (frame := parse_frame(name)) is not None]
    place = next((frame for frame in parsed if frame.own_code), parsed[0] if parsed else None)
    return ABSENT if place is None else frames.number(place)
