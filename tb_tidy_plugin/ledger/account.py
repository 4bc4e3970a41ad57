"""The ledger of a profile: its window in pieces, added up into entries with owners, limits and advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.ledger import advice
from tb_tidy_plugin.ledger.calls import MOST_OWNERS, CallSites, Owned, PassTimes, owners_of
from tb_tidy_plugin.ledger.causes import LAUNCHES, Segments, has, is_thinned, rank_of, segments_of
from tb_tidy_plugin.ledger.floor import Floors
from tb_tidy_plugin.ledger.host import Host
from tb_tidy_plugin.ledger.limits import WorkLimits, communication_of
from tb_tidy_plugin.ledger.model import (
    ONE_TIME_RECORDINGS,
    Entry,
    Ledger,
    LedgerStep,
    LeftOut,
    Owner,
    Piece,
    RecordingKind,
    StepFloor,
    StepLength,
    Window,
    is_own_function,
    ledger_groups_of,
)
from tb_tidy_plugin.ledger.owners import LONGEST_NAME, Names, ledger_name, owner_of
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.host.loading import WITH_WORKERS, WITHOUT_WORKERS, batches_of
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.bounds import DeviceWork, StepSpan
from tb_tidy_plugin.profile.steps.iteration_marks import merged
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.system.allocator import give_back
from tb_tidy_plugin.torchfacts.event_names import BEGIN_CAPTURE, GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Numbers, Rows, Times, blocks_of, repeated
from tb_tidy_plugin.trace.sets import first_of_each, numbered
from tb_tidy_plugin.words.causes import CAUSES, KINDS, Cause, Kind, OneTime, legend_of
from tb_tidy_plugin.words.units import Nanoseconds, Share, plural
from tb_tidy_plugin.words.vocabulary import STEP_SOURCES, Phase

FUSED_WORK = re.compile(
    r"\b_fused_(?:adam|sgd|adagrad)|FusedOptimizer|Fused(?:Adam|Sgd|SGD|Adagrad|Lamb|LAMB)|\b(?:Adam|SGD|LAMB\w*)Functor"
    r"|^triton_|^(?:cpp_)?fused_\d|^cpp_fused"
)
"""Names of fused optimizers, PyTorch's and Apex's, and of the code that `torch.compile` generates."""

MOST_PIECES = 3
NOT_STEADY = 0.3
"""Share of the window above which start-up, or compilation, makes the recording unsteady."""

LEAST_STEPS = 3
"""From this number of steps, a cause in most of them is not start-up."""

LEAST_LAUNCHED = 0.5
"""Fewer pieces of device work per launching call mean that a recording with a graph capture is of that capture."""


class Account(msgspec.Struct, frozen=True):
    """A ledger and the pieces that it was added up from.

    Attributes:
        segments: the window in pieces, without `call`, whose rows are in `calls`.
        entry: position of each piece's entry in `ledger.entries`.
        calls: row of the host's call in each piece, `ABSENT` for none.
        limits: limits of the profile's device work.
        owned: the calls that each entry's time belongs to.
        events: row of the host event that the time of each piece belongs to, `ABSENT` for none.
        floor: of a mean step; None if the machine's limits are not known.
    """

    ledger: Ledger
    segments: Segments
    entry: NDArray[np.int16]
    calls: Numbers
    limits: WorkLimits
    owned: list[list[Owned]]
    events: Numbers
    floor: StepFloor | None

    def overlaps(self, time: Intervals) -> Rows:
        """Overlap of `time` with each entry in ns."""
        found = np.zeros(len(self.ledger.entries), np.int64)
        for block in blocks_of(len(self.entry)):
            inside = time.within(self.segments.starts[block], self.segments.ends[block])
            np.add.at(found, self.entry[block], inside)
        return found

    def spans(self, entry: int) -> Intervals:
        here = self.entry == entry
        return Intervals.union(self.segments.starts[here], self.segments.ends[here])


@once
def account_of(profile: Profile) -> Account:
    """The ledger of a profile with its pieces; computed once, since rules and the report both use it."""
    work, span = profile.device_work, profile.step_bounds
    host = Host(profile, span.main)
    segments = segments_of(profile, work, span, host)
    host.forget_lanes()
    give_back()
    book = _Book(profile, work, span, host, segments, Names(profile, host, segments))
    give_back()
    entries, entry = book.entries()
    book.limits.forget_rates()
    recording, banner = book.recording(entries)
    bounds = span.bounds
    lengths = np.diff(bounds)
    ledger = Ledger(
        window=Window(start_ns=span.start_ns, end_ns=span.end_ns),
        step_source=span.source,
        step_source_text=STEP_SOURCES[span.source],
        recording=recording,
        banner=banner,
        is_one_time=recording in ONE_TIME_RECORDINGS,
        hidden_device=advice.HIDDEN_DEVICES.get(recording),
        left_out=[LeftOut(ns=each.ns, reason=f"{Nanoseconds(each.ns)} {each.what}.") for each in span.left_out],
        steps=book.steps(),
        step_ns=StepLength(median=_median(lengths), mean=int(lengths.sum()) // max(len(lengths), 1), n=len(lengths)),
        host_step_ns=None if span.host_ns is None else _median(span.host_ns),
        unnamed_ns=sum(each.ns_total for each in entries if each.is_unnamed),
        entries=entries,
        groups=ledger_groups_of(entries),
    )
    pieces = msgspec.structs.replace(segments, call=repeated(ABSENT, len(entry), np.int32))
    floor = book.floors.of_steps(entries, len(lengths))
    return Account(ledger, pieces, entry, book.calls, book.limits, book.owned, book.events, floor)


@once
def passes_of(profile: Profile) -> PassTimes:
    """The window's time by pass and place; what the profiler takes has neither."""
    account = account_of(profile)
    segments = account.segments
    event = np.where(segments.cause == Cause.PROFILER.number, np.int32(ABSENT), account.events)
    rows, of = numbered(np.append(event, np.int32(ABSENT)))  # ascending: `ABSENT` comes first
    ns = np.zeros((2, len(rows)), np.int64)  # of each event, and of those in waits for data
    for block in blocks_of(len(event)):
        is_loading = (segments.cause[block] == Cause.DATA_LOADING.number).astype(np.int8)
        np.add.at(ns, (is_loading, of[block]), segments.ends[block] - segments.starts[block])
    (ns, loading_ns), rows = np.roll(ns, -1, axis=1), np.roll(rows, -1)
    return CallSites(profile).times(rows.astype(np.int64), ns, loading_ns)


def linked(account: Account, findings: dict[str, tuple[Intervals, int]]) -> Ledger:
    """The ledger with each entry's finding: the one that covers most of it, if its fix can shorten the entry.

    Args:
        account: of the same profile.
        findings: by id, the time that a finding is about, and its saving per step in ns. A finding that would save more
            than its entries hold is left out: the ledger attributes its time to other entries.
    """
    entries, count = account.ledger.entries, max(account.ledger.step_ns.n, 1)
    best: dict[int, tuple[int, str]] = {}
    for name, (time, _) in findings.items():
        for at, ns in enumerate(account.overlaps(time).tolist()):
            is_most = ns * 10 > entries[at].ns_total and ns > best.get(at, (0, ""))[0]
            if is_most and not entries[at].cause.is_unknown_wait:
                best[at] = (ns, name)
    held: dict[str, int] = {}
    for at, (_, name) in best.items():
        held[name] = held.get(name, 0) + entries[at].ns_total
    fits = {name for name, ns in held.items() if findings[name][1] * count <= ns}
    found = [
        msgspec.structs.replace(each, finding_id=best[at][1]) if at in best and best[at][1] in fits else each
        for at, each in enumerate(entries)
    ]
    return msgspec.structs.replace(account.ledger, entries=found)


def with_lines(account: Account, ledger: Ledger, place_of: Callable[[int], Frame | None]) -> Ledger:
    """The account's ledger, or one with the same entries, whose owners have the lines that `place_of` gives."""
    entries = []
    for entry, owned in zip(ledger.entries, account.owned, strict=True):
        owners = owners_of(owned, entry.ns_total, place_of, is_work=is_work(entry.cause, entry.kind)) or entry.owners
        entries.append(msgspec.structs.replace(entry, owner=owners[0], owners=owners))
    return msgspec.structs.replace(ledger, entries=entries)


def is_work(cause: Cause, kind: Kind | None) -> bool:
    """True for time of operators: of a device, or of the host's own kinds of work."""
    return cause.is_of_device or (kind is not None and kind is not Kind.PYTHON)


class _Book:
    """Adds up segments."""

    def __init__(
        self, profile: Profile, work: DeviceWork, span: StepSpan, host: Host, segments: Segments, names: Names
    ) -> None:
        self.profile, self.work, self.span, self.host = profile, work, span, host
        self.segments, self.names = segments, names
        self.limits, self.floors = WorkLimits(profile), Floors(profile)
        self.operators = names.operator_rows(host)
        self.owned: list[list[Owned]] = []

    def entries(self) -> tuple[list[Entry], NDArray[np.int16]]:
        """All entries, largest first, and the position of each segment's entry."""
        if (self.segments.cause == Cause.CPU.number).any():
            self.limits.rate_calls()  # before the arrays below
        code = self.segments.cause.astype(np.int16) * np.int16(len(KINDS) + 1) + self.names.kind + np.int16(1)
        total = self._sums(code, len(CAUSES) * (len(KINDS) + 1))
        there = np.flatnonzero(total)
        there = there[np.argsort(-total[there], kind="stable")]
        position = np.full(len(total), ABSENT, np.int16)
        position[there] = np.arange(len(there))
        entry = position[code] if len(code) else code
        by_step = self._by_step(entry, len(there))
        pieces = self._pieces(entry, len(there))
        found = []
        for at, number in enumerate(there.tolist()):
            mine = np.flatnonzero(entry == at)
            found.append(self._entry(number, int(total[number]), mine, by_step[at], pieces[at]))
        return found, entry

    def _by_step(self, entry: NDArray[np.int16], count: int) -> list[list[int]]:
        steps = len(self.span.names)
        first = np.searchsorted(self.segments.starts, self.span.bounds)  # segments are cut at steps
        step = np.repeat(np.arange(steps, dtype=np.int32), np.diff(first))
        step += entry * np.int32(steps)
        found: list[list[int]] = self._sums(step, count * steps).reshape(count, steps).tolist()
        return found

    def _length(self, of: Rows) -> Times:
        length = self.segments.ends[of]
        length -= self.segments.starts[of]
        return length

    def _sums(self, number: NDArray[np.integer], count: int) -> Times:
        """How long all segments of each number are, exact."""
        found = np.zeros(count, np.int64)
        for block in blocks_of(len(number)):
            np.add.at(found, number[block], self.segments.ends[block] - self.segments.starts[block])
        return found

    def _pieces(self, entry: NDArray[np.int16], count: int) -> list[tuple[int, list[tuple[int, int, int]]]]:
        """Number of uninterrupted pieces of each entry, and the longest ones: start, end, first segment."""
        if not len(entry):
            return []
        first = np.flatnonzero(np.append(True, np.diff(entry) != 0))
        starts = self.segments.starts[first]
        ends = np.append(starts[1:], self.segments.ends[-1])
        of = entry[first]
        order, found = np.argsort(of, kind="stable"), []
        for runs in np.split(order, np.cumsum(np.bincount(of, minlength=count))[:-1]):
            length = starts[runs] - ends[runs]
            least = np.partition(length, MOST_PIECES - 1)[MOST_PIECES - 1] if len(runs) > MOST_PIECES else 0
            longest = runs[length <= least]
            longest = longest[np.argsort(starts[longest] - ends[longest], kind="stable")][:MOST_PIECES]
            found.append((len(runs), [(int(starts[run]), int(ends[run]), int(first[run])) for run in longest]))
        return found

    def _entry(
        self, number: int, total: int, mine: Rows, by_step: list[int],
        pieces: tuple[int, list[tuple[int, int, int]]],
    ) -> Entry:  # fmt: skip
        cause_number, kind_number = divmod(number, len(KINDS) + 1)
        cause, kind = CAUSES[cause_number], KINDS[kind_number - 1] if kind_number else None
        share = total / max(self.span.end_ns - self.span.start_ns, 1)
        length = self._length(mine)
        self.owned.append([] if cause is Cause.PROFILER else self._owned(cause, kind, mine, length))
        owners = owners_of(self.owned[-1], total, self._sites.place_of, is_work=is_work(cause, kind))
        owners = owners or [Owner(ns=total, share=1.0)]
        has_limit = cause is Cause.COMPUTE and kind is not None and kind.has_limit
        limit = self.limits.of(self.segments.take(mine)) if has_limit else None
        if kind is Kind.MIXTURE_OF_EXPERTS:
            limit = self.limits.of_experts(self.segments.take(mine)) or limit
        rate = self.limits.rate(self.calls[mine], length) if cause is Cause.CPU and kind is not Kind.PYTHON else None
        said, nothing = (
            advice.on_cpu(
                kind or Kind.OTHER,
                rate,
                has_shapes="shapes" in self.profile.recorded,
                is_own=is_own_function(owners),
                is_fused=self._is_fused(kind, self.calls[mine], length),
            )
            if cause is Cause.CPU
            else advice.advised(cause, kind, limit, self._known(cause, kind, mine))
        )
        hidden = self._hidden_device if cause in {Cause.CPU, Cause.UNRECORDED_HOST} else None
        if hidden is not None:
            said, nothing = None, hidden
        floor = self.floors.of(cause, kind, self.segments.take(mine), self.calls[mine], length)
        count, longest = pieces
        communication = (
            communication_of(self.profile, self.segments.take(mine)) if cause is Cause.COMMUNICATION else None
        )
        label, colour = legend_of(cause, kind)
        return Entry(
            id=cause.word if kind is None else f"{cause}:{kind}",
            title=advice.title_of(cause, kind, has_unknown_work=self.profile.has_unknown_work),
            label=label,
            cause=cause,
            kind=kind,
            group=cause.group,
            colour=colour,
            at_work=cause.at_work,
            ns_total=total,
            ns_per_step=total // max(len(self.span.names), 1),
            ns_by_step=by_step,
            share=share,
            count=count,
            owner=owners[0] if owners else Owner(),
            proof=cause.proof,
            proof_text=cause.proof.text,
            confidence="low" if kind is Kind.OTHER else cause.certainty,
            limit=limit,
            rate=rate,
            communication=communication,
            hidden_ns=self._hidden(cause, total),
            advice=said,
            nothing_to_fix=nothing,
            evidence=[self._piece(*piece) for piece in longest],
            owners=owners,
            floor_ns=floor.ns,
            floor_known_ns=floor.known_ns,
            gaps=floor.gaps,
        )

    def _known(self, cause: Cause, kind: Kind | None, mine: Rows) -> advice.Circumstances:
        words = advice.words_of(cause, kind)
        return advice.Circumstances(
            serving=self._serving,
            has_stacks="stacks" in self.profile.recorded,
            why_unknown=self.limits.why_unknown,
            in_graph=self._is_in_graph(mine),
            is_narrow=cause is Cause.COMPUTE and self.limits.is_narrow(self.segments.take(mine)),
            is_quantised=cause is Cause.COMPUTE and self.limits.is_quantised(self.segments.take(mine)),
            has_calls=bool(words and words.with_calls) and bool(self.host.is_runtime.any()),
            has_workers=bool(words and words.with_workers) and self._has_workers,
            is_pinned=bool(words and words.pinned) and self._is_pinned(mine),
            is_fused=cause is Cause.COMPUTE and self._is_fused(kind, self.segments.work[mine], self._length(mine)),
        )

    def _is_fused(self, kind: Kind | None, rows: Numbers, length: Times) -> bool:
        """True if fusing is what work of this kind gains by, and most of it is fused.

        Args:
            kind: of the work.
            rows: the device work or the host's call in each piece of time, `ABSENT` for none. length: of the piece.
        """
        return kind is not None and bool(kind.fused) and bool(length[self._fused[rows]].sum() * 2 > length.sum())

    @cached_property
    def _fused(self) -> Mask:
        """Mask by row of fused optimizers and of code that `torch.compile` generated; one more entry, for `ABSENT`."""
        named = np.append(self.profile.table.is_named(FUSED_WORK.search), False)
        found: Mask = named | named[np.append(self.profile.launched_by, ABSENT)]
        return found

    @property
    def _hidden_device(self) -> str | None:
        """Why the cost of the host's work is not known; None if no device is hidden."""
        if self.profile.launches_only:
            return advice.NO_DEVICE
        return advice.UNKNOWN_DEVICE if self.profile.has_unknown_work else None

    def _is_pinned(self, mine: Rows) -> bool:
        """True if most of the time belongs to copies from or to pinned memory."""
        work, length = self.segments.work[mine], self._length(mine)
        return bool(length[(work != ABSENT) & self._pinned[work]].sum() * 2 > length.sum())

    @cached_property
    def _pinned(self) -> Mask:
        """Mask of copies from or to pinned memory, by row."""
        table = self.profile.table
        pinned: Mask = (table.category == Category.COPY) & table.is_named(lambda name: "Pinned" in name)
        return pinned

    @property
    def _has_workers(self) -> bool:
        there, not_there = (len(batches_of(self.profile, each)) for each in (WITH_WORKERS, WITHOUT_WORKERS))
        return bool(there and not not_there)

    @cached_property
    def _serving(self) -> Phase | None:
        """The phase of a server's batches: `decode` if any of them decodes; None if no server marks steps."""
        if self.span.source != "serving_step":
            return None
        phases = {merged([name]).phase for name in self.span.names}
        return next(iter(phases)) if phases in ({"prefill"}, {"diffusion"}) else "decode"

    def _owned(self, cause: Cause, kind: Kind | None, mine: Rows, length: Times) -> list[Owned]:
        """The calls that an entry's time belongs to, largest first; without an event of the host, their names."""
        is_function = kind is Kind.PYTHON
        event = self.events[mine]
        by_name = np.flatnonzero(event == ABSENT)
        owned = [Owned(self._owner(*each), None) for each in self._by_name(mine[by_name], length[by_name])]
        there = np.flatnonzero(event != ABSENT)
        events, of = numbered(event[there])
        ns = np.zeros(len(events), np.int64)
        np.add.at(ns, of, length[there])
        first = mine[there[first_of_each(of, len(events))]]  # of each event its first piece
        for calls in self._sites.alike(events.astype(np.int64), ns, is_function=is_function):
            owner = self._owner(int(first[np.searchsorted(events, calls.event)]), int(calls.ns.sum()))
            owned.append(Owned(self._sites.described(owner, calls, is_function=is_function), calls))
        owned.sort(key=lambda each: -each.owner.ns)
        return [each.of_pass("loading") for each in owned] if cause is Cause.DATA_LOADING else owned

    def _owner(self, at: int, ns: int) -> Owner:
        return owner_of(self.profile, self.host, self.segments, self.names, at, ns)

    def _by_name(self, mine: Rows, length: Times) -> Iterator[tuple[int, int]]:
        """The longest piece of each name's, and the time of all of them, largest first."""
        key = self.names.key[mine]
        sums = np.zeros(int(key.max(initial=ABSENT)) + 1, np.int64)
        np.add.at(sums, key, length)
        there = np.flatnonzero(sums)
        for which in there[np.argsort(-sums[there], kind="stable")][:MOST_OWNERS].tolist():
            here = np.flatnonzero(key == which)
            yield int(mine[here[np.argmax(length[here])]]), int(sums[which])

    @cached_property
    def _sites(self) -> CallSites:
        return CallSites(self.profile)

    @cached_property
    def events(self) -> Numbers:
        """Row of the host event that the time of each piece belongs to, `ABSENT` for none.

        Python's own time belongs to the function that runs, other time to its operator, else to the call in the tree.
        """
        event = np.where(self.operators == ABSENT, self.calls, self.operators)
        outside = np.flatnonzero(event >= self.profile.tree.size)
        event[outside] = self.profile.launched_by[event[outside]]
        python = np.flatnonzero(self.names.kind == Kind.PYTHON.number)
        event[python] = self._functions[self.segments.call[python]]
        return event

    @cached_property
    def _functions(self) -> Numbers:
        """Row of the nearest Python function or module around each host call; one more entry, for `ABSENT`."""
        table = self.profile.table
        is_built_in = np.array([name.startswith("<built-in") for name in table.names], np.bool_)
        rows = self.host.rows
        is_function = (table.category[rows] == Category.PYTHON) & ~is_built_in[table.name[rows]]
        return np.append(rows, np.int32(ABSENT))[self.host.nearest(is_function)]

    @cached_property
    def calls(self) -> Numbers:
        """Row of the host's call in each piece, `ABSENT` for none."""
        return np.append(self.host.rows, np.int32(ABSENT))[self.segments.call]

    def _is_in_graph(self, mine: Rows) -> bool:
        """True if a graph's replay launched most of the work and its operators are unknown."""
        work = self.segments.work[mine]
        if not len(work) or (work == ABSENT).any():
            return False
        launch = np.where(self.profile.replayed.operator[work] == ABSENT, self.profile.launch[work], ABSENT)
        length = self._length(mine)
        return bool(length[self._graph_launches[launch]].sum() * 2 > length.sum())

    @cached_property
    def _graph_launches(self) -> Mask:
        """Mask by row, with one more element for `ABSENT`."""
        return np.append(has(self.profile, GRAPH_LAUNCH), False)

    def _hidden(self, cause: Cause, exposed: int) -> int:
        """Time in ns of communication behind compute."""
        if cause is not Cause.COMMUNICATION:
            return 0
        table, rows = self.profile.table, self.work.rows
        mine = rows[rank_of(self.profile, rows) == Cause.COMMUNICATION.number]
        starts = np.maximum(table.start_ns[mine], self.span.start_ns)
        ends = np.minimum(table.end_ns[mine], self.span.end_ns)
        return Intervals.union(starts, ends).total_ns - exposed

    def _piece(self, start_ns: int, end_ns: int, first: int) -> Piece:
        """A piece, named after the call or else the device work of its first segment."""
        work, call = int(self.segments.work[first]), int(self.segments.call[first])
        row = work if call == ABSENT else int(self.host.rows[call])
        if row == ABSENT:
            return Piece(start_ns=start_ns, end_ns=end_ns, event="")
        table = self.profile.table
        name = ledger_name(table.names[table.name[row]])
        return Piece(start_ns=start_ns, end_ns=end_ns, event=name, event_id=int(table.file_order[row]))

    def steps(self) -> list[LedgerStep]:
        """The steps, with host and device times."""
        span, busy = self.span, Intervals.union(self.work.starts, self.work.ends)
        starts, ends = span.bounds[:-1], span.bounds[1:]
        device = busy.within(starts, ends)
        host = ends - starts if span.host_ns is None else span.host_ns
        return [
            LedgerStep(name=name[:LONGEST_NAME], start_ns=start, end_ns=end, host_ns=host_ns, device_ns=device_ns)
            for name, start, end, host_ns, device_ns in zip(
                span.names, starts.tolist(), ends.tolist(), host.tolist(), device.tolist(), strict=True
            )
        ]

    def recording(self, entries: list[Entry]) -> tuple[RecordingKind, str | None]:
        """The kind of time that was recorded, and a sentence that says so."""
        if not entries and not self.profile.has_unknown_work:
            return "empty", advice.BANNERS["empty"]
        start_up, compiling = self._once(entries, "start-up"), self._once(entries, "compilation")
        kind: RecordingKind = "steady"
        share = 0.0
        launches, captures = (
            len(self.profile.matching(calls, Category.RUNTIME)) for calls in (LAUNCHES, BEGIN_CAPTURE)
        )
        if captures and len(self.work.rows) < LEAST_LAUNCHED * launches:
            kind = "capture"
        elif compiling > NOT_STEADY:
            kind, share = "compilation", compiling
        elif start_up > NOT_STEADY:
            kind, share = "start-up", start_up
        elif not len(self.work.rows) and launches:
            kind = "no-device"
        elif self.profile.has_unknown_work:
            kind = "unknown-device"
        elif is_thinned(self.profile):
            kind = "thinned"
        if kind == "steady":
            return kind, None
        unknown = plural(self.profile.metadata.unknown_events, "event")
        activity = self.profile.activity or "CUDA"
        return kind, advice.BANNERS[kind].format(share=Share(share), activity=activity, unknown=unknown)

    def _once(self, entries: list[Entry], what: OneTime) -> float:
        """Share of the window that one-time causes take; 0 if most steps show them: the job itself causes them then."""
        mine = [each for each in entries if each.cause.one_time == what]
        lengths = np.diff(self.span.bounds)
        if mine and len(lengths) >= LEAST_STEPS:
            by_step = np.sum([each.ns_by_step for each in mine], axis=0)
            if (by_step > NOT_STEADY * lengths).mean() > 1 / 2:
                return 0.0
        return sum(each.share for each in mine)


def _median(values: Rows) -> int:
    return round(float(np.median(values))) if len(values) else 0
