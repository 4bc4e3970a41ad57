"""Tensor handled piece by piece in a Python loop.

## What it finds
A Python loop that takes one piece of a tensor after the other (`x[i]`, `for row in x`) and runs a few operators on it.
Also a loop or comprehension in your code that runs the same operators on equal shapes for each item, such as a loss for
each picture, a spectrogram for each recording, or a policy for each environment.

## Why it is slow
However small its tensor, each operator costs a few microseconds of Python and dispatch, and on a GPU a launch. One
operator on the whole tensor pays that once.

## Example
```python
for i in range(len(x)):
    y[i] = x[i] * weights[i]
```

Use instead:
```python
y[:] = x * weights[:, None]
```

## How the saving is estimated
The loop and the gradients of its operators are scaled to the time of one iteration. Without a device this includes the
Python code in between, except for the lower bound. In measurements, operators on the whole tensor took 0.4 to 2 times
that (10 to 1000 iterations, 16 to 1024 elements). The time in which operators work on elements remains, beyond a few
times that of an indexing operator.

## When it stays quiet
Fewer than 10 iterations, or 6 that are equal; less than 1 % of the step. Bodies of more than 32 operators (256 if all
iterations are equal), or with a backward or optimizer step, such as loops over batches. Recurrent cells, whose
iterations depend on one another. Matrix products with slices of several rows, as in the batches of an evaluation, or
whose results are only stored, as in a rollout. A falling index, as in sums over later elements, whose iterations also
depend on one another. Matrix products without a moving index, as in a loop over layers or a decoder that reads its own
words. Operators that mostly work on elements: on a CPU, a whole tensor that does not fit the cache can be slower than
its pieces. Loops in libraries.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import prod
from typing import TypeAlias

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import Loop, movement_of, rows_of
from tb_tidy_plugin.profile.host.overhead import HostWork, host_work
from tb_tidy_plugin.rules.python_loops.python_loop_tensor_indexing.pieces import (
    PICKS,
    falls,
    is_over_items,
    loops_over_items,
    loops_over_pieces,
    time_of_loop,
)
from tb_tidy_plugin.torchfacts import aten

MIN_ALIKE = 0.7  # of the groups: conditions and inner loops make them differ; in straight code hardly two are alike
_STORES = aten.names("in_place", "copy_ fill_")  # right after a pick: `x[i] = …`
_SHOWN, NO_CALLER = 8, -1


class Evidence(msgspec.Struct, frozen=True):
    """A loop over pieces of a tensor.

    Attributes:
        iterations, operators: their numbers. elements: of a piece, 0 if that was not recorded.
        is_of_items: True if all iterations are equal, and no index moves.
        work: the part of the operators' time that is work on elements. part: the part of the loop that is in them.
        names: the operators of one iteration. step: of the index; 0 for unequal ones, None if it was not recorded.
        time: from the first to the last iteration.
        least: least number of iterations that is reported.
    """

    iterations: int
    operators: int
    elements: int
    work: tt.Share
    part: tt.Share
    names: tuple[str, ...]
    step: int | None
    time: tt.Nanoseconds
    least: int
    is_of_items: bool = False

    @property
    def does(self) -> str:
        """A sentence on the loop and its number of pieces."""
        if self.is_of_items:
            return f"runs the same operators for {self.iterations} items"
        return f"picks {self.iterations} pieces of a tensor"

    @property
    def body(self) -> str:
        return ", ".join(self.names)

    @property
    def stride(self) -> str:
        if self.is_of_items:
            return ""
        step = "not recorded" if self.step is None else str(self.step) if self.step else "irregular"
        return f"; the step of the index is {step}"


_Found: TypeAlias = tuple[Loop, tt.Match[Evidence]]


class PythonLoopTensorIndexing(tt.Rule[Evidence]):
    """Tensor handled piece by piece in a Python loop."""

    code = "TT601"
    reads_operators = True
    # A loop that only reads takes a tensor apart only to read it.
    yields_to = ("host-sync-scalar-readback",)
    action = "Replace the loop with operators on the whole tensor"
    message = "A Python loop {does} one by one: {operators} operators, {time}"
    why = (
        "`{body}` repeats{stride}. About {work} of the operators' time is work on "
        "elements. Reported for {least} iterations and {min_loop_share} of the step or more, up to {most_work} of such "
        "work"
    )
    fix = "Replace the loop with operators on the whole tensor"
    caveat = "An iteration that needs the result of the previous one cannot be replaced this way."

    min_iterations = tt.Threshold(10, "the number of PyTorch's own detector; fewer iterations leave little to gain")
    min_equal = tt.Threshold(6, "equal iterations; fewer are as often straight-line code")
    min_operators = tt.Threshold(100, "for so few iterations; below this they are hardly worth a change")
    min_loop_share = tt.Threshold(
        0.01, "a loop of views that costs less is hardly worth one operator on the whole tensor"
    )
    most_work = tt.Threshold(0.5, "of the time in operators; above this, the pieces are large enough")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        by_place: dict[str, list[tt.Match[Evidence]]] = {}
        for loop, match in _whole(profile, [*self._found(profile)]):
            caller = profile.calls.caller_name(loop.calls[0])
            by_place.setdefault(caller if tt.is_own_code(caller) else "", []).append(match)
        for matches in by_place.values():
            runs = profile.per_step_count(rows_of(match.events[0] for match in matches)) / len(matches)
            share = profile.share_of_step(round(runs * sum(match.evidence.time for match in matches)))
            if share is None or share >= self.min_loop_share:
                yield from matches

    def _found(self, profile: tt.Profile) -> Iterator[tuple[Loop, tt.Match[Evidence]]]:
        work = host_work(profile)
        known: set[int] = set()
        for loop in loops_over_pieces(profile, round(self.min_iterations), tt.is_own_code):
            if loop.alike >= MIN_ALIKE and (match := self._match(profile, loop, work)):
                known.update(loop.calls)
                yield loop, match
        for loop in loops_over_items(profile, round(self.min_equal), tt.is_own_code):
            if known.isdisjoint(loop.calls) and (match := self._match(profile, loop, work, is_of_items=True)):
                yield loop, match

    def _match(
        self, profile: tt.Profile, loop: Loop, host: HostWork, *, is_of_items: bool = False
    ) -> tt.Match[Evidence] | None:
        least = round(self.min_equal if is_of_items else self.min_iterations)
        operators = profile.calls.operators_in(loop.calls)
        names = [profile.name(row) for row in operators]
        picks = [row for row, name in zip(operators, names, strict=True) if name in PICKS]
        inputs = profile.inputs_of(rows_of(picks))
        given = [*zip(map(profile.name, picks), inputs, strict=True)]
        movement = movement_of(given, least)
        iterations, work = movement.places if movement else loop.kinds[0][1], host.share(operators)
        is_model = any(aten.is_a("product", name) for name in names)
        moves = movement is not None and movement.places >= least
        is_of_batches = is_model and bool(picks) and (movement is None or movement.width > 1)
        if is_of_items:
            iterations = len(loop.groups)
            is_small = iterations < self.min_iterations and len(operators) < self.min_operators
            is_of_batches = is_of_batches or (is_model and not moves)
            if is_small or not (moves or is_over_items(profile, loop, names)):
                return None
        stored = sum(name in PICKS and after in _STORES for name, after in pairwise(names))
        is_rollout = is_model and 2 * stored > len(picks)
        stride = (movement.stride if movement else 0) if picks else 1
        is_of_later = stride < 0 and falls(given, least)
        if iterations < least or work > self.most_work or is_of_batches or is_rollout or is_of_later:
            return None
        first, taken, caller = loop.calls[0], time_of_loop(profile, loop), int(profile.calls.caller[loop.calls[0]])
        return tt.Match(
            anchor=first if profile.category(first) is tt.Category.OPERATOR or caller == NO_CALLER else caller,
            events=taken.events,
            lost=taken.spans,
            evidence=Evidence(
                iterations=iterations,
                operators=len(operators),
                elements=next((prod(shape[1:]) for each in inputs if (shape := each.shape(0))), 0),
                work=tt.Share(work),
                part=tt.Share(taken.part),
                names=tuple(names[: min(len(names) // iterations, _SHOWN)]),
                step=stride if stride or movement else None,
                time=tt.Nanoseconds(profile.end_ns(loop.calls[-1]) - profile.start_ns(first)),
                least=least,
                is_of_items=is_of_items,
            ),
            confidence="high" if stride > 0 and not is_model else "medium",
        )

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        one, work = 1 / match.evidence.iterations, match.evidence.work
        part = match.evidence.part  # Python in between may do other work
        yield tt.Scale(match.events, max(one, work * part), 0.4 * one, 1 - part * (1 - min(2 * max(one, work), 1.0)))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        iterations, operators, elements = evidence.iterations, evidence.operators, evidence.elements
        each = f"for _ in range({operators // iterations}):"
        before = f"for i in range({iterations}):\n    piece = x[i]\n    {each}\n        piece.add_(1)"
        setup = f"import torch\nx = torch.zeros({iterations}, {elements}, device=device)"
        pair = tt.Benchmark(before, f"{each}\n    x.add_(1)", setup, compare=("x",))
        return pair if elements and tt.fitting(iterations, 4 * elements) == iterations else None


def _whole(profile: tt.Profile, found: Iterable[_Found]) -> list[_Found]:
    """The outer one of nested loops, or the inner ones if they take most of its time."""
    last = profile.tree.last_descendant

    def order(each: _Found) -> tuple[int, int]:
        calls = each[0].calls
        return int(last[calls[-1]]), -calls[0]  # inner loops come before outer ones

    kept: list[_Found] = []
    for loop, match in sorted(found, key=order):
        outside = len(kept)
        while outside and kept[outside - 1][0].calls[0] >= loop.calls[0]:
            outside -= 1
        if 2 * sum(each.evidence.time for _, each in kept[outside:]) <= match.evidence.time:
            kept[outside:] = [(loop, match)]
    return kept
