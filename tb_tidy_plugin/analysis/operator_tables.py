"""Operator tables: a profile's calls by name, by name and input shapes, by source line, by module."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.events.inputs import Shapes
from tb_tidy_plugin.profile.events.operators import KernelUse, OperatorTotals, kernels_of, totals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import WorkEstimates, WorkRate, estimates_of, rates
from tb_tidy_plugin.profile.work.modules import ModuleTree, modules_of
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.places import places_of
from tb_tidy_plugin.trace.columns import ABSENT, Category, Ids, Mask, Rows
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.vocabulary import Precision

By: TypeAlias = Literal["name", "shape", "line", "module"]
_Kind: TypeAlias = Literal["operator", "annotation", "runtime", "mixed"]

_KINDS: dict[Category, _Kind] = {
    Category.OPERATOR: "operator",
    Category.ANNOTATION: "annotation",
    Category.RUNTIME: "runtime",
}


MOST_ROWS = 20_000
"""Most rows of a table; no recorded program has half as many."""


def row_key(said: Sequence[object]) -> str:
    """A key made from a row's labels, the same in every recording of the same job."""
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]


class TableRow(msgspec.Struct, frozen=True):
    """One row of a table.

    Attributes:
        kind: of its calls; `mixed` for lines and modules, which hold operators and runtime calls.
        name: of the calls, without overload; of the module (`Linear_0`); of the line `file:line`.
        shapes: of the inputs, if the table groups by them, else None.
        place: the line, in a table of lines.
        module: index in the module tree, in a table of modules.
        totals: sums of the calls. In tables of lines and modules, calls inside others of the row count only in self
            times.
        rate: estimated work and its rate.
    """

    kind: _Kind
    name: str
    shapes: Shapes | None
    place: Frame | None
    module: int | None
    totals: OperatorTotals
    rate: WorkRate


class OperatorTable(msgspec.Struct, frozen=True):
    """Rows by the numbers of their groups, and the number of the group of each call of `Profile.nested`.

    Empty by line if no stacks were recorded, and by module if no module's frames were.
    """

    by: By
    rows: tuple[TableRow, ...]
    keys: Rows

    def calls_of(self, profile: Profile, row: TableRow) -> Rows:
        """The profile's rows that `row` counts."""
        rows: Rows = profile.nested.rows[self.keys == row.totals.group]
        return rows

    def kernels_of(self, profile: Profile, row: TableRow) -> list[KernelUse]:
        """The kernels, copies and fills that the calls of `row` launched, longest total first."""
        return kernels_of(profile.table, profile.operators, self.keys == row.totals.group)


def operator_table(
    profile: Profile,
    by: By,
    estimates: WorkEstimates | None = None,
    modules: ModuleTree | None = None,
    aligner: Aligner | None = None,
) -> OperatorTable:
    """The calls of a profile, grouped.

    Args:
        profile: one trace.
        by: what the calls are grouped by.
        estimates, modules: those of the profile, if the caller has them.
        aligner: finds the lines inside functions for a table by line; without it, lines are those of definitions.
    """
    if by == "line" and aligner is not None:
        keys, described = _by_aligned_line(profile, aligner)
    else:
        keys, described = GROUPINGS[by](profile, modules)
    found = totals(profile.operators, keys, outermost=by in {"line", "module"})
    work = rates(profile.operators, estimates or estimates_of(profile), keys)
    return OperatorTable(by, tuple(described(*both) for both in zip(found, work, strict=True)), keys)


Described: TypeAlias = Callable[[OperatorTotals, WorkRate], TableRow]
Grouping: TypeAlias = Callable[[Profile, ModuleTree | None], tuple[Rows, Described]]


def _by_name(profile: Profile, _: ModuleTree | None) -> tuple[Rows, Described]:
    keys = _named(profile)
    return keys, lambda found, rate: _named_row(profile, found, rate, None)


def _by_shape(profile: Profile, _: ModuleTree | None) -> tuple[Rows, Described]:
    signatures = profile.signatures
    shape = signatures.shape_number[signatures.number]
    keys = _named(profile) * len(signatures.shapes) + shape
    return keys, lambda found, rate: _named_row(profile, found, rate, signatures.shapes[shape[found.first]])


def _named(profile: Profile) -> Rows:
    """Calls by name and category, as torch distinguishes them."""
    rows = profile.nested.rows
    keys: Rows = profile.plain_number(rows).astype(np.int64) * len(Category) + profile.table.category[rows]
    return keys


def _named_row(profile: Profile, found: OperatorTotals, rate: WorkRate, shapes: Shapes | None) -> TableRow:
    row = int(profile.nested.rows[found.first])
    return TableRow(_KINDS[profile.category(row)], profile.plain_name(row), shapes, None, None, found, rate)


def _by_line(profile: Profile, _: ModuleTree | None) -> tuple[Rows, Described]:
    places = places_of(profile)
    keys = _belonging(profile, places.number)
    return keys, lambda found, rate: _line_row(places.frames[found.group], found, rate)


def _by_aligned_line(profile: Profile, aligner: Aligner) -> tuple[Rows, Described]:
    """Calls by the line inside the function that makes them, where that can be found."""
    frames = NumberTable[Frame]()
    numbers = np.full(profile.tree.size, ABSENT, np.int32)  # of each tree row's place in `frames`
    known: dict[tuple[int, int], int] = {}  # the same by frame and call in it
    rows = profile.nested.rows
    causes = distinct(np.where(rows < profile.tree.size, rows, profile.launched_by[rows]))
    for row in causes[causes != ABSENT].tolist():
        call = aligner.call_of(row)
        if call is not None and call in known:
            numbers[row] = known[call]
            continue
        place = aligner.place_of(row)
        if place is not None:
            precision: Precision = "definition" if place.precision == "definition" else "aligned"
            numbers[row] = frames.number(replace(place, text="", ties=(), end_line=None, precision=precision))
        if call is not None:
            known[call] = int(numbers[row])
    keys = _belonging(profile, numbers)
    return keys, lambda found, rate: _line_row(frames.values()[found.group], found, rate)


def _line_row(place: Frame, found: OperatorTotals, rate: WorkRate) -> TableRow:
    return TableRow("mixed", f"{place.file}:{place.line}", None, place, None, found, rate)


def _by_module(profile: Profile, modules: ModuleTree | None) -> tuple[Rows, Described]:
    tree = modules or modules_of(profile)
    keys = np.where(_is_annotation(profile), ABSENT, tree.module[profile.nested.rows])
    return keys, lambda found, rate: TableRow(
        "mixed", tree.modules[found.group].name, None, None, found.group, found, rate
    )


GROUPINGS: dict[By, Grouping] = {"name": _by_name, "shape": _by_shape, "line": _by_line, "module": _by_module}


def _is_annotation(profile: Profile) -> Mask:
    annotations: Mask = profile.table.category[profile.nested.rows] == Category.ANNOTATION
    return annotations


def _belonging(profile: Profile, number_of_tree_row: Ids) -> Rows:
    """The number of each call's tree row; for runtime calls, that of the event that made them."""
    rows, size = profile.nested.rows, profile.tree.size
    tree_row = np.where(rows < size, rows, profile.launched_by[rows])
    number = np.append(number_of_tree_row, ABSENT)[tree_row]
    return np.where(_is_annotation(profile), ABSENT, number)
