"""The ranks of a run as the report shows them: side by side, with who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from tb_tidy_plugin.report.value import Model, Severity

RankPart: TypeAlias = Literal["loading", "host", "compute", "copies", "communication", "idle"]
RANK_PARTS: tuple[RankPart, ...] = get_args(RankPart)


class Arrivals(Model, frozen=True):
    """One rank at the collectives of the steps besides the warm-up; times are per step, on average.

    Attributes:
        met: how many of them it took part in.
        last: to how many it came last.
        late_ns: how much later than the middle rank it came, to all collectives of a step together; negative before it.
        waited_ns: how long each other rank waited for it.
        waits_ns: how long it waited for others.
    """

    met: int
    last: int
    late_ns: int
    waited_ns: int
    waits_ns: int


class RankRow(Model, frozen=True):
    """One rank beside the others: medians over its ledger's steps besides the warm-up.

    Attributes:
        step_ns: null where there are no steps.
        parts_ns: what the step is spent on; a part that never occurs is left out.
        memory_peak_bytes: the most that was allocated on the fullest device, null where memory was not recorded.
        arrivals: null where the rank meets no other in a collective that all leave together.
        clock_ahead_ns: how far its clock is ahead of the first rank's, null where nothing tells.
        clock_error_ns: how wrong that may be; 0 for the first rank itself.
        findings: how many the rank's own report has.
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
    """How unevenly the ranks share one thing: the rank with the most of it, against the middle rank.

    `ratio` is null where the middle rank has none. `notable` says that the difference is worth a look; `text` is it in
    words. Values are ns per step, or bytes for `memory`.
    """

    what: RankPart | Literal["memory"]
    rank: int
    most: int
    middle: int
    ratio: float | None
    notable: bool
    text: str


class MeetingPlace(Model, frozen=True):
    """Collectives that one place of the source begins with as many bytes each: who comes last to them.

    `waited_ns` is how long a rank waits in them per step, on average of all but the last. `bytes` is null where shapes
    were not recorded, `file` empty and `line` null where the place was not.
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
    """One finding that profiles of several ranks have, or one of them: on which, and where it costs most.

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
    """The ranks of a run beside each other; of several recordings of each the latest that most ranks have.

    Attributes:
        world_size: how many ranks the job had by the recordings, null where they do not say or disagree.
        missing: how many of them were not recorded; `present` names them.
        present: who is here and who is missing, as a sentence.
        notes: what makes the comparison doubtful, as sentences.
        step_ns: the median step of all ranks, null where there are no steps in common.
        steps: how many steps besides the warm-up have collectives in which ranks meet.
        rows: in order of rank.
        places: the longest waiting first.
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
    """The ranks that others wait for longest; where ranks do not meet, those with the longest steps."""
    return sorted(
        rows, key=lambda row: (-(row.arrivals.waited_ns if row.arrivals else 0), -(row.step_ns or 0), row.rank)
    )
