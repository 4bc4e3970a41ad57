"""The ledgers of both sides compared: entries of the step that became longer or shorter, and their owners."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from tb_tidy_plugin.compare.model import EntryChange, LedgerChange, OwnerChange
from tb_tidy_plugin.compare.recording import Chosen
from tb_tidy_plugin.ledger.model import Entry, Owner
from tb_tidy_plugin.profile.graphs.replay import least_certain_of
from tb_tidy_plugin.words.vocabulary import KnownBy

_PATH = re.compile(r"[/\\]+")


class _Sum(msgspec.Struct):
    """Times of one entry over the steps of one side, in ns, and how replayed owners are known."""

    entry: Entry
    total_ns: int = 0
    owners: Counter[str] = msgspec.field(default_factory=Counter)
    known_by: dict[str, KnownBy | None] = msgspec.field(default_factory=dict)


class _Account(msgspec.Struct, frozen=True):
    """One side: its entries over all its steps, the ns of each in the mean step, and the duration of that."""

    sums: Mapping[str, _Sum]
    mean_ns: Mapping[str, int]
    steps: int

    @property
    def step_ns(self) -> int:
        return sum(self.mean_ns.values())


def ledger_change(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> LedgerChange | None:
    """The entries of the mean step, paired by cause and kind, and their owners by name.

    None if the ledger of a side does not have the steps that count.

    A mean step is the sum of all steps that count, of all recordings, divided by their number, rounded down. Its
    entries are whole ns that add up to it: the remainder of rounding goes to the entries that lost most by it.
    """
    if not _has_ledgers(base) or not _has_ledgers(candidate):
        return None
    before, after = _account(base), _account(candidate)
    found = [_change(key, before, after) for key in dict.fromkeys([*before.sums, *after.sums])]
    return LedgerChange(
        base_step_ns=before.step_ns,
        candidate_step_ns=after.step_ns,
        entries=sorted(found, key=lambda each: (-abs(each.candidate_ns - each.base_ns), -each.base_ns, each.id)),
    )


def _has_ledgers(side: Sequence[Chosen]) -> bool:
    return bool(side) and all(each.ledger_steps for each in side)


def _account(side: Sequence[Chosen]) -> _Account:
    sums: dict[str, _Sum] = {}
    for each in side:
        for entry in each.recording.report.ledger.entries:
            time_ns = sum(entry.ns_by_step[at] for at in each.ledger_steps)
            if time_ns:
                into = sums.setdefault(entry.id, _Sum(entry))
                into.total_ns += time_ns
                for owner in entry.owners:
                    if name := paired_name(owner):
                        into.owners[name] += owner.ns * time_ns // max(entry.ns_total, 1)
                        if owner.replayed is not None:
                            into.known_by[name] = least_certain_of(owner.replayed, into.known_by.get(name))
    steps = sum(len(each.ledger_steps) for each in side)
    return _Account(sums, shared_out({key: each.total_ns for key, each in sums.items()}, steps), steps)


def shared_out(totals: Mapping[str, int], steps: int) -> dict[str, int]:
    """Each total divided by `steps`, as whole ns that add up to the totals' sum divided by `steps`, rounded down."""
    means = {key: total // steps for key, total in totals.items()}
    left = sum(totals.values()) // steps - sum(means.values())
    for key in sorted(totals, key=lambda each: -(totals[each] % steps))[:left]:
        means[key] += 1
    return means


def _change(key: str, before: _Account, after: _Account) -> EntryChange:
    entry = (after.sums.get(key) or before.sums[key]).entry
    sums = [side.sums[key] for side in (before, after) if key in side.sums]
    owners = [
        OwnerChange(
            name=name,
            base_ns=_of_owner(before, key, name),
            candidate_ns=_of_owner(after, key, name),
            known_by=least_certain_of(*(each.known_by.get(name) for each in sums)),
        )
        for name in dict.fromkeys(name for each in sums for name in each.owners)
    ]
    return EntryChange(
        id=key,
        title=entry.title,
        label=entry.title if entry.at_work == "cpu" else entry.label,
        cause=entry.cause,
        kind=entry.kind,
        base_ns=before.mean_ns.get(key, 0),
        candidate_ns=after.mean_ns.get(key, 0),
        owners=sorted(owners, key=lambda each: (-abs((each.candidate_ns or 0) - (each.base_ns or 0)), each.name)),
    )


def _of_owner(account: _Account, key: str, name: str) -> int | None:
    """Time per step; 0 if the entry does not occur, None if it does and its ledger does not name this owner."""
    if key not in account.sums:
        return 0
    owners = account.sums[key].owners
    return owners[name] // account.steps if name in owners else None


def paired_name(owner: Owner) -> str:
    """The name that pairs owners: not a kernel if there is another name, since each vendor's kernels have their own."""
    if owner.known_by == "stack":
        for function in (owner.library, owner.own):
            if function is not None:
                return f"{_PATH.split(function.file)[-1]}: {function.function}"
    return next(filter(None, (owner.operator, owner.mark, owner.neighbours, owner.kernel)), "")
