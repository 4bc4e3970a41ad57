"""Work of `torch.optim` optimizers in their steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from math import prod
from operator import itemgetter

import msgspec

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import Category

STEP = re.compile(r"^Optimizer\.step#(?P<optimizer>.+)\.step$")
ONE_BY_ONE = re.compile(r"^torch/optim/\w+\.py\(\d+\): _single_tensor_(?P<algorithm>\w+)$")
BATCHED = re.compile(r"^aten::_(?:foreach|fused)_")
OF_ANNOTATION = "aten::empty"  # annotations of 2021 allocated a handle

WITH_FOREACH = {
    "adadelta": "Adadelta", "adafactor": "Adafactor", "adagrad": "Adagrad", "adam": "Adam", "adamax": "Adamax",
    "adamw": "AdamW", "asgd": "ASGD", "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSprop", "rprop": "Rprop",
    "sgd": "SGD",
}  # fmt: skip
"""Classes that can update all parameters together, by algorithm; `LBFGS`, `Muon` and `SparseAdam` cannot."""


class Update(msgspec.Struct, frozen=True, dict=True):
    """Parameters that an optimizer updated one at a time.

    Attributes:
        optimizer: name of its class, the user's own if that derives from one of torch's.
        algorithm: a key of `WITH_FOREACH`.
        step: row of the optimizer step; groups of parameters are updated one after the other in one step.
        events: rows that cover the update.
        operators: rows and names of the operators it runs, in order.
    """

    optimizer: str
    algorithm: str
    step: int
    events: tuple[int, ...]
    operators: tuple[tuple[int, str], ...]

    @cached_property
    def parameters(self) -> int:
        """Number of parameters: that of the rarest operator that works in place, without odd single ones."""
        names = Counter(map(itemgetter(1), self.operators))
        counts = [count for name, count in names.items() if aten.is_a("in_place", name)]
        return min((count for count in counts if 4 * count >= max(counts)), default=0)

    def elements(self, profile: Profile) -> int:
        """Mean size of the result of the last operator for each parameter, 0 if shapes were not recorded."""
        writes = [row for row, name in self.operators if name == self.operators[-1][1]]
        sizes = [prod(shape) for row in writes if (shape := profile.inputs(row).shape(0)) is not None]
        return round(sum(sizes) / len(sizes)) if sizes else 0


def updates_one_by_one(profile: Profile) -> Iterator[Update]:
    """Updates of one parameter at a time, by the frames that run them; without such frames by a step's operators."""
    steps = profile.matching(STEP.pattern, Category.ANNOTATION)
    frames = profile.matching(ONE_BY_ONE.pattern, Category.PYTHON)
    step_of_frame = dict(zip(frames.tolist(), profile.covering(frames, steps).tolist(), strict=True))
    for frame, step in step_of_frame.items():
        algorithm = ONE_BY_ONE.sub(r"\g<algorithm>", profile.name(frame))
        named = STEP.match(profile.name(step)) if step >= 0 else None
        if algorithm in WITH_FOREACH:
            optimizer = named["optimizer"] if named else WITH_FOREACH[algorithm]
            yield Update(optimizer, algorithm, step if named else frame, (frame,), _operators(profile, frame))
    for step in sorted(set(steps.tolist()) - set(step_of_frame.values())):
        yield from _update_by_operators(profile, step)


def _update_by_operators(profile: Profile, step: int) -> Iterator[Update]:
    optimizer = STEP.sub(r"\g<optimizer>", profile.name(step))
    operators = _operators(profile, step)
    counts = Counter(map(itemgetter(1), operators))
    if WITH_FOREACH.get(optimizer.lower()) != optimizer or any(BATCHED.match(name) for name in counts):
        return
    # A closure runs forward and backward pass inside the step. The update comes after autograd, which a GPU's backward
    # pass has on another thread, and after the loss, which is computed once.
    once = {name for name, count in counts.items() if count == 1} - {OF_ANNOTATION}
    others = [at for at, (_, name) in enumerate(operators) if name in once or name.startswith("autograd::")]
    update = operators[others[-1] + 1 :] if others else operators
    if update:
        events = tuple(row for row, _ in update) if others else (step,)
        yield Update(optimizer, optimizer.lower(), step, events, update)


def _operators(profile: Profile, row: int) -> tuple[tuple[int, str], ...]:
    rows, table = profile.calls.operators_in([row]), profile.table
    numbers = table.name[rows].tolist()
    names = {number: aten.without_overload(table.names[number]) for number in set(numbers)}
    return tuple(zip(rows, map(names.__getitem__, numbers), strict=True))
