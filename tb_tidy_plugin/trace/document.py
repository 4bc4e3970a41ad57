"""Cuts the text of a trace into pieces that hold whole events, and separates the metadata around them.

A piece is cut where an event seems to end. That guess needs no tokeniser to be safe: the piece starts at an event, so
if it decodes as a list, its brackets balance and the cut was right; if it does not, the list of events ends inside it,
or the text is malformed and goes to the recovering reader.

Blocks with Kineto's own layout are decoded in place. All others are processed in slices, which are only as long as one
event needs: the result of a slice takes many times its memory.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.reader import RECORD_AGAIN, CutShortError
from tb_tidy_plugin.trace.recover import EVENT_START, NOT_JSON, painted_over
from tb_tidy_plugin.words.errors import TraceError

_Events = TypeVar("_Events")


class TextPiece(NamedTuple):
    """Events separated by commas: those in `text[start:end]`."""

    text: bytes
    start: int
    end: int


Decode: TypeAlias = Callable[[Sequence[TextPiece]], _Events]

MAX_EVENT_BYTES = 4 << 20  # longer ones are damage; the longest of about a hundred recordings has 7 kB
MAX_METADATA_BYTES = 16 << 20  # the same recordings have up to 27 kB of it
SLICE_BYTES = 384 << 10  # its objects fit the processor's cache: 3/4 of the time of 8 MB at once

KINETO_CUT = b"\n  },\n  {"  # where Kineto itself ends one event and starts the next
TO_COMMA = KINETO_CUT.index(b",")  # bytes of a cut before the comma belong to the one event, those after it to the next
BLANKS = b" \t\r\n"
TRIED_CUTS = 8
TRIED_ENDS = 64
BEFORE_DOCUMENT = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
LIST_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
LIST_END = re.compile(rb"[\}\[]\s*(\])\s*(?=,\s*\"|\}\s*\Z|\Z)")
AT_BYTE = re.compile(r"\(byte (\d+)\)")

GOES_ON, BROKEN = -1, -2

NOT_A_TRACE = "Choose a file written by torch.profiler (`*.pt.trace.json` or `*.pt.trace.json.gz`)."


class Ending(msgspec.Struct, frozen=True):
    """Data known once all events have been read.

    Attributes:
        metadata: the document with an empty list of events, empty for a bare list.
        cut_short: why the events end early, None if they do not.
    """

    metadata: bytes
    cut_short: str | None


def event_pieces(
    blocks: Iterator[bytes],
    decode: Decode[_Events],
    recover: Callable[[bytes], _Events],
) -> Generator[_Events, None, Ending]:
    """Yields the result of `decode` for the pieces; returns the ending.

    Args:
        blocks: the text, in order.
        decode: takes consecutive pieces; raises one of `NOT_JSON` if they are anything else.
        recover: takes events separated by commas, some malformed, and never raises.

    Raises:
        TraceError: the text is not a trace.
    """
    tail = _Tail(blocks)
    header, first, start = _up_to_events(tail)
    coming = chain([first], tail)
    text, end = b"", None
    while end is None and len(text) <= MAX_EVENT_BYTES:
        text, block = yield from _blocks_in_place(text, coming, start, decode)
        start = 0
        if block is None:
            break
        text, end = yield from _slices(text, block, decode, recover)
    end = _last_end(text) if end is None else end
    if end is None:
        yield recover(text)
        is_long = len(text) > MAX_EVENT_BYTES
        reason = f"No event ends within {MAX_EVENT_BYTES >> 20} MiB" if is_long else "The list of events does not end"
        return Ending(_document(header, b"}"), tail.cut_short or reason)
    yield _decoded_or_recovered(text, end, decode, recover)
    return _ending(header, text[end + 1 :], tail)


def _blocks_in_place(
    rest: bytes, blocks: Iterator[bytes], start: int, decode: Decode[_Events]
) -> Generator[_Events, None, tuple[bytes, bytes | None]]:
    """Yields the result of `decode` for blocks in place: only the events on their bounds are copied.

    Args:
        rest: the text before the blocks.
        blocks: the text.
        start: where the first block begins to count.
        decode: as in `event_pieces`.

    Returns:
        The text before the first block without Kineto's layout, and that block; None after the last one.
    """
    while (block := next(blocks, None)) is not None:
        first, last = block.find(KINETO_CUT, start), block.rfind(KINETO_CUT, start)
        if first < 0:
            return rest, block[start:]
        bridge = rest + block[start : first + TO_COMMA]
        pieces = [TextPiece(bridge, 0, len(bridge))]
        if first < last:
            pieces.append(TextPiece(block, first + TO_COMMA + 1, last + TO_COMMA))
        try:
            yield decode(pieces)
        except NOT_JSON:
            return rest, block[start:]
        rest, start = block[last + TO_COMMA + 1 :], 0
        del pieces, block  # before the next one is read
    return rest, None


def _slices(
    text: bytes, block: bytes, decode: Decode[_Events], recover: Callable[[bytes], _Events]
) -> Generator[_Events, None, tuple[bytes, int | None]]:
    """Yields the results for `text` and the block after it, in any layout, a slice at a time.

    Returns:
        The text after the last cut, and the position in it where the list of events ends; None if it goes on.
    """
    done = 0
    while done < len(block) and len(text) <= MAX_EVENT_BYTES:
        size = min(max(SLICE_BYTES, len(text)), MAX_EVENT_BYTES)  # doubled for a long event, to scan it less often
        # Blanks before an event are not a part of it: a list of them goes on until a limit of the text is reached.
        text, done = (text + block[done : done + size]).lstrip(BLANKS), done + size
        cuts = _cuts(text)
        if not cuts:
            continue
        cut = cuts[0]
        try:
            yield decode([TextPiece(text, 0, cut.end)])
        except NOT_JSON:
            readable = _readable(text)
            end = _list_end(readable)
            if end >= 0:
                return text + block[done:], end
            if end == GOES_ON:
                whole = next((each for each in cuts if _list_end(readable[: each.end] + b"]") == each.end), None)
                if whole is None:
                    continue  # all of them are inside one event
                cut = whole
            yield _decoded_or_recovered(text, cut.end, decode, recover)
        text = text[cut.start :]
    return text + block[done:], None


def _decoded_or_recovered(
    text: bytes, end: int, decode: Decode[_Events], recover: Callable[[bytes], _Events]
) -> _Events:
    try:
        return decode([TextPiece(text, 0, end)])
    except NOT_JSON:
        return recover(text[:end])


class _Tail(Iterator[bytes]):
    """The remaining blocks; damage ends them and is kept as the reason."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.cut_short: str | None = None

    def __next__(self) -> bytes:
        try:
            return next(self._blocks)
        except CutShortError as problem:
            self.cut_short = problem.error.rstrip(".")
            raise StopIteration from None


def _up_to_events(tail: _Tail) -> tuple[bytes, bytes, int]:
    """The text before the list of events (empty for a bare list), the text so far, and where in it the list begins.

    A large block is not copied.
    """
    text, begin = b"", 0
    for block in tail:
        text += block
        blank = BEFORE_DOCUMENT.match(text)
        begin = blank.end() if blank else 0
        if text.startswith(b"[", begin):
            return b"", text, begin + 1
        if begin < len(text) and not text.startswith(b"{", begin):
            break
        if match := LIST_KEY.search(text, begin):
            return text[begin : match.start()], text, match.end()
        if len(text) > MAX_METADATA_BYTES:
            break
    raise _no_events(text[begin:], tail.cut_short)


def _no_events(text: bytes, cut_short: str | None) -> TraceError:
    if cut_short:
        return TraceError(f"{cut_short}, before the first event.", RECORD_AGAIN)
    if not text:
        return TraceError("The file contains no text.", RECORD_AGAIN)
    if not text.startswith((b"{", b"[")):
        return TraceError("The file is not JSON.", NOT_A_TRACE)
    if len(text) > MAX_METADATA_BYTES:
        return TraceError(f"The first {MAX_METADATA_BYTES >> 20} MiB contain no `traceEvents`.", NOT_A_TRACE)
    try:
        decode(text, msgspec.Raw)  # checks the syntax without building objects
    except NOT_JSON:
        return TraceError("The JSON is broken before the first event.", RECORD_AGAIN)
    return TraceError("The file is JSON but not a trace: it has no `traceEvents`.", NOT_A_TRACE)


def _ending(header: bytes, text: bytes, tail: _Tail) -> Ending:
    blocks, size = [text], len(text)
    while size <= MAX_METADATA_BYTES and (block := next(tail, None)) is not None:
        blocks.append(block)
        size += len(block)
    return Ending(_document(header, b"".join(blocks)) if header else b"", tail.cut_short)


def _document(header: bytes, footer: bytes) -> bytes:
    return header + b'"traceEvents":[]' + footer


# Possible ends of events


class _Cut(NamedTuple):
    """The possible end of an event before another one, and the start of that one."""

    end: int
    start: int


def _cuts(text: bytes) -> list[_Cut]:
    """The last few cuts, in any layout, last ones first; before them Kineto's own."""
    at = text.rfind(KINETO_CUT)
    kineto = [_Cut(at + TO_COMMA, at + TO_COMMA + 1)] if at >= 0 else []
    window = 1 << 12
    found: deque[_Cut] = deque()
    while len(found) < TRIED_CUTS and window < 32 * len(text):
        matches = EVENT_START.finditer(text, max(0, len(text) - window))
        found = deque((_Cut(match.start() + 1, match.end()) for match in matches), TRIED_CUTS)
        window *= 32
    return list(dict.fromkeys([*kineto, *reversed(found)]))


# The end of the list of events


def _list_end(text: bytes) -> int:
    """Position of the bracket that closes the list, whatever follows; else `GOES_ON`, or `BROKEN` for invalid text.

    msgspec skips a value without building objects, and reports the byte at which it found more or something else.
    """
    try:
        decode(b"[" + text, msgspec.Raw)
    except msgspec.DecodeError as problem:
        place = AT_BYTE.search(str(problem))
        at = int(place[1]) - 1 if place else len(text)  # text that ends too early is valid so far
        if "trailing characters" in str(problem):
            return text.rindex(b"]", 0, at)
        return GOES_ON if at >= len(text) else BROKEN
    except NOT_JSON:
        return BROKEN
    return text.rindex(b"]")


def _readable(text: bytes) -> bytes:
    """`text`, or if that is not JSON, the text with its damage painted over."""
    return painted_over(text) if _list_end(text) == BROKEN else text


def _last_end(text: bytes) -> int | None:
    """The end of the list of events in the last of the text, None if it does not end."""
    end = _list_end(text)
    if end < 0 and (before_footer := _end_before_footer(text)) is not None:
        return before_footer
    if end == BROKEN:
        end = _list_end(painted_over(text))
    return end if end >= 0 else None


def _end_before_footer(text: bytes) -> int | None:
    """The end of the list of events in damaged text: where the rest of a document follows.

    Lists in the metadata are also followed by the rest of a document: the first such place counts.
    """
    first, misses = None, 0
    for end in reversed(array("q", (match.start(1) for match in LIST_END.finditer(text)))):
        # The part after the first one so far has been searched.
        rest = text[end + 1 :] if first is None else text[end + 1 : first + 1] + b"}"
        misses += 1
        if _ends_document(rest):
            first, misses = end, 0
        if misses > TRIED_ENDS:
            break
    return first


def _ends_document(text: bytes) -> bool:
    try:
        decode(_document(b"{", text), msgspec.Raw)
    except NOT_JSON:
        return not text.strip()
    return True


# Pieces


def as_list(pieces: Sequence[TextPiece]) -> bytes:
    """The events of all `pieces` as a JSON list, with one copy."""
    texts = (part for text, start, end in pieces for part in (b",", memoryview(text)[start:end]))
    next(texts)
    return b"".join((b"[", *texts, b"]"))


def parts_of(pieces: Sequence[TextPiece], count: int) -> list[list[TextPiece]]:
    """The pieces in `count` parts of similar size, cut where Kineto ends events; in fewer if it does not."""
    *before, (text, start, end) = pieces
    size = end - start
    cuts = {text.rfind(KINETO_CUT, start, start + size * number // count) for number in range(1, count)} - {-1}
    ends = [cut + TO_COMMA for cut in sorted(cuts)]
    first, *others = (
        TextPiece(text, *each) for each in zip([start, *(cut + 1 for cut in ends)], [*ends, end], strict=True)
    )
    return [[*before, first], *([each] for each in others)]
