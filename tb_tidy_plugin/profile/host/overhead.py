"""Overhead of operators on the host, which is the time that remains for small tensors."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.transfers import OF_ONE_ELEMENT
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import Category, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among

_VIEWS = aten.names("view", "select slice")
"""Operators that only make a view: their time is the price of a call on this machine, in this recording."""

PRICE = 3
"""Most views whose time an operator on few elements takes, besides one for itself and for each operator that it runs.
In recordings of torch 2.13 on a CPU, with shapes and stacks, arithmetic, comparisons, copies and indexing took 0.4 to
3.6 views in all (medians).
"""


class HostWork(msgspec.Struct, frozen=True):
    """The part of their host time in which operators work on elements.

    Attributes:
        operators_before: how many operators begin before each tree row, and at the end all.
        view_ns: median time of a view.
        waiting: operators whose time is waiting.
    """

    profile: Profile
    operators_before: Numbers
    view_ns: float
    waiting: Rows

    def work_ns(self, rows: Rows) -> Times:
        """The time of each of these tree rows beyond the price of a call."""
        before, last = self.operators_before, self.profile.tree.last_descendant
        price_ns = self.view_ns * (PRICE + before[last[rows] + 1] - before[rows])
        work_ns = np.maximum(self.profile.table.durations_of(rows) - price_ns.astype(np.int64), 0)
        return np.where(among(rows, self.waiting), 0, work_ns)

    def share(self, operators: Sequence[int]) -> float:
        """Approximate share of the time of `operators` that is work, 0 to 1.

        Operators that launch device work do none on the host. Uses medians by name, and ignores names that occur once:
        first calls can take milliseconds.
        """
        table, rows = self.profile.table, rows_of(operators)
        work_ns, names = self.work_ns(rows), table.name[rows]
        if "device" in self.profile.recorded:
            work_ns[[len(self.profile.device_activity_of(row)) > 0 for row in operators]] = 0
        all_ns = all_work_ns = 0.0
        for name, count in zip(*np.unique(names, return_counts=True), strict=True):
            if count > 1:
                all_ns += count * float(np.median(table.durations_of(rows[names == name])))
                all_work_ns += count * float(np.median(work_ns[names == name]))
        return all_work_ns / all_ns if all_ns else 0.0


def host_work(profile: Profile) -> HostWork:
    """The work that operators of `profile` do on the host; 0 if no view shows the price of a call."""
    table, tree = profile.table, profile.tree
    views = profile.named(*_VIEWS)
    view_ns = float(np.median(table.durations_of(views)) if len(views) else table.duration_ns.max(initial=0))
    before = np.zeros(tree.size + 1, np.int32)
    np.cumsum(table.category[: tree.size] == Category.OPERATOR, out=before[1:])
    return HostWork(profile, before, view_ns, profile.named(*OF_ONE_ELEMENT))
