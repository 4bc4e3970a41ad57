"""Runs of several ranks, drawn by how late each rank comes in each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.summary import CollectiveColumns, CollectiveSite, Operation, RankSummary, StepSummary

STEP_US = 10_000
WIRE_US = 500
SITE = CollectiveSite("train.py", 5, "step")
REDUCE = Operation("all_reduce", "0", 4096, SITE)


def draw_run(
    *late_us: Sequence[int],
    clocks_us: Sequence[int] = (),
    entries: Sequence[Mapping[str, int]] = (),
    operation: Operation = REDUCE,
    exposed_us: int = STEP_US,
    warmups: int = 0,
) -> Run:
    """One row per step, one column per rank: how many µs after 1 ms of the step the rank comes to an all_reduce.

    Args:
        late_us: as above.
        clocks_us: how far each rank's clock is ahead.
        entries: of each rank's ledger, by id, in ns per step.
        operation: what the ranks do together.
        exposed_us: the most of each collective that is exposed.
        warmups: the number of steps, from the first on, that are warm-up.
    """
    ranks = range(len(late_us[0]))
    return Run(
        [
            RankSummary(
                rank=rank,
                worker=f"host_{rank}",
                span="",
                recorded=["steps"],
                origin_ns=1_000_000_000 + 1000 * (clocks_us[rank] if clocks_us else 0),
                steps=[
                    StepSummary(f"ProfilerStep#{step}", step * STEP_US * 1000, STEP_US * 1000, step < warmups)
                    for step in range(len(late_us))
                ],
                entries=dict(entries[rank]) if entries else {},
                operations=[operation],
                collectives=_columns([line[rank] for line in late_us], [max(line) for line in late_us], exposed_us),
            )
            for rank in ranks
        ]
    )


def _columns(own_us: Sequence[int], last_us: Sequence[int], exposed_us: int) -> CollectiveColumns:
    begins = [step * STEP_US + 1000 for step in range(len(own_us))]
    starts = [1000 * (begin + late) for begin, late in zip(begins, own_us, strict=True)]
    ends = [1000 * (begin + late + WIRE_US) for begin, late in zip(begins, last_us, strict=True)]
    return CollectiveColumns(
        operation=[0] * len(begins),
        step=list(range(len(begins))),
        position=[0] * len(begins),
        start_ns=starts,
        end_ns=ends,
        exposed_ns=[min(end - start, 1000 * exposed_us) for start, end in zip(starts, ends, strict=True)],
    )
