"""The ranks of a run as blocks: the worst ones in a table, then remarks on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_tidy_plugin.analysis.rank_parts import RANK_PARTS
from tb_tidy_plugin.analysis.ranks import worst_first
from tb_tidy_plugin.render.document import Block, Fold, Line, Listing, Paragraph, Table, message, sentence
from tb_tidy_plugin.render.words import more
from tb_tidy_plugin.report.rank_model import RankRow, Ranks
from tb_tidy_plugin.units import Bytes, Count, Nanoseconds, plural

MOST_RANKS = 8
MOST_FINDINGS = 5
NONE = "–"


def ranks_blocks(ranks: Ranks | None) -> Iterator[Block]:
    """The ranks that others wait for longest, as many as fit on a screen; nothing if ranks were not compared."""
    if ranks is None:
        return
    parts = [part for part in RANK_PARTS if any(row.parts_ns.get(part) for row in ranks.rows)]
    titles = ("rank", "step", *parts, "memory", "comes last", "others wait")
    rows = tuple(_row(row, parts) for row in worst_first(ranks.rows)[:MOST_RANKS])
    yield sentence(ranks.present)
    yield Table((), titles, rows)
    if (left_out := len(ranks.rows) - MOST_RANKS) > 0:
        fewer = plural(left_out, "more rank waits for others or has", "more ranks wait for others or have")
        yield Paragraph((f"{fewer} shorter steps.",))
    uneven = [each.text for each in ranks.imbalances if each.notable]
    yield from map(sentence, (*ranks.notes, *uneven, *_clocks(ranks)))
    if ranks.findings:
        shared = [(message(f"{each.message}: {each.text}"),) for each in ranks.findings[:MOST_FINDINGS]]
        listing = Listing((*shared, *more(len(ranks.findings) - MOST_FINDINGS)))
        yield Fold(("Findings of the ranks",), (listing,))


def _row(row: RankRow, parts: Sequence[str]) -> tuple[Line, ...]:
    times = {str(part): time for part, time in row.parts_ns.items()}
    arrivals, memory = row.arrivals, row.memory_peak_bytes
    return (
        (str(row.rank),),
        _time(row.step_ns),
        *(_time(times.get(part)) for part in parts),
        (NONE if memory is None else str(Bytes(memory)),),
        (f"{Count(arrivals.last)} of {Count(arrivals.met)}" if arrivals else NONE,),
        _time(arrivals.waited_ns if arrivals else None),
    )


def _time(time_ns: int | None) -> Line:
    return (NONE if time_ns is None else str(Nanoseconds(time_ns)),)


def _clocks(ranks: Ranks) -> Iterator[str]:
    """A sentence about clocks, if they differ by more than the error."""
    surely = [row for row in ranks.rows if abs(row.clock_ahead_ns or 0) > (row.clock_error_ns or 0)]
    if surely:
        row = max(surely, key=lambda each: abs(each.clock_ahead_ns or 0))
        ahead, error = Nanoseconds(abs(row.clock_ahead_ns or 0)), Nanoseconds(row.clock_error_ns or 0)
        first_rank = f"rank {ranks.rows[0].rank}'s (± {error})"
        way = "ahead of" if (row.clock_ahead_ns or 0) > 0 else "behind"
        yield f"Clocks differ and were set right: rank {row.rank}'s is {ahead} {way} {first_rank}."
