"""Both decoders on the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.chunks import ChunkDecoder, EventArgs
from tb_tidy_plugin.trace.columns import ROW_COLUMNS, EventTable, Flows
from tb_tidy_plugin.trace.kineto import decoded
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.scanned import ScanningDecoder, fastest_decoder
from tb_tidy_plugin.words.errors import TraceError

WHOLE_VALUES = ("names", "input_texts", "threads", "metadata", "origin_ns", "dropped", "partial")
IN_COLUMNS = frozenset(field.encode_name for field in msgspec.structs.fields(EventArgs))


@dataclass(frozen=True)
class Unreadable:
    """The error of `read_trace` on a file that it cannot read."""

    error: str
    advice: str


def read_with(decoder: ChunkDecoder, blocks: Sequence[bytes]) -> EventTable | Unreadable:
    """A decoder's result for a text in these blocks."""
    try:
        return decoded(iter(blocks), decoder)
    except TraceError as problem:
        return Unreadable(problem.error, problem.advice)


def both(*blocks: bytes, threads: int = 2) -> tuple[EventTable | Unreadable, list[str], dict[str, int]]:
    """The portable decoder's result, the fields in which the compiled one differs, and its refusals by reason."""
    portable = read_with(ChunkDecoder(), blocks)
    with fastest_decoder(threads) as decoder:
        assert isinstance(decoder, ScanningDecoder)
        return portable, differences(read_with(decoder, blocks), portable), dict(decoder.refused)


def differences(one: EventTable | Unreadable, other: EventTable | Unreadable) -> list[str]:
    """Fields in which two results differ; empty if they are the same to the last byte of the args."""
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
    for field in msgspec.structs.fields(Flows):
        if not np.array_equal(getattr(one.flows, field.name), getattr(other.flows, field.name)):
            yield f"flows.{field.name}"
    if args_of(one) != args_of(other):
        yield "args"


def args_of(table: EventTable) -> list[object]:
    """Members of each row's args that are not in columns, as raw text; the whole text if it is not JSON."""
    known: dict[bytes, object] = {}
    texts = [table.args.text(row) for row in range(len(table))]
    return [known.get(text) or known.setdefault(text, _not_in_columns(text)) for text in texts]


def _not_in_columns(text: bytes) -> object:
    try:
        members = decode(_as_text(text), dict[str, msgspec.Raw])
    except NOT_JSON:
        return text
    return {key: bytes(value) for key, value in members.items() if key not in IN_COLUMNS}


def _as_text(text: bytes) -> bytes:
    """Text as UTF-8; keys may be in no encoding, then each byte is a character."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1").encode()
    return text


def _kind(result: EventTable | Unreadable) -> str:
    return result.error if isinstance(result, Unreadable) else f"{len(result)} events"
