"""Logits computed for all positions, but used for one.

## What it finds
A linear layer whose result has 1,000 columns or more for each position of a sequence, and is read only by `select` and
`slice`: `layer(x)[:, -1]`.

## Why it is slow
The layer, often the largest product of a model, then runs for every position and writes a tensor of that size, although
only one row is used. In training, its backward pass is as large.

## Example
```python
logits = self.output(hidden)[:, -1]
```

Use instead:
```python
logits = self.output(hidden[:, -1])
```

## How the saving is estimated
A product for one position still reads all weights. With torch 2.13 on a CPU, 0.003 to 0.07 of the time remained for
sequences of 64 and 128, and 0.5 for 8 and 16. The estimate is 0.1 for 64 positions or more, else 0.5, and at most 0.7.

## When it stays quiet
Results that any other operator reads, such as a loss over all positions. Fewer columns. Layers written as `addmm` or
`matmul` by hand. Recordings without shapes.
"""

import re
from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.words.units import Count

LAYER = "aten::linear"
PICK = "aten::select"
_PICKS = aten.names("view", "select slice")
_OF_BACKWARD = "autograd::"
POSITIONS, DIMENSIONS = 1, 3  # batch, positions, columns
ONE_POSITION = re.compile(r"\[ *: *, *-?\d+ *(?:, *: *)?\]")
_NAME = re.compile(r"[^\W\d][\w.]*")
MANY = 64  # positions
LEFT_OF_MANY, LEFT_OF_FEW, _MOST_LEFT = 0.1, 0.5, 0.7


class Evidence(msgspec.Struct, frozen=True):
    """Layers of one size.

    Attributes:
        result: shape of a layer's result. positions, columns: of it. time: of the layers per step, with their backward
            pass.
    """

    result: tt.Sizes
    positions: int
    columns: Count
    time: tt.Nanoseconds


class LogitsForAllPositions(tt.Rule[Evidence]):
    """Logits computed for all positions, but used for one."""

    code = "TT503"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Select the position before the linear layer"
    message = (
        "A linear layer computes {columns} columns for {positions} positions, of which one is used: {time} per step"
    )
    why = "Only `select` and `slice` read the result of {result}. Reported for {min_columns} columns or more"
    fix = "Select the position before the layer: `layer(x[:, -1])`"

    min_share = tt.Threshold(0.01, "less is not worth a change")
    min_columns = tt.Threshold(
        1_000, "vocabularies have more columns, and narrower layers cost as little as the selection itself"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        layers = profile.calls.among(profile.named(LAYER))
        inputs = profile.table.inputs[layers]
        found: dict[tt.Shape, list[int]] = {}
        for number in distinct(inputs).tolist():
            if result := self._result_of(profile.known_inputs[number]):
                found.setdefault(result, []).extend(layers[inputs == number].tolist())
        for rows, result in sorted((sorted(rows), result) for result, rows in found.items()):
            picked = _picked(profile, result)
            if picked >= len(rows):
                yield from self._matches(profile, result, rows)

    def _result_of(self, given: tt.Inputs) -> tt.Shape | None:
        """The shape of a layer's result if it has several positions and many columns."""
        positions, weight = given.shape(0), given.shape(1)
        if not positions or not weight or len(positions) != DIMENSIONS or positions[POSITIONS] <= 1:
            return None
        return (*positions[:-1], weight[0]) if weight[0] >= self.min_columns else None

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        positions = match.evidence.positions
        left = LEFT_OF_MANY if positions >= MANY else LEFT_OF_FEW
        yield tt.Scale(match.events, left, min(1 / positions, left), _MOST_LEFT)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        picked = [(call, index) for call, index in code.indexed_on(spot.lines) if ONE_POSITION.fullmatch(index)]
        if len(picked) != 1 or code.callee(code.made_by(picked[0][0].func)) != "torch.nn.Linear":
            raise Unfixable("The lines do not select one position of the result of a single `Linear`.")
        call, index = picked[0]
        given = call.args[0] if len(call.args) == 1 and not call.args[0].star else None
        if given is None or given.keyword is not None or not _NAME.fullmatch(code.source(given.value)):
            raise Unfixable("The argument of the call is not a plain name.")
        argument_end, call_end = code.span(given.value)[1], code.span(call)[1]
        splices = (Splice(argument_end, argument_end, index), Splice(call_end, call_end + len(index), ""))
        return Change(splices, SAME_UP_TO_ROUNDING)

    def _matches(self, profile: tt.Profile, result: tt.Shape, rows: list[int]) -> Iterator[tt.Match[Evidence]]:
        events = {row: (row, *_backward_of(profile, row)) for row in rows}
        time_ns = profile.per_step_ns(rows_of(each for of_row in events.values() for each in of_row))
        evidence = Evidence(
            result=tt.Sizes(result),
            positions=result[POSITIONS],
            columns=Count(result[-1]),
            time=tt.Nanoseconds(time_ns),
        )
        for row, of_row in events.items():
            yield tt.Match(row, of_row, evidence, subject=str(evidence.result))


def _picked(profile: tt.Profile, result: tt.Shape) -> int:
    """Number of times that one position is picked of a tensor of this shape; 0 if any other operator reads one."""
    inputs = [at for at, given in enumerate(profile.known_inputs) if result in _shapes(given.dims)]
    reads = np.flatnonzero(among(profile.table.inputs[: profile.tree.size], inputs))
    readers = {row: aten.without_overload(profile.name(row)) for row in profile.calls.among(reads).tolist()}
    readers = {row: name for row, name in readers.items() if not name.startswith(_OF_BACKWARD)}
    if not _PICKS.issuperset(readers.values()):
        return 0
    return sum(name == PICK and profile.inputs(row).integers(1) == (POSITIONS,) for row, name in readers.items())


def _shapes(dims: tuple[object, ...]) -> set[object]:
    """All shapes of inputs, including those in lists of tensors."""
    flat = {each for shape in dims if isinstance(shape, tuple) for each in shape if isinstance(each, tuple)}
    return {*dims, *flat}


def _backward_of(profile: tt.Profile, row: int) -> list[int]:
    """Operators that compute the layer's gradients: those of the innermost operator that autograd recorded."""
    return [each for inner in profile.subtree(row) for each in profile.backward_of(inner)]
