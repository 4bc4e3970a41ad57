"""The nn.Module hierarchy: time and memory of each module's forward and backward pass, on the host and on devices.

With stacks every call of a module is a frame `nn.Module: Linear_0`; the number is counted per class and stays with the
object. A module's place is the modules around its calls: the same object called in two places is two entries, so that
time adds up. Classes of one name share their numbers (measured with torch 2.13); their `forward` function distinguishes
them.

Backward operators carry the `Sequence number` of the forward operator whose gradient they compute. Everything below
such an operator belongs to the module in which that forward operator ran, in its backward pass. So does a forward pass
that is repeated inside the backward pass (activation checkpointing). The accumulation of gradients (`AccumulateGrad`)
has no sequence number and belongs to no module; neither does backward work whose forward operator was not recorded or
ran outside all modules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec.structs import fields

from tb_tidy_plugin.profile.memory.allocations import HOST, memory_events
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.module_marks import Marks, forward_frames, forward_marks, marks_of, own_time
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Mask, Rows, Times

_Figures: TypeAlias = Mapping[str, Times | None]
"""Sums by pass (0 forward, 1 backward) and module, for each field of `Cost`; None if nothing was recorded."""

_Key: TypeAlias = tuple[str, str]
"""One object: its name and that of its forward function's frame (empty if that is not in the profile)."""


class Cost(msgspec.Struct, frozen=True):
    """Cost of one pass over the whole profile.

    Attributes:
        host_ns: host time; of a self time without modules inside.
        device_ns: durations of the kernels, copies and fills launched, summed up; None if no device was recorded.
        host_allocated_bytes, device_allocated_bytes: sum of all allocations; None if no memory was recorded.
        host_net_bytes, device_net_bytes: allocations minus frees.
    """

    host_ns: int
    device_ns: int | None
    host_allocated_bytes: int | None
    host_net_bytes: int | None
    device_allocated_bytes: int | None
    device_net_bytes: int | None


class Module(msgspec.Struct, frozen=True):
    """One module at one place in the hierarchy.

    Attributes:
        name: as recorded, `Linear_0`. class_name: `Linear`.
        parent: index of the module around it, `ABSENT` for roots. depth: 0 for roots.
        last_descendant: index of the last module below it, or its own if there is none.
        calls: forward passes. repeated_calls: forward passes inside the backward pass (activation checkpointing).
        forward, backward: costs of the passes with all modules inside; `backward` holds the repeated calls.
        forward_self, backward_self: without the modules inside.
        frame: row of its first call. forward_frame: row of the frame of its `forward` function in that call, which
            has the file; `ABSENT` if it is not in the profile.
        places: number of places in which the same object is called. first_place: index of the first of them.
    """

    name: str
    class_name: str
    parent: int
    depth: int
    last_descendant: int
    calls: int
    repeated_calls: int
    forward: Cost
    forward_self: Cost
    backward: Cost
    backward_self: Cost
    frame: int
    forward_frame: int
    places: int
    first_place: int


class ModuleTree(msgspec.Struct, frozen=True):
    """All modules in pre-order, and the module of each event.

    Attributes:
        modules: a module's parent comes before it; its subtree is the slice from it to its `last_descendant`. Empty
            if no stacks were recorded, or if no module was called.
        module: index of the innermost module of each row of the profile, `ABSENT` for none; runtime calls and device
            work belong where they were launched.
        in_backward: True for each row that runs in the backward pass.
        backward_outside: cost of the backward pass outside all modules.
    """

    modules: tuple[Module, ...]
    module: Rows
    in_backward: Mask
    backward_outside: Cost

    def rows_of(self, module: int, *, nested: bool = True) -> Mask:
        """Mask of the profile's rows that belong to a module; with `nested` also to modules inside it."""
        last = self.modules[module].last_descendant if nested else module
        return (self.module >= module) & (self.module <= last)


class _Places(msgspec.Struct, frozen=True):
    """Modules in pre-order, and the module (`ABSENT` for none) and pass of each mark."""

    keys: tuple[_Key, ...]
    parents: Rows
    module: Rows
    in_backward: Mask


def modules_of(profile: Profile) -> ModuleTree:
    """The nn.Module hierarchy of a profile; without modules if it holds no module's frame."""
    marks = marks_of(profile)
    forward_frame = forward_frames(profile, marks)
    places = _placed(profile, marks, forward_frame)
    module, in_backward = _by_row(profile, marks, places)
    own = _own_costs(profile, marks, places, module, in_backward)
    modules = _modules(marks, places, own, forward_frame)
    return ModuleTree(tuple(modules), module, in_backward, _cost(own, (1, ABSENT)))


def _placed(profile: Profile, marks: Marks, forward_frame: Rows) -> _Places:
    """Every module's place, and each mark's module, found in order of time."""
    names, name = profile.table.names, profile.table.name
    hierarchy = _Hierarchy()
    module, in_backward = [ABSENT] * len(marks.row), [True] * len(marks.row)
    columns = (marks.row, marks.is_frame, marks.around, forward_marks(profile, marks), forward_frame)
    for at, (row, is_frame, around, forward, frame) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if is_frame:
            key = (names[name[row]].removeprefix(MODULE), names[name[frame]] if frame != ABSENT else "")
            in_backward[at] = around != ABSENT and in_backward[around]
            module[at] = hierarchy.place(key, module[around] if around != ABSENT else ABSENT, in_backward[at])
        elif forward != ABSENT:
            module[at] = module[forward]
    order = _pre_order(hierarchy.parents)
    moved = np.append(np.argsort(order), ABSENT)  # the last entry stands for no module, `ABSENT`
    return _Places(
        keys=tuple(hierarchy.keys[index] for index in order),
        parents=moved[np.array(hierarchy.parents, np.int64)[order]],
        module=moved[np.array(module, np.int64)],
        in_backward=np.array(in_backward, np.bool_),
    )


class _Hierarchy:
    """Modules by place, numbered in order of their first calls."""

    def __init__(self) -> None:
        self.keys: list[_Key] = []
        self.parents: list[int] = []
        self._places: dict[tuple[int, _Key], int] = {}
        self._first: dict[_Key, int] = {}

    def place(self, key: _Key, parent: int, repeated: bool) -> int:
        """The number of the module `key` called inside `parent`; a repeated call belongs to its first call's place."""
        known = self._repeated(key, parent) if repeated else self._places.get((parent, key))
        if known is not None:
            return known
        number = self._places[parent, key] = len(self.keys)
        self._first.setdefault(key, number)
        self.keys.append(key)
        self.parents.append(parent)
        return number

    def _repeated(self, key: _Key, parent: int) -> int | None:
        """Place of a repeated call: the backward operator that repeats a pass may belong to any module in it."""
        at = parent
        while at != ABSENT:
            if (at, key) in self._places:
                return self._places[at, key]
            if self.keys[at] == key:
                return at
            at = self.parents[at]
        return self._places.get((ABSENT, key), self._first.get(key))


def _pre_order(parents: list[int]) -> list[int]:
    """Numbers of a forest's nodes, parents before children, siblings in order of number."""
    children = defaultdict(list)
    for number, parent in enumerate(parents):
        children[parent].append(number)
    order, stack = [], children[ABSENT][::-1]
    while stack:
        order.append(stack.pop())
        stack += children[order[-1]][::-1]
    return order


def _by_row(profile: Profile, marks: Marks, places: _Places) -> tuple[Rows, Mask]:
    """Module and pass of every row of the profile; launched work belongs to its launcher's."""
    launched_by = profile.launched_by[profile.tree.size :]
    mark = np.append(marks.of_tree_row, ABSENT)
    mark = np.concatenate([marks.of_tree_row, mark[launched_by]])
    return np.append(places.module, ABSENT)[mark], np.append(places.in_backward, False)[mark]


def _own_costs(profile: Profile, marks: Marks, places: _Places, module: Rows, in_backward: Mask) -> _Figures:
    """Cost of each module without modules inside: one array per field of `Cost`, by pass and module.

    The last column is for rows outside all modules.
    """
    table, recorded = profile.table, profile.recorded

    def summed(rows: Rows, amounts: Times) -> Times:
        sums = np.zeros((2, len(places.keys) + 1), np.int64)
        np.add.at(sums, (in_backward[rows].astype(np.int64), module[rows]), amounts)
        return sums

    work = np.flatnonzero(table.is_category(DEVICE_WORK))
    figures: dict[str, Times | None] = dict.fromkeys(field.name for field in fields(Cost))
    figures["host_ns"] = summed(marks.row, own_time(profile, marks))
    if "device" in recorded:
        figures["device_ns"] = summed(work, table.durations_of(work))
    if "memory" in recorded:
        events = memory_events(profile)
        events = events.take(~events.failed)
        is_host = np.array([device.kind == HOST for device in events.devices])[events.device]
        for where, here in (("host", is_host), ("device", ~is_host)):
            rows, sizes = events.row[here], events.bytes[here]
            figures[f"{where}_allocated_bytes"] = summed(rows, np.maximum(sizes, 0))
            figures[f"{where}_net_bytes"] = summed(rows, sizes)
    return figures


def _modules(marks: Marks, places: _Places, own: _Figures, forward_frame: Rows) -> Iterator[Module]:
    count = len(places.keys)
    depth, last = [0] * count, list(range(count))
    for at, parent in enumerate(places.parents.tolist()):
        depth[at] = 0 if parent == ABSENT else depth[parent] + 1
    for at in range(count - 1, -1, -1):
        if places.parents[at] != ABSENT:
            last[places.parents[at]] = max(last[places.parents[at]], last[at])
    total = {name: _with_inside(figure, np.array(last, np.int64)) for name, figure in own.items()}
    frames = np.flatnonzero(marks.is_frame)
    first = np.unique(places.module[frames], return_index=True)[1]
    repeated = places.in_backward[frames]
    calls = np.bincount(places.module[frames[~repeated]], minlength=count)
    repeated_calls = np.bincount(places.module[frames[repeated]], minlength=count)
    same = defaultdict(list)
    for at, key in enumerate(places.keys):
        same[key].append(at)
    for at, key in enumerate(places.keys):
        mark = frames[first[at]]
        yield Module(
            name=key[0],
            class_name=key[0].rpartition("_")[0],
            parent=int(places.parents[at]),
            depth=depth[at],
            last_descendant=last[at],
            calls=int(calls[at]),
            repeated_calls=int(repeated_calls[at]),
            forward=_cost(total, (0, at)),
            forward_self=_cost(own, (0, at)),
            backward=_cost(total, (1, at)),
            backward_self=_cost(own, (1, at)),
            frame=int(marks.row[mark]),
            forward_frame=int(forward_frame[mark]),
            places=len(same[key]),
            first_place=same[key][0],
        )


def _with_inside(own: Times | None, last: Rows) -> Times | None:
    """Own amounts of each module plus those of all modules inside it, whose subtree ends at `last`."""
    if own is None:
        return None
    before = np.zeros((2, own.shape[1] + 1), np.int64)
    np.cumsum(own, axis=1, out=before[:, 1:])
    inside: Times = before[:, last + 1] - before[:, : len(last)]
    return inside


def _cost(figures: _Figures, at: tuple[int, int]) -> Cost:
    def amount(name: str) -> int | None:
        figure = figures[name]
        return None if figure is None else int(figure[at])

    return Cost(
        host_ns=amount("host_ns") or 0,
        device_ns=amount("device_ns"),
        host_allocated_bytes=amount("host_allocated_bytes"),
        host_net_bytes=amount("host_net_bytes"),
        device_allocated_bytes=amount("device_allocated_bytes"),
        device_net_bytes=amount("device_net_bytes"),
    )
