"""The ranks of a run as blocks: the worst ones in a table, then remarks on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Paragraph, Table, sentence
from tb_tidy_plugin.report.model import ProfileReport, RunReport
from tb_tidy_plugin.report.rank_model import RANK_PARTS, RankRow, Ranks, worst_first
from tb_tidy_plugin.words.units import Bytes, Count, Nanoseconds, plural
from tb_tidy_plugin.words.vocabulary import RankPart

MOST_RANKS = 8
NONE = "–"


def ranks_blocks(ranks: Ranks | None) -> Iterator[Block]:
    """The ranks that others wait for longest, as many as fit on a screen; empty if ranks were not compared."""
    if ranks is None:
        return
    parts = [part for part in RANK_PARTS if any(_matters(row, part) for row in ranks.rows)]
    columns: dict[str, Callable[[RankRow], str]] = {"rank": _rank, "step": _step}
    columns |= {part: partial(_part, part=part) for part in parts}
    if any(row.memory_peak_bytes is not None for row in ranks.rows):
        columns["memory"] = _memory
    if any(row.arrivals for row in ranks.rows):
        columns |= {"comes last": _last, "others wait": _waited, "waits": _waits}
    shown = worst_first(ranks.rows)[:MOST_RANKS]
    yield sentence(ranks.present)
    yield Table((), tuple(columns), tuple(tuple((cell(row),) for cell in columns.values()) for row in shown))
    if (left_out := len(ranks.rows) - MOST_RANKS) > 0:
        fewer = plural(left_out, "more rank waits for others or has", "more ranks wait for others or have")
        yield Paragraph((f"{fewer} shorter steps.",))
    uneven = [each.text for each in ranks.imbalances if each.notable]
    yield from map(sentence, (*ranks.notes, *uneven, *_clocks(ranks)))


class ToldOnce(NamedTuple):
    """A run that shows each finding of its ranks once.

    Attributes:
        run: its findings are those of the run and of its ranks; profiles keep only findings of no rank.
        elsewhere: number of each profile's findings that are among those of the run.
    """

    run: RunReport
    elsewhere: tuple[int, ...]


def told_once(run: RunReport) -> ToldOnce:
    """The run with its ranks' findings among its own, as the worst rank has them."""
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


class ShownProfiles(NamedTuple):
    """The profiles of a run that are shown, and the rest in a sentence.

    Attributes:
        profiles: each with the number of its findings that are among those of the run.
        left_out: empty if all are shown.
    """

    profiles: tuple[tuple[ProfileReport, int], ...]
    left_out: str


def shown_profiles(told: ToldOnce, *, verbose: bool = False) -> ShownProfiles:
    """The profiles to show: of many ranks those with findings of their own, and the one that others wait for longest.

    Also those with rules that failed. All profiles if few ranks were recorded, or for a `verbose` report.
    """
    run, elsewhere = told
    counted = tuple(zip(run.profiles, elsewhere, strict=True))
    rows = worst_first(run.ranks.rows) if run.ranks else []
    if verbose or len(rows) <= MOST_RANKS:
        return ShownProfiles(counted, "")
    shown = {rows[0].rank, None, *(profile.rank for profile in run.profiles if profile.findings or _failed(profile))}
    step_ns = [row.step_ns for row in rows if row.rank not in shown and row.step_ns is not None]
    left_out = plural(
        len({profile.rank for profile in run.profiles} - shown),
        "more rank has no finding of its own",
        "more ranks have no finding of their own",
    )
    lengths = " to ".join(dict.fromkeys(str(Nanoseconds(pick(step_ns))) for pick in (min, max))) if step_ns else ""
    takes = f" (steps of {lengths})" if lengths else ""
    chosen = tuple((profile, count) for profile, count in counted if profile.rank in shown)
    if len(chosen) == len(counted):
        return ShownProfiles(counted, "")
    return ShownProfiles(chosen, f"{left_out}{takes}. `tb-tidy check -v` shows each.")


def _failed(profile: ProfileReport) -> bool:
    return any(outcome.status == "failed" for outcome in profile.outcomes)


def elsewhere_text(count: int) -> str:
    """The text in place of a profile's findings that are shown for all ranks together."""
    return f"{plural(count, 'finding is', 'findings are')} listed above, for all ranks."


def _matters(row: RankRow, part: RankPart) -> bool:
    time_ns = row.parts_ns.get(part, 0)
    return time_ns > 0 and time_ns >= words.LEAST_SHARE * (row.step_ns or 0)


def _rank(row: RankRow) -> str:
    return str(row.rank)


def _step(row: RankRow) -> str:
    return _time(row.step_ns)


def _part(row: RankRow, *, part: RankPart) -> str:
    return _time(row.parts_ns.get(part))


def _memory(row: RankRow) -> str:
    return NONE if row.memory_peak_bytes is None else str(Bytes(row.memory_peak_bytes))


def _last(row: RankRow) -> str:
    return f"{Count(row.arrivals.last)} of {Count(row.arrivals.met)}" if row.arrivals else NONE


def _waited(row: RankRow) -> str:
    return _time(row.arrivals.waited_ns if row.arrivals else None)


def _waits(row: RankRow) -> str:
    return _time(row.arrivals.waits_ns if row.arrivals else None)


def _time(time_ns: int | None) -> str:
    return NONE if time_ns is None else str(Nanoseconds(time_ns))


def _clocks(ranks: Ranks) -> Iterator[str]:
    """A sentence about clocks, if they differ by more than the error."""
    surely = [row for row in ranks.rows if abs(row.clock_ahead_ns or 0) > (row.clock_error_ns or 0)]
    if surely:
        row = max(surely, key=lambda each: abs(each.clock_ahead_ns or 0))
        ahead, error = Nanoseconds(abs(row.clock_ahead_ns or 0)), Nanoseconds(row.clock_error_ns or 0)
        first_rank = f"rank {ranks.rows[0].rank}'s (± {error})"
        way = "ahead of" if (row.clock_ahead_ns or 0) > 0 else "behind"
        yield f"Clocks differ and were aligned: rank {row.rank}'s is {ahead} {way} {first_rank}."
