"""Checks of a trace that was just written, and the reasons of failures.

Torch's exporter does not raise if it cannot write. It prints a line on stderr and leaves an unfinished
`<trace>.tmp`, or, with `use_gzip`, a valid gz of an empty text: the trace goes through the folder for temporary files.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder

from tb_tidy_plugin.capture.guarded import log_harmless, reason_of
from tb_tidy_plugin.system.files import DRAFT
from tb_tidy_plugin.words.units import Bytes

_BLOCK_BYTES = 1 << 15  # of gz; inflates to 32 MB at most
TAIL_BYTES = 1 << 16  # contains the last event, unless that has very long args
PROBE_BYTES = 1 << 16  # written to find out why writing fails


EVENT = re.compile(r'\{\s*"ph"\s*:')
"""The start of each of torch's events."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The damage of an incomplete trace.

    Attributes:
        how: the end of a sentence about it.
        is_total: True if nothing of it can be read.
    """

    how: str
    is_total: bool


REFUSED = Loss("could not be written", is_total=True)
_MISSING = Loss("was not written", is_total=True)
EMPTY = Loss("is empty", is_total=True)
_CUT = Loss("breaks off", is_total=False)


def loss_said(path: str, budget_s: float) -> Loss | None:
    """The damage of the trace at `path`, which is logged with the reason; None if it is complete.

    Of a plain file only the end is read. A gz is inflated, since nothing else shows the end of its text; if that takes
    longer than `budget_s`, the rest counts as intact.

    Raises:
        OSError: it exists but cannot be read.
    """
    loss = _loss_of(path, budget_s)
    if loss is not None:
        _say_lost(path, loss, why_nothing_is_written(path))
    return loss


def _loss_of(path: str, budget_s: float) -> Loss | None:
    try:
        end = _end_of_gz(path, time.monotonic() + budget_s) if path.endswith(".gz") else _end_of_file(path)
    except FileNotFoundError:
        return _MISSING
    except (EOFError, zlib.error):
        return _CUT
    if end is None:
        return None
    if not end:
        return EMPTY
    return None if end.rstrip().endswith(b"}") and not _ends_in_event(end.decode(errors="replace")) else _CUT


def _ends_in_event(end: str) -> bool:
    """True if the text breaks off after a brace of its last event, which the end of the list should follow."""
    starts = [match.start() for match in EVENT.finditer(end)]
    if not starts:
        return False
    try:
        _, stop = JSONDecoder().raw_decode(end, starts[-1])
    except JSONDecodeError as problem:
        return problem.pos >= len(end.rstrip())
    return not end[stop:].strip()


def _end_of_file(path: str) -> bytes:
    with open(path, "rb") as stream:
        stream.seek(max(os.fstat(stream.fileno()).st_size - TAIL_BYTES, 0))
        return stream.read(TAIL_BYTES)


def _end_of_gz(path: str, deadline: float) -> bytes | None:
    """The end of the text; None if that takes until after `deadline`.

    Raises:
        EOFError, zlib.error: the gz is truncated, or damaged.
    """
    end = b""
    inflated = zlib.decompressobj(zlib.MAX_WBITS | 16)  # of gz; at its end it compares length and checksum
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            end = (end + inflated.decompress(block))[-TAIL_BYTES:]
            if time.monotonic() > deadline:
                return None
        if stream.tell() and not inflated.eof:
            raise EOFError
    return end


def say_not_exported(paths: Sequence[str], error: Exception) -> None:
    """Logs that torch raised `error` instead of writing `paths`; none are known if it failed before."""
    cause = error.__cause__  # torch raises some errors from others, which say more
    reason = reason_of(error) if cause is None else f"{reason_of(error)} ({reason_of(cause)})"
    for path in paths:
        _say_lost(path, REFUSED, reason)
    if not paths:
        log_harmless(logging.ERROR, f"no trace was written: {reason}.")


def _say_lost(path: str, loss: Loss, reason: str) -> None:
    parts = [f"the trace {path} {loss.how}: {reason}."]
    with suppress(OSError):
        if size := os.stat(f"{path}.tmp").st_size:
            parts.append(f"The {Bytes(size)} that torch had written are in {path}.tmp, which `tb-tidy check` reads.")
    if loss.is_total:
        parts.append("No side file was written.")
    log_harmless(logging.ERROR, " ".join(parts))


def why_nothing_is_written(path: str) -> str:
    """The system's error when writing a file to the places in which torch writes the trace at `path`."""
    folder = os.path.dirname(path) or os.curdir
    places = {folder: folder}
    with suppress(OSError):  # there is no folder for temporary files, which torch has raised
        if path.endswith(".gz"):
            first = tempfile.gettempdir()
            places = {first: f"{first}, where torch writes it first", **places}
    free = []
    for place, name in places.items():
        try:
            with tempfile.TemporaryFile(prefix=DRAFT, dir=place) as probe:
                probe.write(bytes(PROBE_BYTES))
                probe.flush()
            free.append(f"{Bytes(shutil.disk_usage(place).free)} are free in {name}")
        except OSError as problem:
            return f"{reason_of(problem)}, in {name}"
    return f"torch says why on stderr, if at all; {' and '.join(free)}"
