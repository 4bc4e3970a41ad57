"""Tensor copied into another layout before it is read.

## What it finds
`contiguous()`, `reshape()`, `flatten()` or a contiguous `clone()` of a transposed, sliced or expanded tensor, which
copies all of it. The finding is most certain if the next operator reads a tensor in any layout.

## Why it is slow
The copy reads and writes the whole tensor, not in memory order, and computes nothing. Pointwise operators, matrix
products and sums can read transposed tensors directly.

## Example
```python
bands = frames.transpose(1, 2).contiguous()
normal = (bands - mean) / scale
```

Use instead:
```python
bands = frames.transpose(1, 2)
normal = (bands - mean) / scale
```

## How the saving is estimated
If the reader accepts any layout, nine tenths of the copy go: on a CPU, reading tensors of 5 to 34 MB in a different
order took pointwise operators, sums and batched products -0.1 to 0.1 of the copy's time longer, and a pointwise
operator of two tensors in different orders up to half of it. If the reader may need the copy, half of it is expected to
go with another order of dimensions. All or nothing of it may be saved.

## When it stays quiet
Tensors below 256 KiB. Copies inside an operator, conversions to and from channels-last, a plain `clone()`, copies by a
data loader. Copies that are written to. Copies that their reader may need, such as attention heads that are merged
again, or the input of a linear layer, if all copies of one function together take less than 10 % of the step; above
that the finding has low confidence.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.callers import function_of
from tb_tidy_plugin.rules.memory.hidden_contiguous_copy.layouts import LayoutCopy, layout_copies

LEFT_OF_USELESS, LEFT_OF_NEEDED = 0.1, 0.5
"""Parts of a copy's time that are expected to remain after the fix."""

COST = {
    "transposed": "its dimensions lie in another order in memory",
    "sliced": "it is a slice of a larger tensor",
    "expanded": "its values are repeated by `expand`, and the copy writes each repetition",
    "not recorded": "its memory layout was not recorded",
}


class Evidence(msgspec.Struct, frozen=True):
    """A copy, and its reader.

    Attributes:
        operator: the copying one. size, shape, strides, dtype: of the copied tensor; no strides if they were not
    recorded.
        kind: how that is not contiguous, a key of `COST`.
        reader_name: the operator that reads the copy; empty for one much later.
        is_needed: True if the reader may need the copy.
        part: the part of a step that the copies of this function take; None without steps.
    """

    operator: str
    size: tt.Bytes
    shape: tt.Sizes
    strides: tt.Sizes
    dtype: str
    kind: str
    reader_name: str
    is_needed: bool
    part: tt.Share | None

    @property
    def reader(self) -> str:
        return self.reader_name or "a later operator"

    @property
    def layout(self) -> str:
        """A remark on the tensor's memory."""
        return COST[self.kind]

    @property
    def reads(self) -> str:
        """A remark on whether the reader may need the copy."""
        return f"`{self.reader}` " + ("may need this layout." if self.is_needed else "reads a tensor in any layout.")

    @property
    def share(self) -> str:
        """The part of a step, if it is known."""
        return "an unknown part" if self.part is None else str(self.part)


class HiddenContiguousCopy(tt.Rule[Evidence]):
    """Tensor copied into another layout before it is read."""

    code = "TT1202"
    needs = frozenset({"shapes"})
    reads_operators = True
    # A copy between the products of attention; the one that merges heads after them lies outside, and may stay.
    yields_to = ("unfused-attention",)
    action = "Remove the copy of `{operator}`"
    message = "`{operator}` copies {size} only to change their memory layout, then `{reader}` reads them"
    why = (
        "The tensor of {shape} is not contiguous: {layout}. {reads} The copies take {share} of a step. Reported for "
        "{min_bytes} or more; if the reader may need the copy, for {min_needed_share} of a step or more"
    )
    fix = "Remove the copy if its reader accepts any layout; otherwise order the dimensions so that no copy is needed"

    min_bytes = tt.Threshold(
        262_144, "below this, a copy stays in a core's cache, and on a GPU takes hardly longer than its call"
    )
    min_needed_share = tt.Threshold(0.1, "removing a copy that its reader may need requires a new order of dimensions")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        by_function: dict[tuple[str, bool], list[LayoutCopy]] = {}
        for copy in layout_copies(profile, self.min_bytes):
            by_function.setdefault((function_of(profile, copy.row), copy.is_needed), []).append(copy)
        for (_, is_needed), copies in by_function.items():
            rows = [row for copy in copies for row in _events(profile, copy)]
            share = profile.share_of_step(profile.per_step_ns(rows_of(rows)))
            if not is_needed or (share is not None and share >= self.min_needed_share):
                yield from (self._match(profile, copy, share) for copy in copies)

    def _match(self, profile: tt.Profile, copy: LayoutCopy, share: float | None) -> tt.Match[Evidence]:
        return tt.Match(
            anchor=copy.row,
            events=_events(profile, copy),
            evidence=Evidence(
                operator=profile.name(copy.row),
                size=tt.Bytes(copy.size),
                shape=tt.Sizes(copy.shape),
                strides=tt.Sizes(copy.strides),
                dtype=tt.TORCH_DTYPES.get(copy.dtype, ""),
                kind=copy.layout,
                reader_name=copy.reader,
                is_needed=copy.is_needed,
                part=None if share is None else tt.Share(share),
            ),
            subject="needed" if copy.is_needed else "",
            confidence="low" if copy.is_needed else "high" if copy.strides else "medium",
        )

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        left = LEFT_OF_NEEDED if match.evidence.is_needed else LEFT_OF_USELESS
        yield tt.Scale(match.events, left, low=0.0, high=1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        """A pointwise operator after the copy, on a tensor with the recorded layout."""
        shape, strides, dtype = tuple(evidence.shape), tuple(evidence.strides), tt.known_dtype(evidence.dtype)
        if evidence.is_needed or not strides or not dtype or not tt.fitting(1, 4 * evidence.size):
            return None
        elements = (
            f"torch.zeros(1 + sum((n - 1) * s for n, s in zip(shape, strides)), dtype=torch.{dtype}, device=device)"
        )
        setup = f"import torch\nshape, strides = {shape}, {strides}\nx = {elements}.as_strided(shape, strides)"
        return tt.Benchmark("result = x.contiguous() + 1", "result = x + 1", setup)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        calls = [call for call in code.methods_on(spot.lines, "contiguous") if not call.args]
        if evidence.is_needed or len(calls) != 1:
            raise Unfixable("The lines do not contain a single call of `contiguous` whose reader accepts any layout.")
        taken = code.without_call(calls[0])
        return Change((taken,), SAME_RESULTS, "Nothing calls `view` on the tensor or writes to it.")


def _events(profile: tt.Profile, copy: LayoutCopy) -> tuple[int, ...]:
    return (copy.row, *profile.device_activity_of(copy.row).tolist())
