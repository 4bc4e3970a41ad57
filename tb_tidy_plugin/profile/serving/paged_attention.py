"""Work of attention over a paged cache when a server decodes, from the annotation of the batch.

The operator's shapes contain the whole cache, not the part that the batch reads: the annotation has the number of
tokens. Models with a sliding window read less; their estimate exceeds what the device can do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.device_models import DeviceModel
from tb_tidy_plugin.profile.serving.iterations import Iteration, iterations_of
from tb_tidy_plugin.profile.work.flops import WorkEstimates, device_of, estimates_of
from tb_tidy_plugin.profile.work.formulas import ELEMENT_BYTES, Estimate, Tensor, tensor
from tb_tidy_plugin.trace.columns import ABSENT, Category

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.events.inputs import Inputs
    from tb_tidy_plugin.profile.profile import Profile

PAGED = re.compile(r"attention|attn", re.IGNORECASE)


def decode_attention(inputs: Inputs, kv_tokens: int) -> Estimate | None:
    """Work of one call that reads `kv_tokens` tokens of its cache; None if no cache is passed.

    The query is tokens × heads × size. The cache has 4 dimensions, the last of which is that size; one of the two
    before it is the number of heads in the cache, which divides the query's. If both may be it, the work is unknown.
    """
    found = _query_and_cache(inputs)
    if found is None:
        return None
    query, cache, kept = found
    _, heads, size = query.shape
    moved = 2 * kept * size * ELEMENT_BYTES[cache.dtype] * kv_tokens + 2 * query.bytes
    return Estimate(4 * heads * size * kv_tokens, moved, query.dtype)


def cached_heads(inputs: Inputs) -> int | None:
    """Number of heads in an attention's cache; None if no cache is passed, or if several sizes may be it."""
    found = _query_and_cache(inputs)
    return None if found is None else found[2]


def _query_and_cache(inputs: Inputs) -> tuple[Tensor, Tensor, int] | None:
    """The query, one of the two caches and its number of heads."""
    tensors = [found for at in range(len(inputs.dims)) if (found := tensor(inputs, at)) is not None]
    queries = [each for each in tensors if len(each.shape) == 3]
    if not queries:
        return None
    _, heads, size = queries[0].shape
    caches = [each for each in tensors if len(each.shape) == 4 and each.shape[-1] == size]
    if len(caches) < 2 or caches[0].shape != caches[1].shape:
        return None
    kept = {each for each in caches[0].shape[1:3] if each > 1 and heads % each == 0}
    return (queries[0], caches[0], kept.pop()) if len(kept) == 1 else None


def with_decode_attention(profile: Profile, estimates: WorkEstimates) -> WorkEstimates:
    """`estimates`, with attention over a paged cache in iterations that only decode."""
    found = [each for each in iterations_of(profile) if each.batch.phase == "decode" and each.batch.kv_tokens]
    if not found:
        return estimates
    operators, table, device = profile.operators, profile.table, device_of(profile)
    wanted = np.flatnonzero(table.is_named(PAGED.search)[profile.nested.rows])
    wanted = wanted[table.category[profile.nested.rows[wanted]] == Category.OPERATOR]
    wanted = wanted[(operators.device_self_ns[wanted] > 0) & (estimates.bytes[wanted] == ABSENT)]
    calls, first = np.unique(operators.work_call, return_index=True)
    work = dict(zip(calls.tolist(), operators.work[first].tolist(), strict=True))
    columns = (estimates.flops.copy(), estimates.bytes.copy(), estimates.ideal_ns.copy())
    for call in wanted.tolist():
        iteration = _iteration(profile, found, int(profile.launch[work[call]]))
        inputs = profile.inputs(int(profile.nested.rows[call]))
        done = None if iteration is None else decode_attention(inputs, iteration.batch.kv_tokens or 0)
        if done is not None:
            columns[0][call], columns[1][call] = done.flops or 0, done.bytes or 0
            columns[2][call] = _least_ns(device, done)
    return replace(estimates, flops=columns[0], bytes=columns[1], ideal_ns=columns[2])


def serving_estimates_of(profile: Profile) -> WorkEstimates:
    """Estimated work of every call, including a server's attention."""
    return with_decode_attention(profile, estimates_of(profile))


def _iteration(profile: Profile, iterations: list[Iteration], launch: int) -> Iteration | None:
    if launch == ABSENT:
        return None
    thread, at = int(profile.table.thread[launch]), profile.start_ns(launch)
    return next(
        (each for each in iterations if each.thread == thread and each.host_start_ns <= at < each.host_end_ns), None
    )


def _least_ns(device: DeviceModel | None, done: Estimate) -> float:
    """Least time of a call: mostly reading the cache, with about two operations per byte."""
    return np.nan if device is None else (done.bytes or 0) / device.bytes_per_second * 1e9
