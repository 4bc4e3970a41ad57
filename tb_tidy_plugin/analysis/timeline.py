"""From a trace to its timeline, without its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.limits import USUAL, Limits
from tb_tidy_plugin.trace.remote import Place

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.timeline import Timeline


def read_timeline(path: Place, cache: Cache = NOWHERE, limits: Limits = USUAL) -> Timeline:
    """The timeline of the trace `path`.

    Raises:
        TraceError: nothing in it can be used.
    """
    # Imported here: a process for timelines starts before it is asked for one.
    from tb_tidy_plugin.profile.replay import with_replayed
    from tb_tidy_plugin.profile.steps import steps_of
    from tb_tidy_plugin.profile.timeline import timeline_of
    from tb_tidy_plugin.trace.beside import read_with_side_files

    table = with_replayed(read_with_side_files(path, cache=cache, limits=limits))
    return timeline_of(table, steps_of(table))
