"""Recurrent cell called once for each position.

## What it finds
`nn.LSTMCell`, `nn.GRUCell` or `nn.RNNCell` called in a Python loop with nothing between the calls but views: no result
of one position goes into the next input, so that the fused module computes the same.

## Why it is slow
Each call multiplies small matrices, from Python, for one position. `nn.LSTM` multiplies the inputs of all positions
together and runs the rest in one call; its backward pass does the same.

## Example
```python
for x in sequence:
    hidden, state = cell(x, (hidden, state))
```

Use instead:
```python
outputs, (hidden, state) = lstm(sequence)
```

## How the saving is estimated
The calls are scaled by what was measured on a CPU with torch 2.13 for forward and backward pass (4 to 64 sequences of
12 to 50 positions, 32 to 512 units): `nn.LSTM` takes 0.22 to 0.71 of the time of its cells, `nn.GRU` and `nn.RNN`
0.7 to 1, since a CPU does not fuse them. On a GPU both are fused. The backward pass is not counted.

## When it stays quiet
Fewer than 8 calls in a row. Loops with other operators between the calls, such as an embedding of the last output or
attention: there a position may need the one before. Calls by libraries other than PyTorch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tb_tidy_plugin.rulekit import (
    Benchmark,
    Edit,
    Match,
    Nanoseconds,
    Profile,
    Rule,
    Scale,
    Sizes,
    Threshold,
    aten,
    fitting,
)

CELLS = aten.by_name("product", {"lstm_cell": "LSTM", "gru_cell": "GRU", "rnn_tanh_cell": "RNN"})
ON_CPU = {"LSTM": (0.4, 0.2, 0.75), "GRU": (0.9, 0.7, 1.0), "RNN": (0.9, 0.7, 1.0)}
ON_GPU = (0.3, 0.1, 0.75)
NEAR = 12  # operators between two calls that are looked at


@dataclass(frozen=True)
class Evidence:
    """Calls of a cell in a row.

    Attributes:
        fused: the module that does the same. on_gpu: whether the cell launches work.
        calls: how many in a row. inputs: the shape of one. units: of the cell.
        time: what they take. least: from how many on they are reported.
    """

    fused: str
    on_gpu: bool
    calls: int
    inputs: Sizes
    units: int
    time: Nanoseconds
    least: int


class RecurrentCellInLoop(Rule[Evidence]):
    """Recurrent cell called once for each position."""

    code = "TT650"
    needs = frozenset({"shapes"})
    action = "Call `nn.{fused}` once for the whole sequence"
    message = "A loop calls `{fused}Cell` {calls} times, which takes {time}"
    why = (
        "Each call computes one position of inputs {inputs}, and only views run in between. Reported for {least} calls "
        "or more"
    )
    fix = "Call `nn.{fused}` once for the whole sequence, with the weights of the cell"
    caveat = "Results differ in their last bits. The module's parameters have other names (`weight_ih_l0`)."

    min_calls = Threshold(8, "in a row: for fewer, the module prepares as much as it saves")

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        for rows in _in_a_row(profile):
            if len(rows) >= self.min_calls:
                given = profile.inputs(rows[0])
                weight = given.dims[3] if len(given.dims) > 3 else ()  # noqa: PLR2004 - input, hidden, two weights
                units = weight[-1] if weight and isinstance(weight[-1], int) else 0
                evidence = Evidence(
                    fused=CELLS[profile.name(rows[0])],
                    on_gpu=bool(len(profile.device_activity_of(rows[0]))),
                    calls=len(rows),
                    inputs=Sizes(given.shape(0) or ()),
                    units=units,
                    time=Nanoseconds(sum(map(profile.duration_ns, rows))),
                    least=round(self.min_calls),
                )
                yield Match(rows[0], tuple(rows), evidence)

    def remedy(self, profile: Profile, match: Match[Evidence]) -> Iterator[Edit]:
        yield Scale(match.events, *(ON_GPU if match.evidence.on_gpu else ON_CPU[match.evidence.fused]))

    def benchmark(self, evidence: Evidence) -> Benchmark | None:
        if len(evidence.inputs) != 2 or evidence.fused not in ON_CPU:  # noqa: PLR2004 - sequences and features
            return None
        sequences, features = evidence.inputs
        kind, units = evidence.fused, evidence.units
        if not units or fitting(evidence.calls, 64 * sequences * (units + features)) < evidence.calls:
            return None
        both = ", torch.zeros_like(hidden)" if kind == "LSTM" else ""
        setup = (
            f"import torch\ncell = torch.nn.{kind}Cell({features}, {units}, device=device)\n"
            f"fused = torch.nn.{kind}({features}, {units}, device=device)\n"
            f"sequence = torch.zeros({evidence.calls}, {sequences}, {features}, device=device)\n"
            f"hidden = torch.zeros({sequences}, {units}, device=device)\nbegin = (hidden{both})"
        )
        before = "state = begin\nfor x in sequence:\n    state = cell(x, state)"
        return Benchmark(before, "outputs = fused(sequence)", setup, of_events=True)


def _in_a_row(profile: Profile) -> Iterator[list[int]]:
    """Calls of one cell with equal inputs in one step, with nothing but views in between."""
    rows = profile.calls.among(profile.named(*CELLS)).tolist()
    run = rows[:1]
    for before, row in pairwise(rows):
        if not _follows(profile, before, row):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _follows(profile: Profile, before: int, row: int) -> bool:
    table = profile.table
    if table.inputs[before] != table.inputs[row] or table.name[before] != table.name[row]:
        return False
    after = profile.operators_after(before, NEAR)
    if row not in after:
        return False
    return all(aten.is_a("view", profile.name(between)) for between in after[: after.index(row)])
