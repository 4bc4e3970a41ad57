"""Casts between floating-point dtypes in the forward pass, and the operators between them."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import FLOATING, Inputs, Shape, tensor_bytes
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import asked_once, numbers_where

_CASTS = aten.names("known", "_autocast_to_reduced_precision _to_copy to type_as")
_OF_BACKWARD = re.compile("autograd::engine::")


class Cast(msgspec.Struct, frozen=True):
    """One call that creates a copy in another dtype.

    Attributes:
        row: of the outermost operator that does nothing else.
        operator: row of the outermost operator around it, which is the cast itself, or one that autocast casts for.
        shape: of the tensor.
        source, target: the trace's C++ names of its dtypes.
        size: bytes of the wider one of both tensors.
    """

    row: int
    operator: int
    shape: Shape
    source: str
    target: str
    size: int


def casts(profile: Profile, min_bytes: int = 0) -> list[Cast]:
    """The casts of at least `min_bytes` in the forward pass, in row order.

    The dtypes are those of `aten::copy_` inside the cast: a call that changes nothing makes no copy, and its target
    type is not recorded.
    """
    table, tree = profile.table, profile.tree
    kinds = {number: kind for number, kind in enumerate(map(asked_once(_kind), profile.known_inputs)) if kind}
    large = np.array([number for number, kind in kinds.items() if kind[-1] >= min_bytes], np.int32)
    copies = profile.named("aten::copy_")
    copies = copies[among(table.inputs[copies], large)]
    is_cast = np.zeros(tree.size + 1, np.bool_)  # the last one is for ABSENT
    is_cast[profile.named(*_CASTS)] = True
    copies = copies[is_cast[tree.parent[copies]]]
    rows = copies
    while (is_inside := is_cast[tree.parent[rows]]).any():
        rows = np.where(is_inside, tree.parent[rows], rows)
    tops = np.flatnonzero(profile.calls.outermost)
    around = np.append(tops, ABSENT)[np.searchsorted(tops, copies, side="right") - 1]
    operators = np.where((around != ABSENT) & (tree.last_descendant[around] >= copies), around, rows)
    is_backward = among(table.name[operators], numbers_where(table.names, _OF_BACKWARD.match))
    columns = (each[~is_backward].tolist() for each in (rows, operators, table.inputs[copies]))
    return [Cast(row, operator, *kinds[number]) for row, operator, number in zip(*columns, strict=True)]


def _kind(inputs: Inputs) -> tuple[Shape, str, str, int] | None:
    """The last four attributes of a `Cast` whose copy has these inputs; None if it casts nothing."""
    target, source = inputs.dtype(0), inputs.dtype(1)
    shape = inputs.shape(0)
    if target == source or not FLOATING.issuperset((target, source)) or shape is None or shape != inputs.shape(1):
        return None
    return shape, source, target, max(tensor_bytes(shape, dtype) or 0 for dtype in (source, target))
