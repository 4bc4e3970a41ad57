"""Constant tensor rebuilt in each step.

## What it finds
A tensor that a factory such as `torch.ones`, `torch.arange` or `torch.hann_window` creates with the same arguments in
each step, together with the following operators that use only such tensors: causal masks, positions, windows.

## Why it is slow
The tensor is the same every time. Creating it takes operators, on a GPU launches, and writes to memory.

## Example
```python
def forward(self, x):
    mask = torch.ones(length, length).triu(1).bool()
    return attend(x, mask)
```

Use instead:
```python
def __init__(self):
    mask = torch.ones(length, length).triu(1).bool()
    self.register_buffer("mask", mask, persistent=False)


def forward(self, x):
    return attend(x, self.mask)
```

## How the saving is estimated
The factory goes, and with it the operators that turn its result into the constant.

## When it stays quiet
Fewer than 256 elements: such tensors cost only a call, and often are the initial value of a sum. Arguments that change
from step to step. Random numbers. Tensors that the backward pass, an optimizer, a data loader or the profiler creates.
Profiles of one step, unless it creates the constant three times.

Tensors that may be written to before they are created again: in place, through a view, as the `out=` of an operator, as
a gradient, by an operator that is not part of PyTorch, or by compiled code whose operators were not recorded. A trace
distinguishes tensors only by shape, so a write to another tensor of the same shape also counts. A trace does not show
writes without an operator: by NumPy, by other libraries that share the memory, and by extensions that register no
operator. Tensors passed to NumPy are left out if the recording shows this, as it does in PyTorch 2.13.
"""

from collections.abc import Iterator, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.rules.memory.constant_rebuilt_every_step.constants import Constant, constants_made_again
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.words.units import plural

CHAIN_SHOWN = 8
BOOL = 11  # ATen's number of this dtype


class Evidence(msgspec.Struct, frozen=True):
    """A constant, and how it is created.

    Attributes:
        names: the operators that create it, the factory first, as users write them.
        sizes: arguments of the factory. numbers: argument of each further operator; empty if one has more.
        elements: of the constant. time: of creating it once.
        times, steps: number of creations, and of steps with any.
    """

    names: tuple[str, ...]
    sizes: tt.Sizes
    numbers: tt.Sizes
    elements: int
    time: tt.Nanoseconds
    times: int
    steps: int

    @property
    def factory(self) -> str:
        """The operator that creates it without tensors."""
        return self.names[0]

    @property
    def size(self) -> str:
        return plural(self.elements, "element")

    @property
    def count(self) -> str:
        """The number of operators that create it."""
        return plural(len(self.names), "operator")

    @property
    def chain(self) -> str:
        """The first of them."""
        return ", ".join(self.names[:CHAIN_SHOWN]) + (", …" if len(self.names) > CHAIN_SHOWN else "")


class ConstantRebuiltEveryStep(tt.Rule[Evidence]):
    """Constant tensor rebuilt in each step."""

    code = "TT1201"
    needs = frozenset({"shapes"})
    reads_operators = True
    # Its factories create pieces for the loop: one operator on the whole tensor needs none of them.
    yields_to = ("python-loop-tensor-indexing",)
    action = "Create the constant of `{factory}` once, before the loop"
    message = "`{factory}` rebuilds a constant of {size}: {count}, {time}"
    why = (
        "`{chain}` take only numbers, the same ones each time: {times} × in {steps} steps. Reported for {min_elements} "
        "elements or more if nothing writes to the tensor afterwards"
    )
    fix = "Create the tensor once, as a non-persistent buffer of the module, and use that in each step"
    caveat = "The tensor stays in memory. Code that writes to it would change it for all later steps."

    min_elements = tt.Threshold(
        256, "below this, only the call costs time, and such tensors mostly are counters, states or sums"
    )
    min_repeats = tt.Threshold(3, "calls within one step, if no second step shows the repetition")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for constant in constants_made_again(profile, round(self.min_repeats), self.min_elements):
            yield from (self._match(profile, run, constant) for run in constant.runs)

    def _match(self, profile: tt.Profile, run: tuple[int, ...], constant: Constant) -> tt.Match[Evidence]:
        frame = tt.parse_frame(profile.calls.caller_name(run[0]))
        return tt.Match(
            anchor=run[0],
            events=(*run, *profile.device_activity_of_all(rows_of(run)).tolist()),
            evidence=Evidence(
                names=tuple(aten.short_name(profile.name(row)) for row in run),
                sizes=tt.Sizes(profile.inputs(run[0]).integers(0)),
                numbers=_numbers(profile, run[1:]),
                elements=constant.elements,
                time=tt.Nanoseconds(sum(map(profile.duration_ns, run))),
                times=len(constant.runs),
                steps=constant.steps,
            ),
            confidence="high" if frame is not None and frame.own_code and constant.steps > 1 else "medium",
        )

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        factory, *further = evidence.names
        made = _expression(factory, evidence.sizes, further, evidence.numbers)
        if not made or not tt.fitting(1, 16 * evidence.elements):
            return None
        return tt.Benchmark(f"result = {made}", "result = kept", f"import torch\nkept = {made}", of_events=True)

    def fixer(self, code: tt.Code, spot: "Spot", evidence: Evidence) -> "Change":
        from tb_tidy_plugin.fixes.hoisting import hoisted

        return hoisted(code, spot)


def _numbers(profile: tt.Profile, rows: tuple[int, ...]) -> tt.Sizes:
    """The argument of each operator after the factory besides its tensor; empty unless each has one integer."""
    given = [profile.inputs(row).integers(1) for row in rows]
    return tt.Sizes(number for (number,) in given) if all(len(each) == 1 for each in given) else tt.Sizes()


def _expression(factory: str, sizes: tt.Sizes, further: Sequence[str], numbers: tt.Sizes) -> str:
    """The constant in Python, empty unless a few well-known operators create it."""
    if factory not in {"ones", "zeros"} or not sizes or len(further) != len(numbers):
        return ""
    made = f"torch.{factory}({tuple(sizes)}, device=device)"
    for name, number in zip(further, numbers, strict=True):
        if name in {"tril", "triu"}:
            made += f".{name}({number})"
        elif (name, number) == ("to", BOOL):
            made += ".bool()"
        else:
            return ""
    return made
