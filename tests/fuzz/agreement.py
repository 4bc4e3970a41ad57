"""Whether both decoders agree on a text, whatever it is; under a sanitizer, also whether the compiled one is sound."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from tb_tidy_plugin.trace._scan import RefusedError, Scanner
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.scanned import ScanningDecoder
from tests.support.decoders import differences, read_with


class Known(dict[int, list[bytes]]):
    """The texts that a scanner has told of, by table."""


def _scanned(scanner: Scanner, events: bytes, known: Known) -> object:
    """What a scanner says of all events, its numbers replaced by what they stand for; None where it refuses them."""
    try:
        count, wide, narrow, tables, args, args_ends = scanner.columns([(events, 0, len(events))])
    except RefusedError:
        return None
    for which, (first, new) in enumerate(tables):
        known[which] = known.get(which, [])[:first] + new
    numbers = [np.frombuffer(column, np.int32).tolist() for column in narrow]
    ends = [0, *np.frombuffer(args_ends, np.int32).tolist()]
    rests = [args[ends[number - 1] : ends[number]] if number else b"" for number in numbers.pop()]
    return count, wide, [[known[which][number] for number in column] for which, column in enumerate(numbers)], rests


class Agreement:
    """Runs both decoders; the compiled one keeps its memory from text to text, as it does from block to block."""

    def __init__(self) -> None:
        self._scanners = [Scanner(), Scanner()]
        self._pool = ThreadPoolExecutor(2)
        self._fresh, self._warm, self._known = Scanner(), Scanner(), Known()
        self.accepted = 0

    def differences(self, text: bytes, seed: int) -> list[str]:
        """In which fields the decoders differ on `text`, read in blocks that `seed` tells."""
        make = random.Random(seed)
        size = make.choice((64, 300, 1000, len(text) + 1, len(text) + 1))
        blocks = [text[start : start + size] for start in range(0, len(text), size)]
        compiled = ScanningDecoder(self._scanners, self._pool)
        result = differences(read_with(compiled, blocks), read_with(ChunkDecoder(), blocks))
        self.accepted += not compiled.refused
        for _ in range(3):  # anywhere in the text, as no caller would
            start = make.randint(0, len(text))
            with suppress(RefusedError):
                self._scanners[0].columns([(text, start, make.randint(start, len(text)))])
        return result + self._surprises(text[text.find(b"[") + 1 : max(text.rfind(b"]"), 0)])

    def _surprises(self, events: bytes) -> list[str]:
        """What a scanner that expects what it saw in earlier texts makes otherwise than one that expects nothing."""
        self._fresh.forget()
        alone = _scanned(self._fresh, events, Known())
        expected = _scanned(self._warm, events, self._known)
        return [] if alone == expected else ["expected"]
