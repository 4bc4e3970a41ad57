"""Numbers of a step that are the same from run to run: launches, waits, copies, allocations, breaks, collectives.

Times differ between machines and runs; these do not, so tests can set limits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.compiled.compilations import broken_calls
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.transfers import device_waits, value_reads
from tb_tidy_plugin.profile.memory.allocations import HOST, asked_by, memory_events
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.ranks.collectives import collectives_of
from tb_tidy_plugin.torchfacts.event_names import TO_DEVICE, TO_HOST
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows, Times

Counted: TypeAlias = Literal[
    "syncs", "reads", "kernels", "copies", "bytes_moved", "allocations", "graph_breaks", "collectives"
]


class Events(msgspec.Struct, frozen=True):
    """Counted events, one entry each.

    Attributes:
        rows: the events.
        cause: the host event behind each, `ABSENT` if unknown.
        amount: bytes for `bytes_moved`, else 1.
    """

    rows: Rows
    cause: Rows
    amount: Times

    def per_step(self, profile: Profile) -> list[int]:
        """The sum of each step; of the whole profile, as one entry, if steps are unknown."""
        if not profile.steps.items:
            return [int(self.amount.sum())]
        step = profile.step_of(self.rows)
        inside = step != ABSENT
        sums = np.zeros(len(profile.steps.items), np.int64)
        np.add.at(sums, step[inside], self.amount[inside])
        found: list[int] = sums.tolist()
        return found


class NotCountedError(Exception):
    """The recording lacks the data to count; the message says which."""


def counted_events(profile: Profile, counted: Counted) -> Events:
    """The events that `counted` counts.

    - `syncs`: runtime calls in which the host waits for a device.
    - `reads`: operators that hand a value to Python (`.item()`, `if tensor:`, `nonzero`), on any device.
    - `kernels`: kernels, including those of replayed graphs and of collectives.
    - `copies`, `bytes_moved`: copies between host and device, and their bytes.
    - `allocations`: allocations on devices; on the host if no device was recorded.
    - `graph_breaks`: breaks in compiled code. `collectives`: collective operations of this rank.

    Raises:
        NotCountedError: nothing of that kind was recorded: a zero would be a guess.
    """
    needed = _NEEDS.get(counted)
    if needed is not None and needed not in profile.recorded:
        raise NotCountedError(_MISSING[needed])
    return COUNTS[counted](profile)


def _syncs(profile: Profile) -> Events:
    return _launched(profile, device_waits(profile))


def _reads(profile: Profile) -> Events:
    return _caused(rows := value_reads(profile), rows)


def _kernels(profile: Profile) -> Events:
    return _launched(profile, np.flatnonzero(profile.table.category == Category.KERNEL))


def _copies(profile: Profile) -> Events:
    table = profile.table
    between = table.is_named(TO_DEVICE.search) | table.is_named(TO_HOST.search)
    return _launched(profile, np.flatnonzero((table.category == Category.COPY) & between))


def _bytes_moved(profile: Profile) -> Events:
    found = _copies(profile)
    return Events(found.rows, found.cause, np.maximum(profile.table.bytes[found.rows], 0))


def _allocations(profile: Profile) -> Events:
    events = memory_events(profile)
    on_host = np.array([device.kind == HOST for device in events.devices], np.bool_)[events.device]
    rows = events.row[(events.bytes > 0) & ~events.failed & (on_host != ("device" in profile.recorded))]
    return _caused(rows, asked_by(profile, rows))


def _graph_breaks(profile: Profile) -> Events:
    causes = [piece for call in broken_calls(profile) for piece in call.causes]
    places = [piece.resumed if piece.resumed != ABSENT else piece.region for piece in causes]
    return _caused(rows_of(piece.region for piece in causes), rows_of(places))


def _collectives(profile: Profile) -> Events:
    found = collectives_of(profile)
    return _caused(found.rows, found.issue)


def _launched(profile: Profile, rows: Rows) -> Events:
    return _caused(rows, profile.launched_by[rows])


def _caused(rows: Rows, cause: Rows) -> Events:
    return Events(rows, cause, np.ones(len(rows), np.int64))


COUNTS: dict[Counted, Callable[[Profile], Events]] = {
    "syncs": _syncs,
    "reads": _reads,
    "kernels": _kernels,
    "copies": _copies,
    "bytes_moved": _bytes_moved,
    "allocations": _allocations,
    "graph_breaks": _graph_breaks,
    "collectives": _collectives,
}

_NEEDS: dict[Counted, Literal["device", "memory"]] = {
    "syncs": "device",
    "kernels": "device",
    "copies": "device",
    "bytes_moved": "device",
    "allocations": "memory",
}
_MISSING = {
    "device": "the recording contains no device work",
    "memory": "the recording contains no allocations",
}
