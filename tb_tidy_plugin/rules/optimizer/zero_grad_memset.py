"""Gradients filled with zeros instead of dropped.

## What it finds
`zero_grad(set_to_none=False)`, of an optimizer or of a module, which fills
every gradient.

## Why it is slow
Each fill is an operator, on a GPU also a launch, that writes a whole gradient.
The backward pass then reads the zeros again and adds to them. A gradient that
is `None` costs nothing: the backward pass stores the new one in its place.

## Example
```python
optimizer.zero_grad(set_to_none=False)
```

Use instead:
```python
optimizer.zero_grad()
```

## How the saving is estimated
The fills go, and with them the first addition that the backward pass makes to
each of these gradients: it would store its result as the gradient instead. The
memory of that result is freed either way.

## When it stays quiet
`set_to_none=True`, the default since PyTorch 2.0. Tensors that are zeroed
outside of `zero_grad`. Profiles with CUDA graphs, which need gradients at fixed
addresses. With `DistributedDataParallel` the finding is of medium confidence,
because gradients may be views into its buckets.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.work.training import first_additions
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH

_ANNOTATION = re.compile(r"^Optimizer\.zero_grad#(?P<owner>.+)\.zero_grad$")
FUNCTION = re.compile(r"\): zero_grad$")
_FILLS = aten.names("in_place", "_foreach_zero_ zero_")
ADDITION = "aten::add_"  # of a gradient to one of zeros
_MODULE = "Module"  # owner of a call without annotation, which only optimizers have
DATA_PARALLEL = r"^DistributedDataParallel\.forward|torch/nn/parallel/distributed\.py"


class Evidence(msgspec.Struct, frozen=True):
    """One call of `zero_grad`.

    Attributes:
        owner: whose gradients it clears. operator: the filling one.
        fills, adds: number of operators that fill gradients, and of those that then add to them.
        time: of all of them.
        shapes: number of gradients of each shape.
    """

    owner: str
    operator: str
    fills: int
    adds: int
    time: tt.Nanoseconds
    shapes: tuple[tuple[int, tt.Sizes], ...]

    @property
    def additions(self) -> str:
        return f", then {self.adds} × `{ADDITION}` to them" if self.adds else ""


class ZeroGradMemset(tt.Rule[Evidence]):
    """Gradients filled with zeros."""

    code = "TT302"
    reads_operators = True
    action = "Drop gradients instead of filling them with zeros"
    message = (
        "`{owner}.zero_grad` fills gradients with zeros instead of dropping them: {fills} × `{operator}`{additions}, "
        "{time}"
    )
    why = "One call of `zero_grad` runs all {fills} × `{operator}`; with `set_to_none=True` it runs none"
    fix = "Call `zero_grad()` without `set_to_none=False`; before PyTorch 2.0 with `set_to_none=True`"
    caveat = (
        "Code that reads `.grad` between `zero_grad` and the backward pass finds `None`. The optimizer skips a "
        "parameter without a gradient instead of updating it with a gradient of zero."
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if len(profile.matching(GRAPH_LAUNCH, tt.Category.RUNTIME)):
            return
        reducer = profile.matching(DATA_PARALLEL, tt.Category.ANNOTATION, tt.Category.OPERATOR, tt.Category.PYTHON)
        found = _fills_by_call(profile)
        added = first_additions(profile, {call: _shapes(profile, fills) for call, fills in found.items()})
        for (call, owner), fills in found.items():
            adds, shapes = added[call, owner], _shapes(profile, fills)
            events = (*fills, *adds)
            yield tt.Match(
                anchor=call,
                events=events,
                evidence=Evidence(
                    owner=owner,
                    operator=profile.name(fills[0]),
                    fills=len(fills),
                    adds=len(adds),
                    time=tt.Nanoseconds(sum(profile.duration_ns(row) for row in events)),
                    shapes=tuple((count, tt.Sizes(shape)) for shape, count in shapes.items()),
                ),
                subject=owner,
                confidence="medium" if len(reducer) else "high",
            )

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        """Each call gets gradients to clear, which takes the same time on both sides."""
        shapes = " + ".join(f"[{tuple(shape)}] * {count}" for count, shape in evidence.shapes)
        elements = sum(prod(shape) * count for count, shape in evidence.shapes)
        setup = (
            f"import torch\nweights = [torch.zeros(shape, requires_grad=True, device=device) for shape in {shapes}]\n"
            "gradients = [torch.zeros_like(weight) for weight in weights]\noptimizer = torch.optim.SGD(weights)"
        )
        given = "for weight, gradient in zip(weights, gradients):\n    weight.grad = gradient\noptimizer.zero_grad({})"
        pair = tt.Benchmark(given.format("set_to_none=False"), given.format(""), setup)
        return pair if shapes and tt.fitting(1, 8 * elements) else None

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        calls = code.methods_on(spot.lines, "zero_grad")
        if len(calls) != 1:
            raise Unfixable("The lines do not contain exactly one call of `zero_grad`.")
        call, safety = calls[0], changes_behaviour("gradients are `None` between `zero_grad` and the backward pass")
        given = call.args[0] if len(call.args) == 1 else None
        if given is None or given.star or code.source(given.value) != "False":
            raise Unfixable("The call itself does not pass `set_to_none=False`.")
        return Change(tuple(code.without_argument(call, given)), safety)


def _fills_by_call(profile: tt.Profile) -> dict[tuple[int, str], list[int]]:
    """Operators that fill gradients, by the call of `zero_grad` around them and the owner of the gradients."""
    functions = profile.matching(FUNCTION.pattern, tt.Category.PYTHON)
    annotations = profile.matching(_ANNOTATION.pattern, tt.Category.ANNOTATION)
    below = profile.inside(functions) | profile.inside(annotations)
    fills = profile.calls.among(profile.named(*_FILLS))
    fills = fills[below[fills]]
    found: dict[tuple[int, str], list[int]] = {}
    for row, annotation in zip(fills.tolist(), profile.covering(fills, annotations).tolist(), strict=True):
        call = next(above for above in profile.ancestors(row) if _is_zero_grad(profile.name(above)))
        named = _ANNOTATION.search(profile.name(annotation)) if annotation in annotations else None
        found.setdefault((call, named["owner"] if named else _MODULE), []).append(row)
    return found


def _is_zero_grad(name: str) -> bool:
    return bool(FUNCTION.search(name) or _ANNOTATION.search(name))


def _shapes(profile: tt.Profile, fills: list[int]) -> Counter[tt.Shape]:
    """Number of gradients of each shape; empty if shapes were not recorded."""
    found: Counter[tt.Shape] = Counter()
    for inputs in profile.inputs_of(rows_of(fills)):
        shapes = inputs.dims[0] if inputs.dtype(0) == "TensorList" else inputs.dims[:1]
        found.update(
            tuple(size for size in shape if isinstance(size, int)) for shape in shapes if isinstance(shape, tuple)
        )
    return found
