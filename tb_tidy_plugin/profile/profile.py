"""Profile: queries on one recorded trace, which never changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import compress, pairwise

import numpy as np

from tb_tidy_plugin.profile.device_models import DeviceModel, device_name, estimated_device, known_device
from tb_tidy_plugin.profile.devices import activity_of, in_order, platform_of
from tb_tidy_plugin.profile.events.calls import Calls, calls_of
from tb_tidy_plugin.profile.events.inputs import (
    DistinctInputs,
    Inputs,
    Signatures,
    distinct_inputs,
    known_inputs,
    signatures_of,
)
from tb_tidy_plugin.profile.events.intervals import Intervals, covered, last_begun
from tb_tidy_plugin.profile.events.nesting import Nesting, nest, plain_names
from tb_tidy_plugin.profile.events.operators import Operators, operators_of
from tb_tidy_plugin.profile.events.products import FACTORS, Product, product_of
from tb_tidy_plugin.profile.events.tree import MOST_DEEP, build_tree, forward_threads, innermost
from tb_tidy_plugin.profile.graphs.replay import Replayed, replayed_of
from tb_tidy_plugin.profile.steps.bounds import DeviceWork, StepSpan, span_of, work_of
from tb_tidy_plugin.profile.steps.pace import Pace, pace_of
from tb_tidy_plugin.profile.steps.steps import UNMARKED, ProfileSteps, steps_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import GIVES_WORK
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    Category,
    DeviceProperties,
    EventTable,
    Mask,
    Metadata,
    Numbers,
    Rows,
    Times,
    repeated,
)
from tb_tidy_plugin.trace.links import launches
from tb_tidy_plugin.trace.sets import distinct, numbered, order_by, united
from tb_tidy_plugin.trace.settings import Settings
from tb_tidy_plugin.trace.strings import answers_of

UNKNOWN_PER_OPERATOR = 0.1
"""Events of no known category for each operator from which they may be the work of a device."""


class Profile:
    """One trace as table, tree, steps and links.

    Host events are the first `tree.size` rows, in pre-order: a subtree is a slice of rows. Rows are plain integers;
    queries on whole columns return arrays of them.
    """

    def __init__(self, table: EventTable, devices: Mapping[str, DeviceModel] | None = None) -> None:
        """Takes over `table`, and sorts its rows in the order of the tree.

        Args:
            table: one trace.
            devices: peak rates of devices, by name; others are looked up.
        """
        self._devices = devices or {}
        table = in_order(table)
        order, self.tree = build_tree(table)
        if len(deep := order[self.tree.depth >= MOST_DEEP]):
            table = table.without(deep, f"inside {MOST_DEEP:,} others")
            order, self.tree = build_tree(table)
        is_other = np.ones(len(table), np.bool_)
        is_other[order] = False
        self.table = table.take(np.concatenate([order, np.flatnonzero(is_other)]))

    # Recorded data

    @cached_property
    def recorded(self) -> frozenset[str]:
        """The data among `stacks`, `shapes`, `memory`, `device`, `steps` that the profile holds, by its content."""
        found = {
            "stacks": bool((self.table.category == Category.PYTHON).any()) or self.has_call_stacks,
            "shapes": any('"Input Dims"' in text for text in self.table.input_texts),
            "memory": bool((self.table.category == Category.MEMORY).any()),
            "device": bool(self.table.is_category(DEVICE_WORK).any()),
            "steps": self.steps.basis == "profiler_step",
        }
        return frozenset(name for name, there in found.items() if there)

    @cached_property
    def has_call_stacks(self) -> bool:
        """True if operators carry a `Call stack` of their own, as in 2021 and with `verbose=True`."""
        return any(b'"Call stack"' in block for block in self.table.args.blocks)

    @cached_property
    def platform(self) -> str:
        """`cuda`, `rocm`, `cpu`, or `other` for devices that are neither."""
        return platform_of(self.table)

    @cached_property
    def activity(self) -> str:
        """The `ProfilerActivity` that records the profile's kind of device; empty if that is unknown."""
        return activity_of(self.table)

    @cached_property
    def launches_only(self) -> bool:
        """True if the host launched device work and none was recorded: what operators cost is then unknown."""
        return "device" not in self.recorded and bool(len(self.matching(GIVES_WORK, Category.RUNTIME)))

    @cached_property
    def has_unknown_work(self) -> bool:
        """True if no device work was recorded, and events of no known category may be it: they are not a few strays."""
        operators = int((self.table.category == Category.OPERATOR).sum())
        return "device" not in self.recorded and self.metadata.unknown_events > UNKNOWN_PER_OPERATOR * operators

    @property
    def hides_device(self) -> bool:
        """True if a device worked, or may have, and no row is known to be its work."""
        return self.launches_only or self.has_unknown_work

    @property
    def metadata(self) -> Metadata:
        """The allow-listed part of the trace's own metadata."""
        return self.table.metadata

    @property
    def settings(self) -> Settings:
        """The job's settings; empty if it was recorded without `tb_tidy_plugin.capture`."""
        return self.metadata.captured.settings or Settings()

    @cached_property
    def steps(self) -> ProfileSteps:
        """The steps and their source."""
        return steps_of(self.table)

    @cached_property
    def device_work(self) -> DeviceWork:
        """All device work in order of start, with its launches."""
        return work_of(self.table, self.launch)

    @cached_property
    def step_bounds(self) -> StepSpan:
        """Start and end of each step when its device work counts as its own."""
        return span_of(self.table, self.steps, self.device_work)

    @cached_property
    def wall_ns(self) -> int:
        """Time from the first start to the last end of everything recorded."""
        table = self.table
        return int(table.end_ns.max(initial=0) - table.start_ns.min(initial=0)) if len(table) else 0

    @cached_property
    def device_busy(self) -> Intervals:
        """Spans in which any device ran a kernel, a copy or a fill."""
        return covered(self.table, self.table.is_category(DEVICE_WORK))

    def device_properties(self, device: int) -> DeviceProperties | None:
        """Properties of the device with this id, None if the trace has none."""
        return next((entry for entry in self.metadata.devices if entry.id == device), None)

    def stated_model(self, device: DeviceProperties) -> DeviceModel | None:
        """Peak rates of a listed device, as given by the user or stated by its maker; None if they are unknown."""
        name = device_name(device)
        return self._devices.get(name) or known_device(name, device)

    def device_model(self, device: DeviceProperties) -> DeviceModel | None:
        """Peak rates of a listed device, estimated if they are not stated; None without what that needs."""
        return self.stated_model(device) or estimated_device(device, self.platform)

    # Selections of events

    def matching(self, pattern: str, *categories: Category) -> Rows:
        """Rows of `categories` whose name the pattern matches, in row order."""
        holds = answers_of(re.compile(pattern).search)
        by_name = (self._by_name[each] for each in categories)
        parts = [rows for names, rows_of in by_name for rows in compress(rows_of, map(holds, names))]
        return united(*parts) if parts else np.empty(0, np.int64)

    def named(self, *names: str) -> Rows:
        """Rows of operators with one of `names`, whatever their overload, in row order."""
        parts = [rows for name in names for rows in self._by_plain_name.get(name, ())]
        return united(*parts) if parts else np.empty(0, np.int64)

    @cached_property
    def _by_plain_name(self) -> Mapping[str, list[Numbers]]:
        """The rows of operators, by their name without overload."""
        found: dict[str, list[Numbers]] = {}
        for name, rows in zip(*self._by_name[Category.OPERATOR], strict=True):
            found.setdefault(aten.without_overload(name), []).append(rows)
        return found

    @cached_property
    def _by_name(self) -> Mapping[int, tuple[list[str], list[Numbers]]]:
        """The names of each category, and the rows of each: rules search for about a hundred names."""
        table = self.table
        key = table.category * np.int32(len(table.names)) + table.name
        if len(table.names) * len(Category) <= np.iinfo(np.uint16).max:
            key = key.astype(np.uint16)  # sorted by digits
        order = np.argsort(key, kind="stable").astype(np.int32)
        key = key[order]
        begins = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        first = order[begins]
        found: dict[int, tuple[list[str], list[Numbers]]] = {category: ([], []) for category in Category}
        bounds = pairwise([*begins.tolist(), len(order)])
        for category, name, (begin, end) in zip(
            table.category[first].tolist(), table.name[first].tolist(), bounds, strict=True
        ):
            names, rows_of = found[category]
            names.append(table.names[name])
            rows_of.append(order[begin:end])
        return found

    def forget_calls(self) -> None:
        """Frees the calls, which few but rules ask for; the next question computes them again."""
        vars(self).pop("calls", None)

    def inside(self, ancestors: Rows) -> Mask:
        """Mask of the tree's rows that are proper descendants of one of `ancestors`; one entry per row of the table."""
        ancestors = distinct(ancestors)
        last = self.tree.last_descendant[ancestors].astype(np.int64)
        outermost = np.ones(len(ancestors), np.bool_)
        outermost[1:] = ancestors[1:] > np.maximum.accumulate(last)[:-1]
        edges = np.stack([ancestors[outermost], last[outermost]], axis=1).reshape(-1)
        lengths = np.diff(edges + 1, prepend=0, append=len(self.table))
        return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)

    def covering(self, rows: Rows, spans: Rows) -> Rows:
        """The last begun of `spans` that contains the start of each of `rows`, on the same thread; `ABSENT` for none.

        By time, not by the tree: with stacks an annotation ends in the tree together with the built-in that opened it
        (`_record_function_enter_new`), so what ran under it is not below it. Spans of one thread must not nest.
        """
        table = self.table
        begun = last_begun(table.thread[spans], table.start_ns[spans], table.thread[rows], table.start_ns[rows])
        around = np.append(spans, ABSENT)[begun]
        return np.where((around != ABSENT) & (table.start_ns[rows] < table.end_ns[around]), around, ABSENT)

    # One event

    def name(self, row: int) -> str:
        """Name without overload (`aten::add`, not `aten::add.Tensor`)."""
        return aten.without_overload(self.table.names[self.table.name[row]])

    def category(self, row: int) -> Category:
        return Category(int(self.table.category[row]))

    def start_ns(self, row: int) -> int:
        """Start, relative to the profile's start."""
        return int(self.table.start_ns[row])

    def end_ns(self, row: int) -> int:
        """End, relative to the profile's start."""
        return int(self.table.end_ns[row])

    def duration_ns(self, row: int) -> int:
        """End minus start."""
        return self.end_ns(row) - self.start_ns(row)

    def parent(self, row: int) -> int | None:
        """Row of the parent in the event tree, None for roots and for rows outside the tree."""
        return above if row < self.tree.size and (above := int(self.tree.parent[row])) != ABSENT else None

    def ancestors(self, row: int) -> Iterable[int]:
        """Parent, its parent, and so on."""
        above = self.parent(row)
        while above is not None:
            yield above
            above = self.parent(above)

    def children(self, row: int) -> list[int]:
        """Rows directly below, in order of start."""
        found, at, last = [], row + 1, int(self.tree.last_descendant[row])
        while at <= last:
            found.append(at)
            at = int(self.tree.last_descendant[at]) + 1
        return found

    def subtree(self, row: int) -> range:
        """The row itself and all of its descendants."""
        return range(row, int(self.tree.last_descendant[row]) + 1)

    def inputs(self, row: int) -> Inputs:
        """Shapes, dtypes and scalars of an operator; empty if they were not recorded."""
        return self.known_inputs[int(self.table.inputs[row])]

    def inputs_of(self, rows: Rows) -> list[Inputs]:
        """Inputs of many operators at once; equal calls share an object."""
        known = self.known_inputs
        return [known[number] for number in self.table.inputs[rows].tolist()]

    @cached_property
    def known_inputs(self) -> tuple[Inputs, ...]:
        """Inputs by their number in `EventTable.inputs`."""
        return known_inputs(self.table)

    @cached_property
    def distinct_inputs(self) -> DistinctInputs:
        """The distinct ones of `known_inputs`."""
        return distinct_inputs(self.known_inputs)

    def products(self, *dtypes: str) -> list[Product]:
        """Matrix products with factors of one of `dtypes`, in row order; of nested operators the innermost."""
        rows = self.named(*FACTORS)
        holds_next = self.tree.last_descendant[rows] >= np.append(rows, len(self.table))[1:]
        rows = rows[~holds_next]
        products = map(product_of, rows.tolist(), map(self.name, rows.tolist()), self.inputs_of(rows))
        return [product for product in products if product is not None and product.dtype in dtypes]

    # Neighbours

    @cached_property
    def _levels(self) -> tuple[Rows, Rows, Numbers]:
        """Operators level by level, the number of each one's level, and each row's position in these two lists."""
        is_operator = self.table.category[: self.tree.size] == Category.OPERATOR
        rows = np.flatnonzero(is_operator)
        above, thread = self.tree.nearest_ancestor(is_operator)[rows], self.table.thread[rows]
        order = order_by(thread, above, rows)
        changes = (np.diff(above[order]) != 0) | (np.diff(thread[order]) != 0)
        at = np.full(self.tree.size, ABSENT, np.int32)
        at[rows[order]] = np.arange(len(rows))
        return rows[order], np.concatenate([[0], np.cumsum(changes)]), at

    def operators_before(self, row: int, count: int) -> list[int]:
        """Up to `count` operators that ran before the operator `row` on its level, nearest first.

        Operators are on one level if the same operator, or none, encloses them on one thread: Python frames, built-ins
        (`.cuda()`), modules and annotations in between do not matter.
        """
        rows, level, at = self._levels
        near = slice(max(at[row] - count, 0), at[row])
        found: list[int] = rows[near][level[near] == level[at[row]]].tolist()
        return found[::-1]

    def operators_after(self, row: int, count: int) -> list[int]:
        """Up to `count` operators that ran after the operator `row` on its level, nearest first."""
        rows, level, at = self._levels
        near = slice(at[row] + 1, at[row] + 1 + count)
        found: list[int] = rows[near][level[near] == level[at[row]]].tolist()
        return found

    @cached_property
    def calls(self) -> Calls:
        """Calls and their callers; built-ins are transparent."""
        return calls_of(self.table, self.tree)

    # Figures as in torch's own tables

    @cached_property
    def _plain(self) -> tuple[Numbers, tuple[str, ...]]:
        return plain_names(self.table.names)

    @property
    def plain_names(self) -> tuple[str, ...]:
        """All names as torch's tables group them."""
        return self._plain[1]

    @property
    def plain_groups(self) -> Numbers:
        """For each of the table's names, its number in `plain_names`."""
        return self._plain[0]

    def plain_number(self, rows: Rows) -> Numbers:
        """The number of each row's name in `plain_names`."""
        return self.plain_groups[self.table.name[rows]]

    def plain_name(self, row: int) -> str:
        """A row's name as torch's tables group it."""
        return self.plain_names[int(self.plain_groups[self.table.name[row]])]

    @cached_property
    def nested(self) -> Nesting:
        """Operators, annotations and runtime calls, nested as `key_averages` of torch nests them."""
        return nest(self.table, self.plain_groups)

    @cached_property
    def operators(self) -> Operators:
        """Host and device time of each call in `nested`."""
        return operators_of(self.table, self.nested, self.launch, self.launched_by, self.replayed.operator != ABSENT)

    @cached_property
    def signatures(self) -> Signatures:
        """The arguments of each call in `nested`."""
        return signatures_of(self.table, self.nested.rows, self.distinct_inputs)

    # Forward and backward

    @cached_property
    def forward_threads(self) -> dict[int, int]:
        """The thread behind each of the profiler's small forward thread ids, by majority."""
        return forward_threads(self.table)

    @cached_property
    def _by_sequence(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], list[int]]]:
        """Forward operators and operators of the backward pass, by thread of the forward pass and sequence number."""
        table, threads = self.table, self.forward_threads
        rows = np.flatnonzero((table.category == Category.OPERATOR) & (table.sequence != ABSENT))
        forward: dict[tuple[int, int], int] = {}
        backward: dict[tuple[int, int], list[int]] = {}
        columns = (rows, table.sequence[rows], table.forward_thread[rows], table.thread[rows])
        for row, sequence, forward_id, thread in zip(*(column.tolist() for column in columns), strict=True):
            if forward_id:
                backward.setdefault((threads.get(forward_id, ABSENT), sequence), []).append(row)
            else:
                forward[thread, sequence] = row
        return forward, backward

    def backward_of(self, row: int) -> list[int]:
        """Operators of the backward pass that compute gradients of the forward operator `row`, in row order.

        A forward operator that autograd did not record shares its sequence number with the next one that it did, so
        the answer may be the backward of that one: check its name.
        """
        _, backward = self._by_sequence
        return backward.get((int(self.table.thread[row]), int(self.table.sequence[row])), [])

    def forward_of(self, row: int) -> int | None:
        """The forward operator whose gradient the backward pass computes in `row`, None for all other rows.

        None also below a Python frame of the backward pass: there a checkpoint is computed again or a gradient is
        written in Python, and that frame is the better place.
        """
        forward, _ = self._by_sequence
        table = self.table
        for at in (row, *self.ancestors(row)):
            if self.category(at) is Category.PYTHON:
                return None
            if table.forward_thread[at] and table.sequence[at] != ABSENT:
                thread = self.forward_threads.get(int(table.forward_thread[at]), ABSENT)
                return forward.get((thread, int(table.sequence[at])))
        return None

    def forwards_of(self, rows: Rows) -> Rows:
        """For many operators of the backward pass, by their own sequence numbers; `ABSENT` for none, and without one.

        As `forward_of`, but no operator around them is asked.
        """
        table = self.table
        forward = np.flatnonzero(
            (table.category == Category.OPERATOR) & (table.sequence != ABSENT) & (table.forward_thread == 0)
        )
        ids, of_id = numbered(table.forward_thread[rows].astype(np.int64))
        threads = np.array([self.forward_threads.get(each, ABSENT) for each in ids.tolist()], np.int64)[of_id]
        # Sequence numbers, first those of the forward pass, as small ones; and from them a key of number and thread.
        number = numbered(np.concatenate([table.sequence[forward], table.sequence[rows]]).astype(np.int64))[1]
        thread = np.concatenate([table.thread[forward].astype(np.int64), threads])
        key = number * (len(table.threads) + 1) + thread
        known, asked = key[: len(forward)], key[len(forward) :]
        order = np.argsort(known, kind="stable")
        at = np.searchsorted(known[order], asked, side="right") - 1  # the last of equal ones
        found = np.append(forward[order], ABSENT)[at]
        is_known = (at >= 0) & (table.sequence[rows] != ABSENT) & (table.forward_thread[rows] > 0)
        is_known &= np.append(known[order], ABSENT)[at] == asked
        return np.where(is_known, found, ABSENT)

    # Host and device

    @cached_property
    def launch(self) -> Rows:
        """The row of the runtime call that launched each row, `ABSENT` for host rows and unknown launches."""
        return launches(self.table)

    @cached_property
    def replayed(self) -> Replayed:
        """Device work of replayed graphs, and the operators of their captures that it comes from."""
        return replayed_of(self.table)

    @cached_property
    def launched_by(self) -> Rows:
        """The innermost host event that caused each row of device work or runtime call, else `ABSENT`.

        By `External id` if the trace has it, else by the launch's place in the tree of its thread. Work of a replayed
        graph belongs to the operator that launched it when the graph was captured, as far as that is known.
        """
        table, size = self.table, self.tree.size
        runtime = np.flatnonzero(table.category == Category.RUNTIME)
        work = np.flatnonzero(table.is_category(DEVICE_WORK))
        if not len(runtime) and not len(work):
            return repeated(ABSENT, len(table))
        cause = np.full(len(table), ABSENT, np.int64)
        cause[runtime] = innermost(table, self.tree, runtime)
        launch = self.launch[work]
        cause[work] = np.where(launch == ABSENT, ABSENT, cause[launch])
        orphans = work[cause[work] == ABSENT]
        if len(orphans):
            named = np.flatnonzero(table.external_id[:size] > 0)
            row_of_id = dict(zip(table.external_id[named].tolist(), named.tolist(), strict=True))
            cause[orphans] = [row_of_id.get(number, ABSENT) for number in table.external_id[orphans].tolist()]
        replayed = self.replayed.operator
        return np.where(replayed == ABSENT, cause, replayed)

    @cached_property
    def _work_by_cause(self) -> tuple[Rows, Rows]:
        work = np.flatnonzero(self.table.is_category(DEVICE_WORK) & (self.launched_by != ABSENT))
        work = work[np.argsort(self.launched_by[work], kind="stable")]
        return self.launched_by[work], work

    def device_activity_of(self, row: int) -> Rows:
        """Kernels, copies and fills launched by a host event or anything below it."""
        return self.device_activity_of_all(np.array([row]))

    def device_activity_of_all(self, rows: Rows) -> Rows:
        """Kernels, copies and fills launched by each of many host events or below, one event after the other."""
        causes, work = self._work_by_cause
        low = np.searchsorted(causes, rows)
        count = np.searchsorted(causes, self.tree.last_descendant[rows] + 1) - low
        found: Rows = work[np.arange(count.sum()) + np.repeat(low - np.cumsum(count) + count, count)]
        return found

    # Time

    def step_of(self, rows: Rows) -> Rows:
        """Index of each row's step, `ABSENT` outside all steps.

        Device work belongs where it was launched, to no step if that was before the recording.
        """
        return self.steps.index_of(self._begun_ns[rows])

    def in_steps(self, rows: Rows) -> Rows:
        """The `rows` that belong to a step; all of them without steps."""
        return rows[self.step_of(rows) != ABSENT] if self.steps.items else rows

    @cached_property
    def _begun_ns(self) -> Times:
        """Start of each row, of device work its launch."""
        work = self.device_work
        if not len(work.rows):
            return self.table.start_ns
        begun = self.table.start_ns.copy()
        begun[work.rows] = work.launched_ns
        return begun

    def per_step_ns(self, rows: Rows) -> int:
        """Time that `rows` cover together, per step; over the whole profile without steps.

        Of device work, and without marked steps of all events, only the time in the steps: `StepSpan.window`. At most a
        step: a host that is far ahead of its device may have a longer one.
        """
        rows = self.in_steps(rows)
        begin, end = self.step_bounds.window
        is_inside = self.table.is_category(DEVICE_WORK)[rows] if self.steps.basis not in UNMARKED else True
        starts, ends = self.table.start_ns[rows], self.table.end_ns[rows]
        starts = np.where(is_inside, np.maximum(starts, begin), starts)
        ends = np.where(is_inside, np.minimum(ends, end), ends)
        found_ns = self.steps.mean_of(Intervals.union(starts, ends).total_ns)
        return min(found_ns, self.pace.mean_ns) if self.pace.mean_ns else found_ns

    def per_step_count(self, rows: Rows) -> float:
        """Number of `rows` per step; all of them without steps."""
        return len(self.in_steps(rows)) / max(len(self.steps.items), 1)

    @cached_property
    def step_time(self) -> Intervals:
        """All steps, until all work launched by the last one is done; of a server, including the pauses between."""
        starts, ends = np.maximum(self.steps.starts, self.step_bounds.window[0]), self.steps.ends
        if self.steps.basis == "serving_step":
            ends = np.maximum(ends, np.append(self.steps.starts[1:], ends[-1:]))
        return Intervals.union(starts, np.where(ends == ends.max(initial=0), self.pace.done_ns, ends))

    @cached_property
    def pace(self) -> Pace:
        """The duration of a step, as recorded and without the profiler."""
        return pace_of(self.steps, self.step_bounds, self.device_work, self.metadata.captured.step_ns)

    def share_of_step(self, time_ns: int) -> float | None:
        """`time_ns` as a share of the average recorded step, at most all of it; None without steps."""
        return min(time_ns / self.pace.mean_ns, 1.0) if self.pace.mean_ns else None

    def share_of_time(self, time_ns: int) -> float:
        """`time_ns` as a share of the recorded step, or of the whole recording without steps."""
        share = self.share_of_step(time_ns)
        return min(time_ns / max(self.wall_ns, 1), 1.0) if share is None else share

    def covered(self, rows: Rows) -> Intervals:
        """The time that `rows` cover together."""
        return covered(self.table, rows)
