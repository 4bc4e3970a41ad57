"""Recurrent cell called once for each position.

## What it finds
`nn.LSTMCell`, `nn.GRUCell` or `nn.RNNCell` called in a Python loop with only views between the calls. No result of one
position goes into the next input, so the fused module computes the same. Also `nn.LSTM`, `nn.GRU` and `nn.RNN` called
with one position at a time. An embedding of a piece of an index tensor may come before the call, and a linear layer
after it, if no result of a position is used as an index.

## Why it is slow
Each call from Python multiplies small matrices for one position. `nn.LSTM` multiplies the inputs of all positions
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
The calls are scaled by factors measured on a CPU with torch 2.13 for forward and backward pass (4 to 64 sequences of 12
to 50 positions, 32 to 512 units). `nn.LSTM` takes 0.22 to 0.71 of the time of its cells, `nn.GRU` and `nn.RNN` 0.7 to
1, since a CPU does not fuse them. Modules called with one position at a time are scaled to 0.06 to 0.6 (`nn.LSTM`),
0.45 to 0.9 (`nn.GRU`) and 0.3 to 0.95 (`nn.RNN`), measured with 4 to 64 sequences of 12 to 50 positions and 32 to 256
units. On a GPU all are fused. The backward pass is not counted.

## When it stays quiet
Fewer than 8 calls in a row. Loops with other operators between the calls, such as an embedding of the last output,
attention, or an index sampled or chosen from computed values: there a position may depend on the one before. Calls by
libraries other than PyTorch.
"""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.torchfacts import aten

_CELLS = aten.by_name("product", {"lstm_cell": "LSTM", "gru_cell": "GRU", "rnn_tanh_cell": "RNN"})
_MODULES = aten.by_name("product", {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN"})
_KINDS = {**_CELLS, **_MODULES}
EMBEDDING, _INDICES = "aten::embedding", "long int"
_AFTER = aten.names("known", "dropout cross_entropy_loss")
_ON_CPU = {"LSTM": (0.4, 0.2, 0.75), "GRU": (0.9, 0.7, 1.0), "RNN": (0.9, 0.7, 1.0)}
ON_CPU_BY_ONE = {"LSTM": (0.3, 0.06, 0.6), "GRU": (0.65, 0.45, 0.9), "RNN": (0.5, 0.3, 0.95)}
_ON_GPU = (0.3, 0.1, 0.75)
_NEAR = 12  # operators between two calls that are examined
_HIDDEN_WEIGHT = 3  # position among the inputs of a cell
_CELL_INPUT, _MODULE_INPUT = 2, 3  # dimensions: sequences and features; positions, too, see `nn.GRU`


class Evidence(msgspec.Struct, frozen=True):
    """Successive calls of a cell.

    Attributes:
        fused: the module that does the same. is_cell: True for a cell, False for that module with one position.
        on_gpu: True if a call launches work.
        calls: their number. inputs: the shape of one. units: of the cell.
        time: of the calls.
    """

    fused: str
    is_cell: bool
    on_gpu: bool
    calls: int
    inputs: tt.Sizes
    units: int
    time: tt.Nanoseconds

    @property
    def called(self) -> str:
        return f"{self.fused}Cell" if self.is_cell else self.fused

    @property
    def how(self) -> str:
        """The requirements of the single call."""
        return (
            "with the weights of the cell"
            if self.is_cell
            else "and the operators before and after it for all positions"
        )


class RecurrentCellInLoop(tt.Rule[Evidence]):
    """Recurrent cell called once for each position."""

    code = "TT650"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Call `nn.{fused}` once for the whole sequence"
    message = "A loop calls `{called}` {calls} times, which takes {time}"
    why = (
        "Each call computes one position of inputs {inputs}, and no result goes into the next input. Reported for "
        "{min_calls} calls or more"
    )
    fix = "Call `nn.{fused}` once for the whole sequence, {how}"
    caveat = (
        "Results differ in their last bits. In the module, the parameters of a cell have other names (`weight_ih_l0`)."
    )

    min_calls = tt.Threshold(8, "in a row; for fewer calls the module's preparation costs as much as it saves")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for rows in _in_a_row(profile):
            if len(rows) >= self.min_calls:
                given = profile.inputs(rows[0])
                is_cell = profile.name(rows[0]) in _CELLS
                weight = given.dims[_HIDDEN_WEIGHT] if is_cell and len(given.dims) > _HIDDEN_WEIGHT else ()
                units = weight[-1] if weight and isinstance(weight[-1], int) else 0
                evidence = Evidence(
                    fused=_KINDS[profile.name(rows[0])],
                    is_cell=is_cell,
                    on_gpu=bool(len(profile.device_activity_of(rows[0]))),
                    calls=len(rows),
                    inputs=tt.Sizes(given.shape(0) or ()),
                    units=units,
                    time=tt.Nanoseconds(sum(map(profile.duration_ns, rows))),
                )
                yield tt.Match(rows[0], tuple(rows), evidence)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        on_cpu = _ON_CPU if match.evidence.is_cell else ON_CPU_BY_ONE
        yield tt.Scale(match.events, *(_ON_GPU if match.evidence.on_gpu else on_cpu[match.evidence.fused]))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        if len(evidence.inputs) != _CELL_INPUT or evidence.fused not in _ON_CPU:
            return None
        sequences, features = evidence.inputs
        kind, units = evidence.fused, evidence.units
        if not units or tt.fitting(evidence.calls, 64 * sequences * (units + features)) < evidence.calls:
            return None
        both = ", torch.zeros_like(hidden)" if kind == "LSTM" else ""
        setup = (
            f"import torch\ncell = torch.nn.{kind}Cell({features}, {units}, device=device)\n"
            f"fused = torch.nn.{kind}({features}, {units}, device=device)\n"
            f"sequence = torch.zeros({evidence.calls}, {sequences}, {features}, device=device)\n"
            f"hidden = torch.zeros({sequences}, {units}, device=device)\nbegin = (hidden{both})"
        )
        before = "state = begin\nfor x in sequence:\n    state = cell(x, state)"
        return tt.Benchmark(before, "outputs = fused(sequence)", setup, of_events=True)


def _in_a_row(profile: tt.Profile) -> Iterator[list[int]]:
    """Calls of one cell or module with equal inputs of one position, none of which needs the one before."""
    called = profile.calls.among(profile.named(*_KINDS)).tolist()
    rows = [row for row in called if profile.name(row) in _CELLS or _is_one_position(profile, row)]
    run = rows[:1]
    for before, row in pairwise(rows):
        if not _follows(profile, before, row):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _follows(profile: tt.Profile, before: int, row: int) -> bool:
    table = profile.table
    if table.inputs[before] != table.inputs[row] or table.name[before] != table.name[row]:
        return False
    after = profile.operators_after(before, _NEAR)
    if row not in after:
        return False
    between = after[: after.index(row)]
    work = [each for each in between if not aten.is_a("view", profile.name(each))]
    if not work or profile.name(row) in _CELLS:
        return not work
    return _embeds_a_piece(profile, between, work[-1]) and all(
        _makes_no_index(profile.name(each)) for each in work[:-1]
    )


def _is_one_position(profile: tt.Profile, row: int) -> bool:
    """True if a module gets one position of each sequence; the state shows the number of sequences."""
    given = profile.inputs(row)
    sequence, state = given.shape(0) or (), given.dims[1] if len(given.dims) > 1 else ()
    first = state[0] if state and not isinstance(state[0], int) else state
    return len(sequence) == len(first) == _MODULE_INPUT and sequence[0] * sequence[1] == first[1]


def _makes_no_index(name: str) -> bool:
    return name in _AFTER or aten.is_a("product", name) or aten.is_a("pointwise", name)


def _embeds_a_piece(profile: tt.Profile, between: list[int], row: int) -> bool:
    """True if a row is an embedding of a piece that the operator before it took from a tensor of indices."""
    at = between.index(row)
    if profile.name(row) != EMBEDDING or at == 0:
        return False
    return aten.is_a("view", profile.name(between[at - 1])) and profile.inputs(between[at - 1]).dtype(0) == _INDICES
