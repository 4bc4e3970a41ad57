"""Share of the device's limit that work reaches, and the waiting part of exposed communication."""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from tb_tidy_plugin.ledger.advice import NO_SHAPES
from tb_tidy_plugin.ledger.causes import Segments
from tb_tidy_plugin.ledger.model import Bound, Communication, Limit, Rate
from tb_tidy_plugin.profile.device_models import FP8
from tb_tidy_plugin.profile.kernels import OF_NARROW_TYPE, QUANTISED
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.ranks.collectives import collectives_of
from tb_tidy_plugin.profile.serving.iterations import experts_read
from tb_tidy_plugin.profile.serving.paged_attention import serving_estimates_of
from tb_tidy_plugin.profile.work.flops import PLAUSIBLE, device_of
from tb_tidy_plugin.profile.work.matrix_products import float32_kernels
from tb_tidy_plugin.system.allocator import give_back
from tb_tidy_plugin.trace.columns import ABSENT, Ids, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

_MOSTLY = 0.5
NARROW_TYPES = frozenset({"c10::Half", "c10::BFloat16", *FP8})


class CallLimits(msgspec.Struct, frozen=True):
    """Distances of calls from the limits of the device.

    Attributes:
        call: the innermost call with a known limit around each row of device work, as a position in `Profile.nested`;
            `ABSENT` if there is none. One more entry, for `ABSENT`.
        ideal_ns: the least time that each call needs. time_ns: the duration of its device work.
        moves: calls whose least time is that of moving their bytes.
    """

    call: Rows
    ideal_ns: np.ndarray
    time_ns: Times
    moves: Mask


class _RatedCalls(msgspec.Struct, frozen=True):
    """Host calls with known work and time.

    Attributes:
        around: by row, the number of the nearest such call around it or of itself; `ABSENT` if there is none. One more
            entry, for `ABSENT`.
        flops, bytes: estimated work of each call; `ABSENT` if unknown. time_ns: its duration.
    """

    around: Numbers
    flops: Times
    bytes: Times
    time_ns: Times


class WorkLimits:
    """Limits of one profile's device work, as far as they are known."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    @cached_property
    def why_unknown(self) -> str:
        """The reason why the roofline is unknown, for all work or for some of it."""
        if "shapes" not in self.profile.recorded:
            return NO_SHAPES
        if self.roofline is None:
            return "the peak rates of this device are not known"
        return "most of it runs in kernels whose shapes or formulas are not known"

    @cached_property
    def roofline(self) -> CallLimits | None:
        """Distances of calls from their limit; None without shapes or without the device's peak rates."""
        profile = self.profile
        if "shapes" not in profile.recorded or (device := device_of(profile)) is None:
            return None
        estimates, operators = serving_estimates_of(profile), profile.operators
        known = (estimates.time_ns > 0) & (estimates.ideal_ns > 0) & (operators.device_total_ns > 0)
        known &= np.nan_to_num(estimates.ideal_ns) <= PLAUSIBLE * estimates.time_ns
        call = np.full(len(profile.table) + 1, ABSENT, np.int64)
        call[operators.work] = np.append(operators.nested.nearest(known), ABSENT)[operators.work_call]
        moving = np.where(estimates.bytes > 0, estimates.bytes / device.bytes_per_second * 1e9, 0)
        return CallLimits(
            call, estimates.ideal_ns, estimates.time_ns, moving >= 0.999 * np.nan_to_num(estimates.ideal_ns)
        )

    @cached_property
    def _float32(self) -> Mask:
        """Mask by row: products in float32 on ordinary cores of a device that has matrix units."""
        found = np.zeros(len(self.profile.table), np.bool_)
        found[float32_kernels(self.profile)] = True
        return found

    @cached_property
    def _rated(self) -> _RatedCalls:
        nested, found = self.profile.operators.nested, serving_estimates_of(self.profile)
        known = (found.time_ns > 0) & ((found.flops != ABSENT) | (found.bytes != ABSENT))
        number = np.append(np.cumsum(known, dtype=np.int32) - np.int32(1), np.int32(ABSENT))
        around = np.full(len(self.profile.table) + 1, ABSENT, np.int32)
        around[nested.rows] = number[nested.nearest(known)]
        rated = _RatedCalls(around, found.flops[known], found.bytes[known], found.time_ns[known])
        del found
        give_back()  # what nesting and rating took
        return rated

    def rate_calls(self) -> None:
        """Computes what `rate` asks, which takes memory, ahead of it."""
        if "shapes" in self.profile.recorded:
            _ = self._rated

    def forget_rates(self) -> None:
        """Lets go of what `rate` asks, which is computed again if it is called later."""
        vars(self).pop("_rated", None)

    @cached_property
    def _narrow(self) -> Mask:
        """Mask by row: device work whose operator takes a tensor of 16 bits or fewer, or whose name says so."""
        profile, table = self.profile, self.profile.table
        by_inputs = np.array([not NARROW_TYPES.isdisjoint(each.dtypes) for each in profile.known_inputs], np.bool_)
        named = among(table.name, numbers_where(table.names, OF_NARROW_TYPE.search))
        found: Mask = named | ((profile.launched_by != ABSENT) & by_inputs[table.inputs[profile.launched_by]])
        return found

    def is_narrow(self, segments: Segments) -> bool:
        """True if most of the device work already computes with 16 bits or fewer."""
        length = segments.ends - segments.starts
        return bool(length[self._narrow[segments.work]].sum() > _MOSTLY * length.sum())

    def is_quantised(self, segments: Segments) -> bool:
        """True if most of the device work has a name that indicates weights of 8 bits or fewer."""
        length = segments.ends - segments.starts
        return bool(length[self._quantised[segments.work]].sum() > _MOSTLY * length.sum())

    @cached_property
    def _quantised(self) -> Mask:
        table = self.profile.table
        found: Mask = among(table.name, numbers_where(table.names, QUANTISED.search))
        return found

    def rate(self, rows: Ids, length_ns: Times) -> Rate | None:
        """The rate of operators on the host; None if it is unknown for all of them.

        Args:
            rows: the host's call in each piece of time, `ABSENT` where nothing is recorded.
            length_ns: the duration of each piece.
        """
        if "shapes" not in self.profile.recorded or not (total := int(length_ns.sum())):
            return None
        known, call = self._rated, self._rated.around[rows]
        is_rated = np.zeros(len(known.time_ns) + 1, np.bool_)
        is_rated[call] = True
        rated = np.flatnonzero(is_rated[:-1])
        if not len(rated):
            return None
        time_ns = known.time_ns[rated]
        return Rate(
            flops_per_second=_per_second(known.flops[rated], time_ns),
            bytes_per_second=_per_second(known.bytes[rated], time_ns),
            known_share=int(length_ns[call != ABSENT].sum()) / total,
            threads=self.profile.settings.threads.intra_op,
        )

    def of(self, segments: Segments) -> Limit | None:
        """The limit of device work; None if it is unknown."""
        length = segments.ends - segments.starts
        total = int(length.sum())
        reached, bound, known_share = self._reached(segments, length, total)
        float32 = int(length[self._float32[segments.work]].sum())
        if float32 > _MOSTLY * total:
            return Limit(share_reached=reached, bound="fp32-cores", known_share=float32 / total, by="name")
        if bound is None or not known_share:
            return None
        return Limit(share_reached=reached, bound=bound, known_share=known_share, by="shapes")

    def of_experts(self, segments: Segments) -> Limit | None:
        """The limit of experts that only decode, by the model's configuration; None without a configuration."""
        taken_ns, device = int((segments.ends - segments.starts).sum()), device_of(self.profile)
        if device is None or not taken_ns:
            return None
        reached = experts_read(self.profile) / device.bytes_per_second * 1e9 / taken_ns
        return Limit(share_reached=reached, bound="memory", known_share=1.0, by="shapes") if 0 < reached <= 1 else None

    def _reached(self, segments: Segments, length: Times, total: int) -> tuple[float | None, Bound | None, float]:
        if self.roofline is None or not total:
            return None, None, 0.0
        call = self.roofline.call[segments.work]
        known = int(length[call != ABSENT].sum())
        calls = distinct(call[call != ABSENT])
        ideal, taken = self.roofline.ideal_ns[calls], self.roofline.time_ns[calls]
        if not len(calls) or not taken.sum():
            return None, None, 0.0
        memory = float(ideal[self.roofline.moves[calls]].sum())
        bound: Bound = "memory" if memory > _MOSTLY * float(ideal.sum()) else "compute"
        return min(float(ideal.sum() / taken.sum()), 1.0), bound, known / total


def _per_second(amounts: Times, time_ns: Times) -> float | None:
    """Rate over the entries with a known amount above zero."""
    some = amounts > 0
    return float(amounts[some].sum(dtype=np.float64) / time_ns[some].sum() * 1e9) if some.any() else None


def communication_of(profile: Profile, segments: Segments) -> Communication | None:
    """Exposed communication, and the part of it that must be waiting by the evidence of one rank.

    Equal collectives transfer equally long, so the time of one beyond the fastest of them is waiting, and comes first.
    This is a lower bound, since the fastest may have waited, too. Without sizes, no collectives are known to be equal.
    """
    found = collectives_of(profile)
    sized = np.flatnonzero(found.sizes != ABSENT)
    fastest: dict[tuple[str, str, int], list[int]] = {}
    duration = profile.table.durations_of(found.rows)
    keys = [(found.kinds[at], found.groups[at], int(found.sizes[at])) for at in sized.tolist()]
    for key, ns in zip(keys, duration[sized].tolist(), strict=True):
        fastest.setdefault(key, []).append(ns)
    beyond = np.zeros(len(profile.table) + 1, np.int64)
    repeated = [len(fastest[key]) > 1 for key in keys]
    if not any(repeated):
        return None
    least = np.array([min(fastest[key]) for key in keys], np.int64)
    beyond[found.rows[sized]] = duration[sized] - least
    until = profile.table.start_ns[segments.work] + beyond[segments.work]
    wait = int(np.clip(np.minimum(segments.ends, until) - segments.starts, 0, None).sum())
    return Communication(transfer_ns=None, wait_ns=wait, by="at-least")
