"""How far a recording can be trusted."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import Quality
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category

NOTABLE_MISMATCH = 0.001
"""Above this share of misplaced Python frames the user is told."""


def quality_of(profile: Profile) -> Quality:
    """Counts of what is missing, misplaced or impossible in the recording, with a sentence for each."""
    table = profile.table
    mismatch = parent_mismatch(profile)
    notes = []
    if table.partial:
        notes.append(f"{table.partial}: the numbers cover what comes before.")
    notes += table.metadata.notes
    notes += [f"{count:,} events left out: {reason}." for reason, count in table.dropped.items() if count]
    if mismatch is not None and mismatch > NOTABLE_MISMATCH:
        notes.append(f"{mismatch:.1%} of the Python frames hang below another frame than they were recorded under.")
    work = table.is_category(DEVICE_WORK)
    unlaunched = int((profile.launch[work] == ABSENT).sum())
    if unlaunched:
        notes.append(f"{unlaunched:,} of {int(work.sum()):,} device events have no launch in the file.")
    if "device" in profile.recorded and not profile.tree.size:
        notes.append("Only device events were recorded: there are no steps and no source lines.")
    return Quality(
        partial=table.partial is not None,
        dropped_events=sum(table.dropped.values()),
        parent_mismatch=mismatch,
        notes=notes,
    )


def parent_mismatch(profile: Profile) -> float | None:
    """Share of the Python frames with a recorded parent in the file that hang below another one; None without any."""
    size = profile.tree.size
    is_python = profile.table.category[:size] == Category.PYTHON
    frames = np.flatnonzero(is_python)
    own, wanted = profile.table.python_id[:size], profile.table.python_parent_id[:size]
    known = frames[np.isin(wanted[frames], own[frames]) & (wanted[frames] != ABSENT)]
    if not len(known):
        return None
    above = profile.tree.nearest_ancestor(is_python)[known]
    rebuilt = np.where(above == ABSENT, ABSENT, own[above])
    return float((rebuilt != wanted[known]).mean())
