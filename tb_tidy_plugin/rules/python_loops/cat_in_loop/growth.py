"""Tensors that grow: calls that each join a further piece to the result of the call before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.inputs import Inputs, Shape
from tb_tidy_plugin.profile.events.products import CAT, JOINS, STACK, Join, join_of
from tb_tidy_plugin.profile.profile import Profile

_REACH = 64  # operators after a call that are searched for one that reads its result
_NEAR = 8  # of them are searched first: the reader is mostly next
_LOOKED_AT = 4  # last calls of a series: other tensors may have the shapes of the first ones by chance


def growing_tensors(profile: Profile, least: int, is_own: Callable[[str], bool | None]) -> Iterator[tuple[Join, ...]]:
    """Series of at least `least` calls within one step, each of which takes the result of the one before.

    The recording does not show which tensor a call gets: it takes a result of its size, made by the same function.
    `is_own`
    says by name whether a function is the user's own code, None if the name is not a function; calls of other code are
    left out.
    """
    rows = profile.calls.among(profile.named(*JOINS))
    by_function: dict[tuple[str, int, int], list[int]] = {}
    threads, steps = profile.table.thread[rows].tolist(), profile.step_of(rows).tolist()
    for row, thread, step in zip(rows.tolist(), threads, steps, strict=True):
        by_function.setdefault((profile.calls.caller_name(row), thread, step), []).append(row)
    for (function, _, _), calls in by_function.items():
        if len(calls) >= least and is_own(function) is not False:
            yield from (tuple(series) for series in _series(_joins(profile, calls)) if len(series) >= least)


def is_read_between(profile: Profile, series: Sequence[Join]) -> bool:
    """True if between most calls an operator other than a join reads the current tensor."""
    pairs = list(pairwise(series))[-_LOOKED_AT:]
    return 2 * sum(_is_read(profile, join, following.row) for join, following in pairs) > len(pairs)


def _is_read(profile: Profile, join: Join, end: int) -> bool:
    for reach in (_NEAR, _REACH):
        between = [row for row in profile.operators_after(join.row, reach) if row < end]
        others = rows_of(row for row in between if profile.name(row) not in JOINS)
        if any(join.result in shapes_in(inputs) for inputs in profile.inputs_of(others)):
            return True
    return False


def shapes_in(inputs: Inputs) -> set[Shape | None]:
    """Shapes of all tensors among the inputs; None stands for other inputs."""
    return {inputs.shape(position) for position in range(len(inputs.dtypes))}


def _series(joins: Iterable[Join]) -> list[list[Join]]:
    found: list[list[Join]] = []
    waiting: dict[Shape, list[list[Join]]] = {}  # by the result of their last call, longest waiting first
    for join in joins:
        before = next((rest for rest in join.rests if waiting.get(rest)), None)
        series = [] if before is None else waiting[before].pop(0)
        if not series:
            found.append(series)
        series.append(join)
        waiting.setdefault(join.result, []).append(series)
    return found


def _joins(profile: Profile, calls: Sequence[int]) -> Iterator[Join]:
    """The calls whose inputs were recorded; `hstack` and the like show their dimension in the `aten::cat` they run."""
    named = [STACK if profile.name(row) == STACK else CAT for row in calls]
    pairs = zip(calls, named, strict=True)
    inner = rows_of(next((at for at in profile.subtree(row) if profile.name(at) == name), row) for row, name in pairs)
    for row, name, inputs in zip(calls, named, profile.inputs_of(inner), strict=True):
        if join := join_of(row, inputs, is_stack=name == STACK):
            yield join
