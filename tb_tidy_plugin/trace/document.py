"""Cuts the text of a trace into pieces that hold whole events, and sets the metadata around them aside.

A piece is cut where an event seems to end. That guess needs no tokeniser to be safe: the piece starts at an event, so
if it decodes as a list, its brackets balance and the cut was right; if it does not, the list of events ends inside it,
or the text is malformed and goes to the recovering reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from tb_tidy_plugin.errors import TraceError
from tb_tidy_plugin.trace.reader import RECORD_AGAIN, CutShortError
from tb_tidy_plugin.trace.recover import EVENT_START, LONE_BACKSLASH, NOT_JSON

Events = TypeVar("Events")


class Piece(NamedTuple):
    """Events separated by commas: those in `text[start:end]`."""

    text: bytes
    start: int
    end: int


Decode: TypeAlias = Callable[[Sequence[Piece]], Events]

MAX_EVENT_BYTES = 64 << 20  # an event this long is no event: stop looking for its end
MAX_METADATA_BYTES = 256 << 20

KINETO_CUT = b"\n  },\n  {"  # how Kineto itself ends one event and starts the next
TO_COMMA = KINETO_CUT.index(b",")  # bytes of a cut that are the one event's; those behind the comma are the next one's
TRIED_CUTS = 8
TRIED_ENDS = 64
LIST_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
LIST_END = re.compile(rb"[\}\[]\s*\]\s*(?=,\s*\"|\}\s*\Z|\Z)")
NO_EVENT = re.compile(rb"\s*\]")

NOT_A_TRACE = "Choose a file written by torch.profiler (`*.pt.trace.json` or `*.pt.trace.json.gz`)."


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known once all events have been read.

    Attributes:
        metadata: the document with an empty list of events, empty for a bare list.
        cut_short: why the events end early, None where they do not.
    """

    metadata: bytes
    cut_short: str | None


def event_pieces(
    blocks: Iterator[bytes],
    decode: Decode[Events],
    recover: Callable[[bytes], Events],
) -> Generator[Events, None, Ending]:
    """Yields what `decode` makes of each piece; returns the ending.

    Args:
        blocks: the text, in order.
        decode: takes pieces that follow each other; raises one of `NOT_JSON` where they are anything else.
        recover: takes events separated by commas, some malformed, and never raises.

    Raises:
        TraceError: the text is no trace at all.
    """
    tail = _Tail(blocks)
    header, text = _up_to_events(tail)
    end: int | None = None
    while True:
        cut = _last_cut(text)
        if cut is not None:
            try:
                yield decode([Piece(text, 0, cut[0])])
            except NOT_JSON:
                end = _list_end(text, decode)
                if end is not None:
                    break
                cut = _cut_that_decodes(text, decode) or cut
                yield _decoded_or_recovered(text, cut[0], decode, recover)
        text = text[cut[1] if cut else 0 :]
        text, block = yield from _blocks_in_place(text, tail, decode)
        if block is None:
            end = _end_before_footer(text) or _list_end(text, decode)
            break
        text += block
    if end is None:
        yield recover(text)
        return Ending(_document(header, b"}"), tail.cut_short or "The list of events does not end")
    yield _decoded_or_recovered(text, end, decode, recover)
    return _ending(header, text[end + 1 :], tail)


def _blocks_in_place(
    rest: bytes, tail: Iterator[bytes], decode: Decode[Events]
) -> Generator[Events, None, tuple[bytes, bytes | None]]:
    """Yields what `decode` makes of blocks as they lie in memory: only the events on their bounds are copied.

    Returns:
        The text before the first block that is not cut as Kineto does it, and that block; None behind the last one.
    """
    while len(rest) <= MAX_EVENT_BYTES and (block := next(tail, None)) is not None:
        first, last = block.find(KINETO_CUT), block.rfind(KINETO_CUT)
        if first < 0:
            return rest, block
        bridge = rest + block[: first + TO_COMMA]
        pieces = [Piece(bridge, 0, len(bridge))]
        if first < last:
            pieces.append(Piece(block, first + TO_COMMA + 1, last + TO_COMMA))
        try:
            yield decode(pieces)
        except NOT_JSON:
            return rest, block
        rest = block[last + TO_COMMA + 1 :]
        del pieces, block  # before the next one is read
    return rest, None


def _decoded_or_recovered(text: bytes, end: int, decode: Decode[Events], recover: Callable[[bytes], Events]) -> Events:
    try:
        return decode([Piece(text, 0, end)])
    except NOT_JSON:
        return recover(text[:end])


class _Tail(Iterator[bytes]):
    """The blocks still to come; damage ends them and is kept as the reason."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.cut_short: str | None = None

    def __next__(self) -> bytes:
        try:
            return next(self._blocks)
        except CutShortError as problem:
            self.cut_short = problem.error.rstrip(".")
            raise StopIteration from None


def _up_to_events(tail: _Tail) -> tuple[bytes, bytes]:
    """The text before the list of events (empty for a bare list), and what was already read of the list."""
    text = b""
    for block in tail:
        text += block
        text = text.removeprefix(b"\xef\xbb\xbf").lstrip() if len(text) == len(block) else text
        if text.startswith(b"["):
            return b"", text[1:]
        if text and not text.startswith(b"{"):
            break
        if match := LIST_KEY.search(text):
            return text[: match.start()], text[match.end() :]
        if len(text) > MAX_METADATA_BYTES:
            break
    raise _no_events(text, tail.cut_short)


def _no_events(text: bytes, cut_short: str | None) -> TraceError:
    if cut_short:
        return TraceError(f"{cut_short}, before the first event.", RECORD_AGAIN)
    if not text:
        return TraceError("The file holds no text.", RECORD_AGAIN)
    if not text.startswith((b"{", b"[")):
        return TraceError("The file is not JSON.", NOT_A_TRACE)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])  # checks the syntax without building objects
    except NOT_JSON:
        return TraceError("The JSON is broken before the first event.", RECORD_AGAIN)
    return TraceError("The file is JSON, but no trace: it has no `traceEvents`.", NOT_A_TRACE)


def _last_cut(text: bytes) -> tuple[int, int] | None:
    """End of the last event that seems to be followed by another, and the start of that other one."""
    at = text.rfind(KINETO_CUT)
    if at >= 0:
        return at + TO_COMMA, at + TO_COMMA + 1
    return next(_cuts(text), None)


def _cuts(text: bytes) -> Iterator[tuple[int, int]]:
    """Where one event seems to end and the next to start, last ones first, in any layout."""
    window = 1 << 12
    found: list[re.Match[bytes]] = []
    while len(found) < TRIED_CUTS and window < 32 * len(text):
        found = list(EVENT_START.finditer(text, max(0, len(text) - window)))
        window *= 32
    yield from ((match.start() + 1, match.end()) for match in reversed(found[-TRIED_CUTS:]))


def _cut_that_decodes(text: bytes, decode: Decode[object]) -> tuple[int, int] | None:
    """A cut that is really between two events; the last one may have been inside an event's args."""
    for cut in _cuts(text):
        try:
            decode([Piece(text, 0, cut[0])])
        except NOT_JSON:
            continue
        return cut
    return None


def _end_before_footer(text: bytes) -> int | None:
    """Where the list of events ends in the last of the text, told by what follows being the rest of a document.

    Lists in the metadata are followed by the rest of a document too: the first such place is the one.
    """
    if empty := NO_EVENT.match(text):
        return empty.end() - 1
    first, misses = None, 0
    for candidate in reversed(list(LIST_END.finditer(text))):
        end = candidate.group().rindex(b"]") + candidate.start()
        misses += 1
        if _ends_document(text[end + 1 :]):
            first, misses = end, 0
        if misses > TRIED_ENDS:
            break
    return first


def _ends_document(text: bytes) -> bool:
    try:
        msgspec.json.decode(_document(b"{", text))
    except NOT_JSON:
        return not text.strip()
    return True


def _list_end(text: bytes, decode: Decode[object]) -> int | None:
    """Where the bracket is that closes the list of events, None where it is not in `text`."""
    for candidate in list(LIST_END.finditer(text))[:4]:
        end = candidate.group().rindex(b"]") + candidate.start()
        try:
            decode([Piece(text, 0, end)])
        except NOT_JSON:
            continue
        return end
    for kept in (text, LONE_BACKSLASH.sub(b".", text)):  # a real tokeniser; latin-1 keeps byte positions
        try:
            return json.JSONDecoder(strict=False).raw_decode("[" + kept.decode("latin-1"))[1] - 2
        except (ValueError, RecursionError):
            continue
    return None


def as_list(pieces: Sequence[Piece]) -> bytes:
    """The events of all `pieces` as a JSON list, with one copy."""
    texts = (part for text, start, end in pieces for part in (b",", memoryview(text)[start:end]))
    next(texts)
    return b"".join((b"[", *texts, b"]"))


def parts_of(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """The pieces in `count` parts of about the same size, cut where Kineto ends events; in fewer where it does not."""
    *before, (text, start, end) = pieces
    size = end - start
    cuts = {text.rfind(KINETO_CUT, start, start + size * number // count) for number in range(1, count)} - {-1}
    ends = [cut + TO_COMMA for cut in sorted(cuts)]
    first, *others = (
        Piece(text, *each) for each in zip([start, *(cut + 1 for cut in ends)], [*ends, end], strict=True)
    )
    return [[*before, first], *([each] for each in others)]


def _ending(header: bytes, text: bytes, tail: _Tail) -> Ending:
    for block in tail:
        text += block
        if len(text) > MAX_METADATA_BYTES:
            break
    if not header:
        return Ending(b"", tail.cut_short)
    return Ending(_document(header, text), tail.cut_short)


def _document(header: bytes, footer: bytes) -> bytes:
    return header + b'"traceEvents":[]' + footer
