"""Device work whose operators a recording hides: in replayed graphs without their capture, and in compiled code.

A rule that looks for operators finds none there. That says nothing about the job.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from tb_tidy_plugin.profile.kept import once
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

MOST_HIDDEN = 0.1
"""Largest part of the kernels' time without operators that leaves a rule sure to have seen what matters."""

_COMPILED = re.compile(
    r"^(?:autograd::engine::evaluate_function: )?(?:CompiledFunction|Torch-Compiled Region|## Call CompiledFxGraph)"
)
"""Events around compiled code. A kernel directly below them was called without an operator's event."""

_GENERATED = re.compile(r"^(?:void )?triton_(?:poi|red|per|for)_|^triton_\w*fused")
"""Kernels that a compiler made of operators: it has fused what rules about operators look for."""


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
