"""Savings with bounds and basis.

A saving of basis `replayed` is the reduction of the steps when they are replayed without the fixed work. If that is
impossible, without steps, a saving is a `bound`: at most the time that the edited events cover together, per step. Its
expected part is the time that the step waits for: for device work, and for the host while no device runs. Whether the
step really becomes shorter by that much depends on what else waits for what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.estimate.changes import Outlook, Touch, Touched, together, touches
from tb_tidy_plugin.estimate.faults import fault_time
from tb_tidy_plugin.estimate.graph import Graph, graph_of
from tb_tidy_plugin.estimate.replay import Schedule, replay
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, critical_time, per_step
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Confidence, Edit, Overlap, Scale, Unblock
from tb_tidy_plugin.system.allocator import GROWTH_BYTES, give_back
from tb_tidy_plugin.words.vocabulary import Basis

MOST_RESIDUAL = 0.05
"""A replay that misses a step by more than this part of it is not reliable."""

SOME_UNEXPLAINED, MUCH_UNEXPLAINED = 0.2, 0.5
"""Shares of the steps with unexplained waiting from which confidence is lower, and lowest."""

EXPECTED_RECORDING, MOST_RECORDING, HALVINGS = 0.25, 4.0, 10
"""Multiples of the usual recording time of an event: subtracted at first if a step's true time is known, and at most;
and the number of halvings that search for it. A quarter of it, since everything recorded gets longer, and what stays
has events, too.
"""

OTHERS_GAIN, MOST_GAIN = 0.2, 0.1
"""Expected gain of what stays on a CPU, as a part of what goes, and its largest gain, as a part of itself: it finds
more in its caches (docs/estimates.md).
"""

COLD_AFTER_NS, MOST_GAIN_AFTER_PAUSES = 1_000_000, 0.25
"""Shortest phase after which a CPU's caches are cold and its other threads asleep, and the largest gain of what stays
where such phases go, if operators use several threads.
"""

_MOST_INFLATION = 1.5
"""Most that recording stretches what stays of a step, relative to the whole step."""

Lost: TypeAlias = Sequence[tuple[int, int]]
"""Time that a pattern costs if this is not the time of its events, as starts and ends in ns."""

_Part: TypeAlias = tuple[Intervals, Intervals, float, float]
"""Time that the step waits for, all edited time, and the parts of each that are most likely and at most saved."""


class SavedTime(msgspec.Struct, frozen=True):
    """Time saved per step, in ns, with `low_ns <= expected_ns <= high_ns`."""

    expected_ns: int
    low_ns: int
    high_ns: int
    basis: tuple[Basis, ...]


class Fix(msgspec.Struct, frozen=True):
    """Edits that fix one finding, and the time that it loses if this is not the time of the edited events."""

    edits: Sequence[Edit]
    lost: Lost | None = None


class _FixParts(NamedTuple):
    """A fix, the bound on its saving, and the parts of the graph that it changes."""

    fix: Fix
    bound: SavedTime
    touches: tuple[Touch, ...]


class SavingEstimates:
    """Savings from fixes of one profile. The graph is built on first use."""

    def __init__(self, profile: Profile, true_step_ns: int | None = None) -> None:
        """`true_step_ns` is the duration of a step without the profiler, None if unknown."""
        self._profile = profile
        self._true_step_ns = true_step_ns
        self._last: tuple[Fix, SavedTime] | None = None
        self._parts: dict[int, _FixParts] = {}

    def prepare(self) -> None:
        _ = self._recorded

    def forget_graphs(self) -> None:
        """Lets go of all graphs, which are as large as a recording's times; what is asked later is built again."""
        for name in ("_recorded", "_unchanged", "_graph", "_shortest", "_ends_ns"):
            vars(self).pop(name, None)
        self._parts.clear()

    def saving(self, *fixes: Fix) -> SavedTime:
        """Saving of all `fixes` together: replayed, and never more than the time that they touch.

        Together they can save less than the sum, if they touch the same time, and more, if host and device would each
        still be waited for without the other's fix.
        """
        if len(fixes) == 1 and self._last is not None and fixes[0] is self._last[0]:  # all fixes of a report are one
            return self._last[1]
        saved = self._saved(fixes)
        self._last = (fixes[-1], saved) if len(fixes) == 1 else None
        return saved

    def _saved(self, fixes: Sequence[Fix]) -> SavedTime:
        parts = [self._parts_of(fix) for fix in fixes]
        most_ns = sum(each.bound.high_ns for each in parts)
        if self._graph is None:
            return SavedTime(min(sum(each.bound.expected_ns for each in parts), most_ns), 0, most_ns, ("bound",))
        graph = self._graph
        touched = together(graph, (touch for each in parts for touch in each.touches))
        steps = len(self._profile.steps.items)
        others_ns = sum(touch.others_ns for touch in touched.touches) / steps
        most_ns += round(sum(touch.beyond_ns for touch in touched.touches) / steps + others_ns)
        expected_ns = min(self._saved_ns(graph, touched, "expected"), most_ns)
        expected_ns += self._gain_ns(touched, expected_ns)
        is_certain = self._longest is graph and _is_certain(touched)
        high_ns = (expected_ns if is_certain else self._saved_ns(self._longest, touched, "most")) + others_ns
        # It is unknown whether unexplained time goes with the fixed work.
        high_ns += self.unexplained * self._recorded_step_ns if high_ns < most_ns else 0
        low_ns = min(self._saved_ns(self._shortest, touched, "least"), expected_ns)
        high_ns = max(min(high_ns, most_ns, self._most_ns(high_ns)), expected_ns)
        return SavedTime(round(expected_ns), round(low_ns), round(high_ns), ("replayed",))

    def _parts_of(self, fix: Fix) -> _FixParts:
        """Kept, since each fix of a report is asked for alone and together with all others."""
        if (known := self._parts.get(id(fix))) is None:
            found = () if self._graph is None else tuple(touches(self._graph, fix.edits, fix.lost))
            known = self._parts[id(fix)] = _FixParts(fix, bound(self._profile, fix.edits, fix.lost), found)
        return known

    def _gain_ns(self, touched: Touched, saved_ns: float) -> float:
        """Time that the rest of a step of known true length gains; 0 beside a device or a loader."""
        assert self._graph is not None
        if (
            self._graph is self._recorded
            or len(self._graph.device)
            or any(touch.beside_ns for touch in touched.touches)
        ):
            return 0.0
        rest_ns = max((self._true_step_ns or 0) - saved_ns, 0)
        gain_ns = min(OTHERS_GAIN * saved_ns, MOST_GAIN * rest_ns)
        if (self._profile.settings.threads.intra_op or 1) == 1:
            return gain_ns
        before_ns, after_ns = touched.phases_ns()
        is_gone = (before_ns >= COLD_AFTER_NS) & (after_ns < COLD_AFTER_NS)
        paused_ns = min(float((before_ns - after_ns)[is_gone].sum()) / len(self._profile.steps.items), saved_ns)
        return max(gain_ns, min(OTHERS_GAIN * paused_ns, MOST_GAIN_AFTER_PAUSES * rest_ns))

    def _most_ns(self, high_ns: float) -> float:
        """Largest saving in a step of known true length: the rest of it also takes its time."""
        if self._graph is self._recorded or not self._true_step_ns:
            return high_ns
        rest = max(1 - high_ns / self._recorded_step_ns, 0.0)
        return self._true_step_ns * (1 - rest / _MOST_INFLATION)

    def joint_saving(self, *fixes: Fix) -> SavedTime | None:
        """Saving of all findings of a report; None without findings, or without a replay."""
        return self.saving(*fixes) if fixes and self._graph is not None else None

    @cached_property
    def confidence(self) -> Confidence:
        """Highest confidence of a saving: a step that the replay misses, or cannot explain, gives little certainty."""
        if (self.residual or 0.0) > MOST_RESIDUAL or self.unexplained > MUCH_UNEXPLAINED:
            return "low"
        return "medium" if self.unexplained > SOME_UNEXPLAINED else "high"

    @cached_property
    def residual(self) -> float | None:
        """Largest relative error of a step in the replay without any fix; None without a replay."""
        if self._recorded is None:
            return None
        recorded_ns = self._recorded.recorded_ns
        known = recorded_ns > 0
        return float(np.abs(self._unchanged.steps_ns[known] / recorded_ns[known] - 1).max(initial=0.0))

    @cached_property
    def unexplained(self) -> float:
        """Share of the steps in which devices wait for something that the trace lacks."""
        return self._recorded.unexplained if self._recorded else 0.0

    @cached_property
    def recording(self) -> float:
        """Approximate share of the steps that the profiler itself takes; 0 if their true time is known and used."""
        if self._recorded is None or self._true_step_ns:
            return 0.0
        start_ns = self._profile.steps.items[0].start_ns
        before_ns, after_ns = (self._ends_ns[id(graph)] - start_ns for graph in (self._recorded, self._shortest))
        return 1 - after_ns / before_ns if before_ns else 0.0

    @cached_property
    def _recorded(self) -> Graph | None:
        return graph_of(self._profile)

    @cached_property
    def _unchanged(self) -> Schedule:
        """The replay of the recording without a fix."""
        assert self._recorded is not None
        return replay(self._recorded)

    @cached_property
    def _graph(self) -> Graph | None:
        """The recording, without its recording time if the true time of a step shows that."""
        if self._recorded is None or not self._true_step_ns:
            return self._recorded
        return _as_long_as(self._recorded, self._true_ns, self._length_ns, EXPECTED_RECORDING)

    @property
    def _true_ns(self) -> float:
        return (self._true_step_ns or 0) * len(self._profile.steps.items)

    @cached_property
    def _shortest(self) -> Graph:
        """The graph for the least saving: as much of the events as possible was recording time."""
        assert self._recorded is not None
        if not self._true_step_ns:
            return self._recorded.without_recording()
        return _as_long_as(self._recorded, self._true_ns, self._length_ns, MOST_RECORDING)

    @property
    def _longest(self) -> Graph:
        """The graph for the largest saving: all recording time is in the rest of the step, and none in events."""
        assert self._recorded is not None
        return self._recorded

    @property
    def _recorded_step_ns(self) -> float:
        assert self._recorded is not None
        start_ns = self._profile.steps.items[0].start_ns
        return (self._unchanged.horizon_ns - start_ns) / len(self._profile.steps.items)

    def _length_ns(self, graph: Graph) -> float:
        return replay(graph).horizon_ns - self._profile.steps.items[0].start_ns

    @cached_property
    def _ends_ns(self) -> dict[int, float]:
        """End of the steps without a fix, by the identity of the graph."""
        ends_ns = {id(self._recorded): self._unchanged.horizon_ns}
        for graph in (self._graph, self._shortest):
            if graph is not None and id(graph) not in ends_ns:
                ends_ns[id(graph)] = replay(graph).horizon_ns
        return ends_ns

    def _saved_ns(self, graph: Graph, touched: Touched, outlook: Outlook) -> float:
        """Mean reduction of a step."""
        give_back(GROWTH_BYTES)  # graphs and replays are as large as a recording's times
        shorter_ns = self._ends_ns[id(graph)] - replay(graph, touched.changes(outlook)).horizon_ns
        return max(shorter_ns / len(self._profile.steps.items), 0.0)


def _is_certain(touched: Touched) -> bool:
    """True if the expected case leaves as much of everything as the best case."""
    return all(len(set(touch.left[:2])) == 1 and not touch.beside_ns for touch in touched.touches)


def bound(profile: Profile, edits: Sequence[Edit], lost: Lost | None = None) -> SavedTime:
    """The bound on the saving of `edits` together; `lost`, if given, replaces their events' time.

    Time that several edits touch counts once. Nothing is certain to be saved, so `low_ns` is 0. Work that would run
    beside the rest of the step hides behind that rest: its expected saving is at most the duration of the rest.
    """
    spans = None if lost is None else clipped_to_steps(profile, intervals_of(lost))
    expected = high = 0.0
    waited, touched = Intervals.none(), Intervals.none()
    for waits, all_time, most_likely, most in _parts(profile, edits, spans):
        expected += per_step(profile, waits.minus(waited)) * most_likely
        high += per_step(profile, all_time.minus(touched)) * most
        waited, touched = waited.plus(waits), touched.plus(all_time)
    return SavedTime(round(min(expected, high)), 0, round(high), ("bound",))


def intervals_of(spans: Lost) -> Intervals:
    """The time that spans of start and end cover together."""
    edges = np.array(spans, np.int64).reshape(-1, 2)
    return Intervals.union(edges[:, 0], edges[:, 1])


def _parts(profile: Profile, edits: Sequence[Edit], spans: Intervals | None) -> Iterator[_Part]:
    """One part per kind of edit: complete removals first, so that nothing is counted twice."""
    for (most_likely, most), events in _by_fractions(profile, edits, spans).items():
        rows = profile.in_steps(np.array(events, np.int64))
        waits = critical_time(profile, rows) if spans is None else spans
        plain = Intervals.union(profile.table.start_ns[rows], profile.table.end_ns[rows])
        yield waits, plain.plus(waits) if spans is None else spans, most_likely, most


def _by_fractions(
    profile: Profile, edits: Iterable[Edit], spans: Intervals | None
) -> dict[tuple[float, float], list[int]]:
    """Events by the parts of their time that are most likely and at most saved, largest first."""
    found: dict[tuple[float, float], list[int]] = {}
    beside = [edit for edit in edits if isinstance(edit, Overlap)]
    hidden = _hidden(profile, beside, spans) if beside else 0.0
    for edit in edits:
        match edit:
            case Scale(events, factor, low, _):
                found.setdefault((1 - factor, 1 - low), []).extend(events)
            case Overlap(events, _, left):
                found.setdefault((hidden * (1 - left), 1.0), []).extend(events)
            case Unblock(event):
                found.setdefault((1.0, 1.0), []).append(event)
            case _:
                found.setdefault((1.0, 1.0), []).extend(edit.events)
    return dict(sorted(found.items(), reverse=True))


def _hidden(profile: Profile, beside: Sequence[Overlap], spans: Intervals | None) -> float:
    """Part of the work that runs beside the step which can hide behind the rest of it."""
    rows = profile.in_steps(np.array([row for edit in beside for row in edit.events], np.int64))
    time_ns = per_step(profile, critical_time(profile, rows) if spans is None else spans)
    rest_ns = max((profile.pace.recorded_ns or time_ns) - time_ns, 0)
    longer_ns = max(time_ns / min(edit.at_once for edit in beside) - rest_ns, 0)  # than what it could hide behind
    return max(1 - longer_ns / time_ns, 0.0) if time_ns else 0.0


def _as_long_as(graph: Graph, true_ns: float, length_ns: Callable[[Graph], float], recording: float) -> Graph:
    """The graph of the steps without the profiler, which take `true_ns`, as near as possible.

    First removes page faults that only recorded steps have, then the usual recording time of each event, up to
    `recording` times. Nothing explains the remaining excess (caches, a busier machine), so all host time shares it in
    proportion.
    """
    if length_ns(graph) <= true_ns:
        return graph
    faults_ns = fault_time(graph.profile, graph.host)
    if faults_ns is not None:
        mapped = _scaled(lambda part: graph.without_recording(0.0, part * faults_ns), true_ns, length_ns)
        if length_ns(mapped) <= true_ns:
            return mapped
    fewer = _scaled(lambda scale: graph.without_recording(scale * recording, faults_ns), true_ns, length_ns)
    return fewer if length_ns(fewer) <= true_ns else _scaled(fewer.faster, true_ns, length_ns)


def _scaled(scaled: Callable[[float], Graph], true_ns: float, length_ns: Callable[[Graph], float]) -> Graph:
    """The graph for the smallest number from 0 to 1 for which its steps take at most `true_ns`; else for 1."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if length_ns(scaled(middle)) > true_ns else (low, middle)
    return scaled(high)
