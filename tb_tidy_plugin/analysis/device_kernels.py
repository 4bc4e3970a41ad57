"""The table of kernels: the device's work by family, operator and name, and how near it comes to the device's limits.

The family comes from the operator, else from the kernel's name. Rates come from the operator's shapes. An operator may
launch several kernels; its rate is over the time of all of them, and is shown in the row of the longest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.operator_tables import MOST_ROWS, row_key
from tb_tidy_plugin.ledger.kinds import kind_of_copy, kind_of_kernel
from tb_tidy_plugin.profile.device_models import DeviceModel
from tb_tidy_plugin.profile.kernels import kernel_kind, uses_tensor_cores
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.iterations import experts_read
from tb_tidy_plugin.profile.work.flops import WorkEstimates, device_of
from tb_tidy_plugin.report.figures import DeviceKernelRow, KernelFamilyRow
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, Rows
from tb_tidy_plugin.words.causes import Kind
from tb_tidy_plugin.words.vocabulary import KnownBy

OVER_THE_BUS = frozenset({Kind.TO_DEVICE, Kind.TO_HOST})
"""Copies whose limit is the bus, not the device's memory."""


_Named: TypeAlias = tuple[Kind, str, str]
"""Family, operator and name of a row."""


class _Work(msgspec.Struct):
    """Work of known amount and time; each `of_…_ns` is the time of the calls for which that amount is known."""

    flops: int = 0
    of_flops_ns: int = 0
    bytes: int = 0
    of_bytes_ns: int = 0
    ideal_ns: float = 0.0
    of_ideal_ns: int = 0

    def add(self, other: _Work) -> None:
        self.flops += other.flops
        self.of_flops_ns += other.of_flops_ns
        self.bytes += other.bytes
        self.of_bytes_ns += other.of_bytes_ns
        self.ideal_ns += other.ideal_ns
        self.of_ideal_ns += other.of_ideal_ns

    def rates(self, device: DeviceModel | None) -> tuple[float | None, float | None, float | None]:
        """FLOP/s, B/s and the share of the device's limit; all None if one exceeds what the device can do."""
        flops = self.flops / self.of_flops_ns * 1e9 if self.flops else None
        moved = self.bytes / self.of_bytes_ns * 1e9 if self.bytes else None
        share = self.ideal_ns / self.of_ideal_ns if self.of_ideal_ns else None
        if (share or 0) > 1 or (device is not None and (moved or 0) > device.bytes_per_second):
            return None, None, None
        return flops, moved, share


class _Sum(msgspec.Struct):
    """Sums of one row. replayed: pieces of work in replayed graphs with a known operator; known_by: how it is known."""

    count: int = 0
    total_ns: int = 0
    work: _Work = msgspec.field(default_factory=_Work)
    replayed: int = 0
    known_by: KnownBy | None = None


def device_kernels(profile: Profile, estimates: WorkEstimates) -> tuple[list[KernelFamilyRow], list[DeviceKernelRow]]:
    """Families and rows of the table, most time first; both are empty if the device ran nothing."""
    table = profile.table
    rows = np.flatnonzero(table.is_category(DEVICE_WORK))
    if not len(rows):
        return [], []
    call = _calls(profile, rows)
    keys = np.stack([_operator_names(profile, call), table.name[rows], table.category[rows]], axis=1)
    groups, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    duration = table.durations_of(rows)
    count = np.bincount(number, minlength=len(groups)).tolist()
    total = np.zeros(len(groups), np.int64)
    np.add.at(total, number, duration)
    replayed = np.bincount(number, profile.replayed.known[rows] != ABSENT, len(groups)).astype(np.int64).tolist()
    known_by = profile.replayed.least_by_group(rows, number, len(groups))
    sums = [
        _Sum(many, ns, replayed=of_graphs, known_by=known)
        for many, ns, of_graphs, known in zip(count, total.tolist(), replayed, known_by, strict=True)
    ]
    named = [_described(profile, *group) for group in groups.tolist()]
    _add_work(profile, estimates, _Placed(rows, call, number), [family for family, *_ in named], sums)
    _add_experts(profile, [family for family, *_ in named], sums)
    return _families(profile, named, sums), _rows(profile, named, sums)


def _calls(profile: Profile, rows: Rows) -> Rows:
    """Position in `Profile.nested` of the call that launched each piece of device work, else `ABSENT`."""
    call = np.full(len(profile.table), ABSENT, np.int64)
    call[profile.operators.work] = profile.operators.work_call
    found: Rows = call[rows]
    return found


def _operator_names(profile: Profile, call: Rows) -> Rows:
    """Numbers of the operators' names in `Profile.plain_names`; `ABSENT` where no operator launched the work."""
    at = np.append(profile.nested.rows, 0)[call]
    is_operator = (call != ABSENT) & (profile.table.category[at] == Category.OPERATOR)
    names: Rows = np.where(is_operator, profile.plain_number(at), ABSENT)
    return names


def _described(profile: Profile, operator: int, name: int, category: int) -> _Named:
    """Family, operator and name of a row."""
    called = "" if operator == ABSENT else profile.plain_names[operator]
    kernel = profile.table.names[name]
    if category != Category.KERNEL:
        return kind_of_copy(category, kernel), called, kernel
    if "communication" in {kernel_kind(kernel), kernel_kind(called)}:
        return Kind.COMMUNICATION, called, kernel
    return kind_of_kernel(called, kernel), called, kernel


class _Placed(msgspec.Struct, frozen=True):
    """Rows of device work, their calls, and the numbers of their groups."""

    rows: Rows
    call: Rows
    group: Rows


def _add_work(
    profile: Profile, estimates: WorkEstimates, placed: _Placed, families: list[Kind], sums: list[_Sum]
) -> None:
    """Adds the work of each estimated call to the row of its longest kernel."""
    operators = profile.operators
    known = (operators.device_total_ns > 0) & ((estimates.flops > 0) | (estimates.bytes > 0))
    if not known.any():
        return
    estimated = np.append(operators.nested.nearest(known), ABSENT)[placed.call]
    order = np.lexsort((-profile.table.durations_of(placed.rows), estimated))
    calls, first = np.unique(estimated[order], return_index=True)
    for at, group in zip(calls.tolist(), placed.group[order[first]].tolist(), strict=True):
        if at == ABSENT or families[group] in OVER_THE_BUS:
            continue
        flops, moved, ideal = int(estimates.flops[at]), int(estimates.bytes[at]), float(estimates.ideal_ns[at])
        time_ns = int(operators.device_total_ns[at])
        sums[group].work.add(
            _Work(
                max(flops, 0),
                time_ns if flops > 0 else 0,
                max(moved, 0),
                time_ns if moved > 0 else 0,
                0.0 if np.isnan(ideal) else ideal,
                0 if np.isnan(ideal) else time_ns,
            )
        )


def _add_experts(profile: Profile, families: list[Kind], sums: list[_Sum]) -> None:
    """Adds the bytes that experts without recorded shapes read to the row of the longest kernel."""
    mine = [each for family, each in zip(families, sums, strict=True) if family is Kind.MIXTURE_OF_EXPERTS]
    read, device = experts_read(profile), device_of(profile)
    if read and mine and not any(each.work.of_bytes_ns for each in mine):
        time_ns = sum(each.total_ns for each in mine)
        ideal_ns, of_ideal_ns = (read / device.bytes_per_second * 1e9, time_ns) if device else (0.0, 0)
        longest = max(mine, key=lambda each: each.total_ns)
        longest.work.add(_Work(0, 0, read, time_ns, ideal_ns, of_ideal_ns))


def _rows(profile: Profile, named: Iterable[_Named], sums: list[_Sum]) -> list[DeviceKernelRow]:
    device, whole = device_of(profile), max(sum(each.total_ns for each in sums), 1)
    found = []
    for (family, operator, name), each in zip(named, sums, strict=True):
        flops, moved, share = each.work.rates(device)
        found.append(
            DeviceKernelRow(
                key=row_key((family.word, operator, name)),
                family=family,
                operator=operator,
                name=name,
                count=each.count,
                total_ns=each.total_ns,
                share=each.total_ns / whole,
                mean_ns=round(each.total_ns / each.count),
                flops_per_second=flops,
                bytes_per_second=moved,
                roofline=share,
                tensor_cores=uses_tensor_cores(name)
                if family not in {Kind.FILL, *OVER_THE_BUS, Kind.ON_DEVICE}
                else None,
                replayed=each.replayed,
                known_by=each.known_by,
            )
        )
    found.sort(key=lambda row: -row.total_ns)
    return found[:MOST_ROWS]


def _families(profile: Profile, named: Iterable[_Named], sums: list[_Sum]) -> list[KernelFamilyRow]:
    device, whole = device_of(profile), max(sum(each.total_ns for each in sums), 1)
    found: dict[Kind, _Sum] = {}
    rated: Counter[Kind] = Counter()
    for (family, *_), each in zip(named, sums, strict=True):
        into = found.setdefault(family, _Sum())
        into.count += each.count
        into.total_ns += each.total_ns
        if each.work.rates(device) != (None, None, None):
            into.work.add(each.work)
            rated[family] += max(each.work.of_flops_ns, each.work.of_bytes_ns)
    rows = []
    for family, each in found.items():
        flops, moved, share = each.work.rates(device)
        rows.append(
            KernelFamilyRow(
                family=family,
                label=family.label,
                count=each.count,
                total_ns=each.total_ns,
                share=each.total_ns / whole,
                flops_per_second=flops,
                bytes_per_second=moved,
                roofline=share,
                rated_share=min(rated[family] / max(each.total_ns, 1), 1.0),
            )
        )
    return sorted(rows, key=lambda row: -row.total_ns)
