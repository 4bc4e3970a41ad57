"""Operators of the backward pass that compute the gradients of given operators of the forward pass."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from tb_tidy_plugin.profile.inputs import Shape
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.words.units import plural

_NODE = re.compile(r"(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*")
"""`autograd::engine::evaluate_function: Log1PBackward0`, and the same without its first words in older traces."""


Clearing: TypeAlias = tuple[int, str]
"""The row of a call that fills gradients with zeros, and the owner of these gradients."""

_ACCUMULATE = "torch::autograd::AccumulateGrad"
"""The node that stores a parameter's gradient, or adds to the existing one."""


def gradients_of(profile: Profile, operators: Iterable[int]) -> list[int]:
    """Operators of the backward pass that belong to `operators` and what they run, without descendants, in row order.

    A forward operator that autograd did not record shares its sequence number with the next one that it did, so a node
    counts only if it is named after the operator: `MulBackward0` after `aten::mul_`.
    """
    found = {row for operator in operators for inner in profile.subtree(operator) for row in _nodes(profile, inner)}
    return sorted(row for row in found if found.isdisjoint(profile.ancestors(row)))


def their_backward(gradients: int) -> str:
    """The end of a sentence about operators: how many operators of the backward pass belong to them, if any do."""
    if not gradients:
        return ""
    of_backward = "operator of the backward pass belongs", "operators of the backward pass belong"
    return f"; {plural(gradients, *of_backward)} to them"


def accumulations(profile: Profile) -> Rows:
    """The nodes in which the backward pass accumulates the gradients of parameters, in row order."""
    return profile.named(_ACCUMULATE)


def first_additions(profile: Profile, cleared: Mapping[Clearing, Counter[Shape]]) -> dict[Clearing, list[int]]:
    """Operators that add for the first time to each of the `cleared` gradients, distinguished by shape.

    A clearing ends with the next one by the same owner. Each shape's count in `cleared` is its number of gradients.
    """
    added = profile.named("aten::add_")
    above = profile.tree.parent[added]
    added = added[(above != ABSENT) & among(above, accumulations(profile))]
    added = added[np.argsort(profile.table.start_ns[added], kind="stable")]  # of all threads
    found: dict[Clearing, list[int]] = {clearing: [] for clearing in cleared}
    later = deque(sorted(cleared, key=lambda clearing: profile.start_ns(clearing[0])))
    left: dict[str, tuple[Clearing, Counter[Shape]]] = {}
    for row, given in zip(added.tolist(), profile.inputs_of(added), strict=True):
        while later and profile.start_ns(later[0][0]) < profile.start_ns(row):
            clearing = later.popleft()
            left[clearing[1]] = (clearing, Counter(cleared[clearing]))
        for clearing, shapes in left.values():
            if shapes[shape := given.shape(0) or ()] > 0:
                shapes[shape] -= 1
                found[clearing].append(row)
                break
    return found


def _nodes(profile: Profile, row: int) -> list[int]:
    wanted = _plain(profile.name(row))
    return [node for node in profile.backward_of(row) if _differentiated(profile.name(node)) == wanted]


@lru_cache(maxsize=1 << 12)
def _plain(name: str) -> str:
    return name.removeprefix("aten::").replace("_", "").lower()


@lru_cache(maxsize=1 << 12)
def _differentiated(name: str) -> str:
    node = _NODE.fullmatch(name)
    return node[1].lower() if node else ""
