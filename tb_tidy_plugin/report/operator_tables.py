"""Operator tables: a profile's calls by name, by name and input shapes, by source line, by module; sorted and paged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.cpu_work import frame_times
from tb_tidy_plugin.profile.flops import Estimates, Rate, estimates_of, rates
from tb_tidy_plugin.profile.modules import ModuleTree, modules_of
from tb_tidy_plugin.profile.operators import KernelUse, OperatorTotals, kernels_of, totals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.signatures import Shapes
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.strings import NumberTable

By: TypeAlias = Literal["name", "shape", "line", "module"]
Kind: TypeAlias = Literal["operator", "annotation", "runtime", "mixed"]

KINDS: dict[Category, Kind] = {
    Category.OPERATOR: "operator",
    Category.ANNOTATION: "annotation",
    Category.RUNTIME: "runtime",
}


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One row of a table.

    Attributes:
        kind: what its calls are; `mixed` for lines and modules, which hold operators and runtime calls.
        name: of the calls, without overload; of the module (`Linear_0`); of the line `file:line`.
        shapes: of the inputs, where the table tells them apart, else None.
        place: the line, in a table of lines.
        module: index in the module tree, in a table of modules.
        totals: what the calls took. In tables of lines and modules calls inside others of the row count in self times
            only.
        rate: their estimated work and how fast it went.
    """

    kind: Kind
    name: str
    shapes: Shapes | None
    place: Frame | None
    module: int | None
    totals: OperatorTotals
    rate: Rate


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """Rows in order of their groups' numbers, and for each call of `Profile.nested` the number of its group.

    Empty by line where no stacks were recorded, and by module where no module's frames were.
    """

    by: By
    rows: tuple[OperatorRow, ...]
    keys: Rows

    def calls_of(self, profile: Profile, row: OperatorRow) -> Rows:
        """Rows of the profile that `row` counts."""
        rows: Rows = profile.nested.rows[self.keys == row.totals.group]
        return rows

    def kernels_of(self, profile: Profile, row: OperatorRow) -> list[KernelUse]:
        """The kernels, copies and fills that the calls of `row` launched, longest total first."""
        return kernels_of(profile.table, profile.operators, self.keys == row.totals.group)


@dataclass(frozen=True, slots=True)
class PythonLine:
    """Python code of the user's, or what it called, and the time that passed in it outside all operators.

    Attributes:
        place: the user's own function, else the nearest one of any code.
        calls: of Python functions, its own and those of libraries and built-ins that it called.
        self_ns: time on the clock outside operators, annotations and runtime calls, waiting included.
    """

    place: Frame
    calls: int
    self_ns: int


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the rows that were asked for. matches: how many there are without paging."""

    rows: tuple[OperatorRow, ...]
    matches: int


class _CallStack(msgspec.Struct, gc=False):
    text: str | None = msgspec.field(name="Call stack", default=None)


def operator_table(
    profile: Profile, by: By, estimates: Estimates | None = None, modules: ModuleTree | None = None
) -> OperatorTable:
    """The calls of a profile, grouped.

    Args:
        profile: one trace.
        by: what makes a group.
        estimates, modules: those of the profile, where the caller has them.
    """
    keys, described = GROUPINGS[by](profile, modules)
    found = totals(profile.operators, keys, outermost=by in {"line", "module"})
    work = rates(profile.operators, estimates or estimates_of(profile), keys)
    return OperatorTable(by, tuple(described(*both) for both in zip(found, work, strict=True)), keys)


Described: TypeAlias = Callable[[OperatorTotals, Rate], OperatorRow]
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
    """Calls by name and category, as torch tells them apart."""
    rows = profile.nested.rows
    keys: Rows = profile.plain_names[0][rows].astype(np.int64) * len(Category) + profile.table.category[rows]
    return keys


def _named_row(profile: Profile, found: OperatorTotals, rate: Rate, shapes: Shapes | None) -> OperatorRow:
    row = int(profile.nested.rows[found.first])
    numbers, names = profile.plain_names
    return OperatorRow(KINDS[profile.category(row)], names[numbers[row]], shapes, None, None, found, rate)


def _by_line(profile: Profile, _: ModuleTree | None) -> tuple[Rows, Described]:
    number, frames = places_of_tree(profile)
    keys = _belonging(profile, number)
    return keys, lambda found, rate: _line_row(frames[found.group], found, rate)


def _line_row(place: Frame, found: OperatorTotals, rate: Rate) -> OperatorRow:
    return OperatorRow("mixed", f"{place.file}:{place.line}", None, place, None, found, rate)


def _by_module(profile: Profile, modules: ModuleTree | None) -> tuple[Rows, Described]:
    tree = modules or modules_of(profile)
    keys = np.where(_is_annotation(profile), ABSENT, tree.module[profile.nested.rows])
    return keys, lambda found, rate: OperatorRow(
        "mixed", tree.modules[found.group].name, None, None, found.group, found, rate
    )


GROUPINGS: dict[By, Grouping] = {"name": _by_name, "shape": _by_shape, "line": _by_line, "module": _by_module}


def _is_annotation(profile: Profile) -> Mask:
    annotations: Mask = profile.table.category[profile.nested.rows] == Category.ANNOTATION
    return annotations


def _belonging(profile: Profile, number_of_tree_row: Rows) -> Rows:
    """For each call the number of its row of the tree; for runtime calls that of the event they were made by."""
    rows, size = profile.nested.rows, profile.tree.size
    tree_row = np.where(rows < size, rows, profile.launched_by[rows])
    number = np.append(number_of_tree_row, ABSENT)[tree_row]
    return np.where(_is_annotation(profile), ABSENT, number)


def places_of_tree(profile: Profile) -> tuple[Rows, tuple[Frame, ...]]:
    """For each row of the tree the number of the frame that `sources.frames.place_of` answers, and those frames.

    The same answer for whole columns: the user's own frame around an event, itself included, else the nearest one.
    """
    table, tree = profile.table, profile.tree
    frames = NumberTable[Frame]()
    is_python = table.category[: tree.size] == Category.PYTHON
    by_name = np.full(len(table.names), ABSENT, np.int64)
    for name in np.unique(table.name[: tree.size][is_python]).tolist():
        frame = parse_frame(table.names[name])
        by_name[name] = ABSENT if frame is None else frames.number(frame)
    number = np.where(is_python, by_name[table.name[: tree.size]], ABSENT)
    is_own = np.array([frame.own_code for frame in frames.values()] + [False])[number]
    place = np.where(is_own, np.arange(tree.size), tree.nearest_ancestor(is_own))
    any_place = np.where(number != ABSENT, np.arange(tree.size), tree.nearest_ancestor(number != ABSENT))
    place = np.where(place != ABSENT, place, any_place)
    found = np.append(number, ABSENT)[place]
    if profile.has_call_stacks:
        found = np.where(found != ABSENT, found, _recorded_places(profile, frames))
    return found, frames.values()


def _recorded_places(profile: Profile, frames: NumberTable[Frame]) -> Rows:
    """The same by the `Call stack` that operators carried in 2021 and carry with `verbose=True`, innermost first."""
    tree = profile.tree
    stacks = NumberTable[str | None]()
    texts = (entry.text for entry in profile.table.args.decoded(np.arange(tree.size), _CallStack))
    stack = stacks.numbers(texts, tree.size)
    by_stack = np.array([_place_in(text, frames) for text in stacks.values()] + [ABSENT], np.int64)
    has_stack = stack != stacks.number(None)
    at = np.where(has_stack, np.arange(tree.size), tree.nearest_ancestor(has_stack))
    return np.where(at == ABSENT, ABSENT, by_stack[stack[at]])


def _place_in(stack: str | None, frames: NumberTable[Frame]) -> int:
    parsed = [frame for name in (stack or "").split(";") if (frame := parse_frame(name)) is not None]
    place = next((frame for frame in parsed if frame.own_code), parsed[0] if parsed else None)
    return ABSENT if place is None else frames.number(place)


def python_lines(profile: Profile) -> list[PythonLine] | None:
    """Python's own time by the user's function that runs or called what runs, longest first; None without stacks."""
    times = frame_times(profile)
    if times is None:
        return None
    number, frames = places_of_tree(profile)
    group = number[times.rows]
    calls = np.bincount(group[group != ABSENT], minlength=len(frames))
    self_ns = np.zeros(len(frames), np.int64)
    np.add.at(self_ns, group[group != ABSENT], times.self_ns[group != ABSENT])
    order = np.argsort(-self_ns, kind="stable")
    return [PythonLine(frames[at], int(calls[at]), int(self_ns[at])) for at in order.tolist() if calls[at]]


# Sorting, filtering, paging


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows are wanted, in which order.

    Attributes:
        sort: a key of `SORT_KEYS`; rows without that figure come last either way. descending: largest first.
        text: only rows whose name or function holds it, in any case. kind: only rows of this kind.
    """

    sort: str = "host_self_ns"
    descending: bool = True
    text: str = ""
    kind: Kind | None = None


def page_of(table: OperatorTable, query: Query, offset: int = 0, limit: int = 100) -> Page:
    """Rows of a table, filtered, sorted and cut.

    Raises:
        KeyError: there is no figure `query.sort`.
    """
    key, text = SORT_KEYS[query.sort], query.text.lower()
    chosen = [row for row in table.rows if query.kind in {None, row.kind} and text in _text(row)]
    known = sorted((row for row in chosen if key(row) is not None), key=_present(key), reverse=query.descending)
    ordered = known + [row for row in chosen if key(row) is None]
    return Page(tuple(ordered[offset : offset + limit]), len(ordered))


Figure: TypeAlias = Callable[[OperatorRow], "int | float | str | None"]


def _text(row: OperatorRow) -> str:
    return f"{row.name} {row.place.function if row.place is not None else ''}".lower()


def _present(key: Figure) -> Callable[[OperatorRow], tuple[float, str]]:
    def comparable(row: OperatorRow) -> tuple[float, str]:
        value = key(row)
        return (0.0, value) if isinstance(value, str) else (float(value or 0), "")

    return comparable


SORT_KEYS: dict[str, Figure] = {
    "name": lambda row: row.name,
    "calls": lambda row: row.totals.calls,
    "host_total_ns": lambda row: row.totals.host_total_ns,
    "host_self_ns": lambda row: row.totals.host_self_ns,
    "device_total_ns": lambda row: row.totals.device_total_ns,
    "device_self_ns": lambda row: row.totals.device_self_ns,
    "device_busy_ns": lambda row: row.totals.device_busy_ns,
    "device_work": lambda row: row.totals.device_work,
    "flops": lambda row: row.rate.flops,
    "bytes": lambda row: row.rate.bytes,
    "flops_per_second": lambda row: row.rate.flops_per_second,
    "bytes_per_second": lambda row: row.rate.bytes_per_second,
    "roofline": lambda row: row.rate.roofline,
}
