"""Tensors with the same content in each step, because only factories and numbers create them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from math import prod
from operator import mul

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import Inputs, Shape
from tb_tidy_plugin.profile.events.products import JOINS, STACK, join_of
from tb_tidy_plugin.profile.host.callers import function_of, of_the_model
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules.memory.constant_rebuilt_every_step.writes import (
    HANDS_OUT,
    RowSpan,
    Writes,
    shapes_of_views,
    sizes_in,
    tensors_in,
)
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Rows

_FACTORIES = aten.names(
    "factory",
    """
    arange bartlett_window blackman_window eye full full_like hamming_window hann_window kaiser_window linspace logspace
    new_full new_ones new_zeros ones ones_like zeros zeros_like
    """,
)
"""Operators whose result follows from their arguments alone; `rand`, `randperm` and the like are excluded."""

_ACTIVATIONS = aten.names(
    "pointwise",
    """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish prelu relu relu6 selu sigmoid
    silu softplus softshrink tanh threshold
    """,
)
"""Operators that networks run on their data. All other pointwise operators turn constants into constants."""

_COPIES = aten.names("known", "_to_copy clone contiguous to")
REARRANGES = _COPIES | aten.names(
    "known", "cat concat copy_ cumsum fill_ flip outer repeat stack tril tril_ triu triu_ zero_"
)
"""Operators that also do so and are not pointwise."""

JOINS_EQUAL_SHAPES = aten.names(
    "known",
    """
    __and__ __iand__ __ior__ __ixor__ __or__ __xor__ bitwise_and bitwise_or bitwise_xor cat concat copy_ logical_and
    logical_or logical_xor masked_fill masked_fill_ stack where
    """,
)
"""Operators of both kinds that do so with several tensors of one shape. Sums and products are often of data as well."""

SETS_ALL = aten.names("in_place", "fill_ zero_")
_ALLOCATES = aten.by_name("known", {"empty": 0, "resize_": 1})
"""Operators that factories run: they set all elements, and get a size at this position."""

_NUMBERS = frozenset({"double", "long int", "bool"})
"""Types of Python's numbers, which are recorded as tensors without dimensions."""

_REACH = 64  # operators after a factory that may turn it into a constant
END_NS = 1 << 62  # after the last event


class Constant(msgspec.Struct, frozen=True):
    """A constant that is created repeatedly.

    Attributes:
        runs: for each needless creation, the factory and the operators right after it that only work on constants.
        elements: of the largest tensor among them.
        steps: number of steps with any.
    """

    runs: tuple[tuple[int, ...], ...]
    elements: int
    steps: int


class _Repeated(msgspec.Struct, frozen=True):
    """Factories of one function with the same arguments.

    Attributes:
        rows: those that need not run.
        calls: these and the ones whose result would replace theirs, in order.
        steps: number of steps in which they run.
    """

    rows: tuple[int, ...]
    calls: tuple[int, ...]
    steps: int


class _Run(msgspec.Struct, frozen=True):
    """A factory and the operators after it that only use constants, the shapes of all these, and the largest size."""

    rows: tuple[int, ...]
    shapes: frozenset[Shape]
    elements: int


def constants_made_again(profile: Profile, least_repeats: int, least_elements: float) -> Iterator[Constant]:
    """Constants created in each step in which their function runs, or `least_repeats` times within one.

    Without those that something may be written to afterwards.
    """
    factories = of_the_model(profile, profile.calls.among(profile.named(*_FACTORIES)))
    writes, taken = Writes(profile), set[int]()
    for repeated in _repeated(profile, factories, least_repeats):
        free = [row for row in repeated.rows if row not in taken]
        run = _unwritten_run(profile, free[-1], repeated.calls, writes, least_elements) if free else None
        if run is not None:
            runs = tuple(_alike(profile, row, run.rows) for row in free)
            taken.update(row for rows in runs for row in rows)
            yield Constant(runs, run.elements, repeated.steps)


def _alike(profile: Profile, factory: int, run: Sequence[int]) -> tuple[int, ...]:
    """`factory` and the operators after it, as far as they equal those in `run`."""
    pairs = zip((factory, *profile.operators_after(factory, len(run) - 1)), run, strict=False)
    return tuple(row for row, _ in takewhile(lambda pair: profile.name(pair[0]) == profile.name(pair[1]), pairs))


# Factories that need not run


def _repeated(profile: Profile, factories: Rows, least: int) -> list[_Repeated]:
    """The factories that need not run, by function, name and arguments; without stacks all count as one function."""
    steps_of_place: dict[tuple[str, str], set[int]] = {}
    calls: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    steps = profile.step_of(factories).tolist()
    for row, step, inputs in zip(factories.tolist(), steps, profile.inputs_of(factories), strict=True):
        if step != ABSENT and inputs.concrete and _is_of_numbers(profile.name(row), inputs):
            place = (function_of(profile, row), profile.name(row))
            steps_of_place.setdefault(place, set()).add(step)
            calls.setdefault((*place, f"{inputs.dims}{inputs.dtypes}{inputs.concrete}"), []).append((step, row))
    found = (_those_to_go(each, steps_of_place[key[:2]], least) for key, each in calls.items())
    return sorted((one for one in found if one is not None), key=lambda one: one.rows)


def _is_of_numbers(factory: str, inputs: Inputs) -> bool:
    """True if a factory gets no tensor except the one whose shape it takes: `linspace` may start at a tensor."""
    takes_shape = factory.endswith("_like") or aten.short_name(factory).startswith("new_")
    return takes_shape or next(tensors_in(inputs), None) is None


def _those_to_go(calls: list[tuple[int, int]], steps_of_place: set[int], least: int) -> _Repeated | None:
    by_step: dict[int, list[int]] = {}
    for step, row in calls:
        by_step.setdefault(step, []).append(row)
    every = tuple(row for _, row in calls)
    if len(by_step) > 1 and by_step.keys() == steps_of_place:
        return _Repeated(every, every, len(by_step))
    often = [rows for rows in by_step.values() if len(rows) >= least]  # the first of a step stays
    return _Repeated(tuple(row for rows in often for row in rows[1:]), every, len(often)) if often else None


# Writes to their results


def _unwritten_run(
    profile: Profile, factory: int, calls: Sequence[int], writes: Writes, least_elements: float
) -> _Run | None:
    """The run that begins with `factory`, one of `calls`, which all create the same.

    None if its size was not recorded or is too small, or if something may be written to it. Other factories that follow
    are part of it, as those of positions and frequencies are, unless something is written to their results.
    """
    after = profile.operators_after(factory, _REACH)
    whole = _run(profile, factory, after)
    if whole is None or whole.elements < least_elements:
        return None
    if not writes.may_reach(whole.shapes, _lives(profile, calls, whole)):
        return whole
    following = next(
        (at for at, row in enumerate(after) if row in whole.rows and profile.name(row) in _FACTORIES), None
    )
    alone = None if following is None else _run(profile, factory, after[:following])
    if alone is None or alone.elements < least_elements:
        return None
    return None if writes.may_reach(alone.shapes, _lives(profile, calls, alone)) else alone


def _lives(profile: Profile, calls: Sequence[int], run: _Run) -> list[RowSpan]:
    """Spans in which the result of each of `calls`, with the shapes of `run`, may be written to.

    From then on to the end of the step; and to where a later step creates it again, for which it may have been kept.
    """
    steps = profile.step_of(np.array(calls))
    following = np.searchsorted(steps, steps, side="right").tolist()  # the first call in a later step
    ends = [*(profile.start_ns(row) for row in calls), END_NS]
    made = (profile.end_ns(_alike(profile, row, run.rows)[-1]) for row in calls)
    of_step = (profile.steps.items[step].end_ns for step in steps.tolist())
    return [(begin, max(end, ends[at])) for begin, end, at in zip(made, of_step, following, strict=True)]


# Operators after a factory


class _Known:
    """The known constants of a run in progress; a trace distinguishes tensors only by their shapes."""

    def __init__(self) -> None:
        self._counts = Counter[Shape]()
        self._factories: dict[Shape, frozenset[int]] = {}
        self._computed: dict[Shape, frozenset[int]] = {}  # the same, without views and copies of others

    def hold(self, shapes: Sequence[Shape]) -> bool:
        """True if all of `shapes` may be those of constants."""
        return bool(shapes) and all(self._counts[shape] >= count for shape, count in Counter(shapes).items())

    def factories_of(self, shapes: Iterable[Shape]) -> frozenset[int]:
        """The factories that constants of `shapes` may come from."""
        return frozenset[int]().union(*(self._factories.get(shape, ()) for shape in shapes))

    def are_others(self, sources: Iterable[Shape], target: Shape) -> bool:
        """True if constants of other factories are written to `target`.

        A value that may come from the same factory is mostly data: `x[1:]`, written to a part of zeros that have the
        shape of x.
        """
        own = self.factories_of([target])
        return all(len(own | self._computed.get(source, frozenset())) > 1 for source in sources)

    def add(self, shape: Shape, factories: frozenset[int], *, is_computed: bool) -> None:
        self._counts[shape] += 1
        for kind in (self._factories, self._computed)[: 1 + is_computed]:
            kind[shape] = kind.get(shape, frozenset[int]()) | factories

    def drop(self, shape: Shape) -> None:
        """Removes a constant of this shape that is not used again: the result computed from it replaces it."""
        self._counts[shape] -= 1


def _run(profile: Profile, factory: int, after: Sequence[int]) -> _Run | None:
    known = _Known()
    made = _made_from(profile, factory, known)
    if made is None:
        return None
    rows, shapes = [factory], {*made}
    for row in after:
        made = _made_from(profile, row, known)
        if made is None:
            break
        rows.append(row)
        shapes.update(made)
    return _Run(tuple(rows), frozenset(shapes), max(map(prod, shapes)))


def _made_from(profile: Profile, row: int, known: _Known) -> frozenset[Shape] | None:
    """Shapes of the results of `row` from known constants, to which they are added.

    None if it gets other tensors, or may get some.
    """
    name, inputs = profile.name(row), profile.inputs(row)
    operator, given = aten.operator(name), [shape for _, shape in tensors_in(inputs)]
    is_computed = name not in _COPIES
    if name in HANDS_OUT:
        return None
    if name in _FACTORIES:
        shape = made_shape(profile, row) if _is_of_numbers(name, inputs) else None
        made, given, factories = _only(shape), [], frozenset([row])
    elif {"known", "shares"} <= operator.kinds and name not in _COPIES:
        is_computed, given = False, [shape for at, shape in tensors_in(inputs) if operator.may_share(at)]
        is_known = operator.kinds.isdisjoint({"in_place", "random", "product"}) and known.hold(given)
        made, factories = shapes_of_views(profile, row) if is_known else None, known.factories_of(given)
    else:
        made, factories = _only(_computed(name, inputs, known)), known.factories_of(given)
    for shape in made or ():
        known.add(shape, factories, is_computed=is_computed)
    return made


def _only(shape: Shape | None) -> frozenset[Shape] | None:
    return None if shape is None else frozenset([shape])


def made_shape(profile: Profile, factory: int) -> Shape | None:
    """The shape of a factory's result, by the operators that it runs."""
    found: Shape | None = None
    for row in profile.subtree(factory)[1:]:
        inputs, name = profile.inputs(row), profile.name(row)
        if name in SETS_ALL:
            return inputs.shape(0)
        if name in _ALLOCATES:
            found = sizes_in(inputs.scalar(_ALLOCATES[name])) or found
    return found


def _computed(name: str, inputs: Inputs, known: _Known) -> Shape | None:
    """The shape of an operator's result from known constants."""
    operator = aten.operator(name)
    if aten.without_writing(name) in _ACTIVATIONS or ("pointwise" not in operator.kinds and name not in REARRANGES):
        return None
    targets = [(at, shape) for at, shape in tensors_in(inputs) if operator.may_write(at)]
    if targets:
        return _overwritten(name, inputs, targets, known)
    given = [shape for at, shape in tensors_in(inputs) if shape or inputs.dtype(at) not in _NUMBERS]
    if "TensorList" in inputs.dtypes:
        given = list(set(given))  # a list may contain one constant repeatedly
    is_alike = len(given) > 1 and len(set(given)) == 1
    if not known.hold(given) or (is_alike and name not in JOINS_EQUAL_SHAPES):
        return None
    if len(given) == 1:
        known.drop(given[0])
    return _result_of(name, inputs, given)


def _overwritten(name: str, inputs: Inputs, targets: Sequence[tuple[int, Shape]], known: _Known) -> Shape | None:
    """The shape of the one known constant that an operator writes to, if it only writes other constants."""
    (at, target), *others = targets
    numbers = {"double"} - {inputs.dtype(at)}  # data without dimensions hardly ever has this type
    sources = [
        shape
        for position, shape in tensors_in(inputs)
        if position != at and (shape or inputs.dtype(position) not in numbers)
    ]
    is_join = not sources or name in JOINS_EQUAL_SHAPES
    if others or not is_join or not known.hold([target, *sources]) or not known.are_others(sources, target):
        return None
    known.drop(target)
    return target


def _result_of(name: str, inputs: Inputs, given: Sequence[Shape]) -> Shape | None:
    """The shape of an operator's result from tensors of the shapes `given`."""
    if name in JOINS:
        join = join_of(0, inputs, is_stack=name == STACK)
        return None if join is None else join.result
    if name == "aten::outer":
        return (*given[0], *given[-1])
    if name == "aten::repeat":
        times = sizes_in(inputs.scalar(1)) or ()
        return tuple(map(mul, times, _padded(given[0], len(times)))) if len(times) >= len(given[0]) else None
    rank = max(map(len, given))
    return tuple(map(max, zip(*(_padded(shape, rank) for shape in given), strict=True)))


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape
