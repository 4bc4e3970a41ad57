"""Constants that each replay of a graph fills again.

## What it finds
Kernels of a replayed graph that write a constant to a small tensor, 8 times or more in each replay. They read no other
tensor, so neither the batch nor a request changes the values that they write.

## Why it is slow
A graph replays everything that was captured. A kernel that sets one number takes as long as the shortest kernels, in
each layer and each replay, and the next kernel waits for it.

## Example
```python
class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        offset = torch.zeros(1, dtype=torch.int32, device=q.device)  # a kernel in each layer of each replay
        return attention(q, k, v, offset)
```

Use instead:
```python
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(1, dtype=torch.int32))  # once, before the graph is captured

    def forward(self, q, k, v):
        return attention(q, k, v, self.offset)
```

## How the saving is estimated
The kernels go. At worst nothing is gained, since buffers that a kernel adds to must be cleared each time.

## When it stays quiet
Kernels that read another tensor, on which their result may depend. Tensors of more than 1,024 elements. Replays without
a known capture.
"""

import re
from collections.abc import Iterator
from math import prod

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.sets import distinct

FILL = "aten::fill_"  # `zeros`, `ones` and `full` also call it
_COMPILED = re.compile(r"triton_poi_fused_(?:\w+_)?(?:zeros|ones|full|arange)(?:_like)?(?:_\w+)?")
"""Compiled operators, named after their sources, that write a constant if they have one tensor."""


class Evidence(msgspec.Struct, frozen=True):
    """Fills of one operator.

    Attributes:
        operator: its name. elements: of the tensor. times: number in one replay. replays: number of replays.
        time: of all of them.
    """

    operator: str
    elements: int
    times: int
    replays: int
    time: tt.Nanoseconds

    @property
    def what(self) -> str:
        return "one element" if self.elements == 1 else f"{self.elements} elements"

    @property
    def how_often(self) -> str:
        """The number in all replays."""
        return "" if self.replays == 1 else f" in each of {self.replays} replays"


class ConstantFilledInReplay(tt.Rule[Evidence]):
    """Kernels of a replayed graph that write a constant."""

    code = "TT1508"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Fill constants before the graph is captured"
    message = "`{operator}` writes a constant to {what} {times} times{how_often}: {time}"
    why = (
        "It reads no other tensor, so no request changes the values that it writes. Reported for {min_times} times or "
        "more in a replay and up to {max_elements} elements"
    )
    fix = "Create the tensor once, in `__init__` or before the capture, and pass it to all layers"
    caveat = "A buffer that a kernel adds to must be cleared each time: clear the buffers of all layers with one fill."
    left = (0.0, 0.0, 1.0)

    min_times = tt.Threshold(8, "in one replay; layers repeat, and fewer are hardly worth a change")
    max_elements = tt.Threshold(1024, "of the tensor; larger ones are results that a kernel writes to")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table, operator = profile.table, profile.replayed.operator
        work = np.flatnonzero(operator != ABSENT)
        keys = np.stack([table.name[operator[work]], table.inputs[operator[work]]])
        calls, number = np.unique(keys, axis=1, return_inverse=True)
        number = number.reshape(-1)
        for group in range(calls.shape[1]):
            rows = work[number == group]
            elements = self._elements(profile, int(operator[rows[0]])) if self._is_fill(profile, rows) else 0
            if elements:
                yield from self._matches(profile, rows, elements)

    def _is_fill(self, profile: tt.Profile, rows: tt.Rows) -> bool:
        replays = len(distinct(profile.launch[rows]))
        name = profile.name(int(profile.replayed.operator[rows[0]]))
        is_fill = name == FILL or _COMPILED.fullmatch(name) is not None
        return is_fill and len(rows) >= self.min_times * replays

    def _elements(self, profile: tt.Profile, operator: int) -> int:
        """Elements of the only tensor of an operator; 0 if it has another one, or too many elements."""
        inputs = profile.inputs(operator)
        shapes = [shape for at in range(len(inputs.dims)) if (shape := inputs.shape(at)) is not None]
        elements = prod(shapes[0]) if len(shapes) == 1 else 0
        return elements if elements <= self.max_elements else 0

    def _matches(self, profile: tt.Profile, rows: tt.Rows, elements: int) -> Iterator[tt.Match[Evidence]]:
        launch = profile.launch[rows]
        replays = distinct(launch)
        name = profile.name(int(profile.replayed.operator[rows[0]]))
        evidence = Evidence(
            operator=name,
            elements=elements,
            times=len(rows) // len(replays),
            replays=len(replays),
            time=tt.Nanoseconds(int(profile.table.durations_of(rows).sum())),
        )
        for replay in replays.tolist():
            mine = tuple(rows[launch == replay].tolist())
            cause = int(profile.replayed.operator[mine[0]])
            yield tt.Match(cause, mine, evidence, subject=name, confidence="medium")
