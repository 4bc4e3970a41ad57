"""Which operators of the backward pass compute the gradients of given operators of the forward pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from tb_tidy_plugin.profile.profile import Profile

NODE = re.compile(r"(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*")
"""`autograd::engine::evaluate_function: Log1PBackward0`, and without its first words where that is not recorded."""


def gradients_of(profile: Profile, operators: Iterable[int]) -> list[int]:
    """Operators of the backward pass that belong to `operators` and what they run, without descendants, in row order.

    A forward operator that autograd did not record shares its sequence number with the next one that it did, so a node
    counts only where it is named after the operator: `MulBackward0` after `aten::mul_`.
    """
    found = {row for operator in operators for inner in profile.subtree(operator) for row in _nodes(profile, inner)}
    return sorted(row for row in found if found.isdisjoint(profile.ancestors(row)))


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
