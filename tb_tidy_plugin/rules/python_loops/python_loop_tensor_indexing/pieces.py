"""Python loops that take a tensor piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.calls import Loop, LoopLimits, movement_of, rows_of
from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.rules.python_loops.python_loop_tensor_indexing.repeats import repeats
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.trace.sets import united

PICKS = aten.names("known", "index select slice")
ITERATION = r"^torch/_tensor\.py\(\d+\): __iter__$"  # `for row in x`, which unbinds
COMPREHENSION = re.compile(r"\): <(?:list|set|dict)comp>$|\): <genexpr>$")
UNBIND = aten.names("view", "unbind")
_NEVER = (
    r"^ProfilerStep#|^Optimizer\.|^enumerate\(DataLoader\)#|^autograd::|^torch/(?:profiler|optim|utils/data)/"
    r"|^torch/_tensor\.py\(\d+\): backward$"
)
_CELLS = aten.names(
    "known", "_thnn_fused_gru_cell _thnn_fused_lstm_cell gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell"
)
"""Events that no such loop contains: a step, a backward pass, a recurrent cell."""
RAGGED = aten.names("known", "masked_select nonzero unique_consecutive")
"""Operators whose results have as many elements as the values say, so that those of several items do not match."""
_LARGEST_BODY = 32  # operators: a loop over batches or layers has more
MOST_OF_AN_ITEM = 256  # operators: more are a whole step


class LoopTime(msgspec.Struct, frozen=True):
    """Time of a loop.

    Attributes:
        events: its calls and the gradients of their operators.
        spans: from its first call to its last with the Python in between, and each gradient; None if a device may
            hide that Python.
        part: part of the spans that the events take.
    """

    events: tuple[int, ...]
    spans: tuple[tuple[int, int], ...] | None
    part: float


def loops_over_pieces(profile: Profile, least: int, is_own: Callable[[str], bool | None]) -> Iterator[Loop]:
    """Python loops of at least `least` iterations that each pick a piece of a tensor, or iterate over one.

    `is_own` says by name whether a function is the user's own code, None if the name is not a function.
    """
    picks, unbinds = (profile.calls.among(profile.named(*names)) for names in (PICKS, UNBIND))
    heads = rows_of([*unbinds.tolist(), *profile.matching(ITERATION, Category.PYTHON).tolist()])
    return profile.calls.loops(picks, heads, LoopLimits(_never(profile), _LARGEST_BODY, least), is_own)


def loops_over_items(profile: Profile, least: int, is_own: Callable[[str], bool | None]) -> Iterator[Loop]:
    """Python loops of the user's own that run equal operators for at least `least` items, one after the other."""
    never = united(_never(profile), profile.named(*RAGGED))
    for loop in repeats(profile, least, is_own):
        first, last = loop.calls[0], int(profile.tree.last_descendant[loop.calls[-1]])
        begin, end = np.searchsorted(never, (first, last + 1)).tolist()
        of_an_item = len(profile.calls.operators_in(loop.groups[0]))
        if begin == end and 0 < of_an_item <= MOST_OF_AN_ITEM:
            yield loop


def is_over_items(profile: Profile, loop: Loop, names: Iterable[str]) -> bool:
    """True if a loop whose index does not move takes tensors one by one and carries nothing from one to the next.

    So do `for row in x` and comprehensions; loops that write into their items iterate over parameters.
    """
    body = profile.calls.bodies_with(rows_of(loop.calls[:1]))[0]
    before = body[: body.index(loop.calls[0])][-1:]
    if any(aten.without_overload(name) in UNBIND or re.search(ITERATION, name) for name in map(profile.name, before)):
        return True
    around = (profile.calls.caller_name(loop.calls[0]), *map(profile.name, loop.groups[0]))
    is_comprehension = any(COMPREHENSION.search(name) for name in around)
    return is_comprehension and not any(aten.is_a("in_place", name) for name in names)


def _never(profile: Profile) -> Rows:
    found = profile.matching(_NEVER, Category.OPERATOR, Category.ANNOTATION, Category.PYTHON)
    return united(found, profile.named(*_CELLS))


def falls(picks: Sequence[tuple[str, Inputs]], least: int) -> bool:
    """True if the index only falls, as in sums over later elements; a loop that reverses a tensor has both kinds."""
    in_turns = (movement_of(picks[skipped:], least) for skipped in (0, 1))
    return all(movement is not None and movement.stride < 0 for movement in in_turns)


def time_of_loop(profile: Profile, loop: Loop) -> LoopTime:
    """The time that goes if operators on the whole tensor replace the loop."""
    gradients = gradients_of(profile, profile.calls.operators_in(loop.calls))
    events = (*loop.calls, *gradients)
    if "device" in profile.recorded:
        return LoopTime(events, None, 1.0)
    ends = [(loop.calls[0], loop.calls[-1]), *((row, row) for row in gradients)]
    spans = tuple((profile.start_ns(first), profile.end_ns(last)) for first, last in ends)
    all_ns = sum(end_ns - start_ns for start_ns, end_ns in spans)
    return LoopTime(events, spans, min(profile.covered(rows_of(events)).total_ns / all_ns, 1.0) if all_ns else 1.0)
