"""Both decoders on the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from tb_tidy_plugin.errors import TraceError
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.columns import ROW_COLUMNS, EventTable, Flows
from tb_tidy_plugin.trace.kineto import decoded

WHOLE_VALUES = ("names", "input_texts", "threads", "metadata", "origin_ns", "dropped", "partial")


@dataclass(frozen=True)
class Unreadable:
    """What `read_trace` tells of a file that it cannot read."""

    error: str
    advice: str


def read_with(decoder: ChunkDecoder, blocks: Sequence[bytes]) -> EventTable | Unreadable:
    """What a decoder makes of a text in these blocks."""
    try:
        return decoded(iter(blocks), decoder)
    except TraceError as problem:
        return Unreadable(problem.error, problem.advice)


def differences(one: EventTable | Unreadable, other: EventTable | Unreadable) -> list[str]:
    """In which fields two results differ; empty where they are the same to the last byte of the args."""
    if isinstance(one, Unreadable) or isinstance(other, Unreadable):
        return [] if one == other else [f"{_kind(one)}, {_kind(other)}"]
    return list(_different_fields(one, other))


def _different_fields(one: EventTable, other: EventTable) -> Iterator[str]:
    for name in sorted(ROW_COLUMNS):
        if not np.array_equal(getattr(one, name), getattr(other, name)):
            yield name
    for name in WHOLE_VALUES:
        if getattr(one, name) != getattr(other, name):
            yield name
    for field in fields(Flows):
        if not np.array_equal(getattr(one.flows, field.name), getattr(other.flows, field.name)):
            yield f"flows.{field.name}"
    if args_of(one) != args_of(other):
        yield "args"


def args_of(table: EventTable) -> list[bytes]:
    """The text of each row's args."""
    return [table.args.text(row) for row in range(len(table))]


def _kind(result: EventTable | Unreadable) -> str:
    return result.error if isinstance(result, Unreadable) else f"{len(result)} events"
