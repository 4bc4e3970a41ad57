"""Python loops that take a tensor piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin import aten
from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.gradients import gradients_of
from tb_tidy_plugin.profile.inputs import Inputs
from tb_tidy_plugin.profile.loops import Limits, Loop, movement_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category

PICKS = aten.names("known", "index select slice")
ITERATION = r"^torch/_tensor\.py\(\d+\): __iter__$"  # `for row in x`, which unbinds
NEVER = (
    r"^ProfilerStep#|^Optimizer\.|^enumerate\(DataLoader\)#|^autograd::|^torch/(?:profiler|optim|utils/data)/"
    r"|^torch/_tensor\.py\(\d+\): backward$"
)
CELLS = aten.names("known", "_thnn_fused_gru_cell _thnn_fused_lstm_cell gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell")
"""What no such loop holds: a step, a backward pass, a recurrent cell."""
LARGEST_BODY = 32  # operators: a loop over batches or layers has more


@dataclass(frozen=True, slots=True)
class LoopTime:
    """When a loop runs.

    Attributes:
        events: its calls and the gradients of their operators.
        spans: from its first call to its last with the Python in between, and each gradient; None where a device may
            hide that Python.
        part: which part of the spans the events take.
    """

    events: tuple[int, ...]
    spans: tuple[tuple[int, int], ...] | None
    part: float


def loops_over_pieces(profile: Profile, least: int, is_own: Callable[[str], bool | None]) -> Iterator[Loop]:
    """Python loops of at least `least` iterations that pick a piece of a tensor in each, or go through one.

    `is_own` tells by name whether a function is the user's own code, None for no function.
    """
    picks, unbinds = (profile.calls.among(profile.named(*names)) for names in (PICKS, ("aten::unbind",)))
    heads = rows_of([*unbinds.tolist(), *profile.matching(ITERATION, Category.PYTHON).tolist()])
    never = profile.matching(NEVER, Category.OPERATOR, Category.ANNOTATION, Category.PYTHON)
    never = np.union1d(never, profile.named(*CELLS))
    return profile.calls.loops(picks, heads, Limits(never, LARGEST_BODY, least), is_own)


def falls(picks: Sequence[tuple[str, Inputs]], least: int) -> bool:
    """Whether the index only falls, as in sums over what comes later; a loop that reverses a tensor has both kinds."""
    in_turns = (movement_of(picks[skipped:], least) for skipped in (0, 1))
    return all(movement is not None and movement.stride < 0 for movement in in_turns)


def time_of_loop(profile: Profile, loop: Loop) -> LoopTime:
    """The time that goes where operators on the whole tensor take the loop's place."""
    gradients = gradients_of(profile, profile.calls.operators_in(loop.calls))
    events = (*loop.calls, *gradients)
    if "device" in profile.recorded:
        return LoopTime(events, None, 1.0)
    ends = [(loop.calls[0], loop.calls[-1]), *((row, row) for row in gradients)]
    spans = tuple((profile.start_ns(first), profile.end_ns(last)) for first, last in ends)
    all_ns = sum(end_ns - start_ns for start_ns, end_ns in spans)
    return LoopTime(events, spans, min(profile.covered(rows_of(events)).total_ns / all_ns, 1.0) if all_ns else 1.0)
