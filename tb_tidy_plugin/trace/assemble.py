"""Chunks of one trace, joined to an `EventTable`: rows chosen, checked, made relative and sorted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tb_tidy_plugin.trace.categories import (
    INSTANT_NAMES,
    PROFILER_SPAN,
    category_of,
    is_unmarked_annotation,
)
from tb_tidy_plugin.trace.chunks import ID_FIELDS, Chunk, ChunkDecoder
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    ArgsText,
    Category,
    EventTable,
    Flows,
    Mask,
    Metadata,
    Numbers,
    Rows,
    Thread,
    Times,
)
from tb_tidy_plugin.trace.strings import NumberTable, numbers_where


def table_of(chunks: list[Chunk], decoder: ChunkDecoder, metadata: Metadata | None, cut_short: str | None) -> EventTable:
    """The table of one trace.

    Args:
        chunks: all of its pieces in file order.
        decoder: what made them; holds their string tables.
        metadata: None where it could not be read.
        cut_short: why the events end early, None where they do not.
    """
    start_ns = _joined(chunks, lambda chunk: chunk.start_ns)
    duration_ns = _joined(chunks, lambda chunk: chunk.duration_ns)
    label = _joined(chunks, lambda chunk: chunk.category).astype(np.int32)
    phase = _joined(chunks, lambda chunk: chunk.phase).astype(np.int32)
    name = _joined(chunks, lambda chunk: chunk.name).astype(np.int32)
    labels, names = _texts(decoder.labels), _texts(decoder.names)
    category = _categories(label, name, labels, names)

    is_complete = (phase == _number(labels, "X")) & (label != _number(labels, PROFILER_SPAN))
    is_instant = (phase == _number(labels, "i")) & np.isin(name, numbers_where(names, INSTANT_NAMES.__contains__))
    category[is_instant] = Category.MEMORY
    dropped = Counter(decoder.dropped)
    wrong = _impossible(is_complete, start_ns, duration_ns, np.isin(category, DEVICE_WORK), dropped)
    rows = np.flatnonzero((is_complete | is_instant) & ~wrong)

    ids = {field: _joined(chunks, lambda chunk, field=field: chunk.ids[field])[rows] for field in ID_FIELDS}
    origin_ns = int(start_ns[is_complete & ~wrong].min(initial=np.iinfo(np.int64).max)) if len(rows) else 0
    thread, threads = _threads(_joined(chunks, lambda chunk: chunk.thread).astype(np.int32), decoder)
    table = EventTable(
        start_ns=start_ns[rows] - origin_ns,
        end_ns=start_ns[rows] - origin_ns + np.where(is_instant[rows], 0, duration_ns[rows]),
        name=name[rows],
        category=category[rows],
        thread=thread[rows],
        forward_thread=ids.pop("forward_thread").astype(np.int32),
        device=np.clip(ids.pop("device"), ABSENT, 1 << 20).astype(np.int32),
        **ids,
        file_order=rows.astype(np.int32),
        args=_args(chunks).take(rows),
        flows=_flow_table(chunks, phase, label, start_ns - origin_ns, thread, decoder.labels, decoder.names),
        names=_texts(decoder.names),
        threads=threads,
        metadata=metadata or Metadata(),
        origin_ns=origin_ns,
        dropped=dropped | ({"metadata": 1} if metadata is None else {}),
        partial=cut_short,
    )
    return table.take(_row_order(table))


def _row_order(table: EventTable) -> Rows:
    """By (thread, start, tie-break): the profiler's own index settles ties where the trace has it."""
    has_index = bool((table.event_index != ABSENT).any())
    tie = table.event_index if has_index else -table.end_ns
    return np.lexsort((table.file_order, tie, table.start_ns, table.thread))


def _joined(chunks: list[Chunk], column: Callable[[Chunk], Times | Numbers]) -> Times:
    return np.concatenate([column(chunk) for chunk in chunks]) if chunks else np.empty(0, np.int64)


def _texts(table: NumberTable[str | None]) -> tuple[str, ...]:
    return tuple(text or "" for text in table.values())


def _number(texts: tuple[str, ...], text: str) -> int:
    return texts.index(text) if text in texts else ABSENT


def _categories(label: Numbers, name: Numbers, labels: tuple[str, ...], names: tuple[str, ...]) -> Numbers:
    by_label = np.array([category_of(text) for text in labels] or [0], np.int8)
    category = by_label[label]
    unmarked = np.isin(name, numbers_where(names, is_unmarked_annotation))
    category[unmarked & (label == _number(labels, "Operator"))] = Category.ANNOTATION
    return category


def _impossible(rows: Mask, start_ns: Times, duration_ns: Times, on_device: Mask, dropped: Counter[str]) -> Mask:
    """Rows whose times cannot be right; counted by reason in `dropped`."""
    overflowed = rows & (duration_ns < 0)
    timeless = rows & on_device & (start_ns <= 0) & bool((start_ns[rows] > 0).any())
    dropped["negative or impossible duration"] += int(overflowed.sum())
    dropped["device work at time zero"] += int((timeless & ~overflowed).sum())
    return overflowed | timeless


def _threads(thread: Numbers, decoder: ChunkDecoder) -> tuple[Numbers, tuple[Thread, ...]]:
    """Threads by their text: `25738` and `"25738"` are the same one."""
    table: dict[Thread, int] = {}
    renumbered = [table.setdefault(Thread(str(pid), str(tid)), len(table)) for pid, tid in decoder.threads.values()]
    return np.array(renumbered or [0], np.int32)[thread], tuple(table)


def _args(chunks: list[Chunk]) -> ArgsText:
    counts = [len(chunk.args_end) for chunk in chunks]
    starts = [np.concatenate([np.zeros(1, np.int32), chunk.args_end[:-1]]) for chunk in chunks if len(chunk.args_end)]
    return ArgsText(
        blocks=tuple(chunk.args for chunk in chunks),
        block=np.repeat(np.arange(len(chunks), dtype=np.int32), counts),
        start=np.concatenate(starts) if starts else np.empty(0, np.int32),
        end=_joined(chunks, lambda chunk: chunk.args_end).astype(np.int32),
    )


def _flow_table(
    chunks: list[Chunk],
    phase: Numbers,
    label: Numbers,
    time_ns: Times,
    thread: Numbers,
    labels: NumberTable[str | None],
    names: NumberTable[str | None],
) -> Flows:
    texts = _texts(labels)
    is_start = phase == _number(texts, "s")
    rows = np.flatnonzero(is_start | (phase == _number(texts, "f")))
    kinds = np.array([names.number(text) for text in texts] or [0], np.int32)
    return Flows(
        kind=kinds[label[rows]],
        is_start=is_start[rows],
        flow=_joined(chunks, lambda chunk: chunk.flow)[rows],
        time_ns=time_ns[rows],
        thread=thread[rows],
    )
