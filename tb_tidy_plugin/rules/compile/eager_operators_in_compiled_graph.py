"""Eager operators inside a compiled graph.

## What it finds
Pointwise operators that run separately inside a graph that Inductor generated: arithmetic with complex numbers, for
which Inductor generates no code, and the bodies of custom operators, which it does not inspect.

## Why it is slow
Inductor fuses pointwise operators with the producers of their inputs and the users of their results. An operator that
it cannot generate splits the graph: the code before it writes a tensor to memory, the operator reads it and writes
another, and the code after it reads that.

## Example
```python
@torch.library.custom_op("mine::soft_cap", mutates_args=())
def soft_cap(x: torch.Tensor) -> torch.Tensor:
    return 30 * torch.tanh(x / 30)


@torch.compile
def scores(q, k):
    return soft_cap(q @ k.mT * 0.125).softmax(-1)
```

Use instead:
```python
def soft_cap(x):
    return 30 * torch.tanh(x / 30)


@torch.compile
def scores(q, k):
    return soft_cap(q @ k.mT * 0.125).softmax(-1)
```

## How the saving is estimated
The operators become part of the neighbouring kernels, which read and write these tensors anyway: at best nothing
remains, at most half. With torch 2.13 on one core and a million float32 elements, a graph with a custom operator of
five pointwise ones took 6.6 ms, and 2.8 ms with the same five in the graph. A rotary embedding took 1.27 ms with
complex numbers and 0.87 to 0.98 ms with real ones; the complex product alone takes 0.3 ms.

## When it stays quiet
Products, convolutions, sorting, indexing and other operators that always have their own kernels. Pointwise operators
that Inductor does not know, such as `igamma`. Fewer than 2 pointwise operators in one custom operator. Backends that
run a graph operator by operator. PyTorch before 2.6, whose traces do not name generated graphs.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.graphs import eager_operators
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT

_GENERATED = aten.names(
    "pointwise",
    """
    abs acos add addcdiv addcmul asin atan clamp cos cosh div eq exp expm1 ge gelu gt le leaky_relu lerp log log1p lt
    masked_fill maximum minimum mul ne neg pow reciprocal relu rsqrt sgn sigmoid silu sin sinh sqrt square sub tan tanh
    where
    """,
)
"""Operators that Inductor always generates for real numbers."""

COMPLEX, _NAMED = "complex", 3


class Evidence(msgspec.Struct, frozen=True):
    """Eager operators in one call of a generated graph.

    Attributes:
        names: theirs, most frequent first. operators: their number. time: of all of them.
        custom: the custom operator that runs them; empty if the graph calls them itself.
        is_complex: True if they are known to compute with complex numbers.
        least: least number that is reported in a custom operator.
    """

    names: tuple[str, ...]
    operators: int
    time: tt.Nanoseconds
    custom: str
    is_complex: bool
    least: int

    @property
    def which(self) -> str:
        """The first operators, as many as fit into a sentence."""
        more = [f"{len(self.names) - _NAMED} more"] if len(self.names) > _NAMED else []
        return ", ".join([*(f"`{name}`" for name in self.names[:_NAMED]), *more])

    @property
    def counted(self) -> str:
        """Number of them, in words."""
        return "1 operator" if self.operators == 1 else f"{self.operators} operators"

    @property
    def within(self) -> str:
        """The caller of the operators."""
        return f" in the custom operator `{self.custom}`" if self.custom else ""

    @property
    def cause(self) -> str:
        """The reason why Inductor did not generate them."""
        if self.custom:
            return f"Inductor does not inspect a custom operator. Reported for {self.least} such operators or more"
        if self.is_complex:
            return "Inductor generates no code for complex numbers"
        return "Inductor generates these operators for real numbers, so these are probably complex"

    @property
    def cure(self) -> str:
        if self.custom:
            return (
                f"Call the code of `{self.custom}` without `torch.library.custom_op`, or move its pointwise operators "
                "out of it, so that it contains only what PyTorch cannot do"
            )
        return "Compute with real and imaginary parts in separate tensors, or on the result of `torch.view_as_real`"


class EagerOperatorsInCompiledGraph(tt.Rule[Evidence]):
    """Eager operators inside a compiled graph."""

    code = "TT1004"
    reads_operators = True
    action = "Let the compiler generate {counted} that now run eagerly"
    message = "{counted}{within} run eagerly in the middle of a compiled graph and take {time} per call: {which}"
    why = (
        "Each reads its inputs from memory and writes its result for the next kernel, instead of being fused with it. "
        "{cause}"
    )
    fix = "{cure}"
    caveat = "Fused operators round less often, so results differ in their last bits."
    left = (0.1, 0.0, 0.5)

    min_share = tt.Threshold(0.01, "less is not worth rewriting a function")
    min_operators = tt.Threshold(2, "in a custom operator; a single one may belong to the custom kernel beside it")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for (_, custom), rows in _by_call(profile).items():
            if len(rows) >= (1 if custom == ABSENT else self.min_operators):
                yield self._match(profile, custom, rows)

    def _match(self, profile: tt.Profile, custom: int, rows: Sequence[int]) -> tt.Match[Evidence]:
        name = "" if custom == ABSENT else profile.name(custom)
        names = [aten.short_name(_name(profile, row)) for row in rows]
        is_complex = any(COMPLEX in dtype for given in profile.inputs_of(rows_of(rows)) for dtype in given.dtypes)
        evidence = Evidence(
            names=tuple(sorted(set(names), key=lambda each: (-names.count(each), names.index(each)))),
            operators=len(rows),
            time=tt.Nanoseconds(profile.covered(rows_of(slower_side(profile, rows))).total_ns),
            custom=name,
            is_complex=is_complex,
            least=int(self.min_operators),
        )
        is_sure = bool(name) or is_complex
        anchor = rows[0] if custom == ABSENT else custom
        return tt.Match(anchor, slower_side(profile, rows), evidence, name, "high" if is_sure else "medium")


def _by_call(profile: tt.Profile) -> Mapping[tuple[int, int], list[int]]:
    """Fusible operators, by the call of a generated graph and the custom operator in it, which may be `ABSENT`."""
    found: dict[tuple[int, int], list[int]] = {}
    for each in eager_operators(profile):
        name = _name(profile, each.row)
        if name in _GENERATED or (each.custom != ABSENT and aten.is_a("pointwise", name)):
            found.setdefault((each.call, each.custom), []).append(each.row)
    return found


def _name(profile: tt.Profile, row: int) -> str:
    return aten.without_overload(profile.name(row))
