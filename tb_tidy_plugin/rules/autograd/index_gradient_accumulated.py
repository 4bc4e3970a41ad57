"""Gradient of an index accumulated element by element.

## What it finds
`table[index]` in the forward pass, with one index for the first dimension, whose backward pass runs `index_put_` with
`accumulate=True`.

## Why it is slow
The index may contain a row twice, so `index_put_` sorts all indices on a GPU, and adds one element after the other on a
CPU. `index_select` and `embedding` select whole rows, so their backward pass adds whole rows.

## Example
```python
rows = table[index]
```

Use instead:
```python
rows = table.index_select(0, index)
```

## How the saving is estimated
`index_put_` is scaled. On two cores, torch 2.13 takes 0.36 to 0.99 of the time for forward and backward pass of
`index_select` (500 to 100,000 rows of 16 to 128 elements). On GPUs, https://github.com/pytorch/pytorch/issues/15245
reports 0.04 to 0.63.

## When it stays quiet
Masks and indices of several dimensions, which `index_select` does not accept. Gradients that take less than 1 % of the
step. Jobs with one thread on a CPU, if the capture shows this: there `index_select` takes 0.9 to 1.5 of the time.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.torchfacts import aten

ACCUMULATES = aten.names("in_place", "_index_put_impl_ index_put_")
_NODE = "IndexBackward0"
_MASKS = aten.names("known", "nonzero")
_ON_CPU, _ON_GPU = (0.6, 0.3, 1.0), (0.3, 0.04, 0.65)
_ACCUMULATE = 3  # position of this switch among the inputs
ROWS = 2  # dimensions of a table whose rows are vectors, as `embedding` takes it


class Evidence(msgspec.Struct, frozen=True):
    """The gradients of a table.

    Attributes:
        table, picked: shapes of the table and of the picked rows. on_gpu: True if the gradient is computed on a device.
        time: of accumulating, per step, for all tables of these shapes.
    """

    table: tt.Sizes
    picked: tt.Sizes
    on_gpu: bool
    time: tt.Nanoseconds


class IndexGradientAccumulated(tt.Rule[Evidence]):
    """Gradient of an index accumulated element by element."""

    code = "TT1150"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Pick rows of the table with `index_select` or `embedding`"
    message = "The gradient of selecting rows by an index takes {time} per step: {picked} from {table}"
    why = "The backward pass of `table[index]` runs `index_put_` with `accumulate=True`, which works element by element"
    fix = "Pick rows with `table.index_select(0, index)` or `torch.nn.functional.embedding(index, table)`"
    caveat = "Sums of gradients differ in their last bits."

    min_share = tt.Threshold(0.01, "less is not worth a different call")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found: dict[tuple[tt.Sizes, tt.Sizes], list[tuple[int, int]]] = {}
        for row in profile.named(*ACCUMULATES).tolist():
            above, forward = profile.parent(row), profile.forward_of(row)
            if above is None or forward is None or profile.name(above) != _NODE:
                continue
            shapes = _picked(profile.inputs(row))
            if shapes and not any(profile.name(inner) in _MASKS for inner in profile.subtree(forward)):
                found.setdefault(shapes, []).append((row, forward))
        for (table, picked), calls in found.items():
            rows = rows_of(row for row, _ in calls)
            on_gpu = bool(len(profile.device_activity_of_all(rows)))
            if not on_gpu and profile.settings.threads.intra_op == 1:
                continue
            evidence = Evidence(table, picked, on_gpu, tt.Nanoseconds(profile.per_step_ns(rows)))
            yield from (tt.Match(forward, (row,), evidence, subject=str(table)) for row, forward in calls)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, *(_ON_GPU if match.evidence.on_gpu else _ON_CPU))

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = code.indexed_by_names(spot.lines)
        if len({code.source(picked.value) for picked, _ in found}) != 1:
            raise Unfixable("The lines do not select rows of one tensor by a named index.")
        dimensions = len(evidence.picked) - len(evidence.table) + 1
        splices: list[Splice] = []
        for picked, index in found:
            start, end = code.span(picked)
            table_end, (index_start, index_end) = code.span(picked.value)[1], code.span(index)
            if picked.lpar or "#" in code.text[table_end:end]:
                raise Unfixable("The index has a comment or its own parentheses.")
            if dimensions == 1:
                splices += [Splice(table_end, index_start, ".index_select(0, "), Splice(index_end, end, ")")]
            elif dimensions > 1 and len(evidence.table) == ROWS:
                function = f"{code.module_called('torch')}.nn.functional.embedding"
                splices.append(Splice(start, end, f"{function}({code.source(index)}, {code.source(picked.value)})"))
            else:
                raise Unfixable("The index has several dimensions, and so do the table's rows.")
        indices = " and ".join(dict.fromkeys(f"`{code.source(index)}`" for _, index in found))
        check = f"{indices} must hold integers, 0 or greater: neither function accepts negative indices."
        return Change(tuple(splices), SAME_UP_TO_ROUNDING, check)


def _picked(given: tt.Inputs) -> tuple[tt.Sizes, tt.Sizes] | None:
    """Shapes of the table and of its picked rows; None if more than the first dimension is indexed."""
    table, picked = given.shape(0), given.shape(2)
    if table is None or picked is None or len(table) < ROWS or given.scalar(_ACCUMULATE) != "True":
        return None
    return (tt.Sizes(table), tt.Sizes(picked)) if picked[-len(table) + 1 :] == table[1:] else None
