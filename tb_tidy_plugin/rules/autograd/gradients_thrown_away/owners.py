"""Owners of the gradients that a backward pass accumulates, and those that no optimizer's step uses.

A trace names no parameters. An optimizer is known by the set of shapes that it updates, and a pass accumulates the
gradients of one module after the other: if the pass consists of the whole sets of optimizers, or parts of them, in only
one way, each gradient has its owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.inputs import Inputs, Shape, plain_shape
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import STEP, accumulations
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Rows
from tb_tidy_plugin.trace.sets import distinct

_Owner: TypeAlias = frozenset[tuple[Shape, int]]
"""An optimizer, by the number of parameters of each shape that it updates."""

_NODE = r"^autograd::engine::evaluate_function"
ADDS = aten.names("known", "add_ add")
MOST_OPTIMIZERS = 8
FIRST_STEPS = 10


class GradientBlock(msgspec.Struct, frozen=True):
    """Successive gradients of one owner in a pass.

    Attributes:
        rows: their `AccumulateGrad`, in order of time. shapes: of them.
        is_fresh: True if they filled empty places; otherwise they were added to existing gradients.
    """

    owner: _Owner
    rows: tuple[int, ...]
    shapes: tuple[Shape, ...]
    is_fresh: bool


class BackwardPass(msgspec.Struct, frozen=True):
    """A backward pass.

    Attributes:
        nodes: in order of time. blocks: its gradients, by their owners.
        number: its position among the passes of its step. called_by: the last operator of the host before it, inside
            the call of `backward`; without one its first node.
    """

    nodes: Rows
    blocks: tuple[GradientBlock, ...]
    number: int
    called_by: int


def outcomes(profile: Profile) -> Iterator[tuple[BackwardPass, GradientBlock, bool]]:
    """Each block of known outcome, its pass, and True if its gradients were dropped before their optimizer's step.

    Gradients are dropped between the last step and the next ones that find their places empty.
    """
    steps = _steps(profile)
    owners = list(dict.fromkeys(steps.values()))
    if not 1 < len(owners) <= MOST_OPTIMIZERS:
        return
    passes = list(_passes(profile, owners))
    for owner in owners:
        used_at = np.array(sorted(profile.start_ns(row) for row, whose in steps.items() if whose == owner), np.int64)
        emptied: int | None = None
        for each in reversed(passes):
            for block in (block for block in each.blocks if block.owner == owner):
                begins = profile.start_ns(block.rows[0])
                if emptied is not None:
                    before, until = np.searchsorted(used_at, [begins, emptied])
                    yield each, block, before == until
                emptied = begins if block.is_fresh else emptied


def _steps(profile: Profile) -> Mapping[int, _Owner]:
    """The optimizer of each step, by the annotation's row; empty if one is unknown, or if there is only one.

    With a single optimizer, as in most jobs, only the first steps are examined.
    """
    marks = profile.matching(STEP.pattern, tt.Category.ANNOTATION)
    some = marks[profile.step_of(marks) < FIRST_STEPS]
    return _owners_of(profile, marks) if len(set(_owners_of(profile, some).values())) > 1 else {}


def _owners_of(profile: Profile, marks: Rows) -> Mapping[int, _Owner]:
    """The optimizer of each of these steps; empty if one is unknown."""
    table, found = profile.table, dict[int, _Owner]()
    operators = np.flatnonzero(table.category == tt.Category.OPERATOR)
    operators = operators[np.argsort(table.start_ns[operators], kind="stable")]
    starts, left = table.start_ns[operators], len(operators)
    for mark in marks.tolist():
        within = operators[slice(*np.searchsorted(starts, [table.start_ns[mark], table.end_ns[mark]]))]
        left -= len(within)  # steps follow each other
        updated = _updated(profile, within[table.thread[within] == table.thread[mark]]) if left >= 0 else None
        if not updated:
            return {}
        found[mark] = updated
    return found


def _updated(profile: Profile, operators: Rows) -> _Owner:
    """Parameters that a step updates: the shapes of the rarest operator that writes to all of them."""
    by_name: dict[str, Counter[Shape]] = {}
    for name, given, calls in _distinct_calls(profile, operators):
        if name.startswith("autograd::") or not given.dims or not aten.is_a("in_place", name):
            continue
        first = given.dims[0]
        shape = plain_shape(first)
        counted = by_name.setdefault(name, Counter())
        for each in (each for each in first if isinstance(each, tuple)) if shape is None else (shape,):
            if each:
                counted[each] += calls
    every = {shape for shapes in by_name.values() for shape in shapes}
    whole = [shapes for shapes in by_name.values() if set(shapes) == every]
    return frozenset(min(whole, key=Counter.total).items()) if every and whole else frozenset()


def _distinct_calls(profile: Profile, operators: Rows) -> Iterator[tuple[str, Inputs, int]]:
    """Name, inputs and number of the calls among `operators` that agree in both."""
    many = len(profile.known_inputs)
    keys = np.sort(profile.plain_number(operators).astype(np.int64) * many + profile.table.inputs[operators])
    found = distinct(keys)
    calls = np.diff(np.searchsorted(keys, found), append=len(keys))
    for key, count in zip(found.tolist(), calls.tolist(), strict=True):
        name, inputs = divmod(key, many)
        yield profile.plain_names[name], profile.known_inputs[inputs], count


def _passes(profile: Profile, owners: Sequence[_Owner]) -> Iterator[BackwardPass]:
    """Backward passes whose gradients have known owners; between two of them the host runs an operator."""
    nodes = profile.matching(_NODE, tt.Category.OPERATOR)
    nodes = nodes[np.argsort(profile.table.start_ns[nodes], kind="stable")]
    if not len(nodes):
        return
    others = _operators_outside(profile, nodes)
    number = np.searchsorted(profile.table.start_ns[others], profile.table.start_ns[nodes])
    handed = accumulations(profile)
    above = profile.tree.parent[handed]
    row_of = dict(zip(above[above != ABSENT].tolist(), handed[above != ABSENT].tolist(), strict=True))
    parts = np.split(nodes, np.flatnonzero(np.diff(number)) + 1)
    counted = Counter[int]()
    for part, step in zip(parts, profile.step_of(np.array([part[0] for part in parts])).tolist(), strict=True):
        counted[step] += 1
        rows = [row_of[node] for node in part.tolist() if node in row_of]
        shapes = [given.shape(0) or () for given in profile.inputs_of(np.array(rows, np.int64))]
        known = [(row, shape) for row, shape in zip(rows, shapes, strict=True) if shape]
        if not known:
            continue
        cut = _parted([shape for _, shape in known], owners)
        blocks = tuple(_block(profile, owner, known[where]) for owner, where in cut)
        before = int(number[np.searchsorted(profile.table.start_ns[nodes], profile.start_ns(int(part[0])))])
        yield BackwardPass(part, blocks, counted[step], int(others[before - 1]) if before else int(part[0]))


def _operators_outside(profile: Profile, nodes: Rows) -> Rows:
    """Operators that are neither nodes of the backward pass nor run by them, in order of time."""
    is_outside = (profile.table.category == tt.Category.OPERATOR) & ~profile.inside(nodes)
    is_outside[nodes] = False
    outside = np.flatnonzero(is_outside)
    ordered: Rows = outside[np.argsort(profile.table.start_ns[outside], kind="stable")]
    return ordered


def _parted(shapes: Sequence[Shape], owners: Sequence[_Owner]) -> list[tuple[_Owner, slice]]:
    """One or two owners of a pass' gradients, if they are certain; an owner's own whole set is most certain."""
    whole = Counter(shapes)
    if one := [owner for owner in owners if frozenset(whole.items()) == owner]:
        return [(one[0], slice(None))]
    for at in (size for owner in owners if 0 < (size := sum(count for _, count in owner)) < len(shapes)):
        first, second = (frozenset(Counter(part).items()) for part in (shapes[:at], shapes[at:]))
        if first != second and first in owners and second in owners:
            return [(first, slice(at)), (second, slice(at, None))]
    found = [(owner, at) for owner in owners for at in _ends(shapes, owner)]
    return list(_with_part(shapes, owners, found))


def _ends(shapes: Sequence[Shape], owner: _Owner) -> Iterator[int]:
    """Positions that cut off the owner's whole set in a pass: positive at its start, negative at its end."""
    size = sum(count for _, count in owner)
    if size < len(shapes):
        if frozenset(Counter(shapes[:size]).items()) == owner:
            yield size
        if frozenset(Counter(shapes[-size:]).items()) == owner:
            yield -size


def _with_part(
    shapes: Sequence[Shape], owners: Sequence[_Owner], whole: Sequence[tuple[_Owner, int]]
) -> Iterator[tuple[_Owner, slice]]:
    """One owner's whole set, and a part of one other's; empty if that is ambiguous."""
    ways = []
    for owner, at in whole:
        rest = Counter(shapes[at:] if at > 0 else shapes[:at])
        others = [each for each in owners if each != owner and rest <= Counter(dict(each))]
        ways += [(owner, at, each) for each in others]
    if len(ways) == 1:
        owner, at, other = ways[0]
        cut = at if at > 0 else len(shapes) + at
        yield (owner if at > 0 else other), slice(cut)
        yield (other if at > 0 else owner), slice(cut, None)


def _block(profile: Profile, owner: _Owner, known: Sequence[tuple[int, Shape]]) -> GradientBlock:
    rows = tuple(row for row, _ in known)
    added = sum(any(profile.name(each) in ADDS for each in profile.children(row)) for row in rows)
    return GradientBlock(owner, rows, tuple(shape for _, shape in known), is_fresh=2 * added < len(rows))
