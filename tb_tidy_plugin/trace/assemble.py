"""Chunks of one trace, joined into an `EventTable`: rows selected, checked, made relative and sorted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tb_tidy_plugin.trace.categories import (
    AS_OPERATORS,
    INSTANT_NAMES,
    PROFILER_SPAN,
    category_of,
    is_known,
    is_unmarked_annotation,
)
from tb_tidy_plugin.trace.chunks import ID_FIELDS, NO_TIME, Chunk, ChunkDecoder
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    ArgsText,
    Category,
    EventTable,
    Flows,
    Ids,
    Mask,
    Metadata,
    Numbers,
    Rows,
    Thread,
    Times,
    of_each,
    repeated,
    taken,
)
from tb_tidy_plugin.trace.limits import LONGEST_EVENT_NAME, MOST_DEVICES
from tb_tidy_plugin.trace.sets import among, order_by
from tb_tidy_plugin.trace.strings import NumberTable, numbers_where

SHOWN_LABELS, SHOWN_LETTERS = 3, 40
MOST_NODES = 1 << 40  # most that autograd ever counts; a larger number, times the threads, would exceed int64
NARROW_IDS = {"forward_thread": 1 << 20, "device": MOST_DEVICES}
"""Largest values of small ids; a larger one is damage."""


WIDE_IDS = ("stream", "bytes")
"""Ids used in calculations; the others are only compared, so small ones are stored in half the memory."""


def table_of(
    chunks: list[Chunk], decoder: ChunkDecoder, metadata: Metadata | None, cut_short: str | None
) -> EventTable:
    """The table of one trace.

    Args:
        chunks: all of its pieces in file order, at least one; removed from the list to free their memory early.
        decoder: the one that made them; holds their string tables.
        metadata: None if it could not be read.
        cut_short: why the events end early, None if they do not.
    """
    phases, labels, names = map(_texts, (decoder.phases, decoder.categories, decoder.names))
    args = _args(chunks)
    columns = _taken_apart(chunks)
    phase, label, name = (_joined(columns, field) for field in ("phase", "category", "name"))
    start_ns, duration_ns = _joined(columns, "start_ns"), _joined(columns, "duration_ns")
    category = _categories(label, name, labels, names)
    is_complete = (phase == _number(phases, "X")) & (label != _number(labels, PROFILER_SPAN))
    is_instant = (phase == _number(phases, "i")) & among(name, numbers_where(names, INSTANT_NAMES.__contains__))
    category[is_instant] = Category.MEMORY
    duration_ns[is_instant] = 0
    is_wrong, reasons = _impossible(is_complete | is_instant, start_ns, duration_ns, among(category, DEVICE_WORK))
    rows = np.flatnonzero((is_complete | is_instant) & ~is_wrong)
    phase[start_ns == NO_TIME] = ABSENT  # from here on it marks arrows, and one without a time does not count
    origin_ns = int(start_ns[rows].min()) if len(rows) else 0
    start_ns -= origin_ns
    thread, threads = _threads(_joined(columns, "thread"), decoder)
    flows = _flows(_joined(columns, "flow"), phase, label, start_ns, thread, decoder)
    unknown, note = _unknown(is_complete & ~is_wrong, label, labels)
    metadata_read = metadata or Metadata()
    if unknown:
        metadata_read = replace(metadata_read, unknown_events=unknown, notes=(*metadata_read.notes, note))
    del phase, label, is_complete, is_instant, is_wrong
    event_index = _joined_ids(columns, "event_index")
    rows = rows[_row_order(rows, thread, start_ns, duration_ns, event_index)]
    ids: dict[str, Any] = {"event_index": taken(event_index, rows)}
    del event_index
    others = [field for field in ID_FIELDS if field not in ids]
    ids |= zip(others, of_each(lambda field: taken(_joined_ids(columns, field), rows), others, len(rows)), strict=True)
    ids["sequence"] = np.where((ids["sequence"] >= 0) & (ids["sequence"] < MOST_NODES), ids["sequence"], ABSENT)
    ids |= {field: _clipped(ids[field], largest) for field, largest in NARROW_IDS.items()}
    ids |= {field: ids[field].astype(np.int64) for field in WIDE_IDS if ids[field].strides[0]}
    by_row = [start_ns, duration_ns, name, category, thread, _joined(columns, "inputs"), args.number]
    start_ns, duration_ns, name, category, thread, inputs, number = of_each(
        lambda column: column[rows], by_row, len(rows)
    )
    del by_row
    return EventTable(
        start_ns=start_ns,
        end_ns=start_ns + duration_ns,
        name=name,
        category=category,
        thread=thread,
        **ids,
        called_from=repeated(ABSENT, len(rows), np.int32),
        file_order=rows.astype(np.int32),
        inputs=inputs,
        args=replace(args, number=number),
        flows=flows,
        names=_texts(decoder.names),
        input_texts=tuple(text.decode("utf-8", "replace") for text in decoder.inputs.values()),
        threads=threads,
        metadata=metadata_read,
        origin_ns=origin_ns,
        dropped=Counter(decoder.dropped) + reasons + Counter({"unreadable metadata": int(metadata is None)}),
        partial=cut_short,
    )


def _row_order(rows: Rows, thread: Numbers, start_ns: Times, duration_ns: Times, event_index: Ids) -> Rows:
    """Order by thread, start and tie-break: the profiler's own index if the trace has it, else the duration."""
    index = event_index[rows]
    tie = index if (index != ABSENT).any() else -duration_ns[rows]
    return order_by(thread[rows], start_ns[rows], tie, rows)


def _taken_apart(chunks: list[Chunk]) -> dict[str, list[NDArray[Any]]]:
    """All columns of the chunks, which are emptied, so that memory is freed column by column."""
    columns: dict[str, list[NDArray[Any]]] = {
        field: [getattr(chunk, field) for chunk in chunks]
        for field in ("phase", "category", "name", "thread", "inputs", "start_ns", "duration_ns", "flow")
    }
    columns |= {field: [chunk.ids[field] for chunk in chunks if len(chunk.start_ns)] for field in ID_FIELDS}
    chunks.clear()
    return columns


def _joined(columns: dict[str, list[NDArray[Any]]], field: str) -> NDArray[Any]:
    """One column, removed from `columns`."""
    return np.concatenate(columns.pop(field))


def _joined_ids(columns: dict[str, list[NDArray[Any]]], field: str) -> Ids:
    """One column of ids, removed from `columns`. If no event has the id, a single number stands for all."""
    parts = columns.pop(field)
    if any(part.strides[0] for part in parts):
        return np.concatenate(parts)
    return np.broadcast_to(parts[0][0] if parts else np.int32(ABSENT), sum(map(len, parts)))


def _clipped(column: Ids, largest: int) -> Numbers:
    """Ids up to `largest`. A repeated column stays a repeated one."""
    is_repeated = column.strides == (0,) and len(column)
    values = np.clip(column[:1] if is_repeated else column, ABSENT, largest).astype(np.int32)
    return repeated(int(values[0]), len(column), np.int32) if is_repeated else values


def _texts(table: NumberTable[str | None]) -> tuple[str, ...]:
    """The texts of a table; longer ones than any real name are cut, since every rule searches all names."""
    texts = (text or "" for text in table.values())
    return tuple(text if len(text) <= LONGEST_EVENT_NAME else f"{text[: LONGEST_EVENT_NAME - 1]}…" for text in texts)


def _number(texts: tuple[str, ...], text: str) -> int:
    return texts.index(text) if text in texts else ABSENT


def _categories(label: Numbers, name: Numbers, labels: tuple[str, ...], names: tuple[str, ...]) -> NDArray[np.int8]:
    by_label = np.array([int(category_of(text)) for text in labels] or [0], np.int8)
    category: NDArray[np.int8] = by_label[label]
    unmarked = among(name, numbers_where(names, is_unmarked_annotation))
    for text in AS_OPERATORS:
        category[unmarked & (label == _number(labels, text))] = Category.ANNOTATION
    return category


def _unknown(rows: Mask, label: Numbers, labels: tuple[str, ...]) -> tuple[int, str]:
    """The number of `rows` with a category that is not known, or without one, and a sentence on them."""
    counts = np.bincount(label[rows], minlength=len(labels)).tolist()
    unknown = {text: count for text, count in zip(labels, counts, strict=False) if count and not is_known(text)}
    if not (number := sum(unknown.values())):
        return 0, ""
    named = sorted((text for text in unknown if text), key=lambda text: -unknown[text])
    shown = ", ".join(f"`{text[:SHOWN_LETTERS]}`" for text in named[:SHOWN_LABELS])
    more = f" and {len(named) - SHOWN_LABELS:,} more" if len(named) > SHOWN_LABELS else ""
    of = f"an unknown category ({shown}{more})" if named else "no category"
    one = number == 1
    return number, (
        f"{number:,} of {int(rows.sum()):,} events {'has' if one else 'have'} {of}: no figure includes "
        f"{'it' if one else 'them'}. If this is a device's work, the device is unsupported."
    )


def _impossible(rows: Mask, start_ns: Times, duration_ns: Times, on_device: Mask) -> tuple[Mask, Counter[str]]:
    """Mask of `rows` with impossible times, and counts by reason."""
    wrong = {
        "impossible time": rows & (start_ns == NO_TIME),
        "negative or impossible duration": rows & (start_ns != NO_TIME) & (duration_ns < 0),
    }
    known = rows & ~(wrong["impossible time"] | wrong["negative or impossible duration"])
    wrong["device work at time zero"] = known & on_device & (start_ns <= 0) & bool((start_ns[known] > 0).any())
    reasons = Counter({reason: int(these.sum()) for reason, these in wrong.items()})
    return np.logical_or.reduce(list(wrong.values())), reasons


def _threads(thread: Numbers, decoder: ChunkDecoder) -> tuple[Numbers, tuple[Thread, ...]]:
    """Threads by their text: `25738` and `"25738"` are the same one."""
    table = NumberTable[Thread]()
    renumbered = [table.number(Thread(str(pid), str(tid))) for pid, tid in decoder.threads.values()]
    return np.array(renumbered or [0], np.int32)[thread], table.values()


def _args(chunks: list[Chunk]) -> ArgsText:
    """The texts of all chunks, numbered consecutively."""
    sizes = [len(chunk.args_ends) for chunk in chunks]
    firsts = np.cumsum([0, *sizes])
    starts = np.cumsum([0, *(len(chunk.args) for chunk in chunks)])
    ends = [chunk.args_ends + np.int64(start) for chunk, start in zip(chunks, starts, strict=False)]
    numbers = [
        np.where(chunk.args_number, chunk.args_number + np.int32(first), np.int32(0))
        for chunk, first in zip(chunks, firsts, strict=False)
    ]
    return ArgsText(
        blocks=tuple(chunk.args for chunk in chunks),
        ends=np.concatenate([np.zeros(1, np.int64), *ends]),
        number=np.concatenate(numbers),
    )


def _flows(
    flow: Times, phase: Numbers, label: Numbers, time_ns: Times, thread: Numbers, decoder: ChunkDecoder
) -> Flows:
    phases, labels = _texts(decoder.phases), _texts(decoder.categories)
    is_start = phase == _number(phases, "s")
    rows = np.flatnonzero(is_start | (phase == _number(phases, "f")))
    kinds = np.array([decoder.names.number(text) for text in labels] or [0], np.int32)
    return Flows(
        kind=kinds[label[rows]],
        is_start=is_start[rows],
        flow=flow[rows],
        time_ns=time_ns[rows],
        thread=thread[rows],
    )
