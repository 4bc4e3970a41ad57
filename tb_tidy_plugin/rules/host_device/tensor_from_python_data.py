"""Tensor made from Python objects, element by element.

## What it finds
`torch.tensor(...)`, `torch.as_tensor(...)` or a constructor such as `torch.FloatTensor(...)` that is given a list of
numbers or of NumPy arrays, in every step.

## Why it is slow
PyTorch examines each element as a Python object: once to find dtype and shape, and once to convert it. That takes tens
of nanoseconds per element; copying an array's memory takes less than one. Each number in an array must also be unpacked
first.

## Example
```python
states = torch.tensor([buffer[i] for i in picked])
```

Use instead:
```python
states = torch.from_numpy(np.stack([buffer[i] for i in picked]))
```

## How the saving is estimated
The time until the data is in place is scaled by measured factors: `numpy.asarray` took 0.08 to 0.36 times as long for
lists of numbers, and `numpy.stack` 0.002 to 0.08 times for arrays. The time before memory is allocated distinguishes
the two. At most all of the time goes.

## When it stays quiet
Up to 256 elements, or less than 0.1 ms. A single array or tensor, whose memory is copied at once. Tensors in the list,
which `torch.stack` does not handle faster. Data created once, such as constants. Time hidden by a busy device.
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.callers import recurring
from tb_tidy_plugin.profile.host.critical import device_idle
from tb_tidy_plugin.torchfacts import aten

CONSTRUCTORS = {"float": "FloatTensor", "double": "DoubleTensor", "long int": "LongTensor", "int": "IntTensor"}
_LOOKED_AT = 0.15  # of the time, before memory is allocated: 0.3 to 0.7 for numbers, below 0.08 for arrays
FILLS = {"float32": "rand", "float64": "rand", "int64": "ones", "int32": "ones"}  # data for the benchmark
OBJECT_BYTES = 64  # of a number in a list, with its part of the tensors that are made of it


class Conversion(NamedTuple):
    """The constructor of a tensor, its events, its time, and the time that it read the data before it wrote it."""

    function: str
    events: tuple[int, ...]
    start_ns: int
    looked_ns: int
    end_ns: int


class Evidence(msgspec.Struct, frozen=True):
    """A tensor, and its source.

    Attributes:
        function: its constructor. shape, dtype: its own; no shape if it was not recorded.
        holds_arrays: True if the data holds arrays or tensors, and not numbers.
        time: from the call until the data is in place.
    """

    function: str
    shape: tt.Sizes
    dtype: str
    holds_arrays: bool
    time: tt.Nanoseconds

    @property
    def of(self) -> str:
        return f" of {self.shape} {self.dtype} values" if self.shape else ""


class TensorFromPythonData(tt.Rule[Evidence]):
    """Tensor made from Python objects, element by element."""

    code = "TT202"
    needs = frozenset({"stacks"})
    action = "Make the tensor from one NumPy array"
    message = "`{function}` makes a tensor{of} from Python objects, element by element: {time}"
    why = (
        "The call takes {time} until the data is in place; copying an array of that size takes less than 1 ns per "
        "element. Reported for {min_ns} or more, above {min_elements} elements, if it happens in every step"
    )
    fix = "Make one NumPy array first (`numpy.stack`, `numpy.asarray`), and give that to `torch.from_numpy`"
    caveat = "`torch.from_numpy` keeps the array's dtype, which is float64 for an array of Python numbers."

    min_ns = tt.Threshold(100_000, "for one tensor; below this, the calls of NumPy and PyTorch themselves cost as much")
    min_elements = tt.Threshold(256, "converting so few elements takes about as long as making an array of them")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        idle = device_idle(profile)
        made = profile.named("aten::lift_fresh")
        shapes = zip(made.tolist(), [given.shape(0) for given in profile.inputs_of(made)], strict=True)
        large = [row for row, shape in shapes if shape is None or prod(shape) > self.min_elements]
        found = {row: conversion for row in large if (conversion := _conversion(profile, row))}
        slow = [row for row, each in found.items() if each.end_ns - each.start_ns >= self.min_ns]
        for row in recurring(profile, rows_of(slow)).tolist():
            yield self._match(profile, row, found[row], idle)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, factor=0.05 if match.evidence.holds_arrays else 0.13, low=0.0, high=0.36)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        dtype, extents = tt.known_dtype(evidence.dtype), [*evidence.shape]
        extents[:1] = [tt.fitting(extents[0], OBJECT_BYTES * prod(extents[1:]))] if extents else [0]
        if dtype not in FILLS or not prod(extents):
            return None
        data = f"torch.{FILLS[dtype]}({tuple(extents)}, dtype=torch.{dtype}).numpy()"
        given, array = f"{data}.tolist()", f"asarray(data, dtype=numpy.{dtype})"
        given, array = (f"list({data})", "stack(data)") if evidence.holds_arrays else (given, array)
        before, after = f"result = torch.tensor(data, dtype=torch.{dtype})", f"result = torch.from_numpy(numpy.{array})"
        setup = f"import numpy\nimport torch\ndata = {given}"
        return tt.Benchmark(before, after, setup, devices=("cpu",), of_events=True)

    def _match(self, profile: tt.Profile, row: int, each: Conversion, idle: tt.Intervals) -> tt.Match[Evidence]:
        time_ns, inputs = each.end_ns - each.start_ns, profile.inputs(row)
        extents, dtype = inputs.shape(0) or (), tt.TORCH_DTYPES.get(inputs.dtype(0), inputs.dtype(0))
        is_numbers = each.looked_ns >= _LOOKED_AT * time_ns or len(extents) == 1
        span = tt.Intervals(rows_of([each.start_ns]), rows_of([each.end_ns]))
        return tt.Match(
            anchor=row,
            events=each.events,
            lost=span.intersection(idle).spans,
            confidence=_confidence(profile, row),
            evidence=Evidence(
                function=each.function or f"torch.{CONSTRUCTORS.get(inputs.dtype(0), 'Tensor')}",
                shape=tt.Sizes(extents),
                dtype=dtype,
                holds_arrays=not is_numbers,
                time=tt.Nanoseconds(time_ns),
            ),
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        calls = [call for call in code.calls_on(spot.lines) if code.qualified(call.func) == "torch.tensor"]
        if not evidence.holds_arrays and evidence.dtype not in FILLS:
            raise Unfixable(f"NumPy may choose a dtype for the numbers other than `{evidence.dtype}`.")
        if len(calls) != 1 or len(calls[0].args) != 1 or not code.is_list(calls[0].args[0].value):
            raise Unfixable("The lines do not contain a single call of `torch.tensor` with only a list.")
        call = calls[0]
        start, end = code.span(call.args[0].value)
        torch = code.source(call.func).removesuffix("tensor")
        if not torch:
            raise Unfixable("`tensor` is imported on its own.")
        numpy, imported = code.importing("numpy", "np")
        made, dtype = ("stack", "") if evidence.holds_arrays else ("array", f", dtype={numpy}.{evidence.dtype}")
        splices = [*imported, Splice(*code.span(call.func), f"{torch}from_numpy")]
        splices += [Splice(start, start, f"{numpy}.{made}("), Splice(end, end, f"{dtype})")]
        check = "The list holds NumPy arrays, not tensors." if evidence.holds_arrays else ""
        return Change(tuple(splices), SAME_RESULTS, check)


def _confidence(profile: tt.Profile, row: int) -> tt.Confidence:
    """Confidence, lower in a library, such as torch's own `default_collate`: changing it takes more than a line."""
    caller = tt.parse_frame(profile.calls.caller_name(row))
    return "high" if caller is None or caller.own_code else "medium"


def _conversion(profile: tt.Profile, row: int) -> Conversion | None:
    """The conversion of the data of the tensor `row`, None if it was not created from Python objects.

    Such data is written between the operators `aten::empty` and `aten::to`. Operators in between read tensors in the
    list; an array has memory and is copied. Of the constructors only the operators are recorded.
    """
    before = profile.operators_before(row, 2)
    if [aten.short_name(profile.name(other)) for other in before] != ["to", "empty"]:
        return None
    to, empty = before
    call = profile.parent(row)
    if call is None or call != profile.parent(empty) or not profile.name(call).startswith("<built-in method "):
        return Conversion("", (empty, to), profile.start_ns(empty), 0, profile.start_ns(to))
    function, start_ns = f"torch.{profile.name(call).split()[2]}", profile.start_ns(call)
    return Conversion(function, (call,), start_ns, profile.start_ns(empty) - start_ns, profile.start_ns(to))
