"""Waits with both ends in the recording: the one that waits, and the work that it waits for.

Kineto writes a `cuda_sync` event for each with `_ExperimentalConfig(enable_cuda_sync_events=True)`. It has the
correlation of the call that waits, the stream that was told to wait, if any, and stream and correlation of the awaited
`cudaEventRecord`, which stands for everything launched on that stream before.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.intervals import last_begun
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import STREAM_WAIT
from tb_tidy_plugin.trace.columns import ABSENT, Amount, Category, Ids, Numbers, Rows, Times

BY_STREAM, BY_HOST = "^Stream Wait Event$", "^Event Sync$"


class _Work(Protocol):
    """Activities: their rows in the profile, the number of their stream, and the times of their launch and end."""

    @property
    def row(self) -> Rows: ...

    @property
    def stream(self) -> Rows: ...

    @property
    def launched_ns(self) -> Times: ...

    @property
    def end_ns(self) -> Times: ...


class NamedWaits(msgspec.Struct, frozen=True):
    """Named waits, in the order in which the awaited work ended.

    Attributes:
        call: row of the call that waits, or tells a stream to.
        waiting: the first activity of that stream that was launched after it, `ABSENT` if there is none.
        awaited: the awaited activity.
    """

    call: Rows
    waiting: Rows
    awaited: Rows


class _Sync(msgspec.Struct, frozen=True):
    wait_on_stream: Amount = ABSENT
    wait_on_cuda_event_record_corr_id: Amount = ABSENT


def named_waits(profile: Profile, kind: str, work: _Work) -> NamedWaits:
    """The waits of one kind whose call, stream and awaited work are all in the recording."""
    table = profile.table
    rows = profile.matching(kind, Category.OTHER)
    if not len(rows):  # as in most recordings
        return NamedWaits(rows, rows, rows)
    said = table.args.decoded(rows, _Sync)
    call = _with_correlation(profile, f"{STREAM_WAIT}|EventSynchronize", table.correlation[rows])
    recorded = np.array([each.wait_on_cuda_event_record_corr_id for each in said], np.int64)
    record = _with_correlation(profile, "EventRecord", recorded)
    awaited_stream = np.array([each.wait_on_stream for each in said], np.int64)
    is_known = (call != ABSENT) & (record != ABSENT)
    mine, theirs = (
        np.where(is_known, _streams(profile, work, table.device[rows], stream), ABSENT)
        for stream in (table.stream[rows], awaited_stream)
    )
    # The first one launched after a time is the last one before it, in reverse.
    after = last_begun(work.stream[::-1], -work.launched_ns[::-1], mine, -table.start_ns[call])
    waiting = np.where(after == ABSENT, ABSENT, len(work.row) - 1 - after)
    awaited = last_begun(work.stream, work.launched_ns, theirs, table.start_ns[record] - 1)
    known = np.flatnonzero(awaited != ABSENT)
    known = known[np.argsort(work.end_ns[awaited[known]], kind="stable")]
    return NamedWaits(call[known], waiting[known], awaited[known])


def _streams(profile: Profile, work: _Work, device: Numbers, stream: Times) -> Rows:
    """The numbers of these streams in `work`, `ABSENT` for others."""
    lanes, first = np.unique(work.stream, return_index=True)
    table, rows = profile.table, work.row[first]
    names = zip(table.device[rows].tolist(), table.stream[rows].tolist(), strict=True)
    number = dict(zip(names, lanes.tolist(), strict=True))
    found = [number.get(lane, ABSENT) for lane in zip(device.tolist(), stream.tolist(), strict=True)]
    return np.array(found, np.int64)


def _with_correlation(profile: Profile, name: str, correlations: Ids) -> Rows:
    """The runtime call with each correlation, `ABSENT` if there is none."""
    table = profile.table
    calls = profile.matching(name, Category.RUNTIME)
    calls = calls[np.argsort(table.correlation[calls], kind="stable")]
    at = np.searchsorted(table.correlation[calls], correlations)
    found = np.append(calls, ABSENT)[at]
    return np.where((found != ABSENT) & (correlations >= 0) & (table.correlation[found] == correlations), found, ABSENT)
