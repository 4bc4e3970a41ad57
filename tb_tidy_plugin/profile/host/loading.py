"""Batches that a training thread takes from loaders, and its waits for the workers that prepare them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from tb_tidy_plugin.profile.events.intervals import Intervals, covered, last_begun, positions_of_each
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.settings import LoaderSettings

NEXT = r"^enumerate\(DataLoader\)#_\w{{0,100}}{}\w{{0,100}}\.__next__$"
"""`_SingleProcessDataLoaderIter`, `_MultiProcessingDataLoaderIter`, and `_Stateful…` ones of torchdata."""

WITHOUT_WORKERS, WITH_WORKERS = "SingleProcess", "MultiProcessing"

WAIT = r"(?:^|/)multiprocessing/connection\.py\(\d+\): poll$|(?:^|/)queue\.py\(\d+\): get$"
"""Frames in which the thread waits for a worker, or for the thread that pins the workers' data."""

ASLEEP = (
    r"^<built-in (?:function sleep>|method (?:recv\w*|accept|connect|poll|select|acquire) of |method read of _ssl\.)"
)
"""Built-ins in which a thread needs no core: it sleeps, or waits for a socket or a lock."""

ITERATOR = r"^torch/utils/data/dataloader\.py\(\d+\): (?:__init__|_reset)$"

HANDING_OVER_NS = 1_000_000
"""Time per batch for taking a prepared batch from a worker."""

USUAL_WORKERS = 8  # assumed if the machine's number of cores is unknown


def workers_hiding(share: float, cores: int | None = None) -> int:
    """Number of workers that hide work of this `share` of a step, at most the number of cores.

    PyTorch itself warns of more workers than cores, but not of equally many: the training thread also waits often.
    """
    return min(ceil(share / (1 - share)) if share < 1 else USUAL_WORKERS, cores or USUAL_WORKERS)


def batches_of(profile: Profile, iterator: str) -> Rows:
    """Batches taken from iterators with `iterator` in their class's name: `WITHOUT_WORKERS`, `WITH_WORKERS`."""
    return profile.matching(NEXT.format(iterator), Category.ANNOTATION)


def batches_by_place(profile: Profile, iterator: str) -> Iterator[Rows]:
    """The batches that steps take, grouped by place."""
    rows = batches_of(profile, iterator)
    rows = rows[profile.step_of(rows) != ABSENT]
    by_place: dict[tuple[str, ...], list[int]] = {}
    for row in rows.tolist():
        by_place.setdefault(_place(profile, row), []).append(row)
    yield from map(np.array, by_place.values())


def _place(profile: Profile, row: int) -> tuple[str, ...]:
    """The Python functions around a batch's loading, innermost first; empty without stacks."""
    names = (profile.name(above) for above in profile.ancestors(row) if profile.category(above) is Category.PYTHON)
    return tuple(name for name in names if not name.startswith("<"))


def is_first_batch(profile: Profile, batches: Rows) -> Mask:
    """Mask of `batches` that are the first of an epoch, for which workers start or begin again.

    Since the batch before, the thread created an iterator, or drew a seed for one, which is a scalar `random_` of its
    own and is recorded without stacks, too.
    """
    table = profile.table
    begins = profile.matching(ITERATOR, Category.PYTHON)
    drawn = profile.calls.among(profile.named("aten::random_"))
    seeds = [
        row for row, given in zip(drawn.tolist(), profile.inputs_of(drawn), strict=True) if given.shape(0) in {None, ()}
    ]
    signs = np.concatenate([begins, np.array(seeds, np.int64)])
    every = profile.matching(NEXT.format(""), Category.ANNOTATION)
    thread, starts = table.thread[batches], table.start_ns[batches]
    before = last_begun(table.thread[every], table.end_ns[every], thread, starts)
    since = np.append(table.end_ns[every], np.iinfo(np.int64).min)[before]
    sign = last_begun(table.thread[signs], table.start_ns[signs], thread, starts - 1)
    has_sign: Mask = sign != ABSENT
    return has_sign & (np.append(table.start_ns[signs], ABSENT)[sign] >= since)


def waits_for_workers(profile: Profile, batches: Rows, taking_over_ns: int) -> list[Intervals]:
    """Spans in which the thread waits inside each of `batches`.

    Without recorded Python functions, that is all of it except the last `taking_over_ns`, in which the thread unpacks
    the worker's data.
    """
    table = profile.table
    if not (table.category == Category.PYTHON).any():
        ends = table.end_ns - taking_over_ns
        return [Intervals.union(table.start_ns[[row]], ends[[row]]) for row in batches.tolist()]
    frames = profile.matching(WAIT, Category.PYTHON)
    owner = profile.covering(frames, batches)
    by_owner = {int(owner[here[0]]): frames[here] for here in positions_of_each(owner)}
    return [covered(table, by_owner.get(row, frames[:0])) for row in batches.tolist()]


def asleep_share(profile: Profile, batches: Rows) -> float:
    """The part of the time of `batches` in which the thread needs no core; 0 without recorded Python functions."""
    time = profile.covered(batches)
    asleep = profile.covered(profile.matching(ASLEEP, Category.PYTHON)).intersection(time)
    return asleep.total_ns / time.total_ns if time.total_ns else 0.0


def loader_with_workers(profile: Profile) -> LoaderSettings | None:
    """The only loader with workers; None if there are several, or if the settings were not captured."""
    loaders = [loader for loader in profile.settings.loaders if loader.num_workers]
    return loaders[0] if len(loaders) == 1 else None
