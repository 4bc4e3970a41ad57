"""Whether both decoders agree on a text, whatever it is; under a sanitizer, also whether the compiled one is sound."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tb_tidy_plugin.trace._scan import RefusedError, Scanner
from tb_tidy_plugin.trace.chunks import ChunkDecoder
from tb_tidy_plugin.trace.scanned import ScanningDecoder
from tests.support.decoders import differences, read_with


class Agreement:
    """Runs both decoders; the compiled one keeps its memory from text to text, as it does from block to block."""

    def __init__(self) -> None:
        self._scanners = [Scanner(), Scanner()]
        self._pool = ThreadPoolExecutor(2)
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
        return result
