"""Callers of work: library functions in steps, the model itself, functions that recur."""

from __future__ import annotations

import re
from collections import defaultdict

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import UNMARKED
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows

_HALF = 0.5
_FEWEST = 2  # with fewer steps, nothing is usual

_NUMBER = re.compile(r"(?<!\d)\d+$")
"""Number at the end of `ProfilerStep#12` and of annotations that count, which makes each call's name different."""

MACHINERY = (
    r"^autograd::|^torch/(?:autograd/__init__|_tensor)\.py\(\d+\): (?:backward|_make_grads)"
    r"|^torch/(?:optim|utils/data|profiler|amp/grad_scaler|nn/utils/clip_grad)"
)
"""The backward pass, optimizers, data loaders, the profiler, scaling and clipping of gradients, as functions and
operators."""

_ANNOTATED = r"^Optimizer\.|^enumerate\(DataLoader\)#"
"""Optimizers and data loaders, if no functions were recorded."""


def calls_in_steps(profile: Profile, pattern: str) -> Rows:
    """Frames in marked steps whose name the pattern matches, without nested ones, in row order."""
    rows = profile.matching(pattern, Category.PYTHON)
    rows = rows[profile.step_of(rows) != ABSENT] if profile.steps.basis not in UNMARKED else rows[:0]
    outermost: Rows = rows[~profile.inside(rows)[rows]]
    return outermost


def usual_calls(profile: Profile, pattern: str) -> Rows:
    """The same frames if at least half of two or more steps hold one, else none: rarer calls are deliberate."""
    rows = calls_in_steps(profile, pattern)
    steps = len(profile.steps.items)
    is_usual = steps >= _FEWEST and len(set(profile.step_of(rows).tolist())) >= _HALF * steps
    return rows if is_usual else rows[:0]


def recurring(profile: Profile, rows: Rows) -> Rows:
    """The `rows` of the tree that lie in a step and that the same function also calls in another step.

    Excludes loading a model, or a constant created on first use: these belong to no step, or to one. With a single
    step, all rows in it count; without steps, those that one function calls twice.
    """
    has_steps = profile.steps.basis not in UNMARKED
    moments = (profile.step_of(rows) if has_steps else rows).tolist()
    callers = [_NUMBER.sub("", profile.calls.caller_name(row)) for row in rows.tolist()]
    found: dict[str, set[int]] = defaultdict(set)
    for caller, moment in zip(callers, moments, strict=True):
        found[caller].add(moment)
    least = 1 if has_steps and len(profile.steps.items) == 1 else 2
    often = {caller for caller, times in found.items() if len(times - {ABSENT}) >= least}
    kept = [at for at, caller in enumerate(callers) if caller in often and moments[at] != ABSENT]
    return rows[kept]


def of_the_model(profile: Profile, operators: Rows) -> Rows:
    """The `operators` that no backward pass, optimizer, data loader or profiler runs."""
    others = profile.matching(MACHINERY, Category.OPERATOR, Category.PYTHON)
    annotated = profile.covering(operators, profile.matching(_ANNOTATED, Category.ANNOTATION))
    kept: Rows = operators[~profile.inside(others)[operators] & (annotated == ABSENT)]
    return kept


def function_of(profile: Profile, row: int) -> str:
    """The name of the Python function or module that called `row`; empty if none was recorded."""
    caller = int(profile.calls.caller[row])
    is_function = caller != ABSENT and profile.category(caller) is Category.PYTHON
    return profile.name(caller) if is_function else ""
