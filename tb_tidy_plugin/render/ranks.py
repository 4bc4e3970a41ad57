"""The ranks of a run as blocks: the worst ones in a table, then remarks on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from tb_tidy_plugin.analysis.rank_parts import RANK_PARTS
from tb_tidy_plugin.analysis.ranks import worst_first
from tb_tidy_plugin.render.document import Block, Line, Paragraph, Table, sentence
from tb_tidy_plugin.report.model import RunReport
from tb_tidy_plugin.report.rank_model import RankRow, Ranks
from tb_tidy_plugin.units import Bytes, Count, Nanoseconds, plural

MOST_RANKS = 8
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


class ToldOnce(NamedTuple):
    """A run whose ranks' findings are told once.

    Attributes:
        run: its findings are those of the run and of its ranks; those of its profiles are what no rank's share.
        elsewhere: how many findings of each profile are among those of the run.
    """

    run: RunReport
    elsewhere: tuple[int, ...]


def told_once(run: RunReport) -> ToldOnce:
    """The run with each finding of its ranks among its own, as the worst rank has it."""
    rows = {row.rank: (row.worker, row.span) for row in run.ranks.rows} if run.ranks else {}
    known = {
        (profile.rank, finding.id): finding
        for profile in run.profiles
        if profile.rank is not None and (profile.worker, profile.span) == rows.get(profile.rank)
        for finding in profile.findings
    }
    shared = {
        each.id: msgspec.structs.replace(finding, ranks=each.ranks, message=f"{finding.message}: {each.text}")
        for each in (run.ranks.findings if run.ranks else ())
        if (finding := known.get((each.worst_rank, each.id)))
    }
    left = [
        [each for each in profile.findings if profile.rank is None or each.id not in shared] for profile in run.profiles
    ]
    profiles = [msgspec.structs.replace(profile, findings=own) for profile, own in zip(run.profiles, left, strict=True)]
    together = msgspec.structs.replace(run, findings=[*run.findings, *shared.values()], profiles=profiles)
    counts = (len(profile.findings) - len(own) for profile, own in zip(run.profiles, left, strict=True))
    return ToldOnce(together, tuple(counts))


def elsewhere_text(count: int) -> str:
    """What stands in the place of a profile's findings that are told with all ranks."""
    return f"{plural(count, 'finding is', 'findings are')} listed above, for all ranks."


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
