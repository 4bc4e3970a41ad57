"""Tensor created on the CPU, then copied to the GPU.

## What it finds
A tensor that `torch.ones(...)`, `torch.empty(...).normal_()` or a similar call creates on the CPU, and that
`.to("cuda")`, `.cuda()` or `.copy_()` then copies to the GPU.

## Why it is slow
The CPU fills the memory, then the copy crosses the bus and, from pageable memory, blocks the Python thread. The GPU
could fill the tensor itself while the host goes on.

## Example
```python
mask = torch.ones(batch, length).to("cuda")
```

Use instead:
```python
mask = torch.ones(batch, length, device="cuda")
```

## How the saving is estimated
The fill and the copy go, including the host's waits in them. The remaining time of both calls stands for the fill on
the GPU that replaces them.

## When it stays quiet
Tensors below 1 KiB. Copies that do not reach a GPU: on the CPU, to `meta`, or only to another dtype. Copies from pinned
memory, which no factory returns by itself. Memory that was not allocated right before its fill, which is a kept buffer.
A factory of another shape or dtype, or more than 5 operators earlier.
"""

import re
from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.events.inputs import tensor_bytes
from tb_tidy_plugin.profile.host.transfers import copied_input, copying_operator
from tb_tidy_plugin.torchfacts import aten

_FACTORIES = aten.names(
    "factory",
    """
    arange eye full full_like linspace logspace new_full new_ones new_zeros ones ones_like rand rand_like randint
    randint_like randn randn_like randperm zeros zeros_like
    """,
)
_FILLS = aten.names("in_place", "bernoulli_ exponential_ fill_ normal_ random_ uniform_ zero_")
ALLOCATIONS = aten.names("factory", "empty empty_like empty_strided new_empty new_empty_strided")
_COPY = frozenset({"aten::copy_"})

_TO_DEVICE = r"(HtoD|HostToDevice)(?!.{0,100}Pinned)"
MEASURED = aten.names("factory", "ones rand randn zeros")  # that need only a shape

RANDOM = frozenset(map(aten.short_name, aten.names("factory", "rand randn randint randperm")))
WITH_DEVICE = RANDOM | set(map(aten.short_name, aten.names("factory", "zeros ones empty full arange eye")))
DEVICE = re.compile(r"""(?:device=)?([\w.]*\bdevice|["'](?:cuda|xpu|mps)(?::\d+)?["'])""")
"""An argument of `to` that can only be a device."""


class Evidence(msgspec.Struct, frozen=True):
    """A tensor, and how it is created and moved.

    Attributes:
        factory, move: the user's calls that create and move it. distance: number of operators between them.
        size, shape, dtype: of the tensor.
        fill_time, copy_time: time of creating and copying it.
    """

    factory: str
    move: str
    distance: int
    size: tt.Bytes
    shape: tt.Sizes
    dtype: str
    fill_time: tt.Nanoseconds
    copy_time: tt.Nanoseconds


class TensorCreatedOnCpuThenMoved(tt.Rule[Evidence]):
    """A factory or a fill on the CPU, then a copy of the same shape and dtype to the GPU."""

    code = "TT201"
    needs = frozenset({"shapes", "device"})
    action = "Make the tensor of `{factory}` on the GPU"
    message = "`{factory}` makes {size} on the CPU, then `{move}` copies them to the GPU"
    why = (
        "Making {shape} values of {dtype} takes {fill_time}, and copying them {copy_time}. The copy is operator "
        "{distance} after the factory. Reported for {min_bytes} or more if shape and dtype are equal and the copy is "
        "at most operator {max_distance} after the factory"
    )
    fix = "Pass `device=` where the tensor is made"
    caveat = "Random numbers made on the GPU differ from those made on the CPU with the same seed."

    min_bytes = tt.Threshold(1024, "below this, launch overhead outweighs the copy")
    max_distance = tt.Threshold(
        5, "a trace does not show that two operators use the same tensor, so they must be near each other"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        causes = profile.launched_by[profile.matching(_TO_DEVICE, tt.Category.COPY)]
        moves = {copying_operator(profile, cause) for cause in causes[causes >= 0].tolist()}
        taken: set[int] = set()
        for move in sorted(move for move in moves if move is not None):
            source = copied_input(profile, move)
            if (tensor_bytes(*source) or 0) < self.min_bytes:
                continue
            near = profile.operators_before(move, int(self.max_distance))
            made = next((row for row in near if row not in taken and _makes(profile, row, *source)), None)
            if made is not None:
                taken.add(made)
                yield self._match(profile, made, move, near.index(made) + 1)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        made, move = match.events
        yield tt.Remove((_first_below(profile, made, _FILLS), _first_below(profile, move, _COPY)))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        factory, dtype, shape = evidence.factory, tt.known_dtype(evidence.dtype), tuple(evidence.shape)
        is_small = tt.fitting(1, 2 * evidence.size) > 0
        if aten.PREFIX + factory not in MEASURED or not dtype or not shape or not is_small:
            return None
        name = "made" if factory.startswith("rand") else "result"  # random numbers differ from device to device
        made = f"{name} = torch.{factory}({shape}, dtype=torch.{dtype}"
        before, after = f"{made}).to(device)", f"{made}, device=device)"
        return tt.Benchmark(before, after, "import torch", devices=("cuda", "mps", "xpu"), of_events=True)

    def _match(self, profile: tt.Profile, made: int, move: int, distance: int) -> tt.Match[Evidence]:
        shape, dtype = copied_input(profile, move)
        return tt.Match(
            anchor=move,
            events=(made, move),
            confidence="high" if distance == 1 else "medium",
            evidence=Evidence(
                factory=_called(profile, made),
                move=_called(profile, move),
                distance=distance,
                size=tt.Bytes(tensor_bytes(shape, dtype) or 0),
                shape=tt.Sizes(shape),
                dtype=tt.TORCH_DTYPES.get(dtype, dtype),
                fill_time=tt.Nanoseconds(profile.duration_ns(made)),
                copy_time=tt.Nanoseconds(profile.duration_ns(move)),
            ),
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        splices: list[Splice] = []
        made: set[str] = set()
        for move in [call for method in ("to", "cuda") for call in code.methods_on(spot.lines, method)]:
            factory = code.receiver(move)
            name = code.qualified(factory.func) if code.is_call(factory) else ""
            if not code.is_call(factory) or name.removeprefix("torch.") not in WITH_DEVICE or factory.lpar:
                continue
            device = _device(code.source(move), [code.source(arg) for arg in move.args])
            splices += code.with_arguments(factory, {"device": device})
            splices.append(Splice(code.span(factory)[1], code.span(move)[1], ""))
            made.add(name.removeprefix("torch."))
        if not splices:
            raise Unfixable("The lines do not contain a `torch` factory and its copy in one expression.")
        how = "random numbers drawn on the device differ from those of the CPU"
        return Change(tuple(splices), changes_behaviour(how) if made & RANDOM else SAME_RESULTS)


def _makes(profile: tt.Profile, row: int, shape: tt.Shape, dtype: str) -> bool:
    """True if the operator `row` creates a tensor of this shape and dtype, on the CPU."""
    name, before = profile.name(row), profile.operators_before(row, 1)
    is_filled = name in _FILLS and any(profile.name(other) in ALLOCATIONS for other in before)
    if len(profile.device_activity_of(row)) or not (is_filled or name in _FACTORIES):
        return False
    return any(_gives(profile, inner, shape, dtype) for inner in profile.subtree(row))


def _gives(profile: tt.Profile, row: int, shape: tt.Shape, dtype: str) -> bool:
    """True if an operator gets a tensor of this shape and dtype, or one of this dtype to resize to this shape."""
    inputs = profile.inputs(row)
    tensors = [(inputs.shape(at), inputs.dtype(at)) for at in range(len(inputs.dtypes))]
    return (shape, dtype) in tensors or (inputs.dtype(0) == dtype and str(list(shape)) in inputs.concrete)


def _first_below(profile: tt.Profile, row: int, wanted: frozenset[str]) -> int:
    return next((inner for inner in profile.subtree(row) if profile.name(inner) in wanted), row)


def _called(profile: tt.Profile, row: int) -> str:
    """The user's call: the built-in around an operator (`cuda`), else the operator itself."""
    above = profile.parent(row)
    words = profile.name(above).split() if above is not None else []
    return words[2] if words[:2] == ["<built-in", "method"] else aten.short_name(profile.name(row))


def _device(move: str, given: list[str]) -> str:
    """The device that a call of `to` or `cuda` names."""
    if not given and move.endswith(".cuda()"):
        return '"cuda"'
    found = DEVICE.fullmatch(given[0]) if len(given) == 1 else None
    if found is None or not found[1]:
        raise Unfixable("The copy is given more than a device.")
    return found[1]
