"""Replayed graphs: the operator, module and line that each of their kernels comes from.

A replay is one launch, so a recording of it does not show operators. They come from the recording of the graph's
capture: in the same file, beside it, or named by the user. Without one, an eager iteration of the same model in the
file shows as much as the two have in common.

The origin of a replayed kernel is inserted into the table as host events inside the launch, 2 ns each: the operators,
modules and functions around the captured launch. So every query for the operator that launched a kernel has an answer.
`Replayed` distinguishes these events from recorded ones and says how each pair is known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.graphs import match as graph_match
from tb_tidy_plugin.profile.graphs.match import DONOR, Pairs, numbered_texts
from tb_tidy_plugin.profile.graphs.records import (
    LEAST_EAGER,
    Record,
    RecordSource,
    Replay,
    captures_of,
    eager_of,
    family_of,
    replays_of,
)
from tb_tidy_plugin.profile.steps.iteration_marks import sizes_of
from tb_tidy_plugin.profile.steps.steps import steps_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    ROW_COLUMNS,
    Category,
    EventTable,
    Grids,
    Ids,
    Mask,
    Numbers,
    Replays,
    Rows,
    Times,
    repeated,
)
from tb_tidy_plugin.trace.graphs import replays_graphs
from tb_tidy_plugin.trace.links import launches
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import NumberTable, numbers_where
from tb_tidy_plugin.words.units import Share, plural
from tb_tidy_plugin.words.vocabulary import KnownBy

KNOWN_BY: tuple[KnownBy, ...] = get_args(KnownBy)
"""Ways in which a pair is known, by the numbers of `match`."""


def known_by_of(at: int) -> KnownBy | None:
    """The way with this number, None for `ABSENT`."""
    return None if at == ABSENT else KNOWN_BY[at]


def least_certain_of(*known: KnownBy | None) -> KnownBy | None:
    """The least certain of several ways; None without any."""
    return known_by_of(max((KNOWN_BY.index(each) for each in known if each is not None), default=ABSENT))


LEAST_CERTAIN = 0.9
"""Least part of a replay's time that must be certain: a foreign capture has up to 0.15, the right one has 1."""

LEAST_ALIKE = 0.7
"""The same for an eager iteration, whose attention and products run other kernels; in total it is `LEAST_CERTAIN`."""

MOST_INSERTED = 3_000_000
"""Most events inserted into a table; a replay of 1,566 kernels has about 9,000."""

INTERNAL = re.compile(r"^<|^(?:.*(?:site|dist)-packages/)?torch/(?!nn/modules/)")
"""Built-ins and PyTorch's own functions, which say nothing, except those of its modules, which name a class."""


class Replayed(msgspec.Struct, frozen=True):
    """Role of each row of a profile's table in a replayed graph.

    Attributes:
        operator: row of the innermost operator that launched replayed device work when it was captured; `ABSENT` for
            other rows. It is a row of the tree, which gives module, functions and shapes as usual.
        known: position in `KNOWN_BY` for replayed device work and for the events of its capture, else `ABSENT`.
        inserted: mask of rows that come from a capture, and were not recorded in the replay.
        grid: thread blocks along three axes of each row's launch in the capture, 0 if unknown.
    """

    operator: Rows
    known: Numbers
    inserted: Mask
    grid: Grids

    def known_by(self, row: int) -> KnownBy | None:
        """The way in which the operator of a row is known, None for rows that were recorded themselves."""
        return known_by_of(int(self.known[row]))

    def least_certain(self, rows: Rows) -> KnownBy | None:
        """The least certain way in which one of `rows` is known; None if all of them were recorded themselves."""
        return known_by_of(int(self.known[rows].max(initial=ABSENT)))

    def least_by_group(self, rows: Rows, groups: Ids, count: int) -> list[KnownBy | None]:
        """`least_certain` for each of `count` groups; `groups` has the group's number for each of `rows`."""
        if self.known.strides == (0,):  # nothing was replayed
            return [None] * count
        least = np.full(count, ABSENT, np.int64)
        np.maximum.at(least, groups, self.known[rows])
        return [known_by_of(at) for at in least.tolist()]


def replayed_of(table: EventTable) -> Replayed:
    """Data on the replayed graphs of a table; empty if no events were inserted for them."""
    replays = table.replays
    operator, known = repeated(ABSENT, len(table)), repeated(ABSENT, len(table), np.int32)
    inserted: Mask = np.broadcast_to(np.bool_(False), len(table))
    grid = np.broadcast_to(np.zeros(3, np.int64), (len(table), 3))
    if replays is not None and len(replays.work):
        operator, known = operator.copy(), known.copy()
        by_order = np.full(int(table.file_order.max()) + 1, ABSENT, np.int64)
        by_order[table.file_order] = np.arange(len(table))
        inserted = table.file_order >= replays.first_inserted
        work, cause = by_order[replays.work], by_order[replays.cause]
        here = (work != ABSENT) & (cause != ABSENT)
        operator[work[here]], known[work[here]] = cause[here], replays.known[here]
        grid = grid.copy()
        grid[work[here]] = replays.grid[here]
        known[inserted] = replays.known_inserted[table.file_order[inserted] - replays.first_inserted]
    return Replayed(operator, known, inserted, grid)


# From captures into a table


def with_replayed(table: EventTable) -> EventTable:
    """`table` with the events of its replayed graphs; the same table without any replay.

    Captures are searched for in the table itself and in `EventTable.graphs`. Notes say which cannot be used.
    """
    if table.replays is not None or not replays_graphs(table):
        return table
    source = RecordSource.of(table)
    table = source.table
    launch, steps = launches(table), steps_of(table)
    replays = replays_of(table, launch, steps)
    if not replays:
        return source.table
    records = captures_of(source)
    for graph in table.graphs:
        records += captures_of(RecordSource.of(graph.table, graph.name))
    joined, refused = _joined(table, replays, records)
    missing = [at for at in range(len(replays)) if at not in joined]
    if missing:
        joined |= _by_eager(table, replays, missing, eager_of(source, launch, steps))
    found = _inserted(table, replays, joined)
    for note in refused:
        found = found.noted(note)
    return found


Joined: TypeAlias = dict[int, tuple[Record, Pairs]]


def _joined(table: EventTable, replays: Sequence[Replay], records: Sequence[Record]) -> tuple[Joined, list[str]]:
    """The capture and the pairs by position in `replays`, and sentences about captures that do not fit."""
    found: Joined = {}
    refused: dict[str, None] = {}
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    compared: dict[_Key, Pairs] = {}
    for at, replay in enumerate(replays):
        chosen, why = _candidates(replay, records)
        best, certain = _best(table, replay, records, chosen, compared)
        if certain >= LEAST_CERTAIN:
            groups[replay.step, tuple(best)].append(at)
        elif records:
            files = {records[number].source.name for number in chosen or range(len(records))}
            refused[_refusal(files, why or f"only {Share(certain)} of the replayed time surely comes from it")] = None
    for (_, numbers), members in groups.items():
        if len(members) % len(numbers):  # as many captures as pieces of the step, or one for all
            files = {records[number].source.name for number in numbers}
            refused[
                _refusal(files, f"{plural(len(numbers), 'capture')} fit {plural(len(members), 'replay')} alike")
            ] = None
            continue
        for position, at in enumerate(members):
            record = records[numbers[position % len(numbers)]]
            found[at] = (record, compared[_key(replays[at], record)])
    return found, list(refused)


_Key: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], bool, int]


def _key(replay: Replay, record: Record) -> _Key:
    return replay.names, record.names, replay.by_node, replay.streams


def _best(
    table: EventTable, replay: Replay, records: Sequence[Record], chosen: Sequence[int], compared: dict[_Key, Pairs]
) -> tuple[list[int], float]:
    """The captures of `chosen` that certainly explain most of a replay's time, and that part of its time."""
    shares = {}
    for number in chosen:
        key = _key(replay, records[number])
        if key not in compared:
            compared[key] = pairs_of(replay, records[number])
        shares[number] = _trusted(table, replay, compared[key])
    most = max(shares.values(), default=0.0)
    return [number for number, share in shares.items() if share >= most], most


def _refusal(files: set[str], why: str) -> str:
    shown = [f"in `{name}`" if name else "in this file" for name in sorted(files)]
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return f"The graph capture {', '.join(shown[:_MOST_NAMED])}{more} is not used: {why}."


_MOST_NAMED = 3


def _candidates(replay: Replay, records: Sequence[Record]) -> tuple[list[int], str]:
    """Positions of the captures that a replay may come from, and the reason if none may."""
    everything, sizes = list(range(len(records))), sizes_of(replay.marks)
    if replay.ident is not None:
        by_name = [at for at in everything if records[at].ident == replay.ident]
        if by_name:
            return by_name, ""
    buckets = {at: bucket for at in everything if (bucket := records[at].bucket) is not None}
    if not sizes or not buckets:
        return everything, ""
    fitting = {at: bucket for at, bucket in buckets.items() if any(size <= bucket < 2 * size for size in sizes)}
    unknown = [at for at in everything if at not in buckets]
    if fitting:
        least = min(fitting.values())
        return unknown + [at for at, bucket in fitting.items() if bucket == least], ""
    return (
        unknown,
        "" if unknown else f"it was captured for a batch of {max(buckets.values()):,}, not of {min(sizes):,}",
    )


def pairs_of(replay: Replay, record: Record) -> Pairs:
    """The launch of `record` that each kernel of `replay` comes from."""
    if not record.is_named or (replay.by_node and len(replay.names) == len(record.names)):
        return _by_place(replay, record)
    names = numbered_texts(replay.names, record.names)
    pairs = graph_match.matched(*names)
    if replay.streams > 1 and not pairs.certain.all():
        by_name = graph_match.by_occurrence(*names)
        pairs = by_name if (by_name.known != ABSENT).any() else pairs
    return pairs


def _by_place(replay: Replay, record: Record) -> Pairs:
    """Pairs by position, if counts are equal and most kernels are of their operators' kind."""
    if len(replay.names) != len(record.names) or (replay.streams > 1 and not replay.by_node):
        return Pairs.none(len(replay.names))
    table = record.source.table
    operators = ["" if row == ABSENT else table.names[table.name[row]] for row in record.cause.tolist()]
    agree = [alike for pair in zip(operators, replay.names, strict=True) if (alike := _same_kind(*pair)) is not None]
    if sum(agree) < LEAST_CERTAIN * len(agree):
        return Pairs.none(len(replay.names))
    return graph_match.by_position(len(replay.names))


OPERATOR_FAMILIES = (
    ("attention", re.compile(r"attention|attn|fmha", re.IGNORECASE)),
    ("convolution", re.compile(r"convolution", re.IGNORECASE)),
    ("normalisation", re.compile(r"(?:rms|layer|group|batch)_?norm", re.IGNORECASE)),
    ("matrix", re.compile(r"gemm", re.IGNORECASE)),
)


def _same_kind(operator: str, kernel: str) -> bool | None:
    """True if an operator and a kernel do the same, None if their names do not show it."""
    family = family_of(kernel)
    named = next((kind for kind, pattern in OPERATOR_FAMILIES if pattern.search(operator)), None)
    wanted = "matrix" if named is None and aten.is_a("product", operator) else named
    return None if wanted is None else family == wanted or wanted in kernel.lower()


def _trusted(table: EventTable, replay: Replay, pairs: Pairs) -> float:
    """Part of a replay's time that is certain; all of it for several streams whose names occur equally often."""
    duration = table.durations_of(replay.work)
    counted = pairs.certain if replay.streams == 1 or (pairs.known == ABSENT).any() else pairs.launch != ABSENT
    return float(duration[counted].sum() / max(int(duration.sum()), 1))


def _by_eager(
    table: EventTable, replays: Sequence[Replay], missing: Sequence[int], records: Sequence[Record]
) -> Joined:
    """The eager iteration that explains most of the time of each replay at `missing`."""
    found: Joined = {}
    known: dict[tuple[str, ...], tuple[Record, Pairs] | None] = {}
    for at in missing:
        replay = replays[at]
        if replay.names not in known:
            known[replay.names] = _best_eager(table, replay, records)
        if (best := known[replay.names]) is not None:
            found[at] = best
    return found


def _best_eager(table: EventTable, replay: Replay, records: Sequence[Record]) -> tuple[Record, Pairs] | None:
    if len(replay.names) < LEAST_EAGER or replay.streams > 1:
        return None
    duration = table.durations_of(replay.work)
    best, most = None, 0.0
    for record in records:
        families = numbered_texts([*map(family_of, replay.names)], [*map(family_of, record.names)])
        pairs = graph_match.spread(graph_match.matched(*families), *families)
        total = max(int(duration.sum()), 1)
        certain, all_ = (duration[mask].sum() / total for mask in (pairs.certain, pairs.launch != ABSENT))
        if certain >= LEAST_ALIKE and all_ >= LEAST_CERTAIN and all_ > most:
            best, most = (record, Pairs(pairs.launch, np.where(pairs.launch == ABSENT, ABSENT, DONOR))), all_
    return best


# The events of a capture


class _Plan(msgspec.Struct, frozen=True):
    """Events that one replay inserts.

    Attributes:
        rows: of the source, in pre-order. start_ns, end_ns: of each, after the launch begins.
        known: the least certain way in which a kernel inside each is known.
        cause: position of each kernel's operator, `ABSENT` for none. grid: that of its launch.
    """

    rows: Rows
    start_ns: Times
    end_ns: Times
    known: Numbers
    cause: Rows
    grid: Grids


class _Insert(msgspec.Struct, frozen=True):
    replay: Replay
    source: EventTable
    plan: _Plan
    known: Numbers


def _inserted(table: EventTable, replays: Sequence[Replay], joined: Joined) -> EventTable:
    """`table` with the captures' events for the replays at the positions in `joined`."""
    inserts = _inserts(table, replays, joined, detailed=True)
    if sum(len(each.plan.rows) for each in inserts) > MOST_INSERTED:
        inserts = _inserts(table, replays, joined, detailed=False)
    first = int(table.file_order.max(initial=ABSENT)) + 1
    names, texts = NumberTable[str](), NumberTable[str]()
    names.numbers(table.names, len(table.names))
    texts.numbers(table.input_texts, len(table.input_texts))
    parts, count, used = [table], 0, 0
    work, cause, known, known_inserted = ([_NOTHING] for _ in range(4))
    grid = [np.zeros((0, 3), np.int64)]
    for each in inserts:
        plan = each.plan
        if count + len(plan.rows) > MOST_INSERTED:
            break
        parts.append(_copied(table, each, first + count, names, texts))
        here = plan.cause != ABSENT
        work.append(table.file_order[each.replay.work[here]].astype(np.int64))
        cause.append(first + count + plan.cause[here])
        known.append(each.known[here].astype(np.int64))
        grid.append(plan.grid[here])
        known_inserted.append(plan.known.astype(np.int64))
        count, used = count + len(plan.rows), used + 1
    if left := len(joined) - used:
        table = table.noted(f"{plural(left, 'replay')} of graphs without operators, for lack of room for their events.")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in sorted(ROW_COLUMNS)
    }
    whole = replace(
        table,
        **columns,
        args=replace(table.args, number=np.concatenate([part.args.number for part in parts])),
        names=names.values(),
        input_texts=texts.values(),
        graphs=(),
        replays=Replays(
            work=np.concatenate(work),
            cause=np.concatenate(cause),
            known=np.concatenate(known).astype(np.int32),
            grid=np.concatenate(grid),
            first_inserted=first,
            known_inserted=np.concatenate(known_inserted).astype(np.int32),
            sources=tuple(sorted({record.source.name for record, _ in joined.values()})),
        ),
    )
    return whole.take(np.lexsort((whole.start_ns, whole.thread)))


def _inserts(table: EventTable, replays: Sequence[Replay], joined: Joined, *, detailed: bool) -> list[_Insert]:
    plans: dict[tuple[int, int], _Plan] = {}
    found = []
    for at, (record, pairs) in sorted(joined.items()):
        key = (id(record), id(pairs))
        if key not in plans:
            plans[key] = _plan(record, pairs, detailed=detailed)
        plan = plans[key]
        if int(plan.end_ns.max(initial=0)) < int(table.end_ns[replays[at].launch] - table.start_ns[replays[at].launch]):
            found.append(_Insert(replays[at], record.source.table, plan, pairs.known))
    return found


def _plan(record: Record, pairs: Pairs, *, detailed: bool) -> _Plan:
    """Events around the paired launches: all functions, or operators and modules only."""
    table, tree = record.source.table, record.source.tree
    cause = np.where(pairs.launch == ABSENT, ABSENT, np.append(record.cause, ABSENT)[pairs.launch])
    wanted = np.zeros(tree.size, np.bool_)
    level = distinct(cause[cause != ABSENT])
    while len(level):
        wanted[level] = True
        above = tree.parent[level]
        level = distinct(above[(above != ABSENT) & ~wanted[np.maximum(above, 0)]])
    rows = np.flatnonzero(wanted)
    rows = rows[(table.start_ns[rows] >= record.begin_ns) & _told(table, rows, detailed=detailed)]
    last = np.searchsorted(rows, tree.last_descendant[rows], side="right") - 1
    start = 1 + 2 * np.arange(len(rows), dtype=np.int64)
    kept = np.zeros(tree.size, np.bool_)
    kept[rows] = True
    # The innermost kept event around each launch, or the launch itself; only operators cause device work.
    is_operator = kept & (table.category[: tree.size] == Category.OPERATOR)
    nearest = np.append(np.where(is_operator, np.arange(tree.size), tree.nearest_ancestor(is_operator)), ABSENT)
    inner = np.append(np.where(kept, np.arange(tree.size), tree.nearest_ancestor(kept)), ABSENT)
    causing = np.where(nearest[cause] == ABSENT, inner[cause], nearest[cause])
    position = np.full(tree.size + 1, ABSENT, np.int64)
    position[rows] = np.arange(len(rows))
    known = np.full(len(rows) + 1, ABSENT, np.int32)
    np.maximum.at(known, position[inner[cause]], pairs.known)  # events without a place go behind the last one
    within = np.stack([np.arange(len(rows)), last + 1], axis=1).reshape(-1)
    known[-1] = ABSENT
    known = np.maximum.reduceat(known, within)[::2] if len(rows) else known[:0]
    grid = np.concatenate([record.grids, np.zeros((1, 3), np.int64)])[pairs.launch]
    return _Plan(rows, start, start[last] + 1, known, position[causing], grid)


def _told(table: EventTable, rows: Rows, *, detailed: bool) -> Mask:
    """Mask of `rows` to insert for the capture; excludes annotations, which would become steps."""
    category = table.category[rows]
    internal = among(table.name[rows], numbers_where(table.names, INTERNAL.search))
    module = among(table.name[rows], numbers_where(table.names, lambda name: name.startswith(MODULE)))
    python = (category == Category.PYTHON) & (~internal if detailed else module)
    told: Mask = python | (category == Category.OPERATOR)
    return told


def _copied(
    table: EventTable, insert: _Insert, first: int, names: NumberTable[str], texts: NumberTable[str]
) -> EventTable:
    """The rows of a plan as events inside the launch."""
    plan, launch = insert.plan, insert.replay.launch
    part = insert.source.take(plan.rows)
    start = int(table.start_ns[launch])
    count = len(plan.rows)
    absent: dict[str, Any] = {name: np.full(count, ABSENT, getattr(table, name).dtype) for name in _NOT_INHERITED}
    return replace(
        part,
        start_ns=start + plan.start_ns,
        end_ns=start + plan.end_ns,
        name=_renumbered(part.name, part.names, names),
        inputs=_renumbered(part.inputs, part.input_texts, texts),
        thread=np.full(count, table.thread[launch], table.thread.dtype),
        forward_thread=np.zeros(count, table.forward_thread.dtype),
        file_order=np.arange(first, first + count).astype(table.file_order.dtype),
        args=replace(part.args, number=np.zeros(count, table.args.number.dtype)),
        **absent,
    )


_NOT_INHERITED = (
    "external_id", "correlation", "event_index", "sequence", "python_id", "python_parent_id", "device", "stream",
    "bytes",
)  # fmt: skip
_NOTHING = np.zeros(0, np.int64)


def _renumbered(column: Numbers, texts: tuple[str, ...], into: NumberTable[str]) -> Numbers:
    """A column of numbers of `texts`, converted to numbers in `into`."""
    used, number = np.unique(column, return_inverse=True)
    return into.numbers((texts[at] for at in used.tolist()), len(used))[number.reshape(-1)]
