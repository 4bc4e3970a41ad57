"""RankSummary: one rank's part of a run, small enough to send; without numpy, for reports that come from the cache."""

from __future__ import annotations

from typing import Literal

import msgspec

from tb_tidy_plugin.words.vocabulary import Precision

MOST_COLLECTIVES = 1024
"""Most of one rank, about 40 kB; jobs with more keep every second, fourth, … of each step, the same on all ranks."""


class CollectiveSite(msgspec.Struct, frozen=True):
    """The place in the source that issues a collective; as `Frame` in `sources.frames`."""

    file: str
    line: int
    function: str
    precision: Precision = "definition"
    own_code: bool = True


class Operation(msgspec.Struct, frozen=True):
    """Common properties of collectives. `bytes` is `ABSENT`, `group` empty and `site` None if not recorded."""

    kind: str
    group: str
    bytes: int
    site: CollectiveSite | None


class StepSummary(msgspec.Struct, frozen=True):
    """One step of one rank: the start of its mark, and its duration by the ledger."""

    name: str
    start_ns: int
    duration_ns: int
    warmup: bool


class CollectiveColumns(msgspec.Struct, frozen=True):
    """Collectives of one rank in order of start, one entry each per column.

    Attributes:
        operation: number in the rank's `operations`.
        step: number in the rank's `steps`, `ABSENT` outside all steps.
        position: its number among its step's collectives of this kind and group, from 0.
        start_ns, end_ns: relative to the rank's `origin_ns`.
        exposed_ns: time meanwhile in which the rank did nothing but communicate.
    """

    operation: list[int]
    step: list[int]
    position: list[int]
    start_ns: list[int]
    end_ns: list[int]
    exposed_ns: list[int]


class RankFinding(msgspec.Struct, frozen=True):
    """A finding as the comparison of ranks needs it: `id` is the same on all ranks; times are per step."""

    id: str
    rule: str
    severity: Literal["high", "medium", "low", "info"]
    message: str
    cost_ns: int
    saving_ns: int


class RankSummary(msgspec.Struct, frozen=True):
    """One rank's part of a run.

    Attributes:
        entries: the median time of each entry of the rank's ledger in a step after the warm-up, in ns, by its id.
        origin_ns: the start of the profile in the rank's own clock; all other times are relative to it.
        step_ns: the ledger's median step after the warm-up, None without steps.
        typical: the median of such steps' parts in the ledger, in ns, by the few parts that are compared between ranks.
        memory_peak_bytes: most bytes allocated on the fullest device, None if memory was not recorded.
        world_size: the job's number of ranks, None if the recording does not state it.
        findings: the most valuable ones in the rank's report.
    """

    rank: int
    worker: str
    span: str
    recorded: list[str]
    origin_ns: int
    steps: list[StepSummary]
    entries: dict[str, int]
    operations: list[Operation]
    collectives: CollectiveColumns
    step_ns: int | None = None
    typical: dict[str, int] = {}
    memory_peak_bytes: int | None = None
    world_size: int | None = None
    findings: list[RankFinding] = []
