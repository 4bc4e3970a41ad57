"""Stored measurements: in the user's cache folder, and beside a trace for other machines.

A measurement is of one rule's statements, on one device by name, with one version of PyTorch; a later one replaces an
earlier one. A file beside a trace came with it and is trusted no more than the trace: it is read up to a size, as
numbers and short texts of known fields, and used only for the very statements that it names. These are shown and
compared with those that a rule makes; statements from the file never run. In the cache, folder and file must belong to
this user alone (`private.py`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import msgspec
from platformdirs import user_cache_path

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.files import FOR_THE_TEAM
from tb_tidy_plugin.system.private import NotPrivateError, check_folder, check_free, opened
from tb_tidy_plugin.trace.cache import say_once
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath, write_small
from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import Benchmark

MEASUREMENTS_SUFFIX = ".tidy-bench.json"
"""Suffix for the whole name of the trace file, including `.gz`."""

MOST_MEASUREMENTS_BYTES = 8 << 20
_MOST_KEPT = 1000  # beside one trace; a measurement takes 4 kB
MOST_OF_A_PAIR = 50  # most devices and versions that are read from the cache
KEY_DIGITS = 32
FOR_THIS_USER = 0o600


Stored = TypeVar("Stored", bound=msgspec.Struct)


class StoreError(TidyError):
    """Measurements cannot be written."""


class SavedMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """The file beside a trace."""

    version: Literal[1]
    measurements: Annotated[list[Measurement], msgspec.Meta(max_length=_MOST_KEPT)]


class Measurements:
    """The measurements for one trace: those beside it, and those in this machine's cache."""

    def __init__(self, trace: AnyPath, kind: str) -> None:
        """`kind` is the kind of device of the recording.

        `unused` are files that exist but are not used.
        """
        self._kind = kind
        self._beside, problem = read_beside(trace)
        self.unused = [] if problem is None else [problem]

    def of(self, rule: str, pair: Benchmark) -> Measurement | None:
        """The measurement to show for these statements: the latest trusted one on the recording's kind of device."""
        known = [each for each in self._beside if each.is_of(rule, pair)] + cached(rule, pair, self.unused.append)
        return max(known, key=lambda each: (each.on.kind == self._kind, each.trusted, each.measured_at), default=None)


def cache_folder() -> Path:
    """The folder of this user's measurements."""
    return user_cache_path("tb-tidy", appauthor=False) / "benchmarks"


def cache_state() -> list[tuple[str, int, int]]:
    """A state that changes when a measurement is added to the cache or removed."""
    with suppress(OSError):
        return sorted(
            (str(file), about.st_size, about.st_mtime_ns)
            for file in cache_folder().glob("*/*.json")
            for about in [file.stat()]
        )
    return []


def keep(measurement: Measurement) -> None:
    """Stores a measurement in the cache.

    Raises:
        StoreError: the cache cannot be written, or may be somebody else's.
    """
    folder = cache_folder() / _key(measurement.rule, measurement.before, measurement.after, measurement.setup)
    on = measurement.on
    file = folder / f"{_key(on.kind, on.name, on.torch)}.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(folder)
        check_free(file)
    except NotPrivateError as problem:
        raise StoreError(problem.error, problem.advice) from None
    except OSError as problem:
        raise _unwritten(folder, problem) from None
    _write(file, msgspec.json.encode(measurement), FOR_THIS_USER)


def cached(rule: str, pair: Benchmark, unread: Callable[[Unused], object] = lambda _: None) -> list[Measurement]:
    """The cached measurements of these statements; skips files that may be somebody else's, and logs that once.

    `unread` is called for each file that could not be read this time.
    """
    folder = cache_folder() / _key(rule, pair.before, pair.after, pair.setup)
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        unread(_unread(folder, problem))
        return []
    found = [_read_own(file) for file in files[:MOST_OF_A_PAIR]]
    for each in found:
        if isinstance(each, Unused) and each.unread:
            unread(each)
    return [each for each in found if isinstance(each, Measurement) and each.is_of(rule, pair) and each.is_sound()]


class Unused(msgspec.Struct, frozen=True):
    """Why a file, or a folder of the cache, is not used; `unread` is True if the next attempt may succeed."""

    file: AnyPath
    reason: str
    unread: bool

    @property
    def said(self) -> str:
        """The reason as a sentence, and what to do."""
        advice = "Check the disk and its permissions." if self.unread else "Delete it, then `tb-tidy bench --save`."
        return f"`{self.file.name}` is not used: {self.reason}. {advice}"


def read_beside(trace: AnyPath) -> tuple[list[Measurement], Unused | None]:
    """The measurements beside a trace, and the reason if a file there has none."""
    found = _read(beside(trace), SavedMeasurements)
    if isinstance(found, SavedMeasurements):
        return [each for each in found.measurements if each.is_sound()], None
    return [], found


def save_beside(trace: AnyPath, measurements: Iterable[Measurement]) -> AnyPath:
    """Writes measurements beside a trace, together with existing ones; returns the file.

    Raises:
        StoreError: the file cannot be written, or its unreadable content would be lost.
    """
    file = beside(trace)
    known, problem = read_beside(trace)
    if problem is not None:
        raise StoreError(f"`{file}` is not written: {problem.reason}.", "Delete it, or move it away, and try again.")
    all_of_them = _latest([*known, *measurements])[-_MOST_KEPT:]
    text = msgspec.json.encode(SavedMeasurements(version=1, measurements=all_of_them))
    _write(file, msgspec.json.format(text, indent=1) + b"\n", FOR_THE_TEAM)
    return file


def beside(trace: AnyPath) -> AnyPath:
    """The file that holds a trace's measurements."""
    return trace.with_name(trace.name + MEASUREMENTS_SUFFIX)


def _latest(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The last one for each rule, statements, device and version."""
    by_key = {
        (each.rule, each.before, each.after, each.setup, each.on.kind, each.on.name, each.on.torch): each
        for each in measurements
    }
    return list(by_key.values())


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]


def _read_own(file: Path) -> Measurement | Unused | None:
    """The content of a file in the cache; None if it is not this user's alone."""
    try:
        with opened(file) as stream:
            text = stream.read(MOST_MEASUREMENTS_BYTES + 1)
    except NotPrivateError as problem:
        say_once(logging.WARNING, str(problem))
        return None
    except OSError as problem:
        return _unread(file, problem)
    return _decoded(file, text, Measurement)


def _read(file: AnyPath, kind: type[Stored]) -> Stored | Unused | None:
    """The content of a file; None if it does not exist."""
    try:
        if isinstance(file, Path) and file.exists() and not file.is_file():
            return Unused(file, "it is not a regular file", unread=False)
        with file.open("rb") as stream:
            text = stream.read(MOST_MEASUREMENTS_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        if isinstance(file, RemotePath) and isinstance(problem, PermissionError):  # some stores say so if it is missing
            return None
        return _unread(file, problem)
    return _decoded(file, text, kind)


def _decoded(file: AnyPath, text: bytes, kind: type[Stored]) -> Stored | Unused:
    if len(text) > MOST_MEASUREMENTS_BYTES:
        return Unused(file, "it is too large", unread=False)
    try:
        return decode(text, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Unused(file, "it does not match the format", unread=False)


def _unread(file: AnyPath, problem: OSError) -> Unused:
    return Unused(file, problem.strerror or type(problem).__name__, unread=True)


def _write(file: AnyPath, text: bytes, mode: int) -> None:
    try:
        write_small(file, text, mode)
    except OSError as problem:
        raise _unwritten(file, problem) from None


def _unwritten(place: AnyPath, problem: OSError) -> StoreError:
    reason = problem.strerror or type(problem).__name__
    return StoreError(f"`{place}` could not be written: {reason}.", "Free disk space there, or check the permissions.")
