"""Operators of the model itself, without the training code around it."""

from __future__ import annotations

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows

MACHINERY = (
    r"^autograd::|^torch/(?:autograd/__init__|_tensor)\.py\(\d+\): (?:backward|_make_grads)"
    r"|^torch/(?:optim|utils/data|profiler|amp/grad_scaler|nn/utils/clip_grad)"
)
"""The backward pass, optimizers, data loaders, the profiler, scaling and clipping of gradients, as functions and
operators."""

_ANNOTATED = r"^Optimizer\.|^enumerate\(DataLoader\)#"
"""Optimizers and data loaders, if no functions were recorded."""


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
