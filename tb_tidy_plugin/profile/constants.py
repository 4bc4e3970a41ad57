"""Tensors that hold the same in each step, because all that they are made from are factories and numbers."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

import numpy as np

from tb_tidy_plugin.profile.inputs import Inputs, Shape
from tb_tidy_plugin.profile.model_work import function_of, of_the_model
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows

FACTORIES = (
    *(f"aten::{name}" for name in ("arange", "ones", "zeros", "full", "eye", "linspace", "logspace")),
    *(f"aten::{name}_like" for name in ("ones", "zeros", "full")),
    *(f"aten::new_{name}" for name in ("ones", "zeros", "full")),
    *(f"aten::{name}_window" for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")),
)
"""Operators whose result follows from their arguments alone; `rand`, `randperm` and their kin are none."""

VIEWS = re.compile(
    r"aten::(?:unsqueeze|squeeze|view|_unsafe_view|reshape|expand|slice|select|narrow|transpose|permute|t|flatten|diagonal"
    r"|as_strided|numpy_T|unflatten|swapaxes|movedim|detach|alias|lift_fresh)"
)
POINTWISE = re.compile(
    r"aten::(?:triu|tril|to|_to_copy|float|bool|eq|ne|lt|le|gt|ge|logical_\w+|bitwise_\w+|__\w+__|add|sub|rsub|mul|div|pow"
    r"|floor_divide|remainder|neg|abs|exp|exp2|log|log2|sin|cos|sqrt|rsqrt|reciprocal|clamp|floor|minimum|maximum|cumsum"
    r"|outer|where|masked_fill|cat|stack|concat|repeat|fill|zero|copy|flip|clone|contiguous|square)_?"
)
"""Operators that make constants of constants; what networks run on their data, such as `relu`, is left out."""

JOINS_EQUAL_SHAPES = re.compile(
    r"aten::(?:(?:cat|stack|concat|where|logical_\w+|bitwise_\w+|__\w+__)|(?:masked_fill|copy)_?)"
)
"""Of these, those that do so with several tensors of one shape. Sums and products of such often are of data too."""

ADDS = re.compile(r"aten::(?:(?:index_(?:add|copy|put|fill|reduce)|(?:masked_|slice_|select_)?scatter)\w*)")
"""Operators that put data into a copy of what they are given, which is a start value like one that they write to."""

WRITERS = rf"^(?:{VIEWS.pattern}|aten::(?!__)\w*[a-z0-9]_|aten::__i\w+__|{ADDS.pattern}|(?!aten::).*)(?:\.\w+)?$"
"""Operators that may write to what they are given: those named so, and all that are not PyTorch's own; and views."""

REACH = 64  # operators after a factory that may make a constant of it
WRITERS_LOOKED_AT = 1024  # after a constant: those of a step of some thousand operators
VIEWS_KEPT = 4  # last views of a constant: `x[0, :4] = y` makes them right before it writes


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that is made again and again.

    Attributes:
        runs: for each time that it need not be made, the factory and the operators right after it that work on nothing
            but constants.
        elements: of the largest tensor among them.
        steps: in how many steps.
    """

    runs: tuple[tuple[int, ...], ...]
    elements: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Factories of one function with the same arguments: those that need not run, and in how many steps."""

    rows: tuple[int, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class _Run:
    """A factory and what follows it on nothing but constants, the shapes these are of, and the largest one's size."""

    rows: tuple[int, ...]
    shapes: frozenset[Shape]
    elements: int


def constants_made_again(profile: Profile, least_repeats: int, least_elements: float) -> Iterator[Constant]:
    """Constants made in each step in which their function runs, or `least_repeats` times within one.

    Left out are those that something may be written to afterwards.
    """
    factories = of_the_model(profile, profile.calls.among(profile.named(*FACTORIES)))
    writers = of_the_model(profile, profile.calls.among(profile.matching(WRITERS, Category.OPERATOR)))
    taken: set[int] = set()
    for repeated in _repeated(profile, factories, least_repeats):
        free = [row for row in repeated.rows if row not in taken]
        run = _unwritten_run(profile, free[-1], writers) if free else None
        if run is not None and run.elements >= least_elements:
            runs = tuple(_alike(profile, row, run.rows) for row in free)
            taken.update(row for rows in runs for row in rows)
            yield Constant(runs, run.elements, repeated.steps)


def _alike(profile: Profile, factory: int, run: Sequence[int]) -> tuple[int, ...]:
    """`factory` and what follows it, as far as that is what follows in `run`."""
    pairs = zip((factory, *profile.operators_after(factory, len(run) - 1)), run, strict=False)
    return tuple(row for row, _ in takewhile(lambda pair: profile.name(pair[0]) == profile.name(pair[1]), pairs))


def _repeated(profile: Profile, factories: Rows, least: int) -> list[_Repeated]:
    """The factories that need not run, by function, name and arguments; without stacks all count as one function."""
    steps_of_place: dict[tuple[str, str], set[int]] = {}
    calls: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    steps = profile.step_of(factories).tolist()
    for row, step, inputs in zip(factories.tolist(), steps, profile.inputs_of(factories), strict=True):
        if step != ABSENT and inputs.concrete:
            place = (function_of(profile, row), profile.name(row))
            steps_of_place.setdefault(place, set()).add(step)
            calls.setdefault((*place, f"{inputs.dims}{inputs.dtypes}{inputs.concrete}"), []).append((step, row))
    found = (_those_to_go(each, steps_of_place[key[:2]], least) for key, each in calls.items())
    return sorted((one for one in found if one is not None), key=lambda one: one.rows)


def _those_to_go(calls: list[tuple[int, int]], steps_of_place: set[int], least: int) -> _Repeated | None:
    by_step: dict[int, list[int]] = {}
    for step, row in calls:
        by_step.setdefault(step, []).append(row)
    if len(by_step) > 1 and by_step.keys() == steps_of_place:
        return _Repeated(tuple(row for _, row in calls), len(by_step))
    often = [rows for rows in by_step.values() if len(rows) >= least]  # the first of a step stays
    return _Repeated(tuple(row for rows in often for row in rows[1:]), len(often)) if often else None


def _unwritten_run(profile: Profile, factory: int, writers: Rows) -> _Run | None:
    """The run that begins with `factory`; None where its size was not recorded, or where it may be written to.

    Other factories that follow are part of it, as those of positions and frequencies are, unless something is written
    to what they make.
    """
    after = profile.operators_after(factory, REACH)
    whole = _run(profile, factory, after)
    if whole is None or not _is_written(profile, whole, writers):
        return whole
    following = next((at for at, row in enumerate(after) if row in whole.rows and profile.name(row) in FACTORIES), None)
    alone = None if following is None else _run(profile, factory, after[:following])
    return None if alone is None or _is_written(profile, alone, writers) else alone


def _run(profile: Profile, factory: int, after: Sequence[int]) -> _Run | None:
    shape = made_shape(profile, factory)
    if shape is None:
        return None
    known, rows, largest = Counter([shape]), [factory], prod(shape)
    for row in after:
        made = _made_from(profile, row, known)
        if made is None:
            break
        rows.append(row)
        known[made] += 1
        largest = max(largest, prod(made))
    return _Run(tuple(rows), frozenset(+known), largest)


def made_shape(profile: Profile, factory: int) -> Shape | None:
    """The shape of what a factory makes, as the operators say that it runs."""
    found: Shape | None = None
    for row in profile.subtree(factory)[1:]:
        inputs, name = profile.inputs(row), profile.name(row)
        if name in {"aten::fill_", "aten::zero_"}:
            return inputs.shape(0)
        if name in {"aten::empty", "aten::resize_"}:
            found = sizes_in(inputs.scalar(name == "aten::resize_")) or found
    return found


def sizes_in(text: str) -> Shape | None:
    """The sizes in `[512, 64]`, None for any other text."""
    parts = text[1:-1].split(",") if text[:1] == "[" else []
    numbers = [part.strip() for part in parts]
    return tuple(map(int, numbers)) if numbers and all(number.isdigit() for number in numbers) else None


def _made_from(profile: Profile, row: int, known: Counter[Shape]) -> Shape | None:
    """The shape of what `row` makes of known constants; None where it is given other tensors, or may be."""
    name = profile.name(row)
    if name in FACTORIES:
        return made_shape(profile, row)
    inputs = profile.inputs(row)
    tensors = _tensors(inputs)
    if VIEWS.fullmatch(name):
        return view_shape(profile, row) if _are_known(tensors[:1], known) else None
    if "TensorList" in inputs.dtypes:
        tensors = list(set(tensors))  # a list may hold one constant again and again
    is_alike = len(tensors) > 1 and (len(set(tensors)) == 1 or name.endswith("_"))
    if not POINTWISE.fullmatch(name) or (is_alike and not JOINS_EQUAL_SHAPES.fullmatch(name)):
        return None
    if not _are_known(tensors, known):
        return None
    if name.endswith("_") or len(tensors) == 1:
        known[tensors[0]] -= 1  # its result stands in its place
    return tensors[0] if name.endswith("_") else _broadcast(tensors)


def _are_known(shapes: Sequence[Shape], known: Counter[Shape]) -> bool:
    """Whether all of `shapes` may be constants: a trace tells tensors apart by their shapes and how many there are."""
    return bool(shapes) and all(known[shape] >= count for shape, count in Counter(shapes).items())


def view_shape(profile: Profile, row: int) -> Shape | None:
    """The shape of what a view operator makes, None where it was not recorded."""
    strided = next((at for at in profile.subtree(row) if profile.name(at) == "aten::as_strided"), None)
    inputs = profile.inputs(row if strided is None else strided)
    shape, sizes = inputs.shape(0), sizes_in(inputs.scalar(1).replace("-1", "0"))
    if shape is None or not sizes:
        return shape
    rest = prod(shape) // max(prod(size for size in sizes if size), 1)
    return tuple(size or rest for size in sizes)


def _tensors(inputs: Inputs) -> list[Shape]:
    """Shapes of all tensors with more than one element, those in lists too."""
    lists = (dims for dims, kind in zip(inputs.dims, inputs.dtypes, strict=False) if kind == "TensorList")
    inside = [tuple(shape) for dims in lists for shape in dims if isinstance(shape, list)]
    single = [inputs.shape(position) for position in range(len(inputs.dtypes))]
    return [shape for shape in (*single, *inside) if shape is not None and prod(shape) > 1]


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(map(max, zip(*padded, strict=True)))


def _is_written(profile: Profile, run: _Run, writers: Rows) -> bool:
    """Whether an operator after `run` may write to a tensor of its shapes, or to a view of one that was just made."""
    table, last = profile.table, run.rows[-1]
    following = writers[np.searchsorted(writers, last + 1) :][:WRITERS_LOOKED_AT]
    following = following[table.thread[following] == table.thread[last]]
    views: deque[Shape] = deque(maxlen=VIEWS_KEPT)
    for row, inputs in zip(following.tolist(), profile.inputs_of(following), strict=True):
        name, shapes = profile.name(row), _tensors(inputs)
        known = run.shapes.union(views)
        if VIEWS.fullmatch(name):
            seen = view_shape(profile, row) if shapes and shapes[0] in known else None
            views.extend([] if seen is None else [seen])
        elif not known.isdisjoint(shapes[:1] if name.startswith("aten::") else shapes):
            return True
    return False
