"""The ranks of a run in the report: side by side, and which ranks wait for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from tb_tidy_plugin.report.value import Model, Severity
from tb_tidy_plugin.words.vocabulary import RankPart

RANK_PARTS: tuple[RankPart, ...] = get_args(RankPart)


class Arrivals(Model, frozen=True):
    """One rank at the collectives of the steps after the warm-up; times are per step, on average.

    Attributes:
        met: number of them that it took part in.
        last: number of them in which it came last.
        late_ns: lateness relative to the middle rank, over all collectives of a step; negative if it came earlier.
        waited_ns: time that each other rank waited for it.
        waits_ns: time that it waited for others.
    """

    met: int
    last: int
    late_ns: int
    waited_ns: int
    waits_ns: int


class RankRow(Model, frozen=True):
    """One rank beside the others: medians over its ledger's steps after the warm-up.

    Attributes:
        step_ns: null without steps.
        parts_ns: time of each part of the step; a part that never occurs is left out.
        memory_peak_bytes: most bytes allocated on the fullest device, null if memory was not recorded.
        arrivals: null if the rank meets no other in a collective that all leave together.
        clock_ahead_ns: lead of its clock over the first rank's, null if unknown.
        clock_error_ns: error of that lead; 0 for the first rank itself.
        findings: number of findings in the rank's own report.
    """

    rank: int
    worker: str
    span: str
    step_ns: int | None
    parts_ns: dict[RankPart, int]
    memory_peak_bytes: int | None
    arrivals: Arrivals | None
    clock_ahead_ns: int | None
    clock_error_ns: int | None
    findings: int


class Imbalance(Model, frozen=True):
    """Imbalance of the ranks in one thing: the rank with the most of it, against the middle rank.

    `ratio` is null if the middle rank has none. `notable` is true if the difference is worth a look; `text` describes
    it.
    Values are ns per step, or bytes for `memory`.
    """

    what: RankPart | Literal["memory"]
    rank: int
    most: int
    middle: int
    ratio: float | None
    notable: bool
    text: str


class MeetingPlace(Model, frozen=True):
    """Collectives of equal size that one place of the source begins, and who comes last to them.

    `waited_ns` is the time that a rank waits in them per step, averaged over all but the last. `bytes` is null if
    shapes were not recorded; `file` is empty and `line` null if the place was not.
    """

    kind: str
    group: str
    bytes: int | None
    file: str
    line: int | None
    met: int
    last_rank: int
    last: int
    waited_ns: int


class SharedFinding(Model, frozen=True):
    """One finding that one or several ranks' profiles have: on which ranks, and where it costs most.

    `id`, `message`, `severity` and times, per step, are those of `worst_rank`; `text` says `on 7 of 8 ranks, worst
    rank 3`.
    """

    id: str
    rule: str
    severity: Severity
    message: str
    ranks: list[int]
    worst_rank: int
    cost_ns: int
    saving_ns: int
    text: str


class Ranks(Model, frozen=True):
    """The ranks of a run beside each other; of several recordings, the latest with most ranks.

    Attributes:
        world_size: the job's number of ranks in the recordings, null if they do not state it or disagree.
        missing: number of them that were not recorded; `present` names them.
        present: a sentence on present and missing ranks.
        notes: sentences on what makes the comparison doubtful.
        step_ns: the median step of all ranks, null without steps in common.
        steps: number of steps after the warm-up with collectives in which ranks meet.
        rows: in order of rank.
        places: longest waiting first.
        findings: worst first.
    """

    world_size: int | None
    missing: int
    present: str
    notes: list[str]
    step_ns: int | None
    steps: int
    rows: list[RankRow]
    imbalances: list[Imbalance]
    places: list[MeetingPlace]
    findings: list[SharedFinding]


def worst_first(rows: Sequence[RankRow]) -> list[RankRow]:
    """The ranks that others wait for longest; if ranks do not meet, those with the longest steps."""
    return sorted(
        rows, key=lambda row: (-(row.arrivals.waited_ns if row.arrivals else 0), -(row.step_ns or 0), row.rank)
    )
