"""Calls nest as torch nests them, and self times add up."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.profile.events import nesting
from tb_tidy_plugin.profile.events.nesting import Nesting
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, EventTable
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared, shared_names
from tests.support.written import event, kineto_text, write


@dataclass(eq=False)
class Call:
    row: int
    name: str
    start: int
    end: int
    parent: Call | None = None
    children: list[Call] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.end - self.start

    @property
    def own(self) -> int:
        return self.total - sum(child.total for child in self.children)


def torchs_calls(calls: list[Call]) -> list[Call]:
    """`EventList._populate_cpu_children` and `_remove_dup_nodes` for calls of one thread."""
    stack: list[Call] = []
    for call in sorted(calls, key=lambda call: (call.start, -call.end)):
        while stack:
            parent = stack[-1]
            if call.start >= parent.end or call.end > parent.end:
                stack.pop()
            else:
                parent.children.append(call)
                call.parent = parent
                break
        stack.append(call)
    while True:
        doubled = set()
        for call in calls:
            if call.parent is not None and call.parent.name == call.name and len(call.parent.children) == 1:
                call.parent.children = call.children
                for child in call.children:
                    child.parent = call.parent
                doubled.add(call)
        if not doubled:
            return calls
        calls = [call for call in calls if call not in doubled]


@st.composite
def any_events(draw_one: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw_one(
        st.lists(
            st.tuples(st.integers(0, 40), st.integers(0, 25), st.integers(1, 2), st.sampled_from("abc")),
            min_size=1,
            max_size=30,
        )
    )
    return [
        event(name, start, length, tid=thread, args={"Ev Idx": number})
        for number, (start, length, thread, name) in enumerate(rows)
    ]


def profile_of(events: list[dict[str, Any]]) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        return Profile(read_trace(write(Path(folder, "t.json"), kineto_text(events))))


def overlap(events: list[dict[str, Any]]) -> bool:
    """True if two events of one thread overlap without one being inside the other."""
    spans = [(entry["tid"], entry["ts"], entry["ts"] + entry["dur"]) for entry in events]
    return any(
        thread == other and start < begin < end < stop
        for thread, start, end in spans
        for other, begin, stop in spans
    )  # fmt: skip


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(any_events().filter(lambda events: not overlap(events)))
def test_events_inside_or_beside_each_other_nest_as_in_torch(events: list[dict[str, Any]]) -> None:
    profile = profile_of(events)
    table, nested = profile.table, profile.nested
    expected: dict[int, tuple[int | None, int]] = {}
    for thread in np.unique(table.thread).tolist():
        rows = np.flatnonzero(table.thread == thread)
        rows = rows[np.argsort(table.event_index[rows])]
        calls = [Call(row, profile.name(row), profile.start_ns(row), profile.end_ns(row)) for row in rows.tolist()]
        for call in torchs_calls(calls):
            expected[call.row] = (None if call.parent is None else call.parent.row, call.own)
    found = {
        int(row): (None if above == ABSENT else int(nested.rows[above]), int(self_ns))
        for row, above, self_ns in zip(nested.rows, nested.parent, nested.self_ns, strict=True)
    }
    assert found == expected


@given(any_events())
def test_self_times_add_up_to_each_threads_time_however_its_events_overlap(events: list[dict[str, Any]]) -> None:
    profile = profile_of(events)
    nested = profile.nested
    for thread in {entry["tid"] for entry in events}:
        spans = [(entry["ts"], entry["ts"] + entry["dur"]) for entry in events if entry["tid"] == thread]
        covered = {moment for start, end in spans for moment in range(start, end)}
        mine = [profile.table.threads[number].tid == str(thread) for number in profile.table.thread[nested.rows]]
        assert int(nested.self_ns[mine].sum()) == 1000 * len(covered)


def outliving(late_us: float) -> dict[str, tuple[float, float]]:
    """Total and self time in µs of three calls inside each other; the innermost ends so much after those around it."""
    profile = profile_of([
        event("aten::linear", 0, 900), event("aten::addmm", 10, 880), event("aten::copy_", 20, 870 + late_us),
        event("aten::relu", 950, 10),
    ])  # fmt: skip
    table, nested = profile.table, profile.nested
    names = [profile.name(row) for row in nested.rows.tolist()]
    totals = (table.durations_of(nested.rows) / 1000).tolist()
    return dict(zip(names, zip(totals, (nested.self_ns / 1000).tolist(), strict=True), strict=True))


@pytest.mark.parametrize("late_us", [0.001, 0.3, 1, 5, 25])
def test_a_call_that_ends_after_its_caller_is_inside_it(late_us: float) -> None:
    """By hand: `copy_` begins 10 µs after `addmm`, which begins 10 µs after `linear`; what is left is `linear`'s."""
    assert outliving(late_us) == {
        "aten::linear": (900, max(20 - late_us, 10)),
        "aten::addmm": (880, 10),
        "aten::copy_": (870 + late_us, 870 + late_us),
        "aten::relu": (10, 10),
    }


def test_a_call_that_is_mostly_after_another_is_beside_it() -> None:
    profile = profile_of([event("a", 0, 100), event("b", 10, 40), event("c", 40, 300)])
    nested = profile.nested
    assert [profile.name(row) for row in nested.rows.tolist()] == ["a", "b", "c"]
    assert nested.parent.tolist() == [ABSENT, 0, ABSENT]
    assert nested.self_ns.tolist() == [10_000, 30_000, 300_000]


@given(any_events())
def test_self_times_are_part_of_totals_and_subtrees_are_slices(events: list[dict[str, Any]]) -> None:
    nested, operators = profile_of(events).nested, profile_of(events).operators
    assert (nested.self_ns >= 0).all()
    assert (nested.self_ns <= operators.host_total_ns).all()
    for at in range(len(nested)):
        inside = [other for other in range(len(nested)) if at in around(nested, other)]
        assert inside == list(range(at + 1, int(nested.last[at]) + 1))
    values = np.arange(len(nested)) + 1
    assert nested.sums(values).tolist() == [
        int(values[at : last + 1].sum()) for at, last in enumerate(nested.last.tolist())
    ]


def around(nested: Nesting, at: int) -> list[int]:
    found = []
    while (at := int(nested.parent[at])) != ABSENT:
        found.append(at)
    return found


@given(any_events(), st.data())
def test_outermost_calls_of_a_group_have_none_of_it_around(events: list[dict[str, Any]], data: st.DataObject) -> None:
    nested = profile_of(events).nested
    group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(nested), max_size=len(nested))), np.int64)
    chosen = np.flatnonzero(group != data.draw(st.integers(0, 2)))
    found = nested.outermost(chosen, group[chosen])
    wanted = set(chosen.tolist())
    assert found.tolist() == [
        not any(other in wanted and group[other] == group[at] for other in around(nested, at)) for at in chosen.tolist()
    ]


@st.composite
def nested_events(draw_one: st.DrawFn) -> list[dict[str, Any]]:
    """Calls that lie within each other, as a program makes them."""
    events: list[dict[str, Any]] = []

    def fill(start: int, end: int, depth: int) -> None:
        at = start
        while at < end and depth < 4 and len(events) < 60:
            begin = draw_one(st.integers(at, end))
            stop = draw_one(st.integers(begin, end))
            if stop == begin:
                return
            events.append(event(draw_one(st.sampled_from("abc")), begin, stop - begin, args={"Ev Idx": len(events)}))
            fill(begin, stop, depth + 1)
            at = stop

    fill(0, 64, 0)
    return events or [event("a", 0, 1)]


@given(nested_events())
def test_self_times_add_up_to_the_time_of_the_roots(events: list[dict[str, Any]]) -> None:
    profile = profile_of(events)
    spans = sorted((entry["ts"], entry["ts"] + entry["dur"]) for entry in events)
    covered = {moment for start, end in spans for moment in range(start, end)}
    assert int(profile.nested.self_ns.sum()) == 1000 * len(covered)


@pytest.mark.compiled
@pytest.mark.sampled
@pytest.mark.skipif(not nesting.IS_COMPILED, reason="the loops of the tree were not compiled")
@pytest.mark.parametrize("trace", shared_names("traces"))
def test_the_compiled_loop_nests_as_the_one_in_python(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in shared(f"traces/{trace}").glob("*.gz"):
        found = []
        for is_compiled in (True, False):
            monkeypatch.setattr(nesting, "IS_COMPILED", is_compiled)
            nested = Profile(read_trace(path)).nested
            columns = (nested.rows, nested.parent, nested.last, nested.self_ns, nested.at)
            found.append([column.tolist() for column in columns])
        assert found[0] == found[1]


@pytest.mark.parametrize("is_compiled", [pytest.param(True, marks=pytest.mark.compiled), False])
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=40))
def test_the_nearest_one_is_the_first_on_the_way_up(is_compiled: bool, drawn: list[tuple[int, bool]]) -> None:
    if is_compiled and not nesting.IS_COMPILED:
        pytest.skip("the loops of the tree were not compiled")
    parent = [max(at - back, -1) if back else -1 for at, (back, _) in enumerate(drawn)]
    wanted = [is_wanted for _, is_wanted in drawn]

    def first(at: int) -> int:
        return at if at == -1 or wanted[at] else first(parent[at])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "IS_COMPILED", is_compiled)
        found = nesting.nearest(np.array(parent, np.int32), np.array(wanted, np.bool_))
    assert found.tolist() == list(map(first, range(len(drawn))))


SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)).map(lambda each: (each[0], sum(each))), max_size=14)
FIRST = 5  # position of the first call among all threads' calls


def surrounding(spans: list[tuple[int, int]]) -> list[int]:
    """For each span, by start and falling end, the position of the one around it, as torch nests them."""
    stack: list[int] = []
    found = []
    for at, (start, end) in enumerate(spans):
        while stack and (start >= spans[stack[-1]][1] or end > spans[stack[-1]][1]):
            stack.pop()
        found.append(stack[-1] if stack else ABSENT)
        stack.append(at)
    return found


@pytest.mark.parametrize("is_compiled", [pytest.param(True, marks=pytest.mark.compiled), False])
@given(SPANS)
def test_the_innermost_call_of_each_instant(is_compiled: bool, spans: list[tuple[int, int]]) -> None:
    if is_compiled and not nesting.IS_COMPILED:
        pytest.skip("the loops of the tree were not compiled")
    spans.sort(key=lambda span: (span[0], -span[1]))
    around = surrounding(spans)
    start, end = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    parent = np.array([ABSENT if up == ABSENT else up + FIRST for up in around], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "IS_COMPILED", is_compiled)
        times, innermost = nesting.unfolded(start, end, parent, FIRST)
    assert (np.diff(times) > 0).all()
    assert {*times.tolist()} == {time for span in spans for time in span}
    # What happens last by each instant: calls end, the inner ones first, and then the next ones begin.
    ends = [(end, 0, -at, around[at]) for at, (_, end) in enumerate(spans)]
    changes = sorted(ends + [(start, 1, at, at) for at, (start, _) in enumerate(spans)])
    for time, position in zip(times.tolist(), innermost.tolist(), strict=True):
        *_, (*_, last) = (change for change in changes if change[0] <= time)
        assert position == (ABSENT if last == ABSENT else last + FIRST)


CALLS = st.lists(st.tuples(*(st.integers(0, 2) for _ in range(5))), max_size=12)


@given(CALLS, st.booleans())
def test_calls_in_order_stay_and_others_are_sorted(calls: list[tuple[int, ...]], is_sorted: bool) -> None:
    def key(call: tuple[int, ...]) -> tuple[int, ...]:
        thread, start, length, tie, other_tie = call
        return (thread, start, -length, tie, other_tie)

    if is_sorted:
        calls.sort(key=key)
    columns = np.array(calls, np.int64).reshape(-1, 5).T
    table = SimpleNamespace(thread=columns[0], start_ns=columns[1], end_ns=columns[1] + columns[2])
    found = nesting.outer_first(cast("EventTable", table), np.arange(len(calls)), columns[3], columns[4])
    assert found.tolist() == sorted(range(len(calls)), key=lambda at: key(calls[at]))
