"""One look at the logdirs: which traces are there, and what tells whether they have changed since the last look."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.worker import printable
from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.trace.files import TraceFile, traces_below
from tb_tidy_plugin.trace.side_file import side_file_of

log = logging.getLogger("tensorboard")


class Key(NamedTuple):
    """What names a profile everywhere."""

    run: str
    worker: str
    span: str


class Stamp(NamedTuple):
    """Tells a file from what it was before. Change times also change with permissions.

    `side_ns` is that of the side file with a device's activity, 0 without one: it is written after the trace.
    `configured_ns` is that of the configuration, 0 without one: what it asks for is part of each analysis.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    side_ns: int = 0
    configured_ns: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """One trace file, or a place that cannot be looked into, which `problem` then says.

    Attributes:
        file: its names are printable, its path is as the system has it.
        span_index: see `payloads.ProfileState`.
    """

    file: TraceFile
    stamp: Stamp
    span_index: int | None = None
    problem: Problem | None = None


Catalog: TypeAlias = Mapping[Key, Found]


def look(logdirs: Iterable[Logdir], configuration: Path | None = None) -> Catalog:
    """All traces in `logdirs`, ordered by run, worker and span; they are analysed with `configuration`.

    Raises:
        OSError: a folder went away meanwhile; the next look will tell.
    """
    configured_ns = _changed_ns(configuration)
    found: dict[Key, Found] = {}
    for entry in (entry for logdir in logdirs for entry in _in(logdir, configured_ns)):
        key = Key(entry.file.run, entry.file.worker, entry.file.span)
        if key not in found or _prefer(entry) > _prefer(found[key]):
            found[key] = entry
    return _numbered(dict(sorted(found.items())))


def _prefer(entry: Found) -> tuple[int, str]:
    """Of two files of one name (plain and gz, or in two logdirs) the newer one counts."""
    return entry.stamp.mtime_ns, str(entry.file.path)


def _in(logdir: Logdir, configured_ns: int) -> Iterator[Found]:
    if logdir.is_remote:
        yield _remote(logdir)
        return
    for file in traces_below(Path(logdir.path), logdir.name):
        try:
            about = file.path.stat()
        except OSError:  # gone already, or a link to nowhere
            continue
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited for
            continue
        named = TraceFile(printable(file.run), printable(file.worker), file.span, file.path)
        changed_ns = _changed_ns(side_file_of(file.path))
        yield Found(named, Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns, changed_ns, configured_ns))


def _changed_ns(beside: Path | None) -> int:
    try:
        return beside.stat().st_ctime_ns if beside else 0
    except OSError:  # gone already
        return 0


def _remote(logdir: Logdir) -> Found:
    problem = Problem(
        path=logdir.path,
        error="Remote folders cannot be read in this version.",
        advice="Copy the traces to a local folder, or mount the remote one, and give TensorBoard that folder.",
        recovered_events=0,
    )
    return Found(TraceFile(logdir.name or logdir.path, "", "", Path()), Stamp(0, 0, 0), problem=problem)


def _numbered(catalog: Catalog) -> Catalog:
    """The same with the number of each span among its worker's; the order of their texts is torch-tb-profiler's."""
    numbered: dict[Key, Found] = {}
    for _, entries in groupby(catalog.items(), key=lambda item: (item[0].run, item[0].worker)):
        number = 0
        for key, entry in entries:
            number += bool(key.span)
            numbered[key] = Found(entry.file, entry.stamp, number if key.span else None, entry.problem)
    return numbered


def warn_of_remote(logdirs: Iterable[Logdir]) -> None:
    """One line in the log for each folder that will not be read."""
    for logdir in logdirs:
        if logdir.is_remote:
            log.warning("torchtidy: %s is a remote folder, which this version cannot read.", logdir.path)
