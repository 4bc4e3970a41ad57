"""Work of `DistributedDataParallel` besides the model: copies of gradients, and broadcasts of buffers."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.trace.sets import among, common

GRADIENT_COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
_FORWARD = r"^DistributedDataParallel\.forward$"
BROADCAST = "c10d::broadcast_"
COPY = "aten::copy_"
PACK = "aten::flatten_dense_tensors"
COALESCED = aten.names("known", "flatten_dense_tensors unflatten_dense_tensors") | {
    COPY,
    BROADCAST, "record_param_comms",
}  # fmt: skip
"""Operators that make up a coalesced broadcast."""


def gradient_copies(profile: Profile) -> Rows:
    """Operators that copy a gradient out of its bucket after the bucket's collective, in row order."""
    return profile.named(GRADIENT_COPY)


def buffer_broadcasts(profile: Profile) -> list[list[int]]:
    """Operators that send the model's buffers from one rank to all before a forward pass, one list per pass."""
    table = profile.table
    passes = profile.matching(_FORWARD, Category.ANNOTATION)
    forward = Intervals.union(table.start_ns[passes], table.end_ns[passes])
    broadcasts = profile.named(BROADCAST)
    broadcasts = broadcasts[forward.containing(table.start_ns[broadcasts])]
    parents = dict.fromkeys(around for row in broadcasts.tolist() if (around := profile.parent(row)) is not None)
    return [found for around in parents if (found := _coalesced(profile, profile.children(around)))]


def _coalesced(profile: Profile, siblings: list[int]) -> list[int]:
    """The operators of coalesced broadcasts: those around each broadcast, up to the first that does something else.

    A broadcast of the model itself packs nothing first, and is left out.
    """
    operators = [row for row in siblings if profile.category(row) == Category.OPERATOR]
    names = [aten.without_overload(profile.name(row)) for row in operators]
    is_part, sends, packs = (
        np.array([name in wanted for name in names]) for wanted in (COALESCED, {BROADCAST}, {PACK})
    )
    run = np.cumsum(~is_part)
    packed = common(run[sends], run[packs])
    found: list[int] = np.array(operators)[is_part & among(run, packed)].tolist()
    return found
