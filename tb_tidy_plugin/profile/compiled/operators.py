"""Operators that the user's own code runs, and device work whose operators a recording hides.

An operator runs Python if it is an `autograd.Function` or recomputes a checkpoint: calls in that code count like all
its other calls. Spans named in C++ or with `_RecordFunctionFast` are recorded as operators without a namespace, and do
not run the events inside them.

Operators are hidden in replayed graphs without their capture, and in compiled code. A rule that looks for operators
finds none there. That says nothing about the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import numpy as np

from tb_tidy_plugin.profile.compiled.compilations import COMPILED_PARTS
from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

OF_COMPILER = re.compile("|".join(COMPILED_PARTS.values()))
NO_SPAN = re.compile(rf"::|Backward\d*$|{OF_COMPILER.pattern}")

MOST_HIDDEN = 0.1
"""Largest part of the kernels' time without operators that leaves a rule sure to have seen what matters."""

_COMPILED = re.compile(
    r"^(?:autograd::engine::evaluate_function: )?(?:CompiledFunction|Torch-Compiled Region|## Call CompiledFxGraph)"
)
"""Events around compiled code. A kernel directly below them was called without an operator's event."""

_GENERATED = re.compile(r"^(?:void )?triton_(?:poi|red|per|for)_|^triton_\w*fused")
"""Kernels that a compiler made of operators: it has fused what rules about operators look for."""


def user_operators(profile: Profile, is_own: Callable[[str], bool]) -> Rows:
    """Rows of these operators, in row order.

    Args:
        profile: one trace.
        is_own: True if a Python frame with this name is the user's own code.
    """
    table, size, calls = profile.table, profile.tree.size, compiled_graphs_of(profile).calls
    category, name = table.category[:size], table.name[:size]
    is_operator, is_frame = category == Category.OPERATOR, category == Category.PYTHON
    is_span = spans_of(profile)
    is_frame &= among(name, numbers_where(table.names, is_own))
    is_graph, is_call = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    is_call[[call.row for call in calls]] = True
    is_graph[[call.row for call in calls if call.key]] = True
    above = profile.tree.nearest_ancestor((is_operator & ~is_span) | is_frame | is_call)
    is_run = (above == ABSENT) | (is_frame | is_graph)[above]
    of_compiler = among(name, numbers_where(table.names, OF_COMPILER.search))
    return np.flatnonzero(is_operator & (profile.calls.outermost | (is_run & ~of_compiler)))


def spans_of(profile: Profile) -> Mask:
    """Mask of the tree's rows that are spans: annotations, and events recorded as operators that are not operators."""
    table, size = profile.table, profile.tree.size
    is_operator = table.category[:size] == Category.OPERATOR
    named = among(table.name[:size], numbers_where(table.names, NO_SPAN.search))
    holds_others = profile.tree.last_descendant > np.arange(size)
    spans: Mask = (table.category[:size] == Category.ANNOTATION) | (is_operator & ~named & holds_others)
    return spans


class HiddenWork(msgspec.Struct, frozen=True):
    """Parts of the kernels' time whose operators are unknown.

    Attributes:
        in_graphs: of replayed graphs. in_compiled: called by compiled code.
    """

    in_graphs: float
    in_compiled: float

    @property
    def share(self) -> float:
        return self.in_graphs + self.in_compiled


@once
def hidden_work(profile: Profile) -> HiddenWork:
    """The hidden work of a profile; kernels of communication, and those that were launched before, do not count."""
    table = profile.table
    named = {test: numbers_where(table.names, test) for test in (_COMPILED.search, _GENERATED.search, _communicates)}
    kernels = np.flatnonzero((table.category == Category.KERNEL) & (profile.launch != ABSENT))
    kernels = kernels[~among(table.name[kernels], named[_communicates])]
    time_ns = table.durations_of(kernels)
    total_ns = int(time_ns.sum())
    if not total_ns:
        return HiddenWork(0.0, 0.0)
    of_graphs = among(profile.launch[kernels], profile.matching(GRAPH_LAUNCH, Category.RUNTIME))
    is_generated = among(table.name[kernels], named[_GENERATED.search])
    in_graph = of_graphs & (profile.replayed.operator[kernels] == ABSENT) & ~is_generated
    operator = profile.launched_by[kernels]
    in_compiled = (
        (operator != ABSENT) & among(table.name[operator], named[_COMPILED.search]) & ~of_graphs & ~is_generated
    )
    return HiddenWork(*(float(time_ns[each].sum() / total_ns) for each in (in_graph, in_compiled)))


def _communicates(name: str) -> bool:
    return kernel_kind(name) == "communication"
