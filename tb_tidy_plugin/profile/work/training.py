"""Work of training beside the model: gradients, `torch.optim` optimizers, `DistributedDataParallel`."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from math import prod
from operator import itemgetter
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import Shape
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, common
from tb_tidy_plugin.words.units import plural

_NODE = re.compile(r"(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*")
"""`autograd::engine::evaluate_function: Log1PBackward0`, and the same without its first words in older traces."""

Clearing: TypeAlias = tuple[int, str]
"""The row of a call that fills gradients with zeros, and the owner of these gradients."""

_ACCUMULATE = "torch::autograd::AccumulateGrad"
"""The node that stores a parameter's gradient, or adds to the existing one."""

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

GRADIENT_COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
_FORWARD = r"^DistributedDataParallel\.forward$"
BROADCAST = "c10d::broadcast_"
COPY = "aten::copy_"
PACK = "aten::flatten_dense_tensors"
COALESCED = aten.names("known", "flatten_dense_tensors unflatten_dense_tensors") | {
    COPY,
    BROADCAST, "record_param_comms",
}  # fmt: skip
"""Operators that make up a coalesced broadcast."""


def gradients_of(profile: Profile, operators: Iterable[int]) -> list[int]:
    """Operators of the backward pass that belong to `operators` and what they run, without descendants, in row order.

    A forward operator that autograd did not record shares its sequence number with the next one that it did, so a node
    counts only if it is named after the operator: `MulBackward0` after `aten::mul_`.
    """
    found = {row for operator in operators for inner in profile.subtree(operator) for row in _nodes(profile, inner)}
    return sorted(row for row in found if found.isdisjoint(profile.ancestors(row)))


def their_backward(gradients: int) -> str:
    """The end of a sentence about operators: how many operators of the backward pass belong to them, if any do."""
    if not gradients:
        return ""
    of_backward = "operator of the backward pass belongs", "operators of the backward pass belong"
    return f"; {plural(gradients, *of_backward)} to them"


def accumulations(profile: Profile) -> Rows:
    """The nodes in which the backward pass accumulates the gradients of parameters, in row order."""
    return profile.named(_ACCUMULATE)


def first_additions(profile: Profile, cleared: Mapping[Clearing, Counter[Shape]]) -> dict[Clearing, list[int]]:
    """Operators that add for the first time to each of the `cleared` gradients, distinguished by shape.

    A clearing ends with the next one by the same owner. Each shape's count in `cleared` is its number of gradients.
    """
    added = profile.named("aten::add_")
    above = profile.tree.parent[added]
    added = added[(above != ABSENT) & among(above, accumulations(profile))]
    added = added[np.argsort(profile.table.start_ns[added], kind="stable")]  # of all threads
    found: dict[Clearing, list[int]] = {clearing: [] for clearing in cleared}
    later = deque(sorted(cleared, key=lambda clearing: profile.start_ns(clearing[0])))
    left: dict[str, tuple[Clearing, Counter[Shape]]] = {}
    for row, given in zip(added.tolist(), profile.inputs_of(added), strict=True):
        while later and profile.start_ns(later[0][0]) < profile.start_ns(row):
            clearing = later.popleft()
            left[clearing[1]] = (clearing, Counter(cleared[clearing]))
        for clearing, shapes in left.values():
            if shapes[shape := given.shape(0) or ()] > 0:
                shapes[shape] -= 1
                found[clearing].append(row)
                break
    return found


def _nodes(profile: Profile, row: int) -> list[int]:
    wanted = _plain(profile.name(row))
    return [node for node in profile.backward_of(row) if _differentiated(profile.name(node)) == wanted]


@lru_cache(maxsize=1 << 12)
def _plain(name: str) -> str:
    return name.removeprefix("aten::").replace("_", "").lower()


@lru_cache(maxsize=1 << 12)
def _differentiated(name: str) -> str:
    node = _NODE.fullmatch(name)
    return node[1].lower() if node else ""


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


def gradient_copies(profile: Profile) -> Rows:
    """Operators that copy a gradient out of its bucket after the bucket's collective, in row order."""
    return profile.named(GRADIENT_COPY)


def buffer_broadcasts(profile: Profile) -> list[list[int]]:
    """Operators that send the model's buffers from one rank to all before a forward pass, one list per pass."""
    table = profile.table
    passes = profile.matching(_FORWARD, Category.ANNOTATION)
    forward = Intervals.union(table.start_ns[passes], table.end_ns[passes])
    broadcasts = profile.named(BROADCAST)
    broadcasts = broadcasts[forward.containing(table.start_ns[broadcasts])]
    parents = dict.fromkeys(around for row in broadcasts.tolist() if (around := profile.parent(row)) is not None)
    return [found for around in parents if (found := _coalesced(profile, profile.children(around)))]


def _coalesced(profile: Profile, siblings: list[int]) -> list[int]:
    """The operators of coalesced broadcasts: those around each broadcast, up to the first that does something else.

    A broadcast of the model itself packs nothing first, and is left out.
    """
    operators = [row for row in siblings if profile.category(row) == Category.OPERATOR]
    names = [aten.without_overload(profile.name(row)) for row in operators]
    is_part, sends, packs = (
        np.array([name in wanted for name in names]) for wanted in (COALESCED, {BROADCAST}, {PACK})
    )
    run = np.cumsum(~is_part)
    packed = common(run[sends], run[packs])
    found: list[int] = np.array(operators)[is_part & among(run, packed)].tolist()
    return found
