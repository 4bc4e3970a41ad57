"""Possible writes to a tensor after its creation, judged by shapes, since a trace does not identify tensors.

An operator may write to each input that PyTorch's schema marks as written, and one that is not PyTorch's own to all of
them. It writes to the tensor in question if that input has its shape, or the shape of a view of it. The operators that
a call of a view runs show the shapes of views. Unknown effects count as writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.compiled.compilations import COMPILED_PARTS
from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.profile.host.callers import of_the_model
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import accumulations
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import Category, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

RowSpan: TypeAlias = tuple[int, int]
"""Start and end in ns of the profile."""

HANDS_OUT = aten.names("known", "resolve_neg _has_compatible_shallow_copy_type set_data")
"""Operators that give the tensor's memory away: to NumPy, for which `resolve_neg` is the last operator that runs, or
to the tensor whose `.data` it becomes.
"""

STARTS_SUMS = aten.names(
    "known",
    """
    as_strided_scatter diagonal_scatter index_add index_copy index_fill index_put index_reduce masked_scatter scatter
    scatter_add scatter_reduce select_scatter slice_scatter
    """,
)
"""Operators that put data into a copy of their first input, which thus is a start value, like one written to."""

SIZES_AT = aten.by_name("shares", {"as_strided": 1, "view": 1, "_unsafe_view": 1, "_reshape_alias": 1, "set_": 3})
"""Positions of the result's sizes among the inputs of the operators that all views consist of."""

KEEPS_SHAPE = aten.names(
    "shares",
    """
    _autocast_to_full_precision _autocast_to_reduced_precision _conj _neg_view _to_cpu alias alpha_dropout atleast_1d
    atleast_2d atleast_3d broadcast_tensors cartesian_prod conj conj_physical contiguous data dequantize detach dropout
    einsum feature_alpha_dropout feature_dropout flatten flatten_dense_tensors lift lift_fresh meshgrid pin_memory
    positive ravel real reshape reshape_as resolve_conj resolve_neg sum_to_size to to_dense type_as
    """,
)
"""Operators that return the tensor itself, or a view of its shape, if they run no operator that creates another one."""

SETS_STORAGE = "aten::set_"
STORAGE = 1
"""Position of the input with the result's memory: a tensor, or a storage, which shows no shape."""

WIDTHS = sorted(set(BYTES_PER_ELEMENT.values()))


class _Effect(msgspec.Struct, frozen=True):
    """Possible effects of calls of one operator with the same inputs.

    Attributes:
        written: shapes of the tensors that it may write to, None if these were not recorded.
        viewed: shapes of those that it may make views of.
        views: shapes of these views, None if unknown.
        is_of_storage: True if they are views of whatever tensor has some storage.
    """

    written: frozenset[Shape] | None
    viewed: frozenset[Shape]
    views: frozenset[Shape] | None
    is_of_storage: bool

    def concerns(self, known: set[Shape] | frozenset[Shape]) -> bool:
        """True if they may write to a tensor of one of the shapes, or make a view of one."""
        if self.written is None or self.is_of_storage:
            return True
        return not known.isdisjoint(self.written) or not known.isdisjoint(self.viewed)


class Writes:
    """The operators of a profile that may write to tensors or make views of them, on all threads, in order of time.

    Calls of one operator with the same inputs do the same: their effect is computed once for all of them, and only if
    they get a tensor of a shape in question.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._effects: dict[int, _Effect] = {}

    def may_reach(self, shapes: Iterable[Shape], spans: Sequence[RowSpan]) -> bool:
        """True if during one of `spans` something may be written to a tensor that has one of `shapes` at its start."""
        if any(np.searchsorted(self._opaque, start) < np.searchsorted(self._opaque, end) for start, end in spans):
            return True
        own = frozenset(shapes)
        concerned = self._that_concern(own)
        if all(self._effect(call).written == frozenset() for call in concerned):
            return False
        _, number = self._calls
        here = among(number, concerned)
        times, calls = self._profile.table.start_ns[self._rows[here]], number[here]
        for start, end in spans:
            within = slice(*np.searchsorted(times, [start, end]).tolist())
            if _is_written(own, map(self._effect, calls[within].tolist())):
                return True
        return False

    @cached_property
    def _rows(self) -> Rows:
        """The operators that may write or make a view, in order of start.

        Without those inside another of PyTorch's own operators, which stands for them, and without the training code
        around the model, except where the backward pass adds to gradients: a constant may have become one.
        """
        profile, table, tree = self._profile, self._profile.table, self._profile.tree
        is_operator = table.category[: tree.size] == Category.OPERATOR
        known, able = (
            is_operator & among(table.name[: tree.size], numbers_where(table.names, test))
            for test in (_is_known, _is_able)
        )
        outer = able & ~profile.inside(np.flatnonzero(known))[: tree.size]
        nodes = accumulations(profile)
        outer[nodes] = False
        found = np.zeros(tree.size, np.bool_)
        found[of_the_model(profile, np.flatnonzero(outer))] = True
        for node in nodes.tolist():
            inside = slice(node, int(tree.last_descendant[node]) + 1)
            found[inside] = outer[inside]
        rows = np.flatnonzero(found)
        return rows[np.argsort(table.start_ns[rows], kind="stable")]

    @cached_property
    def _opaque(self) -> Times:
        """Start of compiled code that shows no operator with a tensor: it may write to anything."""
        profile = self._profile
        regions = profile.matching(COMPILED_PARTS["region"], Category.OPERATOR)
        hidden = [row for row in regions[~profile.inside(regions)[regions]].tolist() if not self._shows_tensors(row)]
        return np.sort(profile.table.start_ns[hidden])

    def _shows_tensors(self, region: int) -> bool:
        inside = self._profile.table.inputs[slice(region, int(self._profile.tree.last_descendant[region]) + 1)]
        known = self._profile.known_inputs
        return any(next(tensors_in(known[number]), None) is not None for number in distinct(inside).tolist())

    @cached_property
    def _calls(self) -> tuple[Rows, Rows]:
        """One row for each distinct pair of operator and inputs, and the number of each of `_rows` among them."""
        table, rows = self._profile.table, self._rows
        keys = table.name[rows].astype(np.int64) * len(table.input_texts) + table.inputs[rows]
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return rows[first], number.reshape(-1)

    def _effect(self, call: int) -> _Effect:
        known = self._effects.get(call)
        if known is None:
            known = self._effects[call] = _effect_of(self._profile, int(self._calls[0][call]))
        return known

    @cached_property
    def _by_shape(self) -> dict[Shape | None, list[int]]:
        """Calls by the shapes of tensors that they may write to or make views of; None stands for any shape."""
        profile, table, found = self._profile, self._profile.table, dict[Shape | None, list[int]]()
        rows = self._calls[0]
        names = table.name[rows].tolist()
        touched = {number: _touched(table.names[number]) for number in set(names)}
        first_inside = np.minimum(rows + 1, len(table) - 1)  # may show other shapes if it is the same operator
        is_twofold = (table.name[first_inside] == table.name[rows]) & (profile.tree.last_descendant[rows] > rows)
        for call, (name, given) in enumerate(zip(names, profile.inputs_of(rows), strict=True)):
            for shape in set(_shapes_at(given, touched[name])):
                found.setdefault(shape, []).append(call)
            if aten.without_overload(table.names[name]) == SETS_STORAGE:
                found.setdefault(None, []).append(call)
        for call in np.flatnonzero(is_twofold).tolist():
            effect = self._effect(call)
            for shape in (effect.written or frozenset()) | effect.viewed:
                found.setdefault(shape, []).append(call)
        return found

    def _that_concern(self, shapes: frozenset[Shape]) -> list[int]:
        """Calls that may affect a tensor of one of `shapes`, or views of it, in any order."""
        known, waiting, found = set(shapes), list[Shape | None]([None, *shapes]), set[int]()
        while waiting:
            for call in self._by_shape.get(waiting.pop(), ()):
                effect = self._effect(call)
                if call not in found and effect.concerns(known):
                    found.add(call)
                    if effect.views is None:
                        return list(range(len(self._calls[0])))
                    waiting += effect.views - known
                    known |= effect.views
        return sorted(found)


def _is_known(name: str) -> bool:
    return aten.is_a("known", name)


def _is_able(name: str) -> bool:
    return _written(name) != frozenset() or aten.operator(name).shared != frozenset()


def _written(name: str) -> frozenset[int] | None:
    """Positions of the inputs that an operator may write to, or that count as written to; None for all of them."""
    written, plain = aten.operator(name).written, aten.without_overload(name)
    if written is None or plain in HANDS_OUT:
        return None
    return written | frozenset({0} if plain in STARTS_SUMS else ())


def _touched(name: str) -> frozenset[int] | None:
    """The same positions, and those of inputs that it may make a view of."""
    written, shared = _written(name), aten.operator(name).shared
    return None if written is None or shared is None else written | shared


def _shapes_at(given: Inputs, positions: frozenset[int] | None) -> Iterator[Shape | None]:
    """Shapes of the tensors at these positions; None for those in a list that does not show them."""
    hidden = _long_lists(given)
    for at in range(len(given.dtypes)) if positions is None else positions:
        yield from [None] if at in hidden else _shapes(given, at)


def _is_written(known: frozenset[Shape], effects: Iterable[_Effect]) -> bool:
    """True if one of `effects`, in their order, may write to a tensor of one of the shapes or to a view made of it."""
    largest = 0  # elements of a tensor with a view of unknown shape
    for effect in effects:
        written = effect.written
        if written is None or not known.isdisjoint(written) or any(0 < prod(shape) <= largest for shape in written):
            return True
        seen = known if effect.is_of_storage else known & effect.viewed
        if seen and effect.views is None:
            largest = max(largest, *map(prod, seen))
        elif seen:
            known = known.union(effect.views or ())
    return False


def _effect_of(profile: Profile, row: int) -> _Effect:
    """Effect of a call; in place or as a view, also of the same operator inside, where `vmap` shows whole tensors."""
    name, own = profile.name(row), profile.inputs(row)
    shows_more = aten.is_a("in_place", name) or aten.is_a("shares", name)
    inside = [profile.inputs(at) for at in profile.subtree(row)[1:] if shows_more and profile.name(at) == name]
    calls = [own, *inside]
    written = frozenset(shape for given in calls for shape in _shapes_at(given, _written(name)))
    viewed = frozenset(
        shape for given in calls for shape in _shapes_at(given, aten.operator(name).shared) if shape is not None
    )
    is_of_storage = name == SETS_STORAGE and own.shape(STORAGE) is None
    views = shapes_of_views(profile, row) if viewed or is_of_storage else frozenset[Shape]()
    known = frozenset(shape for shape in written if shape is not None)
    if None in written:
        known |= _written_inside(profile, row)
    return _Effect(known if known or None not in written else None, viewed, views, is_of_storage)


def _long_lists(given: Inputs) -> list[int]:
    """Positions of lists of tensors that are too long for their shapes to be recorded, if no list shows any."""
    if "TensorList" not in given.dtypes:
        return []
    lists = [at for at, dtype in enumerate(given.dtypes) if dtype == "TensorList"]
    return [] if any(at < len(given.dims) and given.dims[at] for at in lists) else lists


def _written_inside(profile: Profile, row: int) -> set[Shape]:
    """Shapes that the operators inside a call write to, possibly one for each tensor of a list."""
    inside = [at for at in profile.subtree(row)[1:] if aten.is_a("in_place", profile.name(at))]
    return {shape for at in inside for position, shape in tensors_in(profile.inputs(at)) if position == 0}


def shapes_of_views(profile: Profile, row: int) -> frozenset[Shape] | None:
    """Shapes of the views that a call may return, and of intermediate ones; None if unknown."""
    found = [shape for at in profile.subtree(row) for shape in _views_of(profile.name(at), profile.inputs(at))]
    if not found and profile.name(row) in KEEPS_SHAPE:
        found = [shape for _, shape in tensors_in(profile.inputs(row))]
    return frozenset(found) or None


def _views_of(name: str, given: Inputs) -> Iterator[Shape]:
    """Shapes of the views that one of the operators that all views consist of may return."""
    shape = given.shape(0)
    if shape is None:
        return
    if name == "aten::view_as_real":
        yield (*shape, 2)
    elif name == "aten::view_as_complex":
        yield shape[:-1]
    elif name in SIZES_AT:
        sizes = sizes_in(given.scalar(SIZES_AT[name]).replace("-1", "0"))
        if sizes is not None:
            rest = prod(shape) // max(prod(size for size in sizes if size), 1)
            yield tuple(size or rest for size in sizes)
        elif name == "aten::view" and shape:  # as another dtype, whose name is not recorded
            bytes_there = shape[-1] * BYTES_PER_ELEMENT.get(given.dtype(0), 1)
            yield from ((*shape[:-1], bytes_there // width) for width in WIDTHS if bytes_there % width == 0)


def sizes_in(text: str) -> Shape | None:
    """The sizes in `[512, 64]`, None for any other text."""
    if text == "[]":
        return ()
    parts = text[1:-1].split(",") if text[:1] == "[" else []
    numbers = [part.strip() for part in parts]
    return tuple(map(int, numbers)) if numbers and all(number.isdecimal() for number in numbers) else None


def tensors_in(given: Inputs) -> Iterator[tuple[int, Shape]]:
    """Positions and shapes of all tensors, including those in lists."""
    return ((at, shape) for at in range(len(given.dtypes)) for shape in _shapes(given, at))


def _shapes(given: Inputs, position: int) -> list[Shape]:
    """Shapes of the tensor or of the list of tensors at a position; empty for anything else."""
    if given.dtype(position) == "TensorList" and position < len(given.dims):
        return [each for each in given.dims[position] if isinstance(each, tuple)]
    shape = given.shape(position)
    return [] if shape is None else [shape]
