"""Equal modules called one after the other.

## What it finds
Four or more modules of one class, such as attention heads or members of an ensemble, that one module calls one after
the other with equal shapes. It then joins their results with `torch.cat` or `torch.stack`.

## Why it is slow
Each module runs its own small products, with their overhead, in the forward and the backward pass. If the weights lie
in one tensor, a single product does the work of all modules and keeps more cores, or more of a GPU, busy.

## Example
```python
self.heads = nn.ModuleList([Head(width, width // n) for _ in range(n)])
...
out = torch.cat([head(x) for head in self.heads], dim=-1)
```

Use instead:
```python
self.query_key_value = nn.Linear(width, 3 * width, bias=False)
...
query, key, value = self.query_key_value(x).view(batch, length, 3, n, width // n).permute(2, 0, 3, 1, 4)
out = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).reshape(batch, length, width)
```

## How the saving is estimated
The calls and their gradients are scaled to the time of one call, or to the part of their time that is work on elements
if that is longer. At worst twice that remains.

## When it stays quiet
Modules with different shapes. Modules whose result has the shape of the input, since they may be layers that each take
the previous result. Other operators between the calls. Recordings without stacks or shapes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.host.overhead import host_work
from tb_tidy_plugin.profile.work.module_marks import marks_of
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import class_of_module
from tb_tidy_plugin.trace.columns import ABSENT

_JOINS = aten.names("known", "cat stack")


class _Joined(msgspec.Struct, frozen=True):
    """Number and shape of joined tensors."""

    number: int
    shape: tuple[int, ...]


class Evidence(msgspec.Struct, frozen=True):
    """Modules that one module calls one after the other.

    Attributes:
        module: their class. calls: their number. operators: number of all their operators.
        inputs, results: the shapes of one. work: the part of the operators' time that is work on elements.
        time: of the calls.
    """

    module: str
    calls: int
    operators: int
    inputs: tt.Sizes
    results: tt.Sizes
    work: tt.Share
    time: tt.Nanoseconds


class EqualModulesOneByOne(tt.Rule[Evidence]):
    """Equal modules called one after the other."""

    code = "TT651"
    needs = frozenset({"stacks", "shapes"})
    reads_operators = True
    action = "Compute the {calls} `{module}` modules together"
    message = "{calls} `{module}` modules are called one by one: {operators} operators, {time}"
    why = (
        "Each takes {inputs} and returns {results}, and the results are joined. About {work} of the operators' time is "
        "work on elements. Reported for {min_calls} modules or more"
    )
    fix = (
        "Keep the weights of all {calls} in one tensor, such as that of an `nn.Linear` with {calls} times the "
        "outputs, and give the modules a dimension of their own, as in the example; `torch.func.stack_module_state` "
        "and `torch.vmap` do this for any module"
    )
    caveat = "The parameters get new names, so convert old checkpoints. Results differ in their last bits."

    min_calls = tt.Threshold(4, "of one class; fewer may be branches that are meant to differ")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        joins = [
            (row, joined)
            for row in profile.calls.among(profile.named(*_JOINS)).tolist()
            if (joined := self._joined(profile, row))
        ]
        if not joins:
            return
        called, work = _Called(profile), host_work(profile)
        for row, joined in joins:
            frames = called.before(row, joined.number)
            operators = [profile.calls.operators_in([frame]) for frame in frames]
            inputs = profile.inputs(operators[0][0]).shape(0) if operators and operators[0] else None
            if inputs is None or inputs == joined.shape or not _are_equal(profile, operators):
                continue
            rows = [each for mine in operators for each in mine]
            evidence = Evidence(
                module=class_of_module(profile.name(frames[0])),
                calls=len(frames),
                operators=len(rows),
                inputs=tt.Sizes(inputs),
                results=tt.Sizes(joined.shape),
                work=tt.Share(work.share(rows)),
                time=tt.Nanoseconds(sum(map(profile.duration_ns, frames))),
            )
            events = (*frames, *gradients_of(profile, rows))
            yield tt.Match(frames[0], events, evidence, confidence="medium")

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        left = max(1 / match.evidence.calls, match.evidence.work)
        yield tt.Scale(match.events, left, 0.4 / match.evidence.calls, min(2 * left, 1.0))

    def _joined(self, profile: tt.Profile, row: int) -> _Joined | None:
        """Tensors joined by `cat` or `stack`; None if they are few, or if their shapes differ or are unknown."""
        given = profile.inputs(row).dims
        shapes = [each for each in given[0] if not isinstance(each, int)] if given else []
        return _Joined(len(shapes), shapes[0]) if len(shapes) >= self.min_calls and len(set(shapes)) == 1 else None


class _Called:
    """Modules by the call of a module in which they are called."""

    def __init__(self, profile: tt.Profile) -> None:
        self._profile = profile
        self._marks = marks = marks_of(profile)
        self._operators = np.append(0, np.cumsum(profile.calls.outermost))
        self._inside: dict[int, list[int]] = {}
        for row, is_frame, around in zip(
            marks.row.tolist(), marks.is_frame.tolist(), marks.around.tolist(), strict=True
        ):
            if is_frame and around != ABSENT:
                self._inside.setdefault(around, []).append(row)

    def before(self, join: int, count: int) -> list[int]:
        """The frames of the last `count` modules before `join` in the same module; empty unless they are successive.

        They are different modules of one class, and no operator runs between them or between the last one and `join`.
        """
        around = int(self._marks.of_tree_row[join])
        if around == ABSENT or not self._marks.is_frame[around]:
            return []
        inside = self._inside.get(around, [])
        end = bisect_left(inside, join)
        frames = inside[max(end - count, 0) : end]
        follow = all(self._is_nothing_between(*pair) for pair in pairwise([*frames, join]))
        names = {self._profile.name(frame) for frame in frames}
        is_one_class = len({class_of_module(self._profile.name(frame)) for frame in frames}) == 1
        return frames if len(names) == count and is_one_class and follow else []

    def _is_nothing_between(self, frame: int, row: int) -> bool:
        after = int(self._profile.tree.last_descendant[frame]) + 1
        return after <= row and bool(self._operators[row] == self._operators[after])


def _are_equal(profile: tt.Profile, operators: Sequence[Sequence[int]]) -> bool:
    """True if all run the same operators on equal shapes, products among them."""
    table = profile.table
    of_each = {(*table.name[list(rows)].tolist(), *table.inputs[list(rows)].tolist()) for rows in operators}
    return len(of_each) == 1 and any(aten.is_a("product", profile.name(row)) for row in operators[0])
