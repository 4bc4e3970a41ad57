"""LayerNorm or BatchNorm written out.

## What it finds
`(x - mean) / sqrt(variance + eps)` as separate operators in your code or a library: a mean, a difference, a variance
from `var`, `std` or the mean of squares, and a quotient, optionally followed by gain and bias. The rule recognises them
by their operators and shapes.

## Why it is slow
Each of six to ten operators reads and writes a tensor of the size of `x`, and so does each of about twenty operators in
the backward pass. A single operator reads a row, keeps its mean and variance in registers, and writes the result.

## Example
```python
mean = x.mean(-1, keepdim=True)
variance = ((x - mean) ** 2).mean(-1, keepdim=True)
y = (x - mean) / torch.sqrt(variance + eps) * gain + bias
```

Use instead:
```python
y = F.layer_norm(x, gain.shape, gain, bias, eps)
```

## How the saving is estimated
The factors were measured for forward and backward pass with torch 2.13 on a CPU, compared with handwritten code.
`layer_norm` over the last dimension takes 0.08 to 0.19 of the time (4×64×64 to 8×512×512 elements), over another
dimension, including its copies, 0.29 to 1.1, and `batch_norm` over two dimensions 0.4 to 0.77. On a device, the number
of bytes moved suggests the same.

## When it stays quiet
RMSNorm, which [decoder-pieces-written-out](decoder-pieces-written-out.md) reports. Statistics of the whole tensor.
Compiled code. Profiles without shapes.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.profile.work.pointwise import PieceCall, calls_around
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.torchfacts import aten

MEANS = aten.names("known", "mean")
_LONGEST = 16  # operators after a mean that are examined
OF_TENSORS = aten.by_name(
    "known",
    {
        "mean": "m", "pow": "q", "square": "q", "var": "v", "std": "d", "sub": "g", "mul": "g", "add": "g",
        "mul_": "g", "add_": "g",
    },
)  # fmt: skip
OF_STATISTICS = aten.by_name("pointwise", {"sqrt": "r", "rsqrt": "r", "add": "a", "add_": "a"})
QUOTIENTS = aten.names("pointwise", "mul div mul_ div_")
PRODUCT = "aten::mul"
OTHER = "."
FORM = re.compile("m[ga]*(?:(?:q[ga]*m|v)[ga]*r|d)[ga]*ng{0,2}")
"""The mean, then the variance by squares or by `var` and its root, or `std`, then the quotient, gain and bias.

In between tensors or statistics are added, subtracted or scaled.
"""

_BATCH = 0  # the dimension

_LEFT: dict[str, tuple[float, float, float]] = {
    "layer_norm": (0.15, 0.08, 0.4),
    "batch_norm": (0.5, 0.35, 0.9),
    "instance_norm": (0.5, 0.25, 1.0),
    "layer_norm of the transposed": (0.5, 0.25, 1.0),
}
"""Part of the time that one operator leaves, most likely, at best and at worst; see the page."""

_FIXES = {
    "layer_norm": "Call `F.layer_norm`, or make it an `nn.LayerNorm`",
    "batch_norm": "Call `F.batch_norm(…, training=True)`, or make it an `nn.BatchNorm1d` or `2d`",
    "instance_norm": "Call `F.instance_norm`",
    "layer_norm of the transposed": (
        "Call `F.layer_norm` on the transposed tensor, or `F.group_norm` to normalise a group as a whole"
    ),
}


class Evidence(msgspec.Struct, frozen=True):
    """A norm.

    Attributes:
        operators: those it is written out as. shape: of the normalised tensor. reduced: of its statistics.
        gradients: number of operators of the backward pass that belong to it. time: of all of them.
        instead: a key of `_FIXES`.
    """

    operators: tuple[str, ...]
    shape: tt.Sizes
    reduced: tt.Sizes
    gradients: int
    time: tt.Nanoseconds
    instead: str

    @property
    def count(self) -> int:
        return len(self.operators)

    @property
    def names(self) -> str:
        """The operators as users write them."""
        return ", ".join(f"`{name.rpartition('::')[2]}`" for name in self.operators)

    @property
    def left(self) -> tt.Share:
        """The part of the time that one operator leaves."""
        return tt.Share(_LEFT[self.instead][0])

    @property
    def advice(self) -> str:
        return _FIXES[self.instead]


class NormalisationWrittenOut(tt.Rule[Evidence]):
    """LayerNorm or BatchNorm written out."""

    code = "TT705"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Normalise in one operator"
    message = "A norm of {shape} is written out as {count} operators, which take {time} a call: {names}"
    why = (
        "Mean and variance are of {reduced}, and {gradients} operators of the backward pass belong to the norm. One "
        "operator should take {left} of the time"
    )
    fix = "{advice}"
    caveat = "One operator rounds less often, so results differ in their last bits. `std` divides by n - 1."

    min_share = tt.Threshold(0.005, "one call replaces a few lines, so even a small gain is worth it")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        seen: set[int] = set()
        for calls, at in calls_around(profile, MEANS, 0, _LONGEST):
            found = _norm(calls[at:])
            if found is not None and calls[at].row not in seen:
                mine, reduced = found
                seen.update(call.row for call in mine)
                yield self._match(profile, mine, reduced)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, *_LEFT[match.evidence.instead])

    def _match(self, profile: tt.Profile, mine: Sequence[PieceCall], reduced: tt.Shape) -> tt.Match[Evidence]:
        operators = [call.row for call in mine]
        gradients = gradients_of(profile, operators)
        events = slower_side(profile, (*operators, *gradients))
        shape = mine[0].shape
        evidence = Evidence(
            operators=tuple(profile.name(row) for row in operators),
            shape=tt.Sizes(shape),
            reduced=tt.Sizes(reduced),
            gradients=len(gradients),
            time=tt.Nanoseconds(profile.covered(rows_of(events)).total_ns),
            instead=_instead(shape, reduced),
        )
        return tt.Match(operators[0], events, evidence, subject=evidence.instead)


def _norm(calls: Sequence[PieceCall]) -> tuple[list[PieceCall], tt.Shape] | None:
    """The operators of a norm that begins with the first of these, and the shape of its statistics."""
    reduced = _reduced(calls)
    if reduced is None:
        return None
    found = FORM.match("".join(_letter(call, calls[0].shape, reduced) for call in calls))
    return (list(calls[: found.end()]), reduced) if found else None


def _letter(call: PieceCall, shape: tt.Shape, reduced: tt.Shape) -> str:
    """The role of an operator in a norm of tensors of one shape: a letter of `FORM`."""
    name = f"aten::{call.name}"
    if call.shape == reduced:
        return OF_STATISTICS.get(name, OTHER)
    if name in QUOTIENTS and call.is_on(shape, reduced):
        return "n"
    if name == PRODUCT and call.is_on(shape, shape):
        return "q"
    return OF_TENSORS.get(name, OTHER) if shape in call.shapes else OTHER


def _reduced(calls: Sequence[PieceCall]) -> tt.Shape | None:
    """The shape of the mean that the next difference subtracts; None if it subtracts something else."""
    shape = calls[0].shape
    for call in calls[1:]:
        if call.name == "sub":
            others = [each for each in call.shapes if each != shape]
            return others[0] if len(others) == 1 and shape in call.shapes and _is_reduced(others[0], shape) else None
    return None


def _is_reduced(reduced: tt.Shape, shape: tt.Shape) -> bool:
    """True if a shape is that of statistics over some dimensions of a tensor, but not over all."""
    same = len(reduced) == len(shape) and all(each in {1, size} for each, size in zip(reduced, shape, strict=True))
    return same and reduced != shape and any(size > 1 for size in reduced)


def _instead(shape: tt.Shape, reduced: tt.Shape) -> str:
    """The operator for these dimensions."""
    over = [at for at, size in enumerate(reduced) if size == 1 and shape[at] > 1]
    if _BATCH in over:
        return "batch_norm"
    if over == list(range(over[0], len(shape))):
        return "layer_norm" if len(over) == 1 or over[0] == 1 else "instance_norm"
    return "layer_norm of the transposed"
