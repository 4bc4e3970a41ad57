"""Dense gradient of a table of which a batch uses few rows.

## What it finds
`embedding_dense_backward` for a table of 10,000 rows or more, of which the batch can use a tenth at most.

## Why it is slow
The gradient has the size of the table: all of it is set to zero, and the optimizer then reads and writes every row, of
which all but a few have a gradient of zero.

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
The gradient takes as much less as fewer rows are used: with torch 2.13 on a CPU, 0.002 to 0.13 of the time was left for
tables of 10,000 to 100,000 rows of which 0.3 to 8 % were used. At most half of the time is left. The optimizer's step
saves more, which is not counted: it took 0.01 to 0.6 of its time.

## When it stays quiet
Tables of fewer rows. Batches that use more of them. Gradients that take less than 1 % of the step. Tables whose
gradient has another source too, such as a language model that shares it with its output layer: the product's gradient
is dense in any case.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.rulekit import Edit, Match, Nanoseconds, Profile, Rule, Scale, Share, Threshold, aten
from tb_tidy_plugin.units import Count

GRADIENT = "aten::embedding_dense_backward"
PRODUCTS = aten.names("known", "linear mm addmm matmul")
INDICES, TABLE_ROWS = 1, 2  # positions among the inputs
LEAST_LEFT, MOST_LEFT = 0.1, 0.5


@dataclass(frozen=True)
class Evidence:
    """The gradients of tables of one size.

    Attributes:
        rows, width: of the table. used: how many rows the batch can use at most. share: these by all rows.
        time: what the gradients take per step.
        least: from how many rows on that is reported. most: up to which share.
    """

    rows: Count
    width: int
    used: Count
    share: Share
    time: Nanoseconds
    least: Count
    most: Share


class EmbeddingGradientDense(Rule[Evidence]):
    """Dense gradient of a table of which a batch uses few rows."""

    code = "TT1151"
    needs = frozenset({"shapes"})
    action = "Make the embedding's gradient sparse"
    message = "The gradient of an embedding has {rows} rows, of which a batch uses {used} at most: {time} per step"
    why = (
        "`embedding_dense_backward` writes a table of {width} columns for {share} of its rows. Reported for {least} "
        "rows or more, of which {most} or less are used"
    )
    fix = "Pass `sparse=True` to `Embedding`, and update it with `SparseAdam`, `Adagrad` or `SGD`"
    caveat = (
        "`SparseAdam` leaves momentum and averages of unused rows as they are, and decays no weights. DDP gathers "
        "sparse gradients with gloo only."
    )

    min_share = Threshold(0.01, "less is not worth an optimizer of its own")
    min_rows = Threshold(10_000, "smaller tables fit into a cache")
    max_used = Threshold(0.1, "of the table: with more, sorting the indices takes what zeros save")

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        found: dict[tuple[int, int, int], list[int]] = {}
        for row in profile.named(GRADIENT).tolist():
            given = profile.inputs(row)
            gradient, indices, rows = given.shape(0), given.shape(INDICES), given.integers(TABLE_ROWS)
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
                share=Share(used / rows_of_table),
                time=Nanoseconds(profile.per_step_ns(rows_of(calls))),
                least=Count(int(self.min_rows)),
                most=Share(self.max_used),
            )
            for row in calls:
                forward = profile.forward_of(row)
                anchor = row if forward is None else forward
                yield Match(anchor, (row,), evidence, subject=f"{rows_of_table}x{width}")

    def remedy(self, profile: Profile, match: Match[Evidence]) -> Iterator[Edit]:
        yield Scale(match.events, max(match.evidence.share, LEAST_LEFT), 0.0, MOST_LEFT)


def _weights(profile: Profile) -> set[tuple[int, ...]]:
    """Shapes of factors of products, as rows and columns of a table that may be the same tensor."""
    found: set[tuple[int, ...]] = set()
    for given in set(profile.inputs_of(profile.named(*PRODUCTS))):
        shapes = [given.shape(position) for position in range(3)]
        found |= {each for shape in shapes if shape and len(shape) == 2 for each in (shape, shape[::-1])}  # noqa: PLR2004
    return found
