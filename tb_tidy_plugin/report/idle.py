"""Reasons for idle devices, gap by gap, from the ledger: part of the figures and of the web API."""

from __future__ import annotations

from bisect import bisect_right

from tb_tidy_plugin.report.value import Model


class IdleGaps(Model, frozen=True):
    """Gaps in which no device of the profile works, in order of start, and the entries that they consist of.

    Attributes:
        start_ns, end_ns: of the window that the ledger accounts for.
        least_ns: gaps up to this length may be left out; 0 if all are listed.
        entries: ids of the ledger's entries. names: of events.
        starts, ends: of each gap. first: position of its first part; one more for the end.
        entry: of each part, by position in `entries`. ns: its time.
        call, call_name: for each part, the id of the host's longest call, and its position in `names`; -1 for none.
        work, work_name: the same for the device work that comes next.
    """

    start_ns: int
    end_ns: int
    least_ns: int
    entries: list[str]
    names: list[str]
    starts: list[int]
    ends: list[int]
    first: list[int]
    entry: list[int]
    ns: list[int]
    call: list[int]
    call_name: list[int]
    work: list[int]
    work_name: list[int]


class IdleEvent(Model, frozen=True):
    """An event's id, as in the timeline, and its name."""

    id: int
    name: str


class IdlePart(Model, frozen=True):
    """Time of one entry of the ledger in a gap, the host's call meanwhile, and the device work that comes next."""

    entry: str
    ns: int
    call: IdleEvent | None
    work: IdleEvent | None


class IdleGap(Model, frozen=True):
    """An uninterrupted gap; its parts, longest first, add up to its length."""

    start_ns: int
    end_ns: int
    parts: list[IdlePart]


class IdleAnswer(Model, frozen=True):
    """`GET api/idle?at_ns=…`: why the device idles at a time.

    Attributes:
        gap: null if a device works, if the gap is not listed, and outside the ledger's window.
        accounted: true if the time is in that window.
        least_ns: gaps up to this length may not be listed; 0 if all are.
    """

    gap: IdleGap | None
    accounted: bool
    least_ns: int


def idle_at(gaps: IdleGaps, at_ns: int) -> IdleAnswer:
    """The gap around `at_ns`, in ns since the profile's start."""
    at = bisect_right(gaps.starts, at_ns) - 1
    is_in_gap = at >= 0 and at_ns < gaps.ends[at]
    return IdleAnswer(
        gap=_gap(gaps, at) if is_in_gap else None,
        accounted=gaps.start_ns <= at_ns < gaps.end_ns,
        least_ns=gaps.least_ns,
    )


def _gap(gaps: IdleGaps, at: int) -> IdleGap:
    parts = [
        IdlePart(
            entry=gaps.entries[gaps.entry[part]],
            ns=gaps.ns[part],
            call=_event(gaps, gaps.call[part], gaps.call_name[part]),
            work=_event(gaps, gaps.work[part], gaps.work_name[part]),
        )
        for part in range(gaps.first[at], gaps.first[at + 1])
    ]
    return IdleGap(start_ns=gaps.starts[at], end_ns=gaps.ends[at], parts=parts)


def _event(gaps: IdleGaps, event: int, name: int) -> IdleEvent | None:
    return None if event < 0 else IdleEvent(id=event, name=gaps.names[name])
