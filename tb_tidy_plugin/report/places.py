"""The place in the source of every host event at once, for tables that need many."""

from __future__ import annotations

from dataclasses import dataclass

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.operator_tables import places_of_tree
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.trace.columns import ABSENT, Rows


@dataclass(frozen=True, slots=True)
class Places:
    """For each row of the tree the number of its place in `frames`, `ABSENT` for none."""

    number: Rows
    frames: tuple[Frame, ...]

    def frame(self, number: int) -> Frame | None:
        """The frame with this number."""
        return None if number == ABSENT else self.frames[number]

    def of(self, row: int) -> Frame | None:
        """What `sources.frames.place_of` answers for a host event."""
        return self.frame(int(self.number[row]))


def places_of(profile: Profile) -> Places:
    """The places of all host events."""
    return Places(*places_of_tree(profile))
