"""Which operators of the backward pass compute the gradients of given operators of the forward pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Rows

NODE = re.compile(r"(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*")
"""`autograd::engine::evaluate_function: Log1PBackward0`, and without its first words where that is not recorded."""


ACCUMULATE = "torch::autograd::AccumulateGrad"
"""The node that puts a parameter's gradient in its place, or adds to the one that is there."""


def gradients_of(profile: Profile, operators: Iterable[int]) -> list[int]:
    """Operators of the backward pass that belong to `operators` and what they run, without descendants, in row order.

    A forward operator that autograd did not record shares its sequence number with the next one that it did, so a node
    counts only where it is named after the operator: `MulBackward0` after `aten::mul_`.
    """
    found = {row for operator in operators for inner in profile.subtree(operator) for row in _nodes(profile, inner)}
    return sorted(row for row in found if found.isdisjoint(profile.ancestors(row)))


def accumulations(profile: Profile) -> Rows:
    """The nodes in which the backward pass hands over the gradients of parameters, in row order."""
    return profile.named(ACCUMULATE)


def additions(profile: Profile) -> Rows:
    """Operators in which the backward pass adds to gradients that are there already, in row order."""
    added = profile.named("aten::add_")
    above = profile.tree.parent[added]
    found: Rows = added[(above != ABSENT) & np.isin(above, accumulations(profile))]
    return found


def _nodes(profile: Profile, row: int) -> list[int]:
    wanted = _plain(profile.name(row))
    return [node for node in profile.backward_of(row) if _differentiated(profile.name(node)) == wanted]


@lru_cache(maxsize=1 << 12)
def _plain(name: str) -> str:
    return name.removeprefix("aten::").replace("_", "").lower()


@lru_cache(maxsize=1 << 12)
def _differentiated(name: str) -> str:
    node = NODE.fullmatch(name)
    return node[1].lower() if node else ""
