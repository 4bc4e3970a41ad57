"""The calls of a profile merged by path, with the account's time, host time and allocated bytes of each path.

Every amount counts for exactly one node, and nodes too small to be listed become one `others` node per parent and
entry. So all sums stay exact: the account's time adds up to the ledger's window, and that of one entry to the entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tb_tidy_plugin.analysis.findings import TracedFinding
from tb_tidy_plugin.ledger.account import Account, account_of
from tb_tidy_plugin.ledger.host import Host
from tb_tidy_plugin.ledger.owners import is_library_frame, ledger_name
from tb_tidy_plugin.profile.memory.allocations import HOST, memory_events
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.flame import Flame, FlameEntry, FlameFrame, FlameKind
from tb_tidy_plugin.sources.frames import parse_frame
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import ABSENT, Category, Ids, Numbers, Rows, Times, blocks_of
from tb_tidy_plugin.trace.sets import distinct, numbered
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.causes import AtWork

MOST_FLAME_NODES = 3000
"""Most nodes listed: those with the largest part of any of the three amounts. A bar of 1,000 pixels shows fewer."""

MOST_OF_A_FINDING = 200
PIECES_AT_ONCE = 1 << 18
"""Pieces of time that are placed together: what is made of all of them would be a quarter of a large trace."""

_ROOT = FlameFrame(kind="root", name="All")
SMALLER = "smaller parts"
STEP_MARK = re.compile(r"ProfilerStep[#*]")
END_OF: dict[AtWork, FlameKind] = {"device": "kernel", "cpu": "cpu", "none": "idle"}
"""Kind of the node that holds time of the account."""

KIND_OF: dict[int, FlameKind] = {Category.OPERATOR: "operator", Category.ANNOTATION: "annotation"}


def flame_of(profile: Profile, traced: Sequence[TracedFinding] = (), most: int = MOST_FLAME_NODES) -> Flame:
    """The merged calls of a profile, over the window of its ledger.

    Args:
        profile: one trace.
        traced: the findings and their events.
        most: nodes that are listed, including the root; `others` are extra.
    """
    account = account_of(profile)
    forest = _Forest()
    node = _nodes(profile, forest)
    around = node[_causes(profile)]
    parts = [
        _added_up(_account_parts(profile, account, forest, around)),
        _added_up(_host_parts(profile, account, forest, around)),
        _added_up(_byte_parts(profile, account, node)),
    ]
    own = np.zeros((len(parts), len(forest.parent)), np.int64)
    for at, (nodes, amounts) in enumerate(parts):
        np.add.at(own[at], nodes, amounts)
    return _listed(forest, own, most, account, {each.finding.id: _of_rows(around, each.rows) for each in traced})


def _added_up(parts: Iterable[tuple[Ids, Times]]) -> tuple[Rows, Times]:
    """The nodes of all `parts`, each once for each part, and their sums."""
    nodes: list[Rows] = [np.empty(0, np.int64)]
    sums: list[Times] = [np.empty(0, np.int64)]
    for of_each, amounts in parts:
        found, number = numbered(of_each)
        sums.append(np.zeros(len(found), np.int64))
        np.add.at(sums[-1], number, amounts)
        nodes.append(found.astype(np.int64, copy=False))
    return np.concatenate(nodes), np.concatenate(sums)


class _Forest:
    """Nodes by parent and frame; node 0 is the root."""

    def __init__(self) -> None:
        self.frames = NumberTable[FlameFrame]()
        self.parent, self.frame = [ABSENT], [self.frames.number(_ROOT)]
        self._known: dict[tuple[int, int], int] = {}

    def children(self, parents: Ids, frames: Ids) -> Rows:
        """The child of each of `parents` with the frame beside it; the parent itself where the frame is `ABSENT`."""
        found = parents.astype(np.int64)
        there = np.flatnonzero(frames != ABSENT)
        count = len(self.frames)
        pairs, number = numbered(parents[there].astype(np.int64) * count + frames[there])
        nodes = [self._child(*divmod(pair, count)) for pair in pairs.tolist()]
        found[there] = np.array(nodes, np.int64)[number] if nodes else ABSENT
        return found

    def _child(self, parent: int, frame: int) -> int:
        node = self._known.get((parent, frame))
        if node is None:
            node = self._known[parent, frame] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(frame)
        return node


def _nodes(profile: Profile, forest: _Forest) -> Numbers:
    """The node of each tree row, or of the row around it if its own is left out; the root comes last."""
    table, tree = profile.table, profile.tree
    category, name = table.category[: tree.size].astype(np.int64), table.name[: tree.size]
    codes, number = numbered(category * len(table.names) + name)
    frames = [_frame(code // len(table.names), table.names[code % len(table.names)]) for code in codes.tolist()]
    numbers = [ABSENT if frame is None else forest.frames.number(frame) for frame in frames]
    frame_of_row = np.array(numbers, np.int32)[number]
    node = np.zeros(tree.size + 1, np.int32)
    order = np.argsort(tree.depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(tree.depth[order])) + 1):
        node[level] = forest.children(node[tree.parent[level]], frame_of_row[level])
    return node


def _frame(category: int, name: str) -> FlameFrame | None:
    """The flame's frame for a host event; None for frames inside PyTorch and the standard library, and for marks."""
    if category == Category.PYTHON:
        if name.startswith(MODULE):
            return FlameFrame(kind="module", name=ledger_name(name.removeprefix(MODULE)))
        frame = parse_frame(name) if is_library_frame(name) else None
        if frame is None:
            return None
        return FlameFrame(
            kind="function", name=ledger_name(frame.function), file=ledger_name(frame.file), line=frame.line
        )
    kind = KIND_OF.get(category)
    return None if kind is None or STEP_MARK.match(name) else FlameFrame(kind=kind, name=_plain(name))


def _plain(name: str) -> str:
    return ledger_name(aten.without_overload(name))


def _causes(profile: Profile) -> Rows:
    """The tree row of each row of the table: itself, or the cause of runtime calls and device work; last `ABSENT`."""
    size, cause = profile.tree.size, np.append(profile.launched_by, ABSENT)
    cause[:size] = np.arange(size)
    return np.where(cause < size, cause, ABSENT)


def _account_parts(profile: Profile, account: Account, forest: _Forest, around: Numbers) -> Iterator[tuple[Ids, Times]]:
    """A node for each piece of the account, below the node it belongs to, and the piece's duration in ns."""
    entries, table = account.ledger.entries, profile.table
    is_of_device = np.array([entry.cause.is_of_device for entry in entries] + [False])
    names = np.append(table.name, np.int32(ABSENT))
    for block in blocks_of(len(account.entry), PIECES_AT_ONCE):
        entry, work, calls = account.entry[block], account.segments.work[block], account.calls[block]
        is_busy = is_of_device[entry]
        row = np.where(is_busy | (calls == ABSENT), work, calls)
        parents = forest.children(around[row], _call_frames(profile, forest, row))
        name = np.where(is_busy, names[work], ABSENT)
        codes, number = numbered(entry.astype(np.int64) * (len(table.names) + 1) + name + 1)
        frames = []
        for code in codes.tolist():
            at, which = divmod(code, len(table.names) + 1)
            text = ledger_name(table.names[which - 1]) if which else entries[at].title
            frame = FlameFrame(kind=END_OF[entries[at].at_work], name=text, entry=at)
            frames.append(forest.frames.number(frame))
        lengths = account.segments.ends[block] - account.segments.starts[block]
        yield forest.children(parents, np.array(frames, np.int64)[number]), lengths


def _call_frames(profile: Profile, forest: _Forest, rows: Ids) -> Rows:
    """The number of the frame of each row's runtime call, `ABSENT` for all other rows."""
    table = profile.table
    is_runtime = np.append(table.category == Category.RUNTIME, False)[rows]
    names, number = numbered(table.name[rows[is_runtime]])
    numbers = [forest.frames.number(FlameFrame(kind="call", name=_plain(table.names[name]))) for name in names.tolist()]
    found = np.full(len(rows), ABSENT, np.int64)
    found[is_runtime] = np.array(numbers, np.int64)[number] if numbers else ABSENT
    return found


def _host_parts(profile: Profile, account: Account, forest: _Forest, around: Numbers) -> Iterator[tuple[Ids, Times]]:
    """The innermost event's node for each stretch of each thread, and the stretch's duration in ns."""
    window, host = account.ledger.window, Host(profile, ABSENT)
    for thread in distinct(profile.table.thread[host.rows]).tolist():
        times, innermost = host.lane(thread)
        inside = np.clip(times, window.start_ns, window.end_ns)
        length = np.diff(inside, append=inside[-1:])
        here = np.flatnonzero((innermost != ABSENT) & (length > 0))
        for block in blocks_of(len(here), PIECES_AT_ONCE):
            row = host.rows[innermost[here[block]]]
            yield forest.children(around[row], _call_frames(profile, forest, row)), length[here[block]]
        host.forget_lanes()


def _byte_parts(profile: Profile, account: Account, node: Numbers) -> Iterator[tuple[Ids, Times]]:
    """The node and size in bytes of each allocation in the window."""
    window, events = account.ledger.window, memory_events(profile)
    is_inside = (events.time_ns >= window.start_ns) & (events.time_ns < window.end_ns)
    made = events.take(is_inside & ~events.failed & (events.bytes > 0))
    on_host = np.array([device.kind == HOST for device in made.devices] + [False])[made.device]
    if not on_host.all():
        made = made.take(~on_host)
    yield node[made.row], made.bytes


def _of_rows(around: Numbers, rows: Rows) -> Rows:
    """The nodes of a finding's events, those with most events first."""
    nodes, count = np.unique(around[rows], return_counts=True)
    found = nodes[np.argsort(-count, kind="stable")]
    named: Rows = found[found != 0]
    return named


def _listed(forest: _Forest, own: Times, most: int, account: Account, findings: dict[str, Rows]) -> Flame:
    """The largest nodes, and the sums of the others."""
    parent, frame = np.array(forest.parent, np.int64), np.array(forest.frame, np.int64)
    frames = list(forest.frames.values())
    total = _totals(parent, own)
    weight = (total / np.maximum(total[:, :1], 1)).max(axis=0)
    weight[0] = np.inf
    order = np.argsort(-weight, kind="stable")[:most]  # keeps the node around a kept one: it is as heavy
    order = order[weight[order] > 0]
    kept = np.sort(order)
    place = np.full(len(parent), ABSENT, np.int64)
    place[kept] = np.arange(len(kept))
    for node in np.flatnonzero(place == ABSENT).tolist():  # parents come first
        place[node] = place[parent[node]]
    is_kept = np.zeros(len(parent), np.bool_)
    is_kept[kept] = True
    dropped = np.flatnonzero(~is_kept & own.any(axis=0))
    entry_of = np.array([ABSENT if each.entry is None else each.entry for each in frames], np.int64)
    groups, number = np.unique(np.stack([place[dropped], entry_of[frame[dropped]]]), axis=1, return_inverse=True)
    sums = np.zeros((len(own), groups.shape[1]), np.int64)
    for at, amounts in enumerate(own[:, dropped]):
        np.add.at(sums[at], number.reshape(-1), amounts)
    others = NumberTable[FlameFrame]()
    other_frames = [
        len(frames) + others.number(FlameFrame(kind="others", name=SMALLER, entry=None if entry == ABSENT else entry))
        for entry in groups[1].tolist()
    ]
    all_frames = np.append(frame[kept], np.array(other_frames, np.int64))
    used, frame_number = np.unique(all_frames, return_inverse=True)
    known = [*frames, *others.values()]
    amounts = np.concatenate([own[:, kept], sums], axis=1).tolist()
    return Flame(
        frames=[known[each] for each in used.tolist()],
        entries=[
            FlameEntry(
                id=each.id,
                title=each.title,
                cause=each.cause,
                group=each.group,
                at_work=each.at_work,
                ns=each.ns_total,
            )
            for each in account.ledger.entries
        ],
        groups=account.ledger.groups,
        parent=[ABSENT, *place[parent[kept[1:]]].tolist(), *groups[0].tolist()],
        frame=frame_number.reshape(-1).tolist(),
        account_ns=amounts[0],
        host_ns=amounts[1],
        bytes=amounts[2],
        steps=max(account.ledger.step_ns.n, 1),
        findings={
            name: list(dict.fromkeys(place[nodes].tolist()))[:MOST_OF_A_FINDING] for name, nodes in findings.items()
        },
    )


def _totals(parent: Rows, own: Times) -> Times:
    """Amounts of each node and all below it; parents come before their children."""
    total = own.T.tolist()
    for node in range(len(parent) - 1, 0, -1):
        above, mine = total[parent[node]], total[node]
        for at, amount in enumerate(mine):
            above[at] += amount
    found: Times = np.array(total, np.int64).T
    return found
