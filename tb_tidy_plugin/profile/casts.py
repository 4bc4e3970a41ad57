"""Casts between floating-point dtypes in the forward pass, and what runs between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.profile.inputs import Shape
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT

FLOATING = frozenset({"float", "double", "c10::Half", "c10::BFloat16"})
CASTS = ("aten::to", "aten::_to_copy", "aten::type_as", "aten::_autocast_to_reduced_precision")
OF_BACKWARD = "autograd::engine::"


@dataclass(frozen=True, slots=True)
class Cast:
    """One call that makes a copy in another dtype.

    Attributes:
        row: of the outermost operator that does nothing else.
        operator: row of the outermost operator around it, which is the cast itself, or one that autocast casts for.
        shape: of the tensor.
        source, target: the trace's C++ names of its dtypes.
    """

    row: int
    operator: int
    shape: Shape
    source: str
    target: str


def casts(profile: Profile) -> list[Cast]:
    """The casts that are made in the forward pass, in row order.

    The dtypes are those of `aten::copy_` inside the cast: a call that changes nothing makes no copy, and where to cast
    is not recorded.
    """
    tree = profile.tree
    copies = profile.named("aten::copy_")
    is_cast = np.zeros(tree.size + 1, np.bool_)
    is_cast[profile.named(*CASTS)] = True
    copies = copies[is_cast[tree.parent[copies]]]
    found = []
    tops = np.flatnonzero(profile.calls.outermost)
    around = np.append(tops, ABSENT)[np.searchsorted(tops, copies, side="right") - 1]
    around = np.where((around != ABSENT) & (tree.last_descendant[around] >= copies), around, ABSENT)
    for copy, top, given in zip(copies.tolist(), around.tolist(), profile.inputs_of(copies), strict=True):
        target, source = given.dtype(0), given.dtype(1)
        if target == source or not FLOATING.issuperset((target, source)):
            continue
        shape = given.shape(0)
        if shape is None or shape != given.shape(1):
            continue
        row = copy
        while (above := profile.parent(row)) is not None and is_cast[above]:
            row = above
        operator = row if top == ABSENT else top
        if not profile.name(operator).startswith(OF_BACKWARD):
            found.append(Cast(row, operator, shape, source, target))
    return found
