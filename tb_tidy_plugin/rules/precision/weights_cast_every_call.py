"""Weights cast to half precision in each call.

## What it finds
Inference under `torch.autocast` with weights in float32: each linear layer and convolution casts its weight before it
multiplies, in each call.

## Why it is slow
A cast reads and writes the whole weight for a product that then reads it again. Autocast caches casts only for
training, and only until its block ends.

## Example
```python
with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
    logits = model(tokens)
```

Use instead:
```python
model = model.to(torch.bfloat16)
with torch.inference_mode():
    logits = model(tokens)
```

## How the saving is estimated
The casts of weights go. Inputs are still cast once, which is not counted.

## When it stays quiet
Recordings with a backward pass: the weights change in each step, so each needs one cast per step. Fewer than 4 weights
per step. Casts of inputs.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Splice, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten

LAYERS = aten.by_name("product", {"linear": 1, "conv1d": 1, "conv2d": 1, "conv3d": 1})
"""Operators with weights, and the weight's position among the inputs."""

_CAST = "aten::to"
_BACKWARD = r"^autograd::engine::evaluate_function"
_MODULES = frozenset(f"torch.nn.{name}" for name in ("Linear", "Conv1d", "Conv2d", "Conv3d"))
"""Modules that only run such an operator, which autocast runs in half precision anyway."""

_HALF = {"5": "float16", "15": "bfloat16"}
"""Numbers of dtypes among the inputs of `aten::to`."""


class Evidence(msgspec.Struct, frozen=True):
    """The casts of a profile.

    Attributes:
        casts: per step. dtype: the target type. time: of the casts per step.
    """

    casts: int
    dtype: str
    time: tt.Nanoseconds


class WeightsCastEveryCall(tt.Rule[Evidence]):
    """Weights cast to half precision in each call."""

    code = "TT451"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Cast the weights to {dtype} once"
    message = "Autocast casts {casts} weights to {dtype} per step, which takes {time}"
    why = (
        "The layers have float32 weights, and the profile has no backward pass. Reported for {min_casts} casts or more"
    )
    fix = "Cast the model once: `model.to(torch.{dtype})`"
    caveat = "Layers that autocast keeps in float32, such as norms and softmax, then also compute in half precision."

    min_casts = tt.Threshold(4, "per step; fewer are a small part of any model")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if len(profile.matching(_BACKWARD, tt.Category.OPERATOR)):
            return
        found: dict[str, list[int]] = {}
        for row in profile.named(*LAYERS).tolist():
            given = profile.inputs(row)
            position = LAYERS[profile.name(row)]
            if given.dtype(position) != "float":
                continue
            for child in profile.children(row):
                cast = profile.inputs(child)
                dtype = _HALF.get(cast.scalar(1), "")
                if profile.name(child) == _CAST and dtype and cast.shape(0) == given.shape(position):
                    found.setdefault(dtype, []).append(child)
                    break
        for dtype, casts in found.items():
            rows = rows_of(casts)
            per_step = profile.per_step_count(rows)
            if per_step >= self.min_casts:
                evidence = Evidence(round(per_step), dtype, tt.Nanoseconds(profile.per_step_ns(rows)))
                yield from (tt.Match(row, (row,), evidence) for row in casts)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        called = [call for call in code.calls_on(spot.lines) if code.bound(code.source(call.func)) == 1]
        made = list(dict.fromkeys(code.made_by(call.func) for call in called if _is_made(code, call)))
        layers = [each for each in made if code.qualified(each.func) in _MODULES]
        if not layers and len(made) != 1:
            raise Unfixable("The lines do not call a layer or one model that this file makes.")
        added = f".to({code.module_called('torch')}.{evidence.dtype})"
        splices = tuple(Splice(code.span(each)[1], code.span(each)[1], added) for each in layers or made)
        if any(code.source(each).endswith(added) for each in layers or made):
            raise Unfixable(f"The weights are cast to {evidence.dtype} where they are created.")
        how = f"weights are stored in {evidence.dtype}" + ("" if layers else ", those of norms as well")
        check = f"Nothing trains or saves the weights, and each call runs under autocast to {evidence.dtype}."
        return Change(splices, changes_behaviour(how), check)


def _is_made(code: tt.Code, call: tt.Call) -> bool:
    """True if the function that a line calls is the result of one call in this file."""
    values = code.assigned(code.source(call.func))
    return len(values) == 1 and code.is_call(values[0])
