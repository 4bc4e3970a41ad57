"""The least time of a decode iteration: it reads its weights and its KV cache once, at the device's bandwidth.

A decode computes so little that memory bandwidth limits it. The weights are the larger factors of its products, the
cache is what attention reads; the bytes of experts come from the model's `config.json` beside a recording of one rank.
There is no floor if more than a small part of products, attention and experts has an unknown size.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.ledger.kinds import kind_of_kernel
from tb_tidy_plugin.profile.device_models import DeviceModel
from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.iterations import Iteration, expert_sizes
from tb_tidy_plugin.profile.serving.paged_attention import serving_estimates_of
from tb_tidy_plugin.profile.work.flops import device_of
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.causes import Kind

LEAST_KNOWN = 0.95
"""Part of the time of products, attention and experts whose sizes must be known."""

_READING = frozenset({Kind.MATRIX, Kind.ATTENTION, Kind.MIXTURE_OF_EXPERTS})
"""Kinds of kernels that read weights or the cache."""


class Floor(msgspec.Struct, frozen=True):
    """Bytes that one iteration must read, and the time that this takes at the device's bandwidth."""

    weight_bytes: int
    kv_bytes: int
    ns: int


def decode_floors(profile: Profile, iterations: Sequence[Iteration]) -> list[Floor | None]:
    """The floor of each iteration; None if it does more than decode, or if sizes or the device are unknown."""
    device = device_of(profile)
    if device is None or all(each.batch.phase != "decode" for each in iterations):
        return [None] * len(iterations)
    table, launch = profile.table, profile.launch
    rows = np.flatnonzero(table.is_category(DEVICE_WORK) & (launch != ABSENT))
    rows = rows[np.argsort(table.start_ns[launch[rows]], kind="stable")]
    weights, cache = _read(profile, device)
    call = np.full(len(table), ABSENT, np.int64)
    call[profile.operators.work] = profile.operators.work_call
    known = np.append(profile.nested.nearest((weights > 0) | (cache > 0)), ABSENT)[call[rows]]
    reads, is_expert = _reads(profile, rows, call[rows])
    of_experts = expert_sizes(profile)
    thread, launched, duration = table.thread[launch[rows]], table.start_ns[launch[rows]], table.durations_of(rows)
    found: list[Floor | None] = []
    for each in iterations:
        span = slice(*np.searchsorted(launched, (each.host_start_ns, each.host_end_ns)).tolist())
        mine = thread[span] == each.thread
        calls = distinct(known[span][mine])
        calls = calls[calls != ABSENT]
        spent = duration[span][mine & reads[span]]
        of_known = duration[span][mine & reads[span] & (known[span] != ABSENT)]
        weight_bytes, kv_bytes = int(weights[calls].sum()), int(cache[calls].sum())
        expert_ns = int(duration[span][mine & is_expert[span] & (known[span] == ABSENT)].sum())
        expert_bytes = of_experts.bytes_read(each.batch.tokens or 0) if of_experts is not None else 0
        if 0 < expert_bytes <= expert_ns * device.bytes_per_second / 1e9:  # else the file describes other experts
            weight_bytes, known_ns = weight_bytes + expert_bytes, int(of_known.sum()) + expert_ns
        else:
            known_ns = int(of_known.sum())
        least_ns = round((weight_bytes + kv_bytes) / device.bytes_per_second * 1e9)
        is_known = each.batch.phase == "decode" and bool(len(calls)) and known_ns >= LEAST_KNOWN * spent.sum()
        is_floor = is_known and least_ns <= each.busy_ns
        found.append(Floor(weight_bytes, kv_bytes, least_ns) if is_floor else None)
    return found


def _read(profile: Profile, device: DeviceModel) -> tuple[Times, Times]:
    """Bytes of the weight and of the cache that each call reads, by position in `Profile.nested`.

    If attention seems to read the cache faster than the device can, it reads an unknown part of it, as with a sliding
    window.
    """
    nested = profile.nested
    weights, cache = np.zeros(len(nested), np.int64), np.zeros(len(nested), np.int64)
    at = np.full(len(profile.table), ABSENT, np.int64)
    at[nested.rows] = np.arange(len(nested))
    for product in profile.products(*BYTES_PER_ELEMENT):
        size = product.batch * product.k * max(product.m, product.n)
        weights[at[product.row]] = size * BYTES_PER_ELEMENT[product.dtype]
    estimated = serving_estimates_of(profile).bytes
    fits = estimated <= profile.operators.device_total_ns * device.bytes_per_second / 1e9
    for position in np.flatnonzero((estimated > 0) & fits & (weights == 0)).tolist():
        row = int(nested.rows[position])
        if profile.category(row) is Category.OPERATOR and kind_of_kernel(profile.name(row), "") is Kind.ATTENTION:
            cache[position] = estimated[position]
    return weights, cache


def _reads(profile: Profile, rows: Rows, call: Rows) -> tuple[Mask, Mask]:
    """Mask of `rows` with kernels that read weights or the cache, and mask of experts' kernels.

    `call` holds their positions in `nested`.
    """
    table = profile.table
    operator = np.append(table.name[profile.nested.rows], ABSENT)[call]
    pairs, number = np.unique(np.stack([operator, table.name[rows]], axis=1), axis=0, return_inverse=True)
    names = [("" if at == ABSENT else table.names[at], table.names[kernel]) for at, kernel in pairs.tolist()]
    kinds = [kind_of_kernel(*each) for each in names]
    reads, experts = (
        np.array([kind in wanted for kind in kinds], np.bool_) for wanted in (_READING, {Kind.MIXTURE_OF_EXPERTS})
    )
    return reads[number.reshape(-1)], experts[number.reshape(-1)]
