"""The place in the source of every host event at once."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.strings import NumberTable


@dataclass(frozen=True, slots=True)
class Places:
    """The user's own frame around each host event, itself included, else the nearest one of any code.

    Attributes:
        number: for each row of the tree the number of its place in `frames`, `ABSENT` for none.
        row: the row of that frame, `ABSENT` where it is none of the recording's.
        frames: all places.
    """

    number: Rows
    row: Rows
    frames: tuple[Frame, ...]

    def frame(self, number: int) -> Frame | None:
        """The frame with this number."""
        return None if number == ABSENT else self.frames[number]

    def of(self, row: int) -> Frame | None:
        """What `sources.frames.place_of` answers for a host event."""
        return self.frame(int(self.number[row]))


class _CallStack(msgspec.Struct, gc=False):
    text: str | None = msgspec.field(name="Call stack", default=None)


def places_of(profile: Profile) -> Places:
    """The places of all host events."""
    table, tree = profile.table, profile.tree
    frames = NumberTable[Frame]()
    is_python = table.category[: tree.size] == Category.PYTHON
    by_name = np.full(len(table.names), ABSENT, np.int64)
    for name in np.unique(table.name[: tree.size][is_python]).tolist():
        frame = parse_frame(table.names[name])
        by_name[name] = ABSENT if frame is None else frames.number(frame)
    number = np.where(is_python, by_name[table.name[: tree.size]], ABSENT)
    is_own = np.array([frame.own_code for frame in frames.values()] + [False])[number]
    place = np.where(is_own, np.arange(tree.size), tree.nearest_ancestor(is_own))
    any_place = np.where(number != ABSENT, np.arange(tree.size), tree.nearest_ancestor(number != ABSENT))
    place = np.where(place != ABSENT, place, any_place)
    found = np.append(number, ABSENT)[place]
    if profile.has_call_stacks:
        found = np.where(found != ABSENT, found, _recorded_places(profile, frames))
    return Places(found, place, frames.values())


def _recorded_places(profile: Profile, frames: NumberTable[Frame]) -> Rows:
    """The same by the `Call stack` that operators carried in 2021 and carry with `verbose=True`, innermost first."""
    tree = profile.tree
    stacks = NumberTable[str | None]()
    texts = (entry.text for entry in profile.table.args.decoded(np.arange(tree.size), _CallStack))
    stack = stacks.numbers(texts, tree.size)
    by_stack = np.array([_place_in(text, frames) for text in stacks.values()] + [ABSENT], np.int64)
    has_stack = stack != stacks.number(None)
    at = np.where(has_stack, np.arange(tree.size), tree.nearest_ancestor(has_stack))
    return np.where(at == ABSENT, ABSENT, by_stack[stack[at]])


def _place_in(stack: str | None, frames: NumberTable[Frame]) -> int:
    parsed = [frame for name in (stack or "").split(";") if (frame := parse_frame(name)) is not None]
    place = next((frame for frame in parsed if frame.own_code), parsed[0] if parsed else None)
    return ABSENT if place is None else frames.number(place)
