"""Numbers computed one by one as tensors of one element.

## What it finds
A Python loop in your code that computes with single numbers as tensors, taken from larger tensors or kept in lists. An
example is the sum over later rewards of a rollout (returns, advantages), in which each number depends on the one
before.

## Why it is slow
Each operator costs a microsecond or more of dispatch for one addition; Python adds two numbers in about 30 ns.

## Example
```python
running = 0.0
for t in reversed(range(len(rewards))):
    running = rewards[t] + gamma * running
    returns[t] = running
```

Use instead:
```python
running, found = 0.0, []
for reward in reversed(rewards.tolist()):
    running = reward + gamma * running
    found.append(running)
returns = torch.tensor(found[::-1])
```

## How the saving is estimated
The loop is scaled to 0.01 to 0.25 of its time, on a CPU including the Python code in between. Measured on a CPU, lists
took 0.02 to 0.04 times as long for 16 to 500 numbers of 1 to 8 environments. A loop over whole rows, with one number of
each environment at a time, took 0.1 times as long for 8 environments, and hardly less for one.

## When it stays quiet
Fewer than 64 such operators in a row, or less than 1 % of the step. Numbers that need gradients. Loops with matrix
products, modules or optimizer steps between the numbers, or with many operators on larger tensors, such as a sum over
norms of parameters. Recordings without stacks or shapes. Loops in libraries.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import NOT_IN_LOOPS
from tb_tidy_plugin.profile.events.inputs import NOT_A_TENSOR
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import Numbers
from tb_tidy_plugin.trace.sets import among, distinct, united

_PICKS = aten.names("known", "index select slice unbind")
ARITHMETIC = aten.names("pointwise", "add add_ div div_ mul mul_ neg pow rsub sub sub_")
_NEAR = 12  # other operators between two numbers of one loop
MOST_OTHERS = 0.25  # operators on larger tensors, for each that computes a number
_SHOWN = 8


class Evidence(msgspec.Struct, frozen=True):
    """A loop that computes with numbers.

    Attributes:
        operators: number of those that compute a number. names: the first operators of the loop.
        time: from the first to the last.
    """

    operators: int
    names: tuple[str, ...]
    time: tt.Nanoseconds

    @property
    def body(self) -> str:
        """The first operators of the loop."""
        return ", ".join(self.names)


class ScalarTensorsInLoop(tt.Rule[Evidence]):
    """Numbers computed one by one as tensors of one element."""

    code = "TT652"
    needs = frozenset({"stacks", "shapes"})
    reads_operators = True
    # If no number needs the one before, operators on the whole tensor are better still.
    yields_to = ("python-loop-tensor-indexing",)
    action = "Compute with Python numbers, and make one tensor of the results"
    message = "A Python loop computes with single numbers as tensors: {operators} operators, {time}"
    why = (
        "The loop begins with `{body}`. Each of the {operators} operators computes one number. Reported for "
        "{min_operators} operators and {min_share} of the step or more"
    )
    fix = (
        "Call `.tolist()` before the loop (on `torch.stack` of a list), compute with Python numbers, and make one "
        "tensor of the results afterwards. With many rows, let each operator take a whole row"
    )
    caveat = "Python computes in float64: results differ in their last bits. On a GPU `.tolist()` waits once."
    left = (0.04, 0.01, 0.25)  # of the loop's time; see the page

    min_operators = tt.Threshold(64, "in a row; fewer take about 100 µs")
    min_share = tt.Threshold(0.01, "of the step; less is not worth rewriting a loop")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        numbers = _numbers(profile)
        if len(numbers) < self.min_operators:
            return
        never, known = _never(profile), set(numbers.tolist())
        for body in profile.calls.bodies_with(numbers):
            for first, last, count in self._runs(profile, body, known, never):
                calls = body[first : last + 1]
                operators = profile.calls.operators_in(calls)
                if _on_more(profile, operators) <= MOST_OTHERS * count and not gradients_of(profile, operators):
                    yield self._match(profile, calls, operators, count)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        count = evidence.operators // 2
        setup = f"import torch\nx = torch.zeros({count}, device=device)"
        before = "running = 0.0\nfor i in range(len(x)):\n    running = x[i] + 0.5 * running"
        after = "running = 0.0\nfor value in x.tolist():\n    running = value + 0.5 * running"
        return tt.Benchmark(before, after, setup) if tt.fitting(count, 4) == count else None

    def _match(
        self, profile: tt.Profile, calls: Sequence[int], operators: Sequence[int], count: int
    ) -> tt.Match[Evidence]:
        start_ns, end_ns = profile.start_ns(calls[0]), profile.end_ns(calls[-1])
        evidence = Evidence(
            operators=count,
            names=tuple(map(profile.name, operators[:_SHOWN])),
            time=tt.Nanoseconds(end_ns - start_ns),
        )
        lost = None if "device" in profile.recorded else ((start_ns, end_ns),)
        return tt.Match(operators[0], tuple(calls), evidence, lost=lost, confidence="medium")

    def _runs(
        self, profile: tt.Profile, body: Sequence[int], numbers: set[int], never: tt.Rows
    ) -> Iterator[tuple[int, int, int]]:
        """Positions in a body of the first and the last call of each loop, and its number of operators on numbers."""
        frame = tt.parse_frame(profile.calls.caller_name(body[0]))
        at = [place for place, row in enumerate(body) if row in numbers]
        if frame is None or not frame.own_code or len(at) < self.min_operators:
            return
        before = profile.calls.operators_before
        run = at[:1]
        for place in [*at[1:], -1]:
            if place >= 0 and _is_near(before, never, body[run[-1]], body[place]):
                run.append(place)
                continue
            if len(run) >= self.min_operators:
                first = run[0]
                while first and aten.without_overload(profile.name(body[first - 1])) in _PICKS:
                    first -= 1
                yield first, run[-1], len(run)
            run = [place]


def _is_near(before: Numbers, never: tt.Rows, row: int, after: int) -> bool:
    is_through = np.searchsorted(never, row) == np.searchsorted(never, after)
    return bool(is_through and before[after] - before[row] <= _NEAR)


def _numbers(profile: tt.Profile) -> tt.Rows:
    """The arithmetic on tensors of one element that no other operator runs, in row order."""
    rows = profile.calls.among(profile.named(*ARITHMETIC))
    inputs = profile.table.inputs[rows]
    known = profile.known_inputs
    of_one = [number for number in distinct(inputs).tolist() if _is_of_one(known[number])]
    return rows[among(inputs, of_one)]


def _on_more(profile: tt.Profile, operators: Sequence[int]) -> int:
    """Number of the operators that get more than single numbers, and do not only make a view."""
    numbers = profile.table.inputs[operators].tolist()
    of_one = {number: _is_of_one(profile.known_inputs[number]) for number in set(numbers)}
    return sum(
        not of_one[number] and not aten.is_a("view", profile.name(row))
        for row, number in zip(operators, numbers, strict=True)
    )


def _is_of_one(given: tt.Inputs) -> bool:
    """True if all tensors have one element, and there is one."""
    shapes = [given.shape(at) for at, dtype in enumerate(given.dtypes) if dtype and dtype not in NOT_A_TENSOR]
    return bool(shapes) and all(shape is not None and set(shape) <= {1} for shape in shapes)


def _never(profile: tt.Profile) -> tt.Rows:
    """Events that no such loop contains: a module, a product, a step, a backward pass."""
    found = profile.matching(
        f"^{MODULE}|{NOT_IN_LOOPS}", tt.Category.OPERATOR, tt.Category.ANNOTATION, tt.Category.PYTHON
    )
    return united(found, profile.named(*aten.all_of("product")))
