"""The floor of a step: the least time that this machine needs for its work, and the reasons for the time above it.

Work has a floor where its shapes, a formula and the machine's rates are known: the longer of computing and moving, in
the fastest precision that `torch.autocast` would choose for it. Time in which nothing works has a floor of zero. Floors
and reasons of an entry add up to its time, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec
import numpy as np

from tb_tidy_plugin.ledger.causes import Segments
from tb_tidy_plugin.ledger.model import Entry, Gap, StepFloor
from tb_tidy_plugin.profile.machine import Machine, device_machine, host_machine
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.paged_attention import serving_estimates_of
from tb_tidy_plugin.profile.work.flops import AUTOCAST, PLAUSIBLE, Reals, WorkEstimates
from tb_tidy_plugin.profile.work.formulas import ELEMENT_BYTES, Estimate
from tb_tidy_plugin.trace.columns import ABSENT, Numbers, Times
from tb_tidy_plugin.words.causes import Cause, Kind
from tb_tidy_plugin.words.units import Nanoseconds
from tb_tidy_plugin.words.vocabulary import GAP_TEXTS, GapReason

MOST_KNOWN = 0.8
"""Part of the step, and of the work in it, whose floor must be known before the step is compared with it."""

SMALL_NS = 5_000
"""Kernels that need less than this end before the device is full: starting and ending them takes most of their time."""

MEMORY_SET = 1 << 60
"""Bytes that no cache holds."""

_NARROW = ("c10::BFloat16", "c10::Half")
_WIDE = ("double", "float")


class EntryFloor(msgspec.Struct, frozen=True):
    """Of one entry, all over the window.

    Attributes:
        ns: the floor. known_ns: time of the entry whose floor is known.
        gaps: the reasons for the rest, largest first.
    """

    ns: int
    known_ns: int
    gaps: list[Gap]


class _CallFloors(msgspec.Struct, frozen=True):
    """Least times of calls; arrays have one entry per call with a known floor.

    Attributes:
        around: by row of the table, the number of the nearest such call around it or of itself, `ABSENT` for none. One
            more entry, for `ABSENT`.
        time_ns: what each call takes. floor_ns: the least that it needs.
        precision_ns, threads_ns, small_ns: what is lost to wider numbers than autocast would choose, to fewer threads
            than there are cores, and to being small. They and the floor are at most the time, together.
    """

    around: Numbers
    time_ns: Reals
    floor_ns: Reals
    precision_ns: Reals
    threads_ns: Reals
    small_ns: Reals


class Floors:
    """Floors of one profile's work, as far as they are known."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @property
    def machine(self) -> Machine | None:
        """The machine that does the work of the step: the device, or the processor of a job without one."""
        if len(self.profile.operators.work):
            return device_machine(self.profile)
        return host_machine(self.profile)

    def of(self, cause: Cause, kind: Kind | None, segments: Segments, rows: Numbers, length: Times) -> EntryFloor:
        """The floor of an entry.

        Args:
            cause, kind: of the entry.
            segments: its pieces. rows: the host's call in each, `ABSENT` for none. length: of each in ns.
        """
        total = int(length.sum())
        reason = _without_work(cause, kind)
        if reason is not None or self.machine is None:
            reason = reason or "unknown"
            return EntryFloor(0, 0 if reason == "unknown" else total, _gaps({reason: total}))
        found = self._of_calls
        call = found.around[segments.work if cause.is_of_device else rows]
        held = np.bincount(call + 1, length, len(found.time_ns) + 1)  # of no call, then of each
        if kind is not None and not kind.has_limit:
            held[0], held[1:] = total, 0  # a formula counts other work than what these kernels do
        part = np.divide(held[1:], found.time_ns, out=np.zeros(len(found.time_ns)), where=found.time_ns > 0)
        floor, precision, threads, small = (
            int(part @ each) for each in (found.floor_ns, found.precision_ns, found.threads_ns, found.small_ns)
        )
        unknown = int(held[0])
        rest = total - unknown - floor - precision - threads - small
        small_reason: GapReason = "small" if cause.is_of_device else "launch"
        reasons: dict[GapReason, int] = {
            "precision": precision, "threads": threads, small_reason: small, "slow_kernel": rest, "unknown": unknown,
        }  # fmt: skip
        return EntryFloor(floor, total - unknown, _gaps(reasons))

    def of_steps(self, entries: Iterable[Entry], steps: int) -> StepFloor | None:
        """The floor of a mean step; None if the machine is not known."""
        entries = list(entries)
        if self.machine is None or not entries:
            return None
        total = sum(entry.ns_total for entry in entries)
        named = sum(gap.ns for entry in entries for gap in entry.gaps if gap.reason != "unknown")
        floor, named, step = (ns // max(steps, 1) for ns in (sum(entry.floor_ns for entry in entries), named, total))
        known = sum(entry.floor_known_ns for entry in entries) / max(total, 1)
        work = [entry for entry in entries if _without_work(entry.cause, entry.kind) is None]
        work_ns, known_ns = (
            sum(ns) for ns in ([each.ns_total for each in work], [each.floor_known_ns for each in work])
        )
        text = (
            f"{Nanoseconds(step)} per step; its work needs at least {Nanoseconds(floor)} on this machine. "
            f"{Nanoseconds(named)} of the {Nanoseconds(step - floor)} between have a name."
        )
        text = text if floor and known >= MOST_KNOWN and known_ns >= MOST_KNOWN * work_ns else ""
        return StepFloor(ns=floor, named_ns=named, share_known=known, source=self.machine.source, text=text)

    @cached_property
    def _of_calls(self) -> _CallFloors:
        profile, machine = self.profile, self.machine
        estimates, operators = serving_estimates_of(profile), profile.operators
        is_device = bool(len(operators.work))
        threads = None if is_device else profile.settings.threads.intra_op
        # Of each kind of call, and last of none: least times as written, on all cores, and in the fastest precision.
        every, narrow = self._of_kinds(estimates, None, in_cache=not is_device)
        written, _ = self._of_kinds(estimates, threads, in_cache=True)
        if is_device:  # as the ledger's limits, by the units that kernels ran on; data of faster calls is in a cache
            written = np.where(estimates.ideal_ns > estimates.time_ns, written, estimates.ideal_ns)
        time = estimates.time_ns.astype(np.float64)
        known = (time > 0) & (written > 0) & (written <= PLAUSIBLE * time)
        known &= (operators.device_total_ns > 0) == is_device
        number = np.append(np.cumsum(known, dtype=np.int32) - np.int32(1), np.int32(ABSENT))
        nearest = number[operators.nested.nearest(known)]
        around = np.full(len(profile.table) + 1, ABSENT, np.int32)
        if is_device:
            around[operators.work] = np.append(nearest, np.int32(ABSENT))[operators.work_call]
        else:
            around[operators.nested.rows] = nearest
        time, written = time[known], np.minimum(written[known], time[known])
        every = written if is_device else np.minimum(every[known], written)
        floor = np.fmin(narrow[known], every)
        above = time - written
        if is_device:
            small = np.where(written < SMALL_NS, above, 0.0)
        else:
            small = np.minimum(above, (machine.operator_ns if machine is not None else None) or 0.0)
        if is_device:
            return _CallFloors(around, time, floor, written - floor, np.zeros(len(floor)), small)
        return _CallFloors(around, time, floor, every - floor, written - every, small)

    def _of_kinds(self, estimates: WorkEstimates, threads: int | None, *, in_cache: bool) -> tuple[Reals, Reals]:
        """Least time of each call with so many threads, as written and in the fastest narrower precision.

        Data may be in a cache that it fits in, or comes from memory.
        """
        found = [_least(self.machine, name, work, threads, in_cache) for name, work in estimates.kinds]
        written, narrow = np.array([*found, (np.nan, np.nan)]).T  # of each kind, and last of none
        return written[estimates.kind], narrow[estimates.kind]


def _without_work(cause: Cause, kind: Kind | None) -> GapReason | None:
    """Why all time of an entry is above the floor; None for work, which may need some of it."""
    return cause.gap or (kind.gap if kind is not None else None)


def _least(
    machine: Machine | None, name: str, work: Estimate | None, threads: int | None, in_cache: bool
) -> tuple[float, float]:
    """Least time in ns as written, and in the fastest narrower precision; NaN if unknown.

    Autocast computes products in 16 bits. No other operator needs float64 where float32 is enough.
    """
    if machine is None or work is None or work.flops is None or work.bytes is None:
        return np.nan, np.nan
    resident = None if in_cache else MEMORY_SET
    written = _roofline(machine, work.flops, work.bytes, work.dtype, threads, resident)
    others = (*_NARROW, "float") if name in AUTOCAST else ("float",)
    if work.dtype not in _WIDE:
        return written, np.nan
    size = ELEMENT_BYTES[work.dtype]
    ratios = [(dtype, ELEMENT_BYTES[dtype] / size) for dtype in others if ELEMENT_BYTES[dtype] < size]
    narrow = [_roofline(machine, work.flops, work.bytes * ratio, dtype, threads, resident) for dtype, ratio in ratios]
    return written, float(np.fmin.reduce([np.nan, *narrow]))


def _roofline(
    machine: Machine, flops: int, moved: float, dtype: str, threads: int | None, resident: int | None
) -> float:
    """The longer of computing and moving in ns; of a working set of `resident` bytes, or of those that are moved."""
    rate = machine.bytes_per_second(int(moved) if resident is None else resident, threads)
    peak = machine.flops_per_second(dtype, threads)
    if rate is None or (flops and peak is None):
        return np.nan
    return max(moved / rate, flops / peak if flops and peak else 0.0) * 1e9


def _gaps(reasons: dict[GapReason, int]) -> list[Gap]:
    found = sorted(reasons.items(), key=lambda each: -each[1])
    return [Gap(reason=reason, ns=ns, text=GAP_TEXTS[reason]) for reason, ns in found if ns > 0]
