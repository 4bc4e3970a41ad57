"""Iterations and replayed graphs of a profile, for the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from tb_tidy_plugin.analysis.decode_floor import Floor, decode_floors
from tb_tidy_plugin.profile.graphs.replay import KNOWN_BY
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.iterations import Iteration, iterations_of, repeated_of
from tb_tidy_plugin.report.serving_model import (
    Attribution,
    DecodeFloor,
    Graphs,
    IterationItem,
    PhaseTotal,
    Repetition,
    Serving,
)
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category
from tb_tidy_plugin.trace.sets import among, distinct

MOST_ITERATIONS = 1000
LEAST_REPEATED = 0.5
"""Least part of an iteration's device time that a repetition must explain to be mentioned."""


def serving_of(profile: Profile) -> Serving | None:
    """The report's part on iterations and graphs; None if there are neither."""
    found, graphs = iterations_of(profile), _graphs(profile)
    if not found and graphs is None:
        return None
    return Serving(
        count=len(found),
        iterations=[_item(each) for each in sorted(found, key=_start)[:MOST_ITERATIONS]],
        phases=_phases(found, decode_floors(profile, found)),
        repetition=_repetition(profile, found),
        graphs=graphs,
    )


def _start(iteration: Iteration) -> int:
    return iteration.host_start_ns


def _item(each: Iteration) -> IterationItem:
    batch = each.batch
    return IterationItem(
        name=each.name,
        phase=batch.phase,
        requests=batch.requests,
        prefills=batch.prefills,
        decodes=batch.decodes,
        tokens=batch.tokens,
        kv_tokens=batch.kv_tokens,
        size=batch.size,
        mode=each.mode,
        graph_launches=each.graph_launches,
        kernels=each.kernels,
        host_ns=each.host_end_ns - each.host_start_ns,
        start_ns=each.start_ns if each.kernels else each.host_start_ns,
        device_ns=each.window_ns,
        busy_ns=each.busy_ns,
        host_late_ns=each.host_late_ns,
        queued_ns=each.queued_ns,
        lead_ns=each.lead_ns,
        gap_ns=each.gap_ns,
        tokens_per_second=each.tokens_per_second,
        time_per_output_token_ns=each.time_per_output_token_ns,
    )


def _phases(found: Sequence[Iteration], floors: Sequence[Floor | None]) -> list[PhaseTotal]:
    by_phase: dict[tuple[str, str, str | None], list[tuple[Iteration, Floor | None]]] = defaultdict(list)
    for each, floor in zip(found, floors, strict=True):
        by_phase[each.batch.phase, each.mode, each.batch.size].append((each, floor))
    groups = sorted(by_phase.values(), key=lambda group: -sum(each.window_ns for each, _ in group))
    return [_phase([each for each, _ in group], [floor for _, floor in group]) for group in groups]


def _phase(group: Sequence[Iteration], floors: Sequence[Floor | None]) -> PhaseTotal:
    known = sorted((floor for floor in floors if floor is not None), key=lambda floor: floor.ns)
    middle = known[len(known) // 2] if 2 * len(known) > len(group) else None
    window = sum(each.window_ns for each in group)
    counted = [each for each in group if each.tokens_per_second is not None]
    tokens, time = sum(each.batch.tokens or 0 for each in counted), sum(each.window_ns for each in counted)
    return PhaseTotal(
        phase=group[0].batch.phase,
        mode=group[0].mode,
        size=group[0].batch.size,
        count=len(group),
        requests=_median(each.batch.requests for each in group),
        kv_tokens=_median(each.batch.kv_tokens for each in group),
        device_ns=_middle([each.window_ns for each in group]),
        busy_share=sum(each.busy_ns for each in group) / max(window, 1),
        host_late_ns=_middle([each.host_late_ns for each in group]),
        queued_ns=_middle([each.queued_ns for each in group]),
        lead_ns=_median(each.lead_ns for each in group),
        tokens_per_second=tokens * 1e9 / time if tokens and time else None,
        time_per_output_token_ns=_median(each.time_per_output_token_ns for each in group),
        tokens=_median(each.batch.tokens for each in group),
        padded=_median(each.batch.padded for each in group),
        graph_launches=_middle([each.graph_launches for each in group]),
        floor=None if middle is None else DecodeFloor(middle.weight_bytes, middle.kv_bytes, middle.ns),
    )


def _median(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return _middle(known) if known else None


def _middle(values: Sequence[int]) -> int:
    return round(float(np.median(values)))


def _repetition(profile: Profile, found: Sequence[Iteration]) -> Repetition | None:
    if not found:
        return None
    table, launch = profile.table, profile.launch
    longest = max(found, key=lambda each: each.window_ns)
    rows = np.flatnonzero((table.category == Category.KERNEL) & (launch != ABSENT))
    started = table.start_ns[launch[rows]]
    rows = rows[(started >= longest.host_start_ns) & (started < longest.host_end_ns)]
    rows = rows[np.argsort(table.start_ns[rows], kind="stable")]
    repeated = repeated_of(table.name[rows].astype(np.int64), table.durations_of(rows))
    if repeated is None or repeated.share < LEAST_REPEATED:
        return None
    return Repetition(count=repeated.count, kernels=repeated.kernels, share=repeated.share)


def _graphs(profile: Profile) -> Graphs | None:
    table, launch, replayed = profile.table, profile.launch, profile.replayed
    calls = profile.matching(GRAPH_LAUNCH, Category.RUNTIME)
    work = np.flatnonzero(table.is_category(DEVICE_WORK) & among(launch, calls))
    if not len(work):
        return None
    known, duration = replayed.known[work], table.durations_of(work)
    attribution = []
    for number, name in (*enumerate(KNOWN_BY), (ABSENT, None)):
        mine = known == number
        if mine.any():
            attribution.append(Attribution(known_by=name, kernels=int(mine.sum()), time_ns=int(duration[mine].sum())))
    return Graphs(
        launches=len(distinct(launch[work])),
        kernels=len(work),
        time_ns=int(duration.sum()),
        attribution=attribution,
        sources=list(table.replays.sources) if table.replays is not None else [],
    )
