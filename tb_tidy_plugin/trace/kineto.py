"""Chrome/Kineto JSON, from 2021 to today, to an `EventTable`.

Two decoders produce the same columns: the compiled one (`scanned.py`), and the portable one (`chunks.py`), msgspec over
blocks, so that never more than one block of text exists as Python objects.
Format facts: https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp, and the eras in
`docs/architecture.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tb_tidy_plugin.system.allowance import sharing_limits
from tb_tidy_plugin.system.collector import held_off
from tb_tidy_plugin.trace.assemble import table_of
from tb_tidy_plugin.trace.chunks import Chunk, ChunkDecoder
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.document import Ending, event_pieces
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits
from tb_tidy_plugin.trace.metadata import parse_metadata
from tb_tidy_plugin.trace.reader import RECORD_AGAIN, ReadProgress, read_blocks
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.trace.scanned import fastest_decoder
from tb_tidy_plugin.words.errors import TraceError

RECORD_A_STEP = "Record at least one active step, and export before a repeating schedule starts its next cycle."


def read_trace(path: AnyPath, progress: ReadProgress | None = None, limits: Limits = USUAL_LIMITS) -> EventTable:
    """Reads one trace file within `limits`.

    Raises:
        TraceError: nothing in the file can be used; says why and what to do. A partly usable file does not raise:
            `EventTable.partial` and `EventTable.dropped` say what is missing.
    """
    with fastest_decoder() as decoder:
        return decoded(ahead(read_blocks(path, progress, limits)), decoder)


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, each read while the last one is decoded: inflating and waiting release the interpreter's lock.

    What `blocks` raises is raised in its place.
    """
    with ThreadPoolExecutor(1, "torchtidy-read") as pool:
        coming = pool.submit(sharing_limits(next), blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(sharing_limits(next), blocks, None)
            yield block


def decoded(blocks: Iterator[bytes], decoder: ChunkDecoder) -> EventTable:
    """The table of a trace whose text is `blocks`; `decoder` is a new one.

    Raises:
        TraceError: as in `read_trace`.
    """
    chunks: list[Chunk] = []
    with held_off():
        ending = _collect(event_pieces(blocks, decoder.decode, decoder.recover), chunks)
        metadata = parse_metadata(ending.metadata)
        table = table_of(chunks, decoder, metadata, ending.cut_short)
    if len(table) == 0 and ending.cut_short:
        raise TraceError(f"{ending.cut_short}, before the first event.", RECORD_AGAIN)
    if len(table) == 0 and (lost := sum(table.dropped.values())):
        raise TraceError(f"None of the trace's events can be read ({lost:,} are damaged).", RECORD_AGAIN)
    if len(table) == 0:
        raise TraceError("The trace contains no events.", RECORD_A_STEP)
    return table


def _collect(pieces: Iterator[list[Chunk]], into: list[Chunk]) -> Ending:
    while True:
        try:
            into.extend(next(pieces))
        except StopIteration as stop:
            ending: Ending = stop.value
            return ending
