"""What `DistributedDataParallel` does besides the model: copies of gradients, and broadcasts of buffers."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin import aten
from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category, Rows

GRADIENT_COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
FORWARD = r"^DistributedDataParallel\.forward$"
BROADCAST, COPY = "c10d::broadcast_", "aten::copy_"
COALESCED = frozenset(
    {BROADCAST, COPY, "aten::flatten_dense_tensors", "aten::unflatten_dense_tensors", "record_param_comms"}
)
"""Operators that a coalesced broadcast consists of."""


def gradient_copies(profile: Profile) -> Rows:
    """Operators that copy a gradient out of its bucket after the bucket's collective, in row order."""
    return profile.named(GRADIENT_COPY)


def buffer_broadcasts(profile: Profile) -> list[list[int]]:
    """Operators that send the model's buffers from one rank to all before a forward pass, one list per pass."""
    table = profile.table
    passes = profile.matching(FORWARD, Category.ANNOTATION)
    forward = Intervals.union(table.start_ns[passes], table.end_ns[passes])
    broadcasts = profile.named(BROADCAST)
    broadcasts = broadcasts[forward.containing(table.start_ns[broadcasts])]
    found: dict[int, list[int]] = {}
    for broadcast in broadcasts.tolist():
        around = profile.parent(broadcast)
        if around is not None and broadcast not in found.get(around, ()):
            found[around] = _run_around(profile, broadcast, profile.children(around))
    return list(found.values())


def _run_around(profile: Profile, broadcast: int, siblings: list[int]) -> list[int]:
    """The operators among `siblings` around `broadcast`, up to the first on either side that does something else."""
    operators = [row for row in siblings if profile.category(row) == Category.OPERATOR]
    is_part = np.array([aten.without_overload(profile.name(row)) in COALESCED for row in operators])
    at = operators.index(broadcast)
    others = np.flatnonzero(~is_part)
    after = int(np.searchsorted(others, at))
    low = int(others[after - 1]) + 1 if after else 0
    high = int(others[after]) if after < len(others) else len(operators)
    return operators[low:high]
