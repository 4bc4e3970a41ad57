"""Tensor cast to another dtype and straight back.

## What it finds
A cast between floating-point dtypes, followed within a few operators by the cast back on a tensor of the same shape,
with nothing in between that needs the other dtype.

## Why it is slow
Each cast reads the whole tensor and writes it again, and its gradient is cast back the same way. A cast to more bits
and straight back changes nothing; a cast to fewer bits and straight back only loses precision.

## Example
```python
y = torch.relu(first(x.bfloat16())).float()
z = torch.relu(second(y.bfloat16())).float()
```

Use instead:
```python
y = torch.relu(first(x.bfloat16()))
z = torch.relu(second(y)).float()  # one cast in, one out
```

## How the saving is estimated
Both casts and their gradients go. If the first result is used elsewhere, too, only the second cast can go.

## When it stays quiet
Tensors below 4 KiB, and casts that change nothing, which make no copy. Operators in between that have a reason to run
in the other dtype: products, convolutions and attention in fewer bits; softmax, norms, losses, sums and other
arithmetic in more bits. Casts of weights under autocast, which are not cast back. Integer dtypes.
"""

from collections.abc import Iterator, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.profile.work.pointwise import is_passing, is_pointwise
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.rules.precision.dtype_ping_pong.casts import Cast, casts
from tb_tidy_plugin.torchfacts import aten

_EXACT = aten.names("known", "abs clamp clone dropout hardtanh masked_fill max_pool1d max_pool2d neg relu")
"""Operators with the same results in fewer bits (`clamp` and `masked_fill` up to the rounding of their constant)."""

_METHODS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}
"""Methods of tensors that cast, with the dtype, which has the same name in `torch`."""

_BITS = {"double": 64, "float": 32, "c10::Half": 16, "c10::BFloat16": 16}
BITS_OF = {tt.TORCH_DTYPES[dtype]: bits for dtype, bits in _BITS.items()}


class Evidence(msgspec.Struct, frozen=True):
    """Two casts.

    Attributes:
        shape, size: of the cast tensor. dtype, other: the original type, and the type in between.
        apart: number of operators between the casts. others: those of them that work on elements.
        time: of the casts.
    """

    shape: tt.Sizes
    size: tt.Bytes
    dtype: str
    other: str
    apart: int
    others: tuple[str, ...]
    time: tt.Nanoseconds

    @property
    def distance(self) -> str:
        return f"{self.apart + 1} operators later" if self.others else "straight"

    @property
    def between(self) -> str:
        names = " and ".join(f"`{name}`" for name in self.others)
        return f"between them only {names} runs" if names else "nothing runs between them"


class DtypePingPong(tt.Rule[Evidence]):
    """Casts to another dtype and straight back."""

    code = "TT402"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Remove the casts from {dtype} to {other} and back"
    message = "{shape} values are cast from {dtype} to {other} and {distance} back to {dtype}: {time}"
    why = (
        "Both casts copy the whole tensor ({size}), and {between}. Reported for {min_bytes} or more, up to "
        "{max_operators} operators apart"
    )
    fix = "Remove both casts, or keep one dtype from the first operator to the last"
    caveat = "If something else uses the result of the first cast, remove only the second."

    min_bytes = tt.Threshold(4096, "casting a smaller tensor takes no longer than the call itself")
    max_operators = tt.Threshold(
        5, "a trace does not show that two casts use the same tensor, so they must be near each other"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found = casts(profile, int(self.min_bytes))
        taken: set[int] = set()
        for at, there in enumerate(found):
            if there.row in taken:
                continue
            for back in found[at + 1 : at + 2 + int(self.max_operators)]:
                between = self._between(profile, there, back) if _is_return(there, back) else None
                if between is not None and back.row not in taken:
                    taken.add(back.row)
                    yield self._match(profile, there, back, between)
                    break

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        shape, dtype, other = tuple(evidence.shape), tt.known_dtype(evidence.dtype), tt.known_dtype(evidence.other)
        y = "result" if other in {"float32", "float64"} and dtype != "float64" else "y"  # equal with no fewer bits
        return tt.Benchmark(
            before=f"{y} = torch.relu(torch.relu(x).to(torch.{other}).to(torch.{dtype}))",
            after=f"{y} = torch.relu(torch.relu(x))",
            setup=f"import torch\nx = torch.randn({shape}, dtype=torch.{dtype}, device=device)",
        ) if shape and dtype and other and tt.fitting(1, 5 * evidence.size) else None  # fmt: skip

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = [call for call in code.calls_on(spot.lines) if _cast_to(code, call) == evidence.other]
        if len(found) != 1:
            raise Unfixable(f"The lines do not contain a single cast to {evidence.other}.")
        narrows = BITS_OF[evidence.other] < BITS_OF[evidence.dtype]
        how = "values keep the bits that the cast drops" if narrows else f"the result stays in {evidence.dtype}"
        check = f"Nothing but the cast back to {evidence.dtype} reads the result."
        return Change((code.without_call(found[0]),), changes_behaviour(how), check)

    def _between(self, profile: tt.Profile, there: Cast, back: Cast) -> list[str] | None:
        """Names of the operators between two casts; None if any needs their dtype, or if there are too many."""
        near = profile.operators_after(there.operator, int(self.max_operators) + 1)
        if back.operator not in near:
            return None
        rows = near[: near.index(back.operator)]
        rows = rows if there.operator == there.row else [there.operator, *rows]
        names = [profile.name(row) for row in rows]
        return names if all(_may_run_in_either(name, there) for name in names) else None

    def _match(self, profile: tt.Profile, there: Cast, back: Cast, between: Sequence[str]) -> tt.Match[Evidence]:
        events = slower_side(profile, (there.row, back.row, *gradients_of(profile, (there.row, back.row))))
        others = tuple(dict.fromkeys(aten.short_name(name) for name in between if not is_passing(name)))
        return tt.Match(
            anchor=there.row,
            events=events,
            evidence=Evidence(
                shape=tt.Sizes(there.shape),
                size=tt.Bytes(there.size),
                dtype=tt.TORCH_DTYPES[there.source],
                other=tt.TORCH_DTYPES[there.target],
                apart=len(between),
                others=others,
                time=tt.Nanoseconds(profile.covered(rows_of(events)).total_ns),
            ),
            confidence="medium" if others or _narrows(there) else "high",
        )


def _may_run_in_either(name: str, there: Cast) -> bool:
    return is_passing(name) or aten.without_writing(name) in _EXACT or (_narrows(there) and is_pointwise(name))


def _is_return(there: Cast, back: Cast) -> bool:
    is_inverse = (there.source, there.target) == (back.target, back.source)
    return is_inverse and there.shape == back.shape and there.operator != back.operator


def _narrows(cast: Cast) -> bool:
    return _BITS[cast.target] < _BITS[cast.source]


def _cast_to(code: tt.Code, call: tt.Call) -> str:
    """The dtype to which a call of a method casts, empty for any other call."""
    method = code.source(call.func).rpartition(".")[2]
    if not call.args:
        return _METHODS.get(method, "") if "." in code.source(call.func) else ""
    name = code.qualified(call.args[0].value)
    is_cast = method in {"to", "type"} and len(call.args) == 1 and name.startswith("torch.")
    return _METHODS.get(name[6:], name[6:]) if is_cast else ""
