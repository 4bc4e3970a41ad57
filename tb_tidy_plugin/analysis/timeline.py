"""From a trace to its timeline, without its report."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits
from tb_tidy_plugin.trace.remote import AnyPath

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.timeline.timeline import Timeline
    from tb_tidy_plugin.trace.columns import Category


def read_timeline(
    path: AnyPath, cache: Cache = NOWHERE, limits: Limits = USUAL_LIMITS, left_out: Collection[Category] = ()
) -> Timeline:
    """The timeline of the trace `path`, without events of the categories in `left_out`.

    Raises:
        TraceError: nothing in it can be used.
    """
    # Imported here: the process for timelines starts before its first request.
    import numpy as np

    from tb_tidy_plugin.profile.graphs.replay import with_replayed
    from tb_tidy_plugin.profile.steps.steps import steps_of
    from tb_tidy_plugin.profile.timeline.timeline import timeline_of
    from tb_tidy_plugin.trace.beside import read_with_side_files

    table = with_replayed(read_with_side_files(path, cache=cache, limits=limits))
    steps = steps_of(table)
    return timeline_of(table.take(np.flatnonzero(~table.is_category(left_out))) if left_out else table, steps)
