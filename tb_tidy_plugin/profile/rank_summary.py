"""One rank's part of a run, small enough to travel and to be kept."""

from __future__ import annotations

from typing import Literal

import msgspec

from tb_tidy_plugin.vocabulary import Precision


class CollectiveSite(msgspec.Struct, frozen=True):
    """Where in the source a collective is issued; as `Frame` in `sources.frames`."""

    file: str
    line: int
    function: str
    precision: Precision = "definition"
    own_code: bool = True


class Operation(msgspec.Struct, frozen=True):
    """What collectives have in common. `bytes` is `ABSENT`, `group` empty and `site` None where it was not recorded."""

    kind: str
    group: str
    bytes: int
    site: CollectiveSite | None


class StepSummary(msgspec.Struct, frozen=True):
    """One step of one rank: where its mark begins, and its length by the ledger."""

    name: str
    start_ns: int
    duration_ns: int
    warmup: bool


class CollectiveColumns(msgspec.Struct, frozen=True):
    """Collectives of one rank in order of start, one entry each per column.

    Attributes:
        operation: number in the rank's `operations`.
        step: number in the rank's `steps`, `ABSENT` outside all steps.
        position: which of its step's collectives of this kind and group it is, from 0.
        start_ns, end_ns: relative to the rank's `origin_ns`.
        exposed_ns: how long the rank did nothing but communicate meanwhile.
    """

    operation: list[int]
    step: list[int]
    position: list[int]
    start_ns: list[int]
    end_ns: list[int]
    exposed_ns: list[int]


class RankFinding(msgspec.Struct, frozen=True):
    """What the ranks' findings need to be told together: `id` is the same on all ranks; times are per step."""

    id: str
    rule: str
    severity: Literal["high", "medium", "low", "info"]
    message: str
    cost_ns: int
    saving_ns: int


class RankSummary(msgspec.Struct, frozen=True):
    """One rank's part of a run.

    Attributes:
        parts: what the rank's step was spent on, in ns per step, by the parts of its lanes.
        origin_ns: the start of the profile in the rank's own clock; all other times are relative to it.
        step_ns: the ledger's median step besides the warm-up, None where there are no steps.
        typical: the median of such steps' parts in the ledger, in ns, by the few parts that ranks are compared by.
        memory_peak_bytes: the most that was allocated on the fullest device, None where memory was not recorded.
        world_size: how many ranks the job had, None where the recording does not say.
        findings: those of the rank's report, those worth most.
    """

    rank: int
    worker: str
    span: str
    recorded: list[str]
    origin_ns: int
    steps: list[StepSummary]
    parts: dict[str, int]
    operations: list[Operation]
    collectives: CollectiveColumns
    step_ns: int | None = None
    typical: dict[str, int] = {}
    memory_peak_bytes: int | None = None
    world_size: int | None = None
    findings: list[RankFinding] = []
