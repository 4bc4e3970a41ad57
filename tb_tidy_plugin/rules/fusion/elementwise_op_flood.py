"""Chain of pointwise operators, each run separately.

## What it finds
Eight or more pointwise operators (`add`, `mul`, `exp`, `clamp`, `where`, …) that your code runs one after the other on
tensors of one shape, with only views in between.

## Why it is slow
Each operator reads its tensors from memory and writes a new one for the next; on a GPU, each needs its own launch. One
fused operator reads and writes once. Autograd also keeps most intermediate tensors and repeats the chain in the
backward pass.

## Example
```python
y = 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
```

Use instead:
```python
y = F.gelu(x, approximate="tanh")  # or torch.compile the function, where no such operator exists
```

## How the saving is estimated
The bytes read and written go down to those that a fused operator needs: at best one tensor in and one out, at worst
every tensor that no operator of the chain can have made; the middle is expected. On a CPU half of the arithmetic
remains, which is the time that operators take beyond the fastest of them. With torch 2.13 on a CPU, `torch.compile`
took 0.12 to 0.31 of the time for chains on 300,000 elements. For chains on small tensors the launches count.

## When it stays quiet
Fewer than 24 operators on small tensors: compiled, eight operators took 0.5 to 1 of the time on 30,000 elements.
Optimizers, loaders, compiled code, torch's own operators. The same few operators for one tensor after the other, as in
a handwritten update.
"""

from collections.abc import Iterator
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.profile.work.pointwise import Chain, part_left, pointwise_chains
from tb_tidy_plugin.profile.work.training import gradients_of, their_backward
from tb_tidy_plugin.torchfacts import aten

COMPILED_CALL = 8  # operators that take about as long as the guards and the call of a compiled function (15 to 20 µs)
SHORT_PERIOD = 4  # operators that a hand-written average or update takes for each parameter
RESTARTS = 0.25  # of the operators; more are on tensors that do not depend on one another
SUMMARY = 5  # names in the message


class Evidence(msgspec.Struct, frozen=True):
    """A chain of operators.

    Attributes:
        shape, dtype: of its tensors; an empty type if torch has none of the name.
        chain: the operators, by their names in the trace.
        gradients: number of operators of the backward pass that belong to it.
        time: of all of them.
        ratio: the bytes they move, by those of one fused operator.
        expected, best: parts of the time that fusing leaves, most likely and at least.
        on_device: True if the device takes longer than the host.
    """

    shape: tt.Sizes
    dtype: str
    chain: tuple[str, ...]
    gradients: int
    time: tt.Nanoseconds
    ratio: int
    expected: tt.Share
    best: tt.Share
    on_device: bool

    @property
    def count(self) -> int:
        return len(self.chain)

    @property
    def backward(self) -> str:
        """The number of operators of the backward pass that belong to it, if any."""
        return their_backward(self.gradients)

    @property
    def names(self) -> str:
        """The first of them as users write them."""
        names = ", ".join(f"`{aten.short_name(name)}`" for name in self.chain[:SUMMARY])
        return names + (" …" if len(self.chain) > SUMMARY else "")


class ElementwiseOpFlood(tt.Rule[Evidence]):
    """Pointwise operators in a row."""

    code = "TT702"
    needs = frozenset({"shapes"})
    reads_operators = True
    # Scale, bias and mask of scores, which the fused attention computes; and one iteration of a loop after the other,
    # which looks like a long chain, and whose operators occur once when the loop is gone. Pieces of a decoder have a
    # name
    # and kernels of their own.
    yields_to = ("unfused-attention", "python-loop-tensor-indexing", "decoder-pieces-written-out")
    action = "Fuse {count} pointwise operators into one kernel"
    message = "{count} pointwise operators in a row on {shape} take {time}: {names}"
    why = (
        "Together they move {ratio} times the bytes of one fused operator, which should take {expected} of the "
        "time{backward}. Reported for {min_operators} operators or more on large "
        "tensors, {min_operators_small} or more on small ones"
    )
    fix = "Compile the function with `torch.compile`, or call a single operator if torch has one that does all of it"
    caveat = "A fused operator rounds less often, so results differ in their last bits."

    min_share = tt.Threshold(0.01, "less is not worth compiling or rewriting a function")
    min_operators = tt.Threshold(8, "shorter chains are ordinary code: a residual, a gate, a loss of a few terms")
    min_operators_small = tt.Threshold(
        24, "a compiled call costs as much as about eight operators, so fewer gain little or nothing"
    )
    min_bytes = tt.Threshold(262_144, "smaller tensors stay in the cache of a CPU; measured from 30,000 elements on")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for chain in pointwise_chains(profile, int(self.min_operators)):
            gradients = gradients_of(profile, chain.operators)
            if chain.restarts > RESTARTS * len(chain.operators) or _is_per_tensor(chain, gradients):
                continue
            events = slower_side(profile, (*chain.operators, *gradients))
            is_large = events[0] >= profile.tree.size or self._fills_memory(profile, chain)
            if is_large or len(chain.operators) >= self.min_operators_small:
                yield self._match(profile, chain, events, len(gradients), is_large)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, match.evidence.expected, match.evidence.best, 1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        """The same operators in a row, with their backward pass; not used on a CPU: alone, memory is warm."""
        chain, shape, dtype = tt.chain_of(evidence.chain), tuple(evidence.shape), tt.known_dtype(evidence.dtype)
        if chain is None or "float" not in dtype or not tt.fitting(1, 16 * (evidence.count + 2) * prod(shape)):
            return None
        grad, after = (True, "\nresult.sum().backward()") if evidence.gradients else (False, "")
        x = f"x = torch.rand({shape}, dtype=torch.{dtype}, device=device, requires_grad={grad})"
        setup = f"import torch\nimport torch.nn.functional as F\n{x}\n{chain}\ncompiled = torch.compile(chain)"
        return tt.Benchmark(
            f"result = chain(x){after}", f"result = compiled(x){after}", setup, of_events=evidence.on_device
        )

    def _fills_memory(self, profile: tt.Profile, chain: Chain) -> bool:
        """True if the host itself computes on tensors too large for its cache."""
        on_device = len(profile.device_activity_of_all(rows_of(chain.operators)))
        return not on_device and chain.least_bytes / 2 >= self.min_bytes

    def _match(
        self, profile: tt.Profile, chain: Chain, events: tuple[int, ...], gradients: int, is_large: bool
    ) -> tt.Match[Evidence]:
        expected, best = part_left(profile, chain, events[0] >= profile.tree.size) if is_large else _launches(chain)
        dtype = tt.TORCH_DTYPES.get(profile.inputs(chain.operators[0]).dtype(0), "")
        return tt.Match(
            anchor=_caller(profile, chain),
            events=events,
            evidence=Evidence(
                shape=tt.Sizes(chain.shape),
                dtype=dtype,
                chain=tuple(chain.names),
                gradients=gradients,
                time=tt.Nanoseconds(profile.covered(rows_of(events)).total_ns),
                ratio=round(2 * chain.moved_bytes / (chain.least_bytes + chain.most_bytes)),
                expected=tt.Share(expected),
                best=tt.Share(best),
                on_device=events[0] >= profile.tree.size,
            ),
            confidence="medium" if 2 * chain.period <= len(chain.names) else "high",
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = code.functions(spot.function)
        if len(found) != 1 or found[0].decorators or not code.is_pure(found[0]):
            raise Unfixable("The operators do not have their own function, which could be compiled.")
        added = code.before(found[0], f"@{code.module_called('torch')}.compile")
        return Change((added,), SAME_UP_TO_ROUNDING, "The function is called with few different shapes.")


def _is_per_tensor(chain: Chain, gradients: list[int]) -> bool:
    """True if each few operators are about a separate tensor, as far as a trace can show it."""
    in_place = sum(aten.is_a("in_place", name) for name in chain.names)
    if chain.period == 1 or (not gradients and 2 * in_place > len(chain.names)):
        return True
    return not gradients and chain.period <= SHORT_PERIOD and 2 * chain.period <= len(chain.names)


def _caller(profile: tt.Profile, chain: Chain) -> int:
    """The Python function that runs the whole chain, or its first operator if none was recorded."""
    first, last = chain.operators[0], chain.operators[-1]
    around = (above for above in profile.ancestors(first) if last in profile.subtree(above))
    return next((above for above in around if profile.category(above) is tt.Category.PYTHON), first)


def _launches(chain: Chain) -> tuple[float, float]:
    count = len(chain.operators)
    return min(COMPILED_CALL / count, 1.0), 1 / count
