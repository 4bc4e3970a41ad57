"""The gaps of a profile's devices, from the account behind its ledger."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.owners import ledger_name
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.idle import IdleGaps
from tb_tidy_plugin.trace.columns import ABSENT, Ids
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.causes import Cause

MOST_GAPS = 20_000
"""Most gaps listed, the longest ones: 1 to 2 MB of text."""


def idle_gaps(profile: Profile, most: int = MOST_GAPS) -> IdleGaps:
    """The `most` longest gaps in which the device idles, and their causes; empty if no device worked."""
    account = account_of(profile)
    segments, entries = account.segments, account.ledger.entries
    of_host = np.array([not each.cause.is_of_device and each.cause is not Cause.CPU for each in entries], bool)
    idle = np.flatnonzero(of_host[account.entry])
    starts, ends = segments.starts[idle], segments.ends[idle]
    is_first = np.append(True, starts[1:] != ends[:-1])[: len(idle)]
    opens = np.flatnonzero(is_first)
    closes = np.append(opens[1:], len(idle)) - 1
    gap_starts, gap_ends = starts[opens], ends[closes[: len(opens)]]
    longest = np.argsort(gap_starts - gap_ends, kind="stable")
    chosen = np.sort(longest[:most])
    number = np.full(len(opens), ABSENT, np.int64)
    number[chosen] = np.arange(len(chosen))
    # Segments by gap and entry, longest first: the first of each pair stands for the part.
    gap = number[np.cumsum(is_first) - 1]
    listed = np.flatnonzero(gap != ABSENT)
    segment = idle[listed]
    pair = gap[listed] * len(entries) + account.entry[segment]
    length = segments.ends[segment] - segments.starts[segment]
    order = np.lexsort((-length, pair))
    pairs, at = np.unique(pair[order], return_index=True)
    ns = np.add.reduceat(length[order], at) if len(at) else np.zeros(0, np.int64)
    by_time = np.lexsort((-ns, pairs // max(len(entries), 1)))
    pairs, ns, shown = pairs[by_time], ns[by_time], segment[order][at][by_time]
    names = NumberTable[str]()
    calls, work = account.calls[shown], segments.work[shown]
    call_name, work_name = _names(profile, calls, names), _names(profile, work, names)
    window = account.ledger.window
    return IdleGaps(
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        least_ns=int((gap_ends - gap_starts)[longest[most]]) if len(longest) > most else 0,
        entries=[each.id for each in entries],
        names=list(names.values()),
        starts=gap_starts[chosen].tolist(),
        ends=gap_ends[chosen].tolist(),
        first=np.searchsorted(pairs // max(len(entries), 1), np.arange(len(chosen) + 1)).tolist(),
        entry=(pairs % max(len(entries), 1)).tolist(),
        ns=ns.tolist(),
        call=_ids(profile, calls),
        call_name=call_name,
        work=_ids(profile, work),
        work_name=work_name,
    )


def _ids(profile: Profile, rows: Ids) -> list[int]:
    found: list[int] = np.where(rows == ABSENT, ABSENT, profile.table.file_order[rows]).tolist()
    return found


def _names(profile: Profile, rows: Ids, names: NumberTable[str]) -> list[int]:
    table = profile.table
    return [
        ABSENT if row == ABSENT else names.number(ledger_name(table.names[table.name[row]])) for row in rows.tolist()
    ]
