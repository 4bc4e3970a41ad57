"""Debug modes that a profile shows: stacks that autograd formats, checks for NaN, blocking launches."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.compiled.compilations import compilations
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import KERNEL_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among

FORMATS = r"^(?:torch/fx/)?traceback\.py\(\d+\): format_stack$"
_NODE = r"^autograd::engine::evaluate_function: (?!torch::autograd::AccumulateGrad)"
ANY_SINCE_2_0 = "aten::_is_any_true"  # users do not call it
ANY = aten.names("known", "_is_any_true any")
_MOST_NODES = 0.5  # of the nodes are checked, if users could have written the check
_LONG_NS = 50_000  # shorter kernels may be done before a non-blocking launch returns
_CLOCKS_NS = 5_000  # most difference between the clocks of host and device
ENOUGH, _NEARLY_ALL = 20, 0.95  # of such kernels


def formatted_stacks(profile: Profile) -> Rows:
    """Frames that format a stack for an operator's node, in the operator itself."""
    rows = profile.matching(FORMATS, Category.PYTHON)
    rows = rows[profile.tree.parent[rows] != ABSENT]
    above = profile.tree.parent[rows]
    is_of_node = (profile.table.category[above] == Category.OPERATOR) & (profile.table.sequence[above] != ABSENT)
    compiler = profile.covered(rows_of(each.row for each in compilations(profile)))
    found: Rows = rows[is_of_node & ~compiler.containing(profile.table.start_ns[rows])]
    return found


def nan_checks(profile: Profile) -> Rows:
    """The three operators of each check that follows a node's own operators."""
    nodes, firsts = profile.matching(_NODE, Category.OPERATOR), profile.named("aten::isnan")
    parent, last, found = profile.tree.parent, profile.tree.last_descendant, list[tuple[int, int, int]]()
    firsts = firsts[among(parent[firsts], nodes) & (parent[firsts] != firsts - 1)]
    for first in firsts.tolist():
        second = int(last[first]) + 1
        third = int(last[second]) + 1 if second <= last[parent[first]] else second
        is_inside = third <= last[parent[first]]
        if is_inside and profile.name(second) in ANY and profile.name(third) == "aten::item":
            found.append((first, second, third))
    checked = len({int(parent[first]) for first, _, _ in found})
    is_sure = any(profile.name(second) == ANY_SINCE_2_0 for _, second, _ in found)
    is_sure |= checked > _MOST_NODES * len(nodes)
    return rows_of(row for check in found for row in check if is_sure)


def blocking_launches(profile: Profile) -> Rows:
    """The profile's launches if nearly all kernels are done when their launch returns; else empty."""
    table, calls = profile.table, profile.matching(KERNEL_LAUNCH, Category.RUNTIME)
    kernels = np.flatnonzero((table.category == Category.KERNEL) & (table.duration_ns >= _LONG_NS))
    kernels = kernels[among(profile.launch[kernels], calls)]
    blocks = table.end_ns[profile.launch[kernels]] >= table.end_ns[kernels] - _CLOCKS_NS
    return calls if len(kernels) >= ENOUGH and blocks.mean() >= _NEARLY_ALL else calls[:0]


def blocked_time(profile: Profile, launches: Rows) -> Intervals:
    """The host's waits in `launches` or the devices' idle time, whichever is shorter: one hides behind the other."""
    busy = profile.device_busy
    waits = profile.covered(launches).intersection(busy)
    idle = Intervals(busy.ends[:-1], busy.starts[1:])
    return min(waits, idle, key=lambda time: time.total_ns)
