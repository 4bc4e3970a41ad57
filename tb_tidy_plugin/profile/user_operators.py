"""Operators that the user's own code runs, also in functions that operators call, and the kernels of compiled code.

An operator runs Python if it is an `autograd.Function` or recomputes a checkpoint: calls in that code count like all
its other calls. Spans named in C++ or with `_RecordFunctionFast` are recorded as operators without a namespace, and do
not run the events inside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tb_tidy_plugin.profile.compiled import COMPILED_PARTS
from tb_tidy_plugin.profile.compiled_graphs import compiled_graphs_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

OF_COMPILER = re.compile("|".join(COMPILED_PARTS.values()))
NO_SPAN = re.compile(rf"::|Backward\d*$|{OF_COMPILER.pattern}")


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
