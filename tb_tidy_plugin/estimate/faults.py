"""Time in which only recorded steps wait for memory to be mapped.

The capture counts page faults of recorded and other steps. The excess in recorded ones, except for the recorder's own
memory, happened where tensors were written to new memory: in long operators that create tensors and do little else.
They share it in proportion to their time.
"""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.estimate.host import Floats, HostLanes
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

LARGE_NS = 20_000
"""Time to write 128 KiB of new memory, approximately; from this size, the C library maps new memory."""

MOST = 0.8
"""Largest part of such an operator's time that faults take: it also reads, and computes."""

PAGE_BYTES = 4096
RECORDED_BYTES = {Category.OPERATOR: 450, Category.PYTHON: 40}
"""New memory that the recorder itself takes for each event (docs/estimates.md)."""


def fault_time(profile: Profile, host: HostLanes) -> Floats | None:
    """Time in ns of faults that only recorded steps have, for each stretch of host time from one cut to the next.

    None if nobody counted them.
    """
    captured = profile.metadata.captured.faults
    if captured is None:
        return None
    makers, step, spent_ns = _makers(profile, host), profile.steps.index_of(host.time_ns), np.zeros(len(host.time_ns))
    begin, end = (np.bincount(cuts[makers], minlength=len(spent_ns)) for cuts in (host.start_cut, host.end_cut))
    inside = np.flatnonzero((np.cumsum(begin - end) > 0) & (step != ABSENT))
    work_ns, fault_ns = host.work_ns(inside), _beyond_usual(profile) * captured.each_ns
    total_ns = np.bincount(step[inside], work_ns, minlength=len(fault_ns))
    share = np.minimum(fault_ns / np.maximum(total_ns, 1.0), MOST)
    spent_ns[inside] = work_ns * share[step[inside]]
    return spent_ns


def _makers(profile: Profile, host: HostLanes) -> Rows:
    """Long operators that create tensors, and neither multiply matrices nor return their inputs."""
    table = profile.table
    names = numbers_where(table.names, _makes)
    is_maker = (table.category == Category.OPERATOR) & among(table.name, names)
    return np.flatnonzero(is_maker & (table.duration_ns >= LARGE_NS) & (host.start_cut != ABSENT))


def _makes(name: str) -> bool:
    kinds = aten.operator(name).kinds
    return "known" in kinds and kinds.isdisjoint({"shares", "in_place", "product"})


def _beyond_usual(profile: Profile) -> Floats:
    """Faults of each step beyond the usual, without those of the recorder's own memory."""
    captured, steps = profile.metadata.captured.faults, len(profile.steps.items)
    assert captured is not None
    recorded = np.array(captured.recorded, np.float64)
    if len(recorded) != steps:  # steps are not the capture's
        recorded = np.full(steps, recorded.mean() if len(recorded) else 0.0)
    own = np.zeros(steps)
    for category, each in RECORDED_BYTES.items():
        step = profile.step_of(np.flatnonzero(profile.table.category == category))
        own += np.bincount(step[step != ABSENT], minlength=steps) * (each / PAGE_BYTES)
    beyond: Floats = np.maximum(recorded - captured.usual - own, 0.0)
    return beyond
