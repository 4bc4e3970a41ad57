"""Parts of a rank's step by which ranks are compared, on any device.

Each entry of the ledger belongs to one of six parts, so that one table can compare ranks and each rank's parts still
add up to its step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tidy_plugin.ledger.model import Entry, ordinary_steps
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.report.rank_model import RANK_PARTS
from tb_tidy_plugin.words.vocabulary import RankPart


def _part_of(entry: Entry) -> RankPart:
    """The part of the step that an entry belongs to."""
    return (entry.kind and entry.kind.rank_part) or entry.cause.rank_part


def typical_step(report: ProfileReport) -> tuple[int | None, dict[str, int]]:
    """The ledger's median step without the warm-up, and the median of each part in these steps.

    A recording without steps counts as one step without a duration.
    """
    ledger = report.ledger
    if not ledger.entries:
        return None, {}
    ordinary = ordinary_steps(ledger, _warmup(report))
    length = _median([ledger.steps[at].end_ns - ledger.steps[at].start_ns for at in ordinary])
    parts: dict[str, int] = {}
    for name in RANK_PARTS:
        columns = [entry.ns_by_step for entry in ledger.entries if _part_of(entry) == name]
        if columns:
            parts[name] = _median(np.array(columns, np.int64).sum(axis=0)[ordinary])
    return (None if ledger.step_source == "whole_trace" else length), parts


def typical_entries(report: ProfileReport) -> dict[str, int]:
    """The median of each entry of the ledger, by its id, in the steps without the warm-up."""
    ordinary = ordinary_steps(report.ledger, _warmup(report))
    return {each.id: _median([each.ns_by_step[at] for at in ordinary]) for each in report.ledger.entries}


def _warmup(report: ProfileReport) -> set[str]:
    return {item.name for item in report.steps.items if item.oddity == "warmup"}


def _median(values: Sequence[int] | np.typing.NDArray[np.int64]) -> int:
    return round(float(np.median(values)))
