"""The ranks of a run in short: the worst ones as rows of a table, and what is to be said of all."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tidy_plugin.report.rank_model import RankRow, Ranks
from tb_tidy_plugin.report.rank_parts import RANK_PARTS
from tb_tidy_plugin.report.ranks import worst_first
from tb_tidy_plugin.units import Bytes, Nanoseconds

MOST_RANKS = 8
MOST_FINDINGS = 5
NONE = "–"


def headings(ranks: Ranks) -> list[str]:
    """Of the table's columns; parts that no rank has are left out."""
    return ["rank", "step", *_parts(ranks), "memory", "comes last", "others wait"]


def worst_rows(ranks: Ranks) -> list[list[str]]:
    """The ranks that others wait for longest, at most as many as fit on a screen; one text per heading."""
    return [_row(row, _parts(ranks)) for row in worst_first(ranks.rows)[:MOST_RANKS]]


def sentences(ranks: Ranks) -> list[str]:
    """What is to be said beside the table."""
    left_out = len(ranks.rows) - MOST_RANKS
    more = [f"{left_out} more ranks wait for others or have shorter steps."] if left_out > 0 else []
    uneven = [each.text for each in ranks.imbalances if each.notable]
    return [*more, *ranks.notes, *uneven, *_clocks(ranks)]


def shared_lines(ranks: Ranks) -> list[str]:
    """Findings that several ranks have, or one, worst first."""
    shown = [f"{each.message}: {each.text}" for each in ranks.findings[:MOST_FINDINGS]]
    left_out = len(ranks.findings) - MOST_FINDINGS
    return [*shown, *([f"and {left_out} more"] if left_out > 0 else [])]


def _parts(ranks: Ranks) -> list[str]:
    return [part for part in RANK_PARTS if any(row.parts_ns.get(part) for row in ranks.rows)]


def _row(row: RankRow, parts: Sequence[str]) -> list[str]:
    times = {str(part): time for part, time in row.parts_ns.items()}
    arrivals = row.arrivals
    return [
        str(row.rank),
        _time(row.step_ns),
        *(_time(times.get(part)) for part in parts),
        NONE if row.memory_peak_bytes is None else str(Bytes(row.memory_peak_bytes)),
        f"{arrivals.last} of {arrivals.met}" if arrivals else NONE,
        _time(arrivals.waited_ns if arrivals else None),
    ]


def _time(time_ns: int | None) -> str:
    return NONE if time_ns is None else str(Nanoseconds(time_ns))


def _clocks(ranks: Ranks) -> list[str]:
    """Only clocks that are surely apart are worth a word."""
    surely = [row for row in ranks.rows if abs(row.clock_ahead_ns or 0) > (row.clock_error_ns or 0)]
    if not surely:
        return []
    row = max(surely, key=lambda each: abs(each.clock_ahead_ns or 0))
    ahead, error = Nanoseconds(abs(row.clock_ahead_ns or 0)), Nanoseconds(row.clock_error_ns or 0)
    way = "ahead of" if (row.clock_ahead_ns or 0) > 0 else "behind"
    return [
        f"Clocks differ and were set right: rank {row.rank}'s is {ahead} {way} rank {ranks.rows[0].rank}'s (± {error})."
    ]
