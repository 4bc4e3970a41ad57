"""Dense gradient of an embedding that a batch uses sparsely.

## What it finds
`embedding_dense_backward` or `_embedding_bag_dense_backward` for a table of 10,000 rows or more, of which a batch can
use at most a tenth.

## Why it is slow
The gradient has the size of the table: the backward pass sets all of it to zero, and the optimizer reads and writes
every row, although all but a few have a gradient of zero.

## Example
```python
table = torch.nn.Embedding(1_000_000, 64)
optimizer = torch.optim.Adam(table.parameters())
```

Use instead:
```python
table = torch.nn.Embedding(1_000_000, 64, sparse=True)
optimizer = torch.optim.SparseAdam(table.parameters())
```

## How the saving is estimated
The time of the gradient is scaled by the share of used rows: with torch 2.13 on a CPU, 0.002 to 0.13 of the time
remained for tables of 10,000 to 100,000 rows of which 0.3 to 8 % were used. At most half of the time remains. The
optimizer's step also becomes faster, which is not counted: it took 0.01 to 0.6 of its time.

## When it stays quiet
Tables with fewer rows. Batches that use a larger share of them. Gradients that take less than 1 % of the step. Tables
whose gradient also has another source, such as one that a language model shares with its output layer: that gradient is
always dense.
"""

import re
from collections.abc import Iterator
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.words.units import Count

_GRADIENTS = aten.by_name("known", {"embedding_dense_backward": 2, "_embedding_bag_dense_backward": 5})
"""Position of the table's number of rows among the inputs, by operator."""

_PRODUCTS = aten.names("known", "linear mm addmm matmul")
_INDICES = 1  # position among the inputs
_MATRIX = 2  # dimensions
TAKE_SPARSE = {"SGD": 2, "Adagrad": 2, "SparseAdam": 5}
"""Optimizers that take sparse gradients, with the number of positional arguments that do not affect that."""

TAKE_DENSE = ("momentum", "weight_decay", "fused", "differentiable")
"""Options with which these optimizers take only dense gradients."""

_OPTIMIZER = re.compile(r"torch\.optim\.[A-Z]\w*")
LEAST_LEFT, _MOST_LEFT = 0.1, 0.5


class Evidence(msgspec.Struct, frozen=True):
    """The gradients of tables of one size.

    Attributes:
        rows, width: of the table. used: most rows that the batch can use. share: `used` by `rows`.
        time: of the gradients, per step.
    """

    rows: Count
    width: int
    used: Count
    share: tt.Share
    time: tt.Nanoseconds


class EmbeddingGradientDense(tt.Rule[Evidence]):
    """Dense gradient of an embedding that a batch uses sparsely."""

    code = "TT1151"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Make the embedding's gradient sparse"
    message = "The gradient of an embedding has {rows} rows, of which a batch uses at most {used}: {time} per step"
    why = (
        "The backward pass writes a table of {width} columns for {share} of its rows. Reported for {min_rows} rows or "
        "more, of which {max_used} or less are used"
    )
    fix = "Pass `sparse=True` to `Embedding` or `EmbeddingBag`, and update it with `SparseAdam`, `Adagrad` or `SGD`"
    caveat = (
        "`SparseAdam` leaves momentum and averages of unused rows unchanged, and has no weight decay. DDP gathers "
        "sparse gradients only with gloo."
    )

    min_share = tt.Threshold(0.01, "less is not worth a separate optimizer")
    min_rows = tt.Threshold(10_000, "smaller tables fit into a cache")
    max_used = tt.Threshold(0.1, "of the table; with more rows, sorting the indices costs as much as the zeros save")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found: dict[tuple[int, int, int], list[int]] = {}
        for row in profile.named(*_GRADIENTS).tolist():
            given = profile.inputs(row)
            gradient, indices = given.shape(0), given.shape(_INDICES)
            rows = given.integers(_GRADIENTS[profile.name(row)])
            if not gradient or indices is None or len(rows) != 1 or rows[0] < self.min_rows:
                continue
            if prod(indices) <= self.max_used * rows[0]:
                found.setdefault((rows[0], gradient[-1], prod(indices)), []).append(row)
        weights = _weights(profile) if found else set()
        for (rows_of_table, width, used), calls in found.items():
            if (rows_of_table, width) in weights:
                continue
            evidence = Evidence(
                rows=Count(rows_of_table),
                width=width,
                used=Count(used),
                share=tt.Share(used / rows_of_table),
                time=tt.Nanoseconds(profile.per_step_ns(rows_of(calls))),
            )
            for row in calls:
                forward = profile.forward_of(row)
                anchor = row if forward is None else forward
                yield tt.Match(anchor, (row,), evidence, subject=f"{rows_of_table}x{width}")

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, max(match.evidence.share, LEAST_LEFT), 0.0, _MOST_LEFT)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = [made for call in code.calls_on(spot.lines) if (made := _lookup(code, call)) is not None]
        sizes = [code.source(call.args[0].value).replace("_", "") if call.args else "" for call in found]
        exact = [call for call, size in zip(found, sizes, strict=True) if size == str(int(evidence.rows))]
        found = exact or [call for call, size in zip(found, sizes, strict=True) if not size.isdigit()]
        if len(found) != 1:
            raise Unfixable("The lines do not look up rows of a single `Embedding` that this file creates.")
        if code.argument(found[0], "scale_grad_by_freq"):
            raise Unfixable("`scale_grad_by_freq` needs a dense gradient.")
        optimizers = [call for call in code.calls if _OPTIMIZER.fullmatch(code.qualified(call.func))]
        if not optimizers:
            raise Unfixable("This file does not create the optimizer, which must support sparse gradients.")
        for call in optimizers:
            if not _takes_sparse(code, call):
                raise Unfixable(f"`{code.source(call)}` does not take sparse gradients.")
        if any(code.callee(call).rpartition(".")[2].startswith("clip_grad_") for call in code.calls):
            raise Unfixable("Sparse gradients cannot be clipped.")
        splices = code.with_arguments(found[0], {"sparse": "True"}, instead_of="False")
        check = "Nothing else reads the table's gradient; with DDP, only gloo supports sparse gradients."
        return Change(tuple(splices), SAME_UP_TO_ROUNDING, check)


def _weights(profile: tt.Profile) -> set[tuple[int, ...]]:
    """Shapes of factors of products, as rows and columns of a table that may be the same tensor."""
    found: set[tuple[int, ...]] = set()
    for given in set(profile.inputs_of(profile.named(*_PRODUCTS))):
        shapes = [given.shape(position) for position in range(3)]
        found |= {each for shape in shapes if shape and len(shape) == _MATRIX for each in (shape, shape[::-1])}
    return found


def _lookup(code: tt.Code, call: tt.Call) -> "tt.Call | None":
    """The call that decides whether a table's gradient is sparse, if `call` looks up its rows."""
    if code.qualified(call.func) == "torch.nn.functional.embedding":
        return call
    made = code.assigned(code.source(call.func))
    is_module = len(made) == 1 and code.is_call(made[0]) and code.callee(made[0]) == "torch.nn.Embedding"
    return made[0] if is_module and code.is_call(made[0]) else None


def _takes_sparse(code: tt.Code, call: tt.Call) -> bool:
    """True if an optimizer, as created, takes sparse gradients."""
    positions = sum(arg.keyword is None for arg in call.args)
    most = TAKE_SPARSE.get(code.qualified(call.func).rpartition(".")[2], 0)
    has_more = any(arg.star for arg in call.args) or any(code.argument(call, each) for each in TAKE_DENSE)
    return positions <= most and not has_more
