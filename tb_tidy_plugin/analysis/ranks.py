"""The ranks of a run compared: what each spends its steps on, who comes last, and which work is shared unevenly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from msgspec.structs import asdict

from tb_tidy_plugin.analysis.present import doubts_about, missing_of, present_text, world_size_of
from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.stragglers import (
    CollectivePlace,
    arrivals_of,
    clock_errors_ns,
    comparable_steps,
    meeting_places_of,
)
from tb_tidy_plugin.profile.ranks.summary import RankFinding, RankSummary
from tb_tidy_plugin.report import rank_model as model
from tb_tidy_plugin.report.rank_model import RANK_PARTS
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.words.units import Bytes, Nanoseconds, Share
from tb_tidy_plugin.words.vocabulary import RankPart

Shared: TypeAlias = RankPart | Literal["memory"]

SHARED_OUT: dict[Shared, str] = {
    "loading": "waiting for data",
    "compute": "compute",
    "host": "Python and launching",
    "memory": "memory",
}
"""Work that ranks should share evenly, in words. Communication is absent: a late rank has less of it."""

NOTABLE_SHARE = 0.1
"""Share of the step: ranks that share processor cores differ by up to 6 % on any of these without a cause."""

NOTABLE_RATIO = 1.1
ONE_DAY_NS = 86_400 * 10**9
"""Most that two clocks of one job differ: a trace that was cut short has lost the origin of its times."""

_MOST_PLACES = 50
MOST_SHARED = 200


def ranks_of(runs: Sequence[Run]) -> model.Ranks:
    """The comparison of these ranks; of several recordings, the latest with most ranks counts."""
    run = max(runs, key=lambda each: (len(each.ranks), min(rank.origin_ns for rank in each.ranks)))
    summaries = [rank for each in runs for rank in each.ranks]
    notes = doubts_about(summaries)
    if len(runs) > 1 and not notes:
        notes.append(f"Each rank has up to {len(runs)} recordings; the figures are those of the latest one.")
    return model.Ranks(
        world_size=world_size_of(summaries),
        missing=missing_of(summaries),
        present=present_text(summaries),
        notes=notes,
        step_ns=run.step_ns or None,
        steps=comparable_steps(run),
        rows=list(_rows(run)),
        imbalances=list(_imbalances(run)),
        places=[_place(place) for place in meeting_places_of(run)[:_MOST_PLACES]],
        findings=sorted(_shared(run.ranks), key=lambda each: (-each.saving_ns, -each.cost_ns, each.id))[:MOST_SHARED],
    )


def _rows(run: Run) -> Iterator[model.RankRow]:
    columns = (run.ranks, arrivals_of(run), run.clocks_ns, clock_errors_ns(run))
    for rank, arrival, ahead_ns, error_ns in zip(*columns, strict=True):
        known = ahead_ns is not None and error_ns is not None and abs(ahead_ns) < ONE_DAY_NS
        yield model.RankRow(
            rank=rank.rank,
            worker=rank.worker,
            span=rank.span,
            step_ns=rank.step_ns,
            parts_ns={part: rank.typical[part] for part in RANK_PARTS if part in rank.typical},
            memory_peak_bytes=rank.memory_peak_bytes,
            arrivals=None if arrival is None else model.Arrivals(**asdict(arrival)),
            clock_ahead_ns=ahead_ns if known else None,
            clock_error_ns=error_ns if known else None,
            findings=len(rank.findings),
        )


def _imbalances(run: Run) -> Iterator[model.Imbalance]:
    """Loading, compute and the host, then memory; skips what no rank has."""
    for what in SHARED_OUT:
        if what == "memory":
            values = {rank.rank: rank.memory_peak_bytes for rank in run.ranks if rank.memory_peak_bytes is not None}
        else:
            values = {rank.rank: rank.typical.get(what, 0) for rank in run.ranks}
        if len(values) > 1 and max(values.values()) > 0:
            yield _imbalance(what, values, run.step_ns)


def _imbalance(what: Shared, values: dict[int, int], step_ns: int) -> model.Imbalance:
    rank, most = max(values.items(), key=lambda item: item[1])
    middle = round(float(np.median([*values.values()])))
    ratio = most / middle if middle else None
    whole = middle if what == "memory" else step_ns
    uneven = ratio is None or ratio >= NOTABLE_RATIO
    return model.Imbalance(
        what=what,
        rank=rank,
        most=most,
        middle=middle,
        ratio=ratio,
        notable=uneven and most - middle >= NOTABLE_SHARE * whole,
        text=_imbalance_text(what, rank, most, middle, ratio),
    )


def _imbalance_text(what: Shared, rank: int, most: int, middle: int, ratio: float | None) -> str:
    amount, usual = (str(Bytes(each) if what == "memory" else Nanoseconds(each)) for each in (most, middle))
    has = f"holds {amount} at its peak" if what == "memory" else f"spends {amount} of a step on {SHARED_OUT[what]}"
    if ratio is None:
        return f"Rank {rank} {has}, the middle rank none."
    if most == middle:
        return f"Rank {rank} {has}, as the middle rank does."
    more = f"{ratio:.1f} times" if ratio >= 2 else f"{Share(ratio - 1)} more than"
    return f"Rank {rank} {has}: {more} the middle rank's {usual}."


def _place(place: CollectivePlace) -> model.MeetingPlace:
    site = place.operation.site
    return model.MeetingPlace(
        kind=place.operation.kind,
        group=place.operation.group,
        bytes=None if place.operation.bytes == ABSENT else place.operation.bytes,
        file=site.file if site else "",
        line=site.line if site else None,
        met=place.met,
        last_rank=place.last_rank,
        last=place.last,
        waited_ns=place.waited_ns,
    )


def _shared(ranks: Sequence[RankSummary]) -> Iterator[model.SharedFinding]:
    having: dict[str, list[tuple[int, RankFinding]]] = {}
    for rank in ranks:
        for finding in rank.findings:
            having.setdefault(finding.id, []).append((rank.rank, finding))
    for found in having.values():
        worst_rank, worst = max(found, key=lambda item: (item[1].saving_ns, item[1].cost_ns, -item[0]))
        numbers = [rank for rank, _ in found]
        text = _shared_text(numbers, len(ranks), worst_rank)
        yield model.SharedFinding(**asdict(worst), ranks=numbers, worst_rank=worst_rank, text=text)


def _shared_text(having: Sequence[int], of: int, worst: int) -> str:
    if len(having) == 1:
        return f"on rank {worst} only"
    everyone = "both" if of == 2 else f"all {of}"
    return f"on {everyone if len(having) == of else f'{len(having)} of {of}'} ranks, worst rank {worst}"
