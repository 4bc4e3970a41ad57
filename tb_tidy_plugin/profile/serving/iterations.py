"""Iterations of inference servers: the batches that vLLM, SGLang and xDiT mark, each with its device work.

A kernel belongs to the iteration whose mark contains its launch, whenever it runs. So recordings that were cut between
host and device, or begin with a backlog, give the same figures as whole ones. The device's window is that of the stream
with most time: a server's side streams run far ahead.

Between iterations, the device waits for Python functions of the engine: the scheduler, the sampler, the tokeniser.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.events.intervals import Intervals, Spans
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.iteration_marks import Batch, merged
from tb_tidy_plugin.profile.steps.steps import SERVING_STEP
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, ExpertSizes, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.vocabulary import GraphMode

LEAST_BLOCK = 0.5
"""Least part of a mark for which a copy must hold the host to count as a new start."""

LEAST_GAP_NS = 20_000
"""Shortest pause between kernels that counts; shorter ones are the device's own pace."""

REPEATS = range(2, 4097)


class Iteration(msgspec.Struct, frozen=True):
    """One batch of a server.

    Attributes:
        name: of the outermost annotation. batch: content of the annotations.
        thread: of the marks. host_start_ns, host_end_ns: the outermost mark.
        mode: one graph (of a diffusion model one per denoising step), several pieces, or none.
        graph_launches: calls that replayed a graph. kernels: pieces of device work.
        start_ns, end_ns: the device's window; both are the mark's end if the device did nothing.
        busy_ns: of the window. host_late_ns, queued_ns: pauses of more than 20 µs in it, by whether the work behind
            them was launched after the pause began or before.
        lead_ns: from the launch of the window's first kernel to its start; of the first one behind a copy that the host
            waited for, if there is one.
        gap_ns: from the window's end to the next iteration's window on the thread, 0 if they overlap; None for the
            last one.
    """

    name: str
    batch: Batch
    thread: int
    host_start_ns: int
    host_end_ns: int
    mode: GraphMode
    graph_launches: int
    kernels: int
    start_ns: int
    end_ns: int
    busy_ns: int
    host_late_ns: int
    queued_ns: int
    lead_ns: int | None
    gap_ns: int | None = None

    @property
    def window_ns(self) -> int:
        """Length of the device's window, or of the mark if the device did nothing."""
        return self.end_ns - self.start_ns or self.host_end_ns - self.host_start_ns

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens computed per second of the window, None if the annotations do not count them."""
        if not self.batch.tokens or self.window_ns <= 0:
            return None
        return self.batch.tokens * 1e9 / self.window_ns

    @property
    def time_per_output_token_ns(self) -> int | None:
        """Time that a decoding request waits for its next token: the window and the pause behind it."""
        return self.window_ns + (self.gap_ns or 0) if self.batch.decodes else None


def iterations_of(profile: Profile) -> tuple[Iteration, ...]:
    """The iterations of a profile in order of time, thread by thread; empty if no server marks any."""
    table = profile.table
    marks = np.flatnonzero((table.category == Category.ANNOTATION) & table.is_named(SERVING_STEP.match))
    found: list[Iteration] = []
    for thread in distinct(table.thread[marks]).tolist():
        found += _with_gaps(list(_of_thread(profile, marks[table.thread[marks] == thread])))
    return tuple(found)


def mark_of(profile: Profile, iteration: Iteration) -> int:
    """Row of an iteration's outermost annotation."""
    table = profile.table
    at = (table.category == Category.ANNOTATION) & (table.thread == iteration.thread)
    return int(np.flatnonzero(at & (table.start_ns == iteration.host_start_ns))[0])


def _of_thread(profile: Profile, marks: Rows) -> Iterator[Iteration]:
    table, launch = profile.table, profile.launch
    marks = marks[np.lexsort((-table.end_ns[marks], table.start_ns[marks]))]
    thread = int(table.thread[marks[0]])
    reach = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, table.end_ns[marks]))[:-1]
    first = np.flatnonzero(table.start_ns[marks] >= reach)
    work = np.flatnonzero(launch != ABSENT)
    work = work[table.thread[launch[work]] == thread]
    work = work[np.argsort(table.start_ns[launch[work]], kind="stable")]
    launched = table.start_ns[launch[work]]
    graphs = numbers_where(table.names, re.compile(GRAPH_LAUNCH).match)
    for group in np.split(marks, first[1:]):
        outer = int(group[0])
        start, end = int(table.start_ns[outer]), int(table.end_ns[outer])
        mine = work[np.searchsorted(launched, start) : np.searchsorted(launched, end)]
        names = [table.names[number] for number in table.name[group].tolist()]
        batch = merged(names)
        calls = distinct(launch[mine])
        replays = int(among(table.name[calls], graphs).sum())
        blank = Iteration(names[0], batch, thread, start, end, "no_device", replays, len(mine), end, end, 0, 0, 0, None)
        yield _measured(table, launch, mine, blank) if len(mine) else blank


def _measured(table: EventTable, launch: Rows, work: Rows, blank: Iteration) -> Iteration:
    """`blank` with its device figures, from `work` launched within its mark."""
    duration = table.durations_of(work)
    lanes = list(zip(table.device[work].tolist(), table.stream[work].tolist(), strict=True))
    time: Counter[tuple[int, int]] = Counter()
    for lane, ns in zip(lanes, duration.tolist(), strict=True):
        time[lane] += ns
    busiest = time.most_common(1)[0][0]
    on_it = work[[lane == busiest for lane in lanes]]
    start, end = int(table.start_ns[on_it].min()), int(table.end_ns[on_it].max())
    busy = Intervals.union(np.maximum(table.start_ns[work], start), np.minimum(table.end_ns[work], end))
    late, queued = _pauses(table, launch, work, busy)
    mode: GraphMode = "eager"
    if blank.graph_launches:
        mode = "graph" if blank.graph_launches == 1 or blank.batch.phase == "diffusion" else "piecewise"
    return replace(
        blank,
        mode=mode,
        start_ns=start,
        end_ns=end,
        busy_ns=busy.total_ns,
        host_late_ns=late,
        queued_ns=queued,
        lead_ns=_lead(table, launch, on_it, LEAST_BLOCK * (blank.host_end_ns - blank.host_start_ns)),
    )


def _lead(table: EventTable, launch: Rows, on_it: Rows, least_ns: float) -> int | None:
    """Time from the launch of the first of `on_it` to its start; behind a copy that held the host for `least_ns`."""
    calls = launch[on_it]
    blocks = (table.category[on_it] == Category.COPY) & (table.durations_of(calls) > least_ns)
    free = int(table.end_ns[calls[blocks]].max(initial=np.iinfo(np.int64).min))
    behind = on_it[table.start_ns[launch[on_it]] >= free]
    if not len(behind):
        return None
    first = int(behind[np.argmin(table.start_ns[behind])])
    return int(table.start_ns[first] - table.start_ns[launch[first]])


def _pauses(table: EventTable, launch: Rows, work: Rows, busy: Intervals) -> tuple[int, int]:
    """Pauses of more than `LEAST_GAP_NS`: those in which the host was late, and those before queued work."""
    begins, ends = busy.ends[:-1], busy.starts[1:]
    long = ends - begins > LEAST_GAP_NS
    begins, ends = begins[long], ends[long]
    order = work[np.argsort(table.start_ns[work], kind="stable")]
    follows = order[np.searchsorted(table.start_ns[order], ends)]
    late = table.start_ns[launch[follows]] > begins
    length: Times = ends - begins
    return int(length[late].sum()), int(length[~late].sum())


def _with_gaps(found: list[Iteration]) -> list[Iteration]:
    """The iterations, each with the pause before the next one."""
    return [
        replace(each, gap_ns=max(following.start_ns - each.end_ns, 0)) for each, following in pairwise(found)
    ] + found[-1:]


class Repeated(msgspec.Struct, frozen=True):
    """A repeated sequence of kernels: a layer, or a denoising step.

    Attributes:
        count: number of repetitions. kernels: its length. share: of the device's time, 0 to 1.
    """

    count: int
    kernels: int
    share: float


def repeated_of(names: Rows, duration_ns: Times) -> Repeated | None:
    """The sequence that explains most of the time of kernels in order, given as numbers of their names.

    For each repeated name, the candidate is the most common stretch from one occurrence to the next.
    """
    total = int(duration_ns.sum())
    if not total:
        return None
    # Stretches are compared by polynomial hashes of their kernels, modulo 2^64.
    with np.errstate(over="ignore"):
        power = np.cumprod(np.append(np.uint64(1), np.full(len(names), np.uint64(0x9E3779B97F4A7C15))))
        before = np.append(np.uint64(0), np.cumsum((names.astype(np.uint64) + np.uint64(1)) * power[1:]))
    spent = np.append(0, np.cumsum(duration_ns))
    best: Repeated | None = None
    order = np.argsort(names, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(names[order])) + 1):
        if len(places) - 1 not in REPEATS:
            continue
        low, high = places[:-1], places[1:]
        with np.errstate(over="ignore"):
            content = (before[high] - before[low]) * power[len(names) - low]
        alike, count = np.unique(np.stack([content, (high - low).astype(np.uint64)]), axis=1, return_counts=True)
        most = int(count.argmax())
        chosen = (content == alike[0, most]) & (high - low == int(alike[1, most]))
        share = float((spent[high[chosen]] - spent[low[chosen]]).sum() / total)
        if int(count[most]) in REPEATS and (best is None or share > best.share):
            best = Repeated(int(count[most]), int(alike[1, most]), share)
    return best


def expert_sizes(profile: Profile) -> ExpertSizes | None:
    """The sizes of the experts; None if they are unknown, or spread over ranks.

    The number of tokens from other ranks is not recorded.
    """
    return profile.table.experts if (profile.metadata.world_size or 1) == 1 else None


def experts_read(profile: Profile) -> int:
    """Bytes that the experts of all batches read; 0 if unknown, or if a batch does more than decode."""
    sizes, batches = expert_sizes(profile), [each.batch for each in iterations_of(profile)]
    if sizes is None or any(each.phase != "decode" for each in batches):
        return 0
    return sum(sizes.bytes_read(each.tokens or 0) for each in batches)


class HoldingUp(msgspec.Struct, frozen=True):
    """A function that the device waits for.

    Attributes:
        name: its file and name.
        calls: spans in ns without device work, by row of the call, in order of time for each thread.
    """

    name: str
    calls: dict[int, Spans]

    @property
    def waits_ns(self) -> int:
        """Time in ns that the device waits for all calls."""
        return sum(end - start for spans in self.calls.values() for start, end in spans)


def functions_that_hold_up(profile: Profile, function: str, *, inside: bool) -> list[HoldingUp]:
    """Functions on the threads of iterations that the device waits for, in order of their first call.

    A call inside another matching one is part of it. A server's loop contains its iterations, and is skipped.

    Args:
        profile: one trace.
        function: regular expression that matches the names.
        inside: True if calls inside an iteration's mark also count.

    Returns:
        Each function with the calls that the device waits for, from the first iteration's window to the last one's.
    """
    table, found = profile.table, dict[str, HoldingUp]()
    rows = profile.matching(function, Category.PYTHON)
    for thread, (whole, iterations) in _by_thread(profile).items():
        mine = rows[table.thread[rows] == thread]
        mine = mine[~_around_or_inside(profile, mine, iterations, inside=inside)]
        mine = mine[np.lexsort((-table.end_ns[mine], table.start_ns[mine]))]
        reach = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, table.end_ns[mine]))[:-1]
        mine = mine[table.start_ns[mine] >= reach]
        running = Intervals(table.start_ns[mine], table.end_ns[mine])
        idle = whole.minus(profile.device_busy).intersection(running)
        of_call = np.searchsorted(running.starts, idle.starts, side="right") - 1
        for at, span in zip(mine[of_call].tolist(), idle.spans, strict=True):
            calls = found.setdefault(profile.name(at), HoldingUp(profile.name(at), {})).calls
            calls[at] = (*calls.get(at, ()), span)
    return list(found.values())


def share_held_up(profile: Profile, functions: Iterable[HoldingUp]) -> float:
    """Share of the time from the first iteration to the last in which the device waits for these functions."""
    served_ns = sum(whole.total_ns for whole, _ in _by_thread(profile).values())
    return sum(each.waits_ns for each in functions) / served_ns if served_ns else 0.0


def _by_thread(profile: Profile) -> dict[int, tuple[Intervals, list[Iteration]]]:
    """The iterations of each thread, and the time from the first one's window to the last one's."""
    threads: dict[int, list[Iteration]] = {}
    for each in iterations_of(profile):
        threads.setdefault(each.thread, []).append(each)
    return {
        thread: (
            Intervals.union(
                np.array([min(each.start_ns for each in mine)]), np.array([max(each.end_ns for each in mine)])
            ),
            mine,
        )
        for thread, mine in threads.items()
    }


def _around_or_inside(profile: Profile, rows: Rows, iterations: list[Iteration], *, inside: bool) -> Mask:
    """Mask of `rows` that contain or leave a mark of `iterations`, or, unless `inside` is True, start in one."""
    starts = np.array([each.host_start_ns for each in iterations])
    ends = np.array([each.host_end_ns for each in iterations])
    begin, end = profile.table.start_ns[rows], profile.table.end_ns[rows]
    before = np.searchsorted(starts, begin, side="right")  # marks that have begun
    contains = np.searchsorted(starts, end, side="left") > before
    lies_in = (before > 0) & (ends[np.maximum(before - 1, 0)] > begin)
    lies_around = lies_in & (ends[np.maximum(before - 1, 0)] < end)
    return contains | lies_around | (lies_in & (not inside))
