"""Calls of the graphs that `torch.compile` generated: the events that run in them, and their regions.

A call of compiled code is `Torch-Compiled Region: 2/1`. In it, or in the node `CompiledFunctionBackward` of the
backward pass, PyTorch since 2.6 records `## Call CompiledFxGraph <key> ##`, with the key of the graph in Inductor's
cache. A node belongs to the region whose `CompiledFunction` has its sequence number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows, repeated
from tb_tidy_plugin.trace.compiled_code import CompiledCode, CompiledGraph

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

REGION = r"^Torch-Compiled Region\b"
REGION_ID = re.compile(r"^Torch-Compiled Region: (?P<id>\S+)")
_FORWARD, _BACKWARD = "CompiledFunction", "CompiledFunctionBackward"
GRAPH = re.compile(r"^## Call CompiledFxGraph (?P<key>\S+) ##$")
EXTERN = re.compile(r"^(?:extern_kernels|aten)\.(?P<name>\w+)|^torch\.ops\.(?P<space>\w+)\.(?P<operator>\w+)")
NUMBERED = re.compile(r"^graph_\d+_")
CUSTOM = re.compile(r"^(?!(?:aten|prims|inductor|_?c10d\w*|mkl|mkldnn|onednn|quantized|autograd|profiler)::)\w+::")
"""A custom operator: one outside PyTorch's own namespaces."""


class GraphCall(msgspec.Struct, frozen=True):
    """One run of generated code.

    Attributes:
        row: the event that represents it.
        key: of the graph in Inductor's cache, empty if the trace has none.
        region: row of the compiled region, `ABSENT` if unknown.
        forward: row of the event in the region that runs the forward pass, the call itself in that pass.
        is_backward: True if it computes gradients.
    """

    row: int
    key: str
    region: int
    forward: int
    is_backward: bool


class CompiledGraphs(msgspec.Struct, frozen=True):
    """Events that run in generated code.

    Attributes:
        calls: in row order, nested ones included; `call` refers to the innermost.
        call: number of the innermost call around each row of the tree, including the row; else `ABSENT`.
        launch: number of each tree row's kernel among those that the capture knows of its graph; else `ABSENT`.
        graphs: the capture's data on the graph of each call, None without any.
    """

    calls: tuple[GraphCall, ...]
    call: Rows
    launch: Rows
    graphs: tuple[CompiledGraph | None, ...]

    def around(self, row: int) -> GraphCall | None:
        """The innermost call around a row of the tree."""
        number = int(self.call[row])
        return None if number == ABSENT else self.calls[number]


class EagerOperator(msgspec.Struct, frozen=True):
    """An operator that runs in generated code.

    Attributes:
        row: its event.
        call: row of the call of the generated graph.
        custom: row of the custom operator that runs it; `ABSENT` if the generated code calls it.
    """

    row: int
    call: int
    custom: int


def eager_operators(profile: Profile) -> Iterator[EagerOperator]:
    """Operators of PyTorch that Inductor's code calls, itself or in a custom operator, in row order."""
    graphs, tree = compiled_graphs_of(profile), profile.tree
    is_inductors = np.array([*(each.key != "" for each in graphs.calls), False])
    if not is_inductors.any():
        return
    is_call = _mask(profile, rows_of(each.row for each in graphs.calls if each.key))
    is_operator = profile.table.category[: tree.size] == Category.OPERATOR
    above = tree.nearest_ancestor(is_operator | is_call)
    is_pytorchs = profile.table.is_named(lambda name: name.startswith(aten.PREFIX))[: tree.size]
    for row in np.flatnonzero(is_operator & is_pytorchs & is_inductors[graphs.call]).tolist():
        outer = int(above[row])
        if is_call[outer]:
            yield EagerOperator(row, outer, ABSENT)
        elif CUSTOM.match(profile.name(outer)) and (call := int(above[outer])) != ABSENT and is_call[call]:
            yield EagerOperator(row, call, outer)


@once
def compiled_graphs_of(profile: Profile) -> CompiledGraphs:
    """The calls of generated code in a profile, with the capture's data on them."""
    rows = _call_rows(profile)
    size = profile.tree.size
    if not len(rows):
        return CompiledGraphs((), repeated(ABSENT, size), repeated(ABSENT, size), ())
    is_call = np.zeros(size, np.bool_)
    is_call[rows] = True
    number = np.full(size, ABSENT, np.int64)
    number[rows] = np.arange(len(rows))
    call = np.where(is_call, number, np.append(number, ABSENT)[profile.tree.nearest_ancestor(is_call)])
    calls = tuple(_calls(profile, rows))
    graphs = _known_graphs(profile, calls)
    launch = repeated(ABSENT, size)
    if any(graphs):
        launch = launch.copy()
        _match(profile, is_call, calls, graphs, launch)
    return CompiledGraphs(calls, call, launch, graphs)


def _call_rows(profile: Profile) -> Rows:
    kinds = (Category.OPERATOR, Category.ANNOTATION)
    found = profile.matching(rf"^(?:{_FORWARD}|{_BACKWARD})$|^## Call CompiledFxGraph ", *kinds)
    return found[found < profile.tree.size]


def _calls(profile: Profile, rows: Rows) -> list[GraphCall]:
    is_region = _mask(profile, profile.matching(REGION, Category.OPERATOR))
    is_node = _mask(profile, profile.named(_FORWARD, _BACKWARD))
    region_above, node_above = (profile.tree.nearest_ancestor(mask) for mask in (is_region, is_node))
    forward_of = _forward_passes(profile)
    found = []
    for row in rows.tolist():
        named = GRAPH.match(profile.name(row))
        node = row if is_node[row] else int(node_above[row])
        is_backward = node != ABSENT and profile.name(node) == _BACKWARD
        forward = forward_of(node) if is_backward else row
        region = ABSENT if forward == ABSENT else int(region_above[forward])
        found.append(GraphCall(row, named["key"] if named else "", region, forward, is_backward))
    return found


def _forward_passes(profile: Profile) -> Callable[[int], int]:
    """Gives the last `CompiledFunction` before a backward node that has its sequence number."""
    table = profile.table
    rows: dict[int, list[int]] = defaultdict(list)
    for row in profile.named(_FORWARD).tolist():
        rows[int(table.sequence[row])].append(row)

    def forward_of(node: int) -> int:
        sequence = int(table.sequence[node])
        before = (row for row in rows[sequence] if table.start_ns[row] <= table.start_ns[node])
        return ABSENT if sequence == ABSENT else max(before, key=profile.start_ns, default=ABSENT)

    return forward_of


def _mask(profile: Profile, rows: Rows) -> Mask:
    mask = np.zeros(profile.tree.size, np.bool_)
    mask[rows] = True
    return mask


def _known_graphs(profile: Profile, calls: Sequence[GraphCall]) -> tuple[CompiledGraph | None, ...]:
    """The capture's graph of each call, if it is unambiguous."""
    code = profile.metadata.captured.compiled or CompiledCode()
    known: dict[tuple[str, str, bool], CompiledGraph | None] = {}
    for region in code.regions:
        for graph in region.graphs:
            if graph.launches is not None:
                at = region.id, graph.key, graph.backward
                known[at] = graph if known.get(at, graph) == graph else None
    return tuple(known.get((region_id(profile, call.region), call.key, call.is_backward)) for call in calls)


def region_id(profile: Profile, region: int) -> str:
    """Dynamo's number of a region, `2/1`; empty if it has none or `region` is `ABSENT`."""
    named = REGION_ID.match(profile.name(region)) if region != ABSENT else None
    return named["id"] if named else ""


def _match(
    profile: Profile,
    is_call: Mask,
    calls: Sequence[GraphCall],
    graphs: Sequence[CompiledGraph | None],
    launch: Rows,
) -> None:
    """Fills `launch`: for each name, the first event is the first kernel, if both occur equally often."""
    tree, category = profile.tree, profile.table.category[: profile.tree.size]
    is_operator = category == Category.OPERATOR
    above = tree.nearest_ancestor(is_operator | is_call)
    for call, graph in zip(calls, graphs, strict=True):
        if graph is None:
            continue
        below = np.array(profile.subtree(call.row))
        rows: Mapping[str, list[int]] = defaultdict(list)
        for row in below[is_operator[below] & (above[below] == call.row)].tolist():
            rows[NUMBERED.sub("", profile.name(row))].append(row)
        kernels: Mapping[str, list[int]] = defaultdict(list)
        for number, kernel in enumerate(graph.launches or ()):
            kernels[event_name(kernel.kernel)].append(number)
        for name, numbers in kernels.items():
            if len(rows[name]) == len(numbers):
                for row, number in zip(rows[name], numbers, strict=True):
                    launch[row : tree.last_descendant[row] + 1] = number


def is_region(name: str) -> bool:
    """True if an event is a call of compiled code."""
    return name.startswith("Torch-Compiled Region")


def event_name(kernel: str) -> str:
    """The event of a kernel, by Inductor's name for it: `aten::mm` for `extern_kernels.mm`."""
    named = EXTERN.match(kernel)
    if named is None:
        return kernel
    return f"aten::{named['name']}" if named["name"] else f"{named['space']}::{named['operator']}"
