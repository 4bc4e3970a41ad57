"""Nodes of autograd's graph: the operators that recorded them, and their use in a backward pass.

Every operator that runs with gradients enabled has the number that the next node will get (`Sequence number`). The last
operator with a number recorded the node if the number then advances; the operators around it and before it only read
the counter. A node is used if an operator of the backward pass has its number and its thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import among, distinct, without


class Nodes(msgspec.Struct, frozen=True):
    """Operators that recorded a node, thread by thread, in the order in which they ran.

    Without those inside the backward pass: a checkpoint that is computed again, a gradient of a gradient.

    Attributes:
        row: the operator, the innermost that had the number.
        is_used: a backward pass in the profile computes its gradient.
        is_passed: a backward pass in the profile used a younger node of the same thread.
    """

    row: Rows
    is_used: Mask
    is_passed: Mask

    def __len__(self) -> int:
        return len(self.row)


class UnusedPass(msgspec.Struct, frozen=True):
    """Nodes that one forward pass recorded and no backward pass in the profile uses.

    Attributes:
        nodes: rows of their operators, in order.
        module: row of the outermost module call around them, `ABSENT` for none.
        has_backward: True if anything in the profile runs backward.
    """

    nodes: Rows
    module: int
    has_backward: bool

    def time_recording(self, profile: Profile, node_ns: int, kept_share: float) -> Intervals:
        """The time of each operator in which it records its node, while no device works.

        That is `node_ns`, and on a CPU `kept_share` of the operator for memory that is kept and cannot be reused:
        device memory comes out of torch's own cache. Both are without the profiler: a recording that lengthens the step
        is assumed to lengthen this, too.
        """
        starts, durations = profile.table.start_ns[self.nodes], profile.table.durations_of(self.nodes)
        on_device = profile.device_busy.total_ns > 0
        taken = node_ns * profile.pace.stretch + np.round((0.0 if on_device else kept_share) * durations)
        time = Intervals.union(starts, starts + np.minimum(taken, durations).astype(np.int64))
        return time.minus(profile.device_busy)


def recorded_nodes(profile: Profile) -> Nodes:
    """All nodes in the profile; for the last operator of a thread, nothing shows whether it recorded one."""
    table = profile.table
    has_number = (table.category == Category.OPERATOR) & (table.sequence != ABSENT)
    backward = np.flatnonzero(has_number & (table.forward_thread != 0))
    forward = np.flatnonzero(has_number & (table.forward_thread == 0))
    forward = forward[np.argsort(table.thread[forward], kind="stable")]
    thread, number = table.thread[forward].astype(np.int64), table.sequence[forward]
    advances = np.flatnonzero((np.diff(number) > 0) & (np.diff(thread) == 0))
    advances = advances[~profile.inside(backward)[forward[advances]]]
    numbers = int(table.sequence.max(initial=0)) + 1
    first, end = ((thread * numbers + number)[at] for at in (advances, advances + 1))
    used = _used(profile, backward, numbers)
    last_of_thread = (thread[advances] + 1) * numbers
    before_end = np.searchsorted(used, end)
    return Nodes(
        row=forward[advances],
        is_used=before_end > np.searchsorted(used, first),
        is_passed=np.searchsorted(used, last_of_thread) > before_end,
    )


def _used(profile: Profile, backward: Rows, numbers: int) -> Rows:
    """Numbers that backward passes have, each combined with its forward thread in one number, in ascending order."""
    table, threads = profile.table, profile.forward_threads
    thread_of = np.full(int(table.forward_thread.max(initial=0)) + 1, ABSENT, np.int64)
    thread_of[list(threads)] = list(threads.values())
    thread = thread_of[table.forward_thread[backward]]
    known = thread != ABSENT
    found: Rows = distinct(thread[known] * numbers + table.sequence[backward[known]])
    return found


def unused_passes(profile: Profile, least: float) -> Iterator[UnusedPass]:
    """Forward passes of at least `least` nodes, none of which a backward pass uses or will use.

    A pass is the call of an outermost module; outside of modules it is successive nodes of a step without a used node
    in between. The last step may be cut: its passes are left out unless all passes of the same module from the same
    function went unused before, and so are those that no younger graph was used after.
    """
    nodes = recorded_nodes(profile)
    if not len(nodes):
        return
    module = _outermost_modules(profile, nodes.row)
    first, end = _passes(profile, nodes, module)
    has_backward = bool(nodes.is_used.any())
    is_unused = np.add.reduceat(nodes.is_used, first, dtype=np.int64) == 0
    is_over = nodes.is_passed[end - 1] | (not has_backward)
    is_told = is_over & (profile.table.start_ns[nodes.row[first]] < _told_until_ns(profile, has_backward))
    places = _places(profile, module[first])
    never_used = without(places[is_told & is_unused], np.append(places[~is_unused], ABSENT))
    is_told |= among(places, never_used)
    for at in np.flatnonzero(is_unused & is_told & (end - first >= least)).tolist():
        yield UnusedPass(nodes.row[first[at] : end[at]], int(module[first[at]]), has_backward)


def _passes(profile: Profile, nodes: Nodes, module: Rows) -> tuple[Rows, Rows]:
    """Start and end of each pass in `nodes`."""
    changes = (np.diff(module) != 0) | (np.diff(profile.step_of(nodes.row)) != 0)
    changes |= (module[1:] == ABSENT) & np.diff(nodes.is_used)
    changes |= np.diff(profile.table.thread[nodes.row]) != 0
    first = np.append(0, np.flatnonzero(changes) + 1)
    return first, np.append(first[1:], len(nodes))


def _outermost_modules(profile: Profile, rows: Rows) -> Rows:
    """The outermost module call around each of `rows`, `ABSENT` for none."""
    modules, last = profile.matching(f"^{MODULE}", Category.PYTHON), profile.tree.last_descendant
    reach = np.maximum.accumulate(last[modules])
    outermost = modules[modules > np.append(ABSENT, reach)[: len(modules)]]
    found = np.append(outermost, ABSENT)[np.searchsorted(outermost, rows, side="right") - 1]
    return np.where((found != ABSENT) & (rows <= last[found]), found, ABSENT)


def _places(profile: Profile, modules: Rows) -> Rows:
    """A number for each of `modules` that identifies its class and the calling function, `ABSENT` for none."""
    names = np.append(profile.table.name.astype(np.int64), ABSENT)
    callers = np.append(profile.calls.caller, ABSENT)[modules]
    return np.where(modules == ABSENT, ABSENT, (names[modules] + 1) * len(names) + names[callers] + 1)


def _told_until_ns(profile: Profile, has_backward: bool) -> int:
    """Time from which passes are unknown: the last step, or all of a single one without a backward pass."""
    starts = profile.steps.starts
    return int(starts[-1]) if len(starts) > 1 else int(profile.table.end_ns.max()) if has_backward else 0
