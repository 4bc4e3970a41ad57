"""One scan of the logdirs: the traces there, and the state that shows whether they changed since the last scan."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.plugin.analysis_worker import printable
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.trace.files import Link, TraceFile, find_traces, log_once, passed_over, traces_among, traces_below
from tb_tidy_plugin.trace.limits import likely_text
from tb_tidy_plugin.trace.names import BESIDE, model_config_beside, reading_order, snapshots_beside
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath, identity_of
from tb_tidy_plugin.trace.side_file import side_file_of
from tb_tidy_plugin.words.errors import TraceError
from tb_tidy_plugin.words.visible import log_called

log = log_called("tensorboard.torchtidy")

_FOLLOW = "--torchtidy_follow_links"
FOLLOWED = f"TensorBoard with `{_FOLLOW}`, or `tb-tidy serve` with `--follow-links`"


class Key(NamedTuple):
    """Identifies a profile everywhere."""

    run: str
    worker: str
    span: str


class Stamp(NamedTuple):
    """State of a file that changes with its content. Change times also change with permissions.

    `side_ns` is that of the side file with a device's activity, 0 without one: it is written after the trace.
    `configured_ns` is that of the configuration, 0 without one: each analysis depends on it.
    `tags` are the entity tags that a store gives the trace and the files beside it, empty on a disk.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    side_ns: int = 0
    configured_ns: int = 0
    tags: tuple[str, ...] = ()


class FoundFile(msgspec.Struct, frozen=True):
    """One trace file, or a place that cannot be searched; `problem` then says why.

    Attributes:
        file: its names are printable, its path is as the system has it.
        span_index: see `models.ProfileState`.
        is_link: True if it is a link that was skipped; its target may be a trace.
    """

    file: TraceFile
    stamp: Stamp
    span_index: int | None = None
    problem: Problem | None = None
    is_link: bool = False

    @property
    def likely_text(self) -> int:
        """Expected bytes of its text."""
        return likely_text(self.file.path.name, self.stamp.size)


Catalog: TypeAlias = Mapping[Key, FoundFile]

GONE = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors about a file, and not about its disk."""

NOTHING_YET: Catalog = MappingProxyType({})


def look(logdirs: Iterable[Logdir], configuration: Path | None = None, last: Catalog = NOTHING_YET) -> Catalog:
    """All traces in `logdirs`, ordered by run, worker and span; `configuration` applies to their analysis.

    A link that leads out of its logdir, and is not to be followed, appears as a problem.

    The traces of a store or a folder that cannot be reached stay as in the `last` look.

    Raises:
        OSError: a logdir went away meanwhile; the next look will show that.
    """
    configured_ns = _changed_ns(configuration)
    found: dict[Key, FoundFile] = {}
    for entry in (entry for logdir in logdirs for entry in _in(logdir, configured_ns, last)):
        key = Key(entry.file.run, entry.file.worker, entry.file.span)
        if key not in found or _prefer(entry) > _prefer(found[key]):
            found[key] = entry
    return _numbered(dict(sorted(found.items(), key=lambda item: reading_order(*item[0]))))


def _prefer(entry: FoundFile) -> tuple[int, str]:
    """Sort key that prefers the newer of two files with the same name (plain and gz, or in two logdirs)."""
    return entry.stamp.mtime_ns, str(entry.file.path)


def _in(logdir: Logdir, configured_ns: int, last: Catalog) -> Iterator[FoundFile]:
    if logdir.is_remote:
        yield from _on_store(logdir, configured_ns, last)
        return
    links: list[Link] = []
    unseen: list[OSError] = []
    folder = Path(logdir.path)
    below = traces_below(folder, logdir.name, follow_links=logdir.follow_links, unlisted=unseen.append)
    for file in find_traces(folder) if logdir.is_trace else below:
        if isinstance(file, Link):
            links.append(file)
            continue
        path = file.path
        assert isinstance(path, Path)
        try:
            about = path.stat()
        except OSError as problem:  # already gone, a broken link, or a disk that does not answer
            unseen.append(problem)
            continue
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would block
            continue
        named = TraceFile(printable(file.run), printable(file.worker), file.span, file.path)
        side_file = side_file_of(path)
        beside = [side_file, *snapshots_beside(path), model_config_beside(path)]
        changed_ns = sum(_changed_ns(each) for each in beside if isinstance(each, Path))
        yield FoundFile(named, Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns, changed_ns, configured_ns))
    for sentence in passed_over(links, folder, _FOLLOW):
        log_once(log, f"torchtidy: {sentence}")
    yield from (_not_followed(link.file) for link in links if link.leads == "out")
    yield from _still_there(unseen, last)


def _still_there(unseen: Iterable[OSError], last: Catalog) -> Iterator[FoundFile]:
    """Known files and folders that a disk did not show this time, unless they are gone or forbidden."""
    hidden = {Path(problem.filename) for problem in unseen if not isinstance(problem, GONE)}
    for found in last.values() if hidden else ():
        path = found.file.path
        if isinstance(path, Path) and not hidden.isdisjoint((path, *path.parents)):
            yield found


def _not_followed(link: TraceFile) -> FoundFile:
    shown = Problem(
        path=printable(str(link.path)),
        error="This link leads out of the logdir and was skipped.",
        advice=f"If you trust everything in the logdir, start {FOLLOWED}.",
        recovered_events=0,
    )
    named = TraceFile(printable(link.run), printable(link.worker), link.span, link.path)
    return FoundFile(named, Stamp(0, 0, 0), problem=shown, is_link=True)


def _changed_ns(beside: Path | None) -> int:
    try:
        return beside.stat().st_ctime_ns if beside else 0
    except OSError:  # already gone
        return 0


def _on_store(logdir: Logdir, configured_ns: int, last: Catalog) -> Iterator[FoundFile]:
    folder = RemotePath(logdir.path.rstrip("/"))
    try:
        files = folder.files_below()
    except (OSError, TraceError) as problem:
        log_once(log, f"torchtidy: {folder} cannot be listed: {problem}")
        known = [found for found in last.values() if _is_below(found.file.path, folder) and not found.problem]
        yield from known or [_unreachable(logdir, problem)]
        return
    for file in traces_among(folder, files, logdir.name):
        assert isinstance(file.path, RemotePath)
        size, changed_ns, tag = identity_of(files[file.path])
        tags = [tag]
        beside = [file.path.with_name(file.path.name + suffix) for suffix in BESIDE]
        for path in (*beside, *snapshots_beside(file.path), model_config_beside(file.path)):
            about = files.get(path) if isinstance(path, RemotePath) else None
            tags.append("" if about is None else repr(identity_of(about)))
        yield FoundFile(file, Stamp(size, changed_ns, 0, 0, configured_ns, tuple(tags)))


def _is_below(path: AnyPath, folder: RemotePath) -> bool:
    return isinstance(path, RemotePath) and path.address.startswith(f"{folder.address}/")


def _unreachable(logdir: Logdir, problem: OSError | TraceError) -> FoundFile:
    if isinstance(problem, TraceError):
        error, advice = problem.error, problem.advice
    elif isinstance(problem, FileNotFoundError):
        error, advice = "The folder does not exist.", "Check the address. Traces written there later will appear."
    else:
        error = f"The folder cannot be listed: {problem.strerror or type(problem).__name__}."
        advice = "Check the address, the network and the credentials. The server tries again by itself."
    shown = Problem(path=logdir.path, error=error, advice=advice, recovered_events=0)
    return FoundFile(TraceFile(logdir.name or logdir.path, "", "", Path()), Stamp(0, 0, 0), problem=shown)


def _numbered(catalog: Catalog) -> Catalog:
    """The catalog with the number of each span among its worker's; sorted by text, as in torch-tb-profiler."""
    numbered: dict[Key, FoundFile] = {}
    for _, entries in groupby(catalog.items(), key=lambda item: (item[0].run, item[0].worker)):
        number = 0
        for key, entry in entries:
            number += bool(key.span)
            numbered[key] = replace(entry, span_index=number if key.span else None)
    return numbered
