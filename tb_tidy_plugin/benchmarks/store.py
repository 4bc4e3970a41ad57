"""Measurements kept for later: in the user's cache folder, and beside a trace for other machines.

A measurement is of one rule's statements, on one device by name, with one version of PyTorch; a later one takes the
place of an earlier one. What lies beside a trace came with it and is trusted no more than the trace: it is read up to a
size, as numbers and short texts of known fields, and used for the very statements that it names only. These are shown
and compared with those that a rule makes; what is run never comes from here. In the cache, folder and file have to be
this user's alone (`private.py`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from platformdirs import user_cache_path

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.private import NotPrivateError, check_folder, check_free, opened
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.trace.cache import say_once
from tb_tidy_plugin.trace.remote import Place, write_small

SUFFIX = ".tidy-bench.json"
"""Added to the whole name of the trace file, `.gz` included."""

MOST_BYTES = 8 << 20
MOST_KEPT = 1000  # beside one trace; a measurement takes 4 kB
MOST_OF_A_PAIR = 50  # devices and versions in the cache that are looked at
KEY_DIGITS = 32
FOR_THE_TEAM = 0o644  # permissions of what lies beside a trace
FOR_THIS_USER = 0o600


Stored = TypeVar("Stored", bound=msgspec.Struct)


class StoreError(TidyError):
    """Measurements that cannot be written."""


class SavedMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """The file beside a trace."""

    version: Literal[1]
    measurements: Annotated[list[Measurement], msgspec.Meta(max_length=MOST_KEPT)]


class Measurements:
    """What is known for one trace: that beside it, and that in this machine's cache."""

    def __init__(self, trace: Place, kind: str) -> None:
        """`kind` is the recording's kind of device.

        `complaint` says why the file beside the trace is not used; None where it is, or is not there.
        """
        self._kind = kind
        self._beside, self.complaint = read_beside(trace)

    def of(self, rule: str, pair: Benchmark) -> Measurement | None:
        """The measurement to show for these statements: one of the recording's kind of device, trusted, the latest."""
        known = [each for each in self._beside if each.is_of(rule, pair)] + cached(rule, pair)
        return max(known, key=lambda each: (each.on.kind == self._kind, each.trusted, each.measured_at), default=None)


def cache_folder() -> Path:
    """Where this user's measurements are."""
    return user_cache_path("tb-tidy", appauthor=False) / "benchmarks"


def cache_state() -> list[tuple[str, int, int]]:
    """What changes whenever a measurement is added to the cache or taken from it."""
    with suppress(OSError):
        return sorted(
            (str(file), about.st_size, about.st_mtime_ns)
            for file in cache_folder().glob("*/*.json")
            for about in [file.stat()]
        )
    return []


def keep(measurement: Measurement) -> None:
    """Puts a measurement into the cache.

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


def cached(rule: str, pair: Benchmark) -> list[Measurement]:
    """What the cache holds for these statements; what may be somebody else's is passed over, which is said once."""
    folder = cache_folder() / _key(rule, pair.before, pair.after, pair.setup)
    try:
        files = sorted(folder.glob("*.json"))[:MOST_OF_A_PAIR]
    except OSError:
        return []
    found = map(_read_own, files)
    return [each for each in found if each is not None and each.is_of(rule, pair) and each.is_sound()]


def read_beside(trace: Place) -> tuple[list[Measurement], str | None]:
    """The measurements beside a trace, and why there are none although the file is there."""
    file = beside(trace)
    found = _read(file, SavedMeasurements)
    if isinstance(found, SavedMeasurements):
        return [each for each in found.measurements if each.is_sound()], None
    return (
        [],
        None
        if found is None
        else f"`{file.name}` is not used: {found}. Delete it, or write it anew with `tb-tidy bench --save`.",
    )


def save_beside(trace: Place, measurements: Iterable[Measurement]) -> Place:
    """Writes measurements beside a trace, with those that are there already; gives the file.

    Raises:
        StoreError: the file cannot be written.
    """
    all_of_them = _latest([*read_beside(trace)[0], *measurements])[-MOST_KEPT:]
    text = msgspec.json.encode(SavedMeasurements(version=1, measurements=all_of_them))
    file = beside(trace)
    _write(file, msgspec.json.format(text, indent=1) + b"\n", FOR_THE_TEAM)
    return file


def beside(trace: Place) -> Place:
    """The file that holds a trace's measurements."""
    return trace.with_name(trace.name + SUFFIX)


def _latest(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The last one of each rule, statements, device and version."""
    by_key = {
        (each.rule, each.before, each.after, each.setup, each.on.kind, each.on.name, each.on.torch): each
        for each in measurements
    }
    return list(by_key.values())


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]


def _read_own(file: Path) -> Measurement | None:
    """What a file in the cache holds; None where it cannot be used."""
    try:
        with opened(file) as stream:
            found = _decoded(stream.read(MOST_BYTES + 1), Measurement)
    except NotPrivateError as problem:
        say_once(logging.WARNING, str(problem))
    except OSError:
        pass
    else:
        return found if isinstance(found, Measurement) else None
    return None


def _read(file: Place, kind: type[Stored]) -> Stored | str | None:
    """What a file holds; None where there is none, words where it cannot be used."""
    try:
        if isinstance(file, Path) and file.exists() and not file.is_file():
            return "it is no file"
        with file.open("rb") as stream:
            text = stream.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        return problem.strerror or type(problem).__name__
    return _decoded(text, kind)


def _decoded(text: bytes, kind: type[Stored]) -> Stored | str:
    if len(text) > MOST_BYTES:
        return "it is too large"
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "it does not fit the format"


def _write(file: Place, text: bytes, mode: int) -> None:
    try:
        write_small(file, text, mode)
    except OSError as problem:
        raise _unwritten(file, problem) from None


def _unwritten(place: Place, problem: OSError) -> StoreError:
    reason = problem.strerror or type(problem).__name__
    return StoreError(f"`{place}` could not be written: {reason}.", "Make room there, or check its permissions.")
