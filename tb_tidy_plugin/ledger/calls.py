"""Calls behind an entry's time: the same operator with the same shapes, in the same pass, from the same function.

A call's place is the line of its forward pass: the backward pass belongs to the line of the forward operator whose
gradient it computes. Python functions of the user's own that run in the backward pass are their own place: there a
checkpoint is computed again, or a gradient is written in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tb_tidy_plugin.ledger.model import OWNER_PASSES, Owner, OwnerPass
from tb_tidy_plugin.ledger.owners import is_library_frame, ledger_name
from tb_tidy_plugin.profile.compiled.operators import spans_of
from tb_tidy_plugin.profile.events.inputs import NOT_A_TENSOR, TORCH_DTYPES
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import LOADER_NEXT
from tb_tidy_plugin.profile.timeline.timeline import shapes_line
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.sources.places import places_of
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, first_of_each, numbered
from tb_tidy_plugin.words.units import plural
from tb_tidy_plugin.words.vocabulary import known_by_mark

OPTIMIZER_MARK, ENGINE = r"^Optimizer\.", "autograd::engine::evaluate_function"
MOST_OWNERS, _ENOUGH = 8, 0.8
_MOST_KINDS, _LEAST_UNNAMED = 64, 0.02
_LONGEST_SHAPES, _LONGEST_TEXT = 80, 60
_SAMPLE, _MOST_LINES = 16, 4096
"""Calls that differ only in their position in a function: looked at first, and at most where their lines differ."""

_FORWARD, _BACKWARD, _OPTIMIZER, _LOADING, _OTHER = range(len(OWNER_PASSES))
Keys: TypeAlias = NDArray[np.int64]


class AlikeCalls(msgspec.Struct, frozen=True):
    """Calls that the recording shows alike; arrays have one entry per line of code that may be behind them.

    Attributes:
        pass_: of the training step.
        event: row of a call on the line with most time.
        library: the nearest function outside PyTorch and the standard library, of all of them; None without one.
        row: a call each whose line stands for the calls of this entry, `ABSENT` if the user's code has none.
        ns: their time. count: their number.
    """

    pass_: OwnerPass
    event: int
    library: Frame | None
    row: Rows
    ns: Times
    count: Rows


class PassTimes(msgspec.Struct, frozen=True):
    """All time of an account, by pass and place: arrays with one entry per event of the host and pass.

    Attributes:
        event: row of the host's event, `ABSENT` for time without one.
        place: the event whose line the time belongs to, `ABSENT` if there is none.
        frame: the function around `place`, or `place` itself: the user's own, else the nearest one. `ABSENT` if the
            recording has no row for it.
        call: the call in `frame` that leads to `place`, `ABSENT` for the function's own time.
        pass_: position in `OWNER_PASSES`.
        ns: their time.
    """

    event: Numbers
    place: Numbers
    frame: Numbers
    call: Numbers
    pass_: NDArray[np.int8]
    ns: Times


class CallSites:
    """Pass, place and likeness of a recording's host events."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._places = places_of(profile)

    def place_of(self, row: int) -> Frame | None:
        """The function that a host event's place is in."""
        return self._places.of(row)

    def passes(self, events: Rows) -> tuple[Rows, Rows]:
        """The pass of each event, as a position in `OWNER_PASSES`, and the event whose line is its place.

        A hook may update a parameter in the backward pass, as soon as its gradient is there: that is the optimizer's.
        """
        profile, table = self.profile, self.profile.table
        is_operator = table.category[events] == Category.OPERATOR
        found = np.where(is_operator, _FORWARD, _OTHER)
        node = self._node[events]
        for number, spans in ((_LOADING, self._loading), (_OPTIMIZER, self._updates)):
            if len(spans):
                span = profile.covering(events, spans)
                is_part = span != ABSENT
                if number == _OPTIMIZER:
                    is_part &= ~self._is_in_closure(events, span)
                    in_hook = is_part & (node != ABSENT)
                    in_hook[in_hook] = table.start_ns[span[in_hook]] >= table.start_ns[node[in_hook]]
                    node = np.where(in_hook, ABSENT, node)
                found[is_part] = number
        found[node != ABSENT] = _BACKWARD
        place = events.copy()
        inside = np.flatnonzero(node != ABSENT)
        is_own = self._is_own_place[events[inside]] & (self._places.row[events[inside]] > node[inside])
        place[inside] = np.where(is_own, events[inside], self._forward[node[inside]])
        return found, place

    def times(self, events: Rows, ns: Times, loading_ns: Times) -> PassTimes:
        """Time by pass and place.

        Args:
            events: distinct rows of the tree, and last `ABSENT`.
            ns: of each. loading_ns: the same, of time in which the step waits for data.
        """
        of_events, places = self.passes(events[:-1])
        pass_, place = np.append(of_events, _OTHER), np.append(places, ABSENT)
        frame = np.append(self._places.row, np.int32(ABSENT))[place]
        call = self._child(place, frame)
        parts = []
        for of_pass, length in ((pass_, ns), (np.full(len(pass_), _LOADING), loading_ns)):
            there = np.flatnonzero(length)
            parts.append([column[there] for column in (events, place, frame, call, of_pass, length)])
        columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
        of_event, of_place, of_frame, of_call = (each.astype(np.int32) for each in columns[:4])
        return PassTimes(of_event, of_place, of_frame, of_call, columns[4].astype(np.int8), columns[5])

    def alike(self, events: Rows, ns: Times, *, is_function: bool) -> Iterator[AlikeCalls]:
        """Calls of one operator with the same inputs in one pass, largest time first.

        The smallest ones, which are few percent of the time, are left out.

        Args:
            events: distinct rows of the tree.
            ns: time of each.
            is_function: True for Python functions whose own time it is, wherever they were called.
        """
        table, names = self.profile.table, self.profile.table.names
        passes, place = self.passes(events)
        if is_function:
            place = np.full(len(events), ABSENT, np.int64)
        frame = np.append(self._places.row, np.int32(ABSENT))[place]
        child, around = self._child(place, frame), self._library[events]
        frame_name, library_name = _names_at(table, frame), _names_at(table, around)
        called = np.append(self._names, np.int32(ABSENT))[_names_at(table, child)]
        inputs, what = table.inputs[events], self._names[table.name[events]]
        kind = _combined(passes, frame_name, library_name, called, what, inputs)
        chosen, kind_of = _largest_kinds(kind, ns)
        frame, child, ns = frame[chosen], child[chosen], ns[chosen]
        line = np.where(child == ABSENT, np.int32(ABSENT), table.called_from[child])
        position = np.where(line == ABSENT, self._position(frame, child), ABSENT)
        sites, of = numbered(_combined(kind_of, line, position))
        first = first_of_each(of, len(sites))
        # Of each site: its time, the number of its calls, and its kind.
        site_ns, count, kind_of = _summed(of, ns, len(sites)), np.bincount(of, minlength=len(sites)), kind_of[first]
        first = chosen[first]
        for number in range(int(kind_of.max(initial=ABSENT)) + 1):
            at = np.flatnonzero(kind_of == number)
            at = at[np.argsort(-site_ns[at], kind="stable")]
            event = int(first[at[0]])
            library = int(around[event])
            yield AlikeCalls(
                pass_=OWNER_PASSES[passes[event]],
                event=int(events[event]),
                library=None if library == ABSENT else parse_frame(names[table.name[library]]),
                row=place[first[at]],
                ns=site_ns[at],
                count=count[at],
            )

    def described(self, owner: Owner, calls: AlikeCalls, *, is_function: bool) -> Owner:
        """The owner of `calls` with their pass and inputs, and with the function around them."""
        table = self.profile.table
        inputs, name = self.profile.inputs(calls.event), _plain(table.names[table.name[calls.event]])
        frame = parse_frame(name) if is_function else None
        function = frame.function if frame else name if is_function else None
        tensors = (dtype for dtype in inputs.dtypes if dtype and dtype not in NOT_A_TENSOR)
        dtype = next(tensors, "")
        return replace(
            owner,
            pass_=calls.pass_,
            operator=None if owner.operator is None else _plain(owner.operator),
            file=ledger_name(frame.file) if frame else None,
            function=function and ledger_name(function),
            shapes=_short(shapes_line(inputs.dims), _LONGEST_SHAPES),
            dtype=_short(TORCH_DTYPES.get(dtype, dtype), _LONGEST_TEXT),
        )

    def _child(self, place: Rows, frame: Numbers) -> Numbers:
        """The row directly below the `frame` that leads to each `place`, through spans; `ABSENT` for the frame."""
        leads = np.append(self._places.child, np.int32(ABSENT))[place]
        child = np.append(self._below, np.int32(ABSENT))[leads]
        is_below = (frame != ABSENT) & (leads != frame) & (np.append(self._above, np.int32(ABSENT))[child] == frame)
        return np.where(is_below, child, np.int32(ABSENT))

    def _position(self, frame: Numbers, child: Numbers) -> Numbers:
        """Position of each child among those of its frame."""
        is_wanted = np.zeros(len(self._above) + 1, np.bool_)
        is_wanted[frame] = True
        is_wanted[-1] = False
        rows = np.flatnonzero(is_wanted[self._above])
        rows = rows[np.argsort(self._above[rows], kind="stable")]
        first = np.searchsorted(self._above[rows], self._above[rows])
        position = np.full(len(self._above) + 1, ABSENT, np.int32)
        position[rows] = np.arange(len(rows)) - first
        return position[child]

    @cached_property
    def _above(self) -> Numbers:
        """The nearest event around each one that is not a span."""
        return self.profile.tree.nearest_ancestor(~spans_of(self.profile)[: self.profile.tree.size])

    @cached_property
    def _below(self) -> Numbers:
        """Of each event of the tree the one that is directly below its place, itself included; `ABSENT` for none."""
        is_below = (self._above == self._places.row) & (self._above != ABSENT)
        here = np.arange(self.profile.tree.size, dtype=np.int32)
        return np.where(is_below, here, self.profile.tree.nearest_ancestor(is_below))

    @cached_property
    def _node(self) -> Numbers:
        return backward_nodes(self.profile)

    def _is_in_closure(self, events: Rows, update: Rows) -> Mask:
        """True for events of a closure that an optimizer's `step` calls to compute the loss again.

        Args:
            events: of the tree.
            update: the annotation around each, `ABSENT` for none.
        """
        around, start_ns = self._closure[events], self.profile.table.start_ns
        inside: Mask = (around != ABSENT) & (update != ABSENT)
        inside[inside] = start_ns[around[inside]] >= start_ns[update[inside]]
        return inside

    @cached_property
    def _closure(self) -> Numbers:
        """The nearest part of a forward or backward pass around each event of the tree, or itself; `ABSENT` for none.

        Those that may be in a closure of an optimizer: functions that call a module or the backward pass, other than
        `step`. Without stacks, only operators with a gradient are known to be in one.
        """
        profile, table, size = self.profile, self.profile.table, self.profile.tree.size
        at, is_python = np.arange(size, dtype=np.int32), table.category[:size] == Category.PYTHON
        node = distinct(self._node[self._node != ABSENT])
        is_module = is_python & table.is_named(lambda name: name.startswith(MODULE))[:size]
        is_part = is_module.copy()
        is_part[node] = True
        spans = Intervals.union(table.start_ns[self._updates], table.end_ns[self._updates])
        if not spans.containing(table.start_ns[:size][is_part]).any():
            return np.full(size, ABSENT, np.int32)
        may_be = is_python & table.is_named(_may_be_closure)[:size]
        before = np.append(0, np.cumsum(is_part))
        wanted = is_module | (may_be & (before[profile.tree.last_descendant + 1] > before[at + 1]))
        forward = self._forward[node]
        wanted[forward[(forward != ABSENT) & (forward < size)]] = True
        return np.where(wanted, at, profile.tree.nearest_ancestor(wanted))

    @cached_property
    def _forward(self) -> Numbers:
        """The forward operator of each operator of the backward pass, by row of the tree; `ABSENT` for all others."""
        nodes = distinct(self._node[self._node != ABSENT])
        found = np.full(self.profile.tree.size, ABSENT, np.int32)
        found[nodes] = self.profile.forwards_of(nodes.astype(np.int64))
        return found

    @cached_property
    def _library(self) -> Numbers:
        """The nearest function outside PyTorch and the standard library, of each event of the tree; or `ABSENT`."""
        table, size = self.profile.table, self.profile.tree.size
        named = np.array([is_library_frame(name) for name in table.names], np.bool_)
        wanted = (table.category[:size] == Category.PYTHON) & named[table.name[:size]]
        above = self.profile.tree.nearest_ancestor(wanted)
        return np.where(wanted, np.arange(size, dtype=np.int32), above)

    @cached_property
    def _is_own_place(self) -> Mask:
        """True for events whose place is the user's own code, by row of the tree, and one entry for `ABSENT`."""
        own = np.array([frame.own_code for frame in self._places.frames] + [False], np.bool_)
        found: Mask = np.append(own[self._places.number], False)
        return found

    @cached_property
    def _names(self) -> Numbers:
        """A number for each name, equal for the modules of one class."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(_plain(name), len(numbers)) for name in self.profile.table.names], np.int32)

    @cached_property
    def _updates(self) -> Rows:
        return self.profile.matching(OPTIMIZER_MARK, Category.ANNOTATION)

    @cached_property
    def _loading(self) -> Rows:
        return self.profile.matching(LOADER_NEXT.pattern, Category.ANNOTATION)


def backward_nodes(profile: Profile) -> Numbers:
    """The operator of the backward pass that each event of the tree is part of, `ABSENT` for none."""
    table, size = profile.table, profile.tree.size
    is_operator = table.category[:size] == Category.OPERATOR
    is_node = is_operator & (table.forward_thread[:size] > 0) & (table.sequence[:size] != ABSENT)
    of_engine = np.array([name.startswith(ENGINE) for name in table.names], np.bool_)
    is_node |= is_operator & of_engine[table.name[:size]]
    above = profile.tree.nearest_ancestor(is_node)
    return np.where(is_node, np.arange(size, dtype=np.int32), above)


def _may_be_closure(name: str) -> bool:
    """True for functions outside PyTorch, other than an optimizer's `step`."""
    return is_library_frame(name) and name.rpartition(": ")[2].rpartition(".")[2] != "step"


class Owned(msgspec.Struct, frozen=True):
    """Time of an entry: what the recording names, and the calls that it consists of, None without any."""

    owner: Owner
    calls: AlikeCalls | None

    def of_pass(self, pass_: OwnerPass) -> Owned:
        """The same time, as part of `pass_`."""
        return Owned(replace(self.owner, pass_=pass_), self.calls)


def owners_of(
    owned: Sequence[Owned], total: int, place_of: Callable[[int], Frame | None], *, is_work: bool
) -> list[Owner]:
    """The owners of an entry: largest first, until 80 % of it is named or there are eight.

    Calls of an operator with different shapes are owners of their own where eight such owners are 80 %.

    Args:
        owned: the entry's calls.
        total: the entry's time in ns.
        place_of: gives the line of an event, or the function alone.
        is_work: the entry is work, of operators; else only the line matters at which the time passes.
    """
    placed = [
        replace(_at(each.owner, place, each.calls.library if each.calls else None), ns=ns, calls=count)
        for each in owned
        for place, ns, count in _placed(each, place_of)
    ]
    finest = _WITH_SHAPES if is_work else _BY_LINE
    kept = list[Owner]()
    for detail in range(finest, _BY_LINE - 1, -1):
        kept = _largest(_merged(placed, detail), total)
        if sum(owner.ns for owner in kept) >= _ENOUGH * total or detail <= _BY_OPERATOR:
            break
    return kept


_BY_LINE, _BY_OPERATOR, _WITH_SHAPES = range(3)


def _merged(placed: Sequence[Owner], detail: int) -> list[Owner]:
    """One owner for all calls that are alike; what they do not share is left out."""
    found: dict[tuple[object, ...], Owner] = {}
    for owner in sorted(placed, key=lambda owner: -owner.ns):
        key = (owner.pass_, owner.place, *_what(owner, detail))
        known = found.get(key)
        if known is None:
            found[key] = owner
            continue
        is_same = (known.shapes, known.dtype) == (owner.shapes, owner.dtype)
        shapes, dtype = (known.shapes, known.dtype) if is_same else ("", known.dtype * (known.dtype == owner.dtype))
        found[key] = replace(
            known, ns=known.ns + owner.ns, calls=known.calls + owner.calls, shapes=shapes, dtype=dtype,
            operator=known.operator if known.operator == owner.operator else None,
        )  # fmt: skip
    return list(found.values())


def _what(owner: Owner, detail: int) -> tuple[object, ...]:
    """What sets an owner apart from others on its line."""
    if owner.function is None and (owner.operator is None or detail == _BY_LINE):
        return (owner.operator, owner.mark, owner.neighbours, owner.kernel, owner.library)
    return ((), (owner.operator or owner.kernel,), (owner.operator or owner.kernel, owner.shapes, owner.dtype))[detail]


def _largest(owners: Sequence[Owner], total: int) -> list[Owner]:
    kept, named = list[Owner](), 0
    for owner in sorted(owners, key=lambda owner: -owner.ns)[:MOST_OWNERS]:
        kept.append(replace(owner, share=owner.ns / max(total, 1), work=_work_in_words(owner)))
        named += owner.ns
        if named >= _ENOUGH * total:
            break
    return kept


def _work_in_words(owner: Owner) -> str:
    """`backward · aten::bmm 128×96×96, 128×96×64 f32 · 12 calls`."""
    pass_ = owner.pass_ if owner.pass_ in {"backward", "optimizer", "loading"} else None
    if not (owner.function or owner.operator):
        kernel = owner.kernel and _short(owner.kernel, _LONGEST_TEXT)
        others = (owner.mark, owner.neighbours, kernel)
        return (kernel if owner.known_by == "kernel-name" else next(filter(None, others), "")) or ""
    operator = f"{owner.operator}{known_by_mark(owner.replayed)}" if owner.operator else ""
    work = " ".join(filter(None, (operator, owner.shapes, _SHORT_DTYPES.get(owner.dtype, owner.dtype))))
    return " · ".join(filter(None, (pass_, work if operator else "", plural(owner.calls, "call"))))


_SHORT_DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16"}


def _placed(owned: Owned, place_of: Callable[[int], Frame | None]) -> Iterator[tuple[Frame | None, int, int]]:
    """The places of the calls, the time at each in ns, and their number.

    Where many calls differ only in their position, a sample tells whether all are on one line.
    """
    calls = owned.calls
    if calls is None:
        yield None, owned.owner.ns, 0
        return
    total, count = int(calls.ns.sum()), int(calls.count.sum())
    sample = distinct(np.linspace(0, len(calls.row) - 1, min(len(calls.row), _SAMPLE)).astype(np.int64))
    places = {at: _place(place_of, int(calls.row[at])) for at in sample.tolist()}
    if len(set(places.values())) == 1:
        yield places[0], total, count
        return
    for at in range(min(len(calls.row), _MOST_LINES)):
        place = places[at] if at in places else _place(place_of, int(calls.row[at]))
        ns, n = int(calls.ns[at]), int(calls.count[at])
        total, count = total - ns, count - n
        yield place, ns, n
    if total:
        yield None, total, count


def _place(place_of: Callable[[int], Frame | None], row: int) -> Frame | None:
    return None if row == ABSENT else place_of(row)


def _at(owner: Owner, place: Frame | None, library: Frame | None) -> Owner:
    """The owner with its place: the user's own code, else the nearest library outside PyTorch.

    The definition of a function is not the line of a call in it: only the function is known, and the library's function
    around the call.
    """
    if place is not None and not place.own_code and library is not None:
        owner = replace(owner, file=ledger_name(library.file), function=ledger_name(library.function))
    elif place is not None:
        owner = replace(owner, file=ledger_name(place.file), function=ledger_name(place.function))
        if place.precision != "definition":
            ties = place.ties if len(place.ties) > 1 else ()
            owner = replace(owner, line=place.line, exact=not ties, ties=ties, text=place.text)
            lines = " or ".join(map(str, ties or (place.line,)))
            return replace(owner, place=f"{owner.file}:{lines} {_short(owner.text, _LONGEST_TEXT) or owner.function}")
    words = f"{owner.function} in {owner.file}" if owner.file else owner.function or ""
    if place is not None and place.own_code and library is not None and not library.own_code:
        inside = re.split(r"/(?:site|dist)-packages/", library.file)[-1]
        words = f"{words} → {ledger_name(library.function)} in {ledger_name(inside)}"
    return replace(owner, place=words)


def _plain(name: str) -> str:
    """A module's name without its number, an operator of the backward pass without the engine's prefix."""
    return name.rpartition("_")[0] if name.startswith("nn.Module: ") else name.removeprefix(f"{ENGINE}: ")


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _names_at(table: EventTable, rows: NDArray[np.integer]) -> Numbers:
    """Numbers of the rows' names, `ABSENT` for `ABSENT`."""
    found: Numbers = np.where(rows == ABSENT, np.int32(ABSENT), table.name[rows])
    return found


def _largest_kinds(kind: Keys, ns: Times) -> tuple[Rows, Rows]:
    """Positions of the events whose kinds have nearly all of the time, and the rank of each one's kind by its time."""
    kinds, of = numbered(kind)
    sums = _summed(of, ns, len(kinds))
    order = np.argsort(-sums, kind="stable")[:_MOST_KINDS]
    before = np.cumsum(sums[order]) - sums[order]
    order = order[before < (1 - _LEAST_UNNAMED) * sums.sum()]
    rank = np.full(len(kinds), ABSENT, np.int64)
    rank[order] = np.arange(len(order))
    chosen = np.flatnonzero(rank[of] != ABSENT)
    return chosen, rank[of[chosen]]


def _summed(number: Rows, ns: Times, count: int) -> Times:
    """The sum of `ns` for each number, exact."""
    found = np.zeros(count, np.int64)
    np.add.at(found, number, ns)
    return found


def _combined(*columns: NDArray[np.integer]) -> Keys:
    """One number for each distinct combination of values."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        key = numbered(key * (int(column.max(initial=0)) + 2) + column + 1)[1]
    return key
