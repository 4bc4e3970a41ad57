"""Tensor shrunk by a mask in a Python loop.

## What it finds
A Python loop in your code that compares one element with the rest, keeps the part of the rest that a mask selects, and
repeats until nothing remains, for example to remove overlapping boxes (non-maximum suppression).

## Why it is slow
Each pass runs a dozen operators or more on ever fewer elements, and waits until the number of elements that the mask
keeps is known.

## Example
```python
while len(order):
    kept.append(order[0])
    order = order[1:][iou(boxes[order[0]], boxes[order[1:]]) <= 0.5]
```

Use instead:
```python
overlapping = (pairwise_iou(boxes[order]) > 0.5).tolist()  # once, for all pairs
removed = set()
for at, index in enumerate(order.tolist()):
    if at not in removed:
        kept.append(index)
        removed.update(other for other, does in enumerate(overlapping[at]) if does)
```

## How the saving is estimated
The loop is scaled to 0.04 to 0.45 of its time, on a CPU including the Python code in between. Measured on a CPU for
boxes, comparing all pairs at once took 0.05 to 0.11 times as long for 8 to 100 boxes, and 0.16 to 0.42 times for 300.

## When it stays quiet
Fewer than 6 passes, or less than 1 % of the step. Loops with matrix products, modules or random numbers, such as
rejection sampling. Operators that mostly work on elements. Recordings without stacks or shapes. Loops in libraries.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import NOT_IN_LOOPS
from tb_tidy_plugin.profile.host.overhead import host_work
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.sets import united

_MASKS = aten.names("read", "nonzero") | aten.names("known", "masked_select")
"""Operators that find the elements selected by a mask; `x[mask]` runs the first."""

_LARGEST_BODY = 128  # operators from one mask to the next


class Evidence(msgspec.Struct, frozen=True):
    """A loop that shrinks a tensor.

    Attributes:
        passes: their number. operators: theirs. before, after: elements at the first and the last mask.
        work: the part of the operators' time that is work on elements.
        time: of the loop.
    """

    passes: int
    operators: int
    before: int
    after: int
    work: tt.Share
    time: tt.Nanoseconds


class TensorShrunkInLoop(tt.Rule[Evidence]):
    """Tensor shrunk by a mask in a Python loop."""

    code = "TT653"
    needs = frozenset({"stacks", "shapes"})
    action = "Compare all pairs at once, and decide in Python"
    message = "A Python loop shrinks a tensor by a mask {passes} times: {operators} operators, {time}"
    why = (
        "Each mask selects from fewer elements than the one before: {before} at first, {after} at last. About {work} "
        "of the operators' time is work on elements. Reported for {min_passes} passes and {min_share} of the step or "
        "more, up to {most_work} of such work"
    )
    fix = (
        "Compute all pairs in one operator, read the result once with `.tolist()`, and decide in Python; for boxes, "
        "call `torchvision.ops.nms` or `batched_nms`"
    )
    caveat = "Comparing all pairs of n elements needs memory for n × n values."
    left = (0.08, 0.04, 0.45)  # of the loop's time; see the page

    min_passes = tt.Threshold(6, "in a row; so many falling sizes are unlikely to be chance")
    min_share = tt.Threshold(0.01, "of the step; less is not worth rewriting a loop")
    most_work = tt.Threshold(0.5, "of the time in operators; above this, comparing all pairs at once is not faster")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        sizes = _masks(profile)
        if len(sizes) < self.min_passes:
            return
        work, never = host_work(profile), _never(profile)
        for body in profile.calls.bodies_with(np.array([*sizes], np.int64)):
            frame = tt.parse_frame(profile.calls.caller_name(body[0]))
            if frame is None or not frame.own_code:
                continue
            for run in _runs(profile, [at for at, row in enumerate(body) if row in sizes], body, sizes, never):
                passes = len({sizes[body[at]] for at in run})
                if passes >= self.min_passes:
                    calls = body[max(run[0] - (run[-1] - run[0]) // (passes - 1) + 1, 0) : run[-1] + 1]
                    operators = profile.calls.operators_in(calls)
                    evidence = Evidence(
                        passes=passes,
                        operators=len(operators),
                        before=sizes[body[run[0]]],
                        after=sizes[body[run[-1]]],
                        work=tt.Share(work.share(operators)),
                        time=tt.Nanoseconds(profile.end_ns(calls[-1]) - profile.start_ns(calls[0])),
                    )
                    if evidence.work <= self.most_work:
                        span = (profile.start_ns(calls[0]), profile.end_ns(calls[-1]))
                        lost = None if "device" in profile.recorded else (span,)
                        yield tt.Match(body[run[0]], tuple(calls), evidence, lost=lost, confidence="medium")


def _masks(profile: tt.Profile) -> dict[int, int]:
    """The operators that no other operator runs and that select by a mask, with the number of places to select from."""
    inner = profile.named(*_MASKS)
    found: dict[int, int] = {}
    for row, inputs in zip(inner.tolist(), profile.inputs_of(inner), strict=True):
        around = row
        while not profile.calls.outermost[around] and (parent := profile.parent(around)) is not None:
            around = parent
        if shape := inputs.shape(0):
            found[around] = shape[0]
    return found


def _runs(
    profile: tt.Profile, at: Sequence[int], body: Sequence[int], sizes: dict[int, int], never: tt.Rows
) -> Iterator[list[int]]:
    """Positions in a body of masks that select from ever fewer elements, or from as many as the mask before."""
    before = profile.calls.operators_before
    run = list(at[:1])
    for place in at[1:]:
        row, after = body[run[-1]], body[place]
        is_near = before[after] - before[row] <= _LARGEST_BODY
        is_through = np.searchsorted(never, row) == np.searchsorted(never, after)
        if not (is_near and is_through and sizes[after] <= sizes[row]):
            yield run
            run = []
        run.append(place)
    yield run


def _never(profile: tt.Profile) -> tt.Rows:
    """Events that no such loop contains: a module, a product, random numbers, a step, a backward pass."""
    found = profile.matching(
        f"^{MODULE}|{NOT_IN_LOOPS}", tt.Category.OPERATOR, tt.Category.ANNOTATION, tt.Category.PYTHON
    )
    return united(found, profile.named(*aten.all_of("product"), *aten.all_of("random")))
