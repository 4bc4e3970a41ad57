"""Traces under a path, and the run, worker and span of each.

A run is a folder that holds trace files, named by its path below the logdir, as in torch-tb-profiler. Folders named
after ranks (`rank_0`, `rank_1`) together are one run, that of the folder around them.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from tb_tidy_plugin.trace.head import is_trace_at, traces_by_content
from tb_tidy_plugin.trace.names import RANK_FOLDER, is_trace_name, may_be_trace, name_parts, reading_order
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath, identity_of
from tb_tidy_plugin.words.errors import NotFoundError
from tb_tidy_plugin.words.visible import log_called

if TYPE_CHECKING:
    from tb_tidy_plugin.trace.remote import Info

log = log_called("tb_tidy_plugin")

FOLLOW = "--follow-links"
NAMED_LINKS = 5  # most skipped links that a message names


class TraceFile(msgspec.Struct, frozen=True, order=True):
    """One trace file: one worker and one span of one run. `span` is empty if the name has none."""

    run: str
    worker: str
    span: str
    path: AnyPath


Leads: TypeAlias = Literal["out", "circle"]
_Kind: TypeAlias = Literal["folder", "trace", "doubtful"]


class Link(msgspec.Struct, frozen=True, order=True):
    """A skipped link in a logdir.

    Attributes:
        file: the link itself, named as the trace or the run that it would be.
        leads: out of the logdir, or back to a folder that it lies in.
    """

    file: TraceFile
    leads: Leads


def find_traces(path: AnyPath, *, follow_links: bool = False) -> list[TraceFile]:
    """Trace files at `path`: the file itself, or all in the folder and below it, ordered by run, worker and span.

    Logs skipped links, and folders that cannot be listed if there are traces elsewhere.

    Args:
        path: where to search. It may be a link itself.
        follow_links: True if links in the folder may lead out of it.

    Raises:
        NotFoundError: `path` does not exist or cannot be listed, or no trace file is there.
    """
    if isinstance(path, RemotePath):
        return _some(sorted(_remote_traces(path), key=_in_order), path)
    if not _is_there_as_folder(path):
        return [_file(path.parent.resolve().name, path)]
    unlisted: list[OSError] = []
    found = list(traces_below(path, follow_links=follow_links, unlisted=unlisted.append))
    if unlisted and not found:
        raise _unseen(Path(unlisted[0].filename), unlisted[0])
    for problem in unlisted:
        log_once(log, f"`{problem.filename}` is skipped: {problem.strerror}.")
    links = list(passed_over((each for each in found if isinstance(each, Link)), path, FOLLOW))
    traces = _some(sorted((each for each in found if isinstance(each, TraceFile)), key=_in_order), path, links)
    for sentence in links:
        log_once(log, sentence)
    return traces


class Lacking(NamedTuple):
    """A place without traces, and what is wrong with it."""

    path: AnyPath
    problem: NotFoundError


def find_traces_at(paths: Sequence[AnyPath], *, follow_links: bool = False) -> tuple[list[TraceFile], list[Lacking]]:
    """Trace files at one or several paths, each file once, and the paths at which there are none.

    Files of several paths are named as in the folder around all of them: `find_traces_at(["runs/a", "runs/b"])` names
    them as `find_traces("runs")` does, whatever else is in `runs`.

    Raises:
        NotFoundError: no trace file is at any of them.
    """
    if len(paths) == 1:
        return find_traces(paths[0], follow_links=follow_links), []
    found: dict[str, TraceFile] = {}  # by full path
    lacking: list[Lacking] = []
    for path in paths:
        try:
            found |= {_full(file.path): file for file in find_traces(path, follow_links=follow_links)}
        except NotFoundError as problem:
            lacking.append(Lacking(path, problem))
    if not found:
        raise lacking[0].problem
    around = _around([*(name.rpartition("/")[0] for name in found), *map(_full, _folders(paths))])
    return sorted((_named_below(around, name, file.path) for name, file in found.items()), key=_in_order), lacking


def _folders(paths: Iterable[AnyPath]) -> Iterator[AnyPath]:
    """Those that are folders on this machine; folders on stores are known by their files."""
    return (path for path in paths if isinstance(path, Path) and os.path.isdir(path))  # noqa: PTH112 - others raise


def _full(path: AnyPath) -> str:
    """The full path with `/` between its parts; links keep their names."""
    return path.address if isinstance(path, RemotePath) else os.path.abspath(path).replace(os.sep, "/")  # noqa: PTH100


def _around(folders: Sequence[str]) -> str:
    """The deepest folder around all of these, without a slash at its end; empty if they have none in common."""
    parts = [folder.split("/") for folder in folders]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*parts, strict=False))
    return "/".join(names[0] for names in shared)


def _named_below(around: str, name: str, path: AnyPath) -> TraceFile:
    """The trace of this full name, with its run and worker as in the folder `around`."""
    run = name[len(around) :].rpartition("/")[0].strip("/")
    above, _, last = run.rpartition("/")
    run, rank_folder = (above, last) if RANK_FOLDER.fullmatch(last) else (run, "")
    return _file(run or around.rpartition("/")[2], path, rank_folder)


def _in_order(file: TraceFile) -> tuple[object, ...]:
    return reading_order(file.run, file.worker, file.span, str(file.path))


def _is_there_as_folder(path: Path) -> bool:
    """True if it is a folder, and not a file.

    Raises:
        NotFoundError: nothing is there, or its type is unknown.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFoundError(f"`{path}` does not exist.", "Check the path.") from None
    except OSError as problem:
        raise _unseen(path, problem) from None


def _unseen(path: Path, problem: OSError) -> NotFoundError:
    reason = problem.strerror or type(problem).__name__
    return NotFoundError(f"`{path}` cannot be accessed: {reason}.", "Check its permissions, the disk and the mount.")


def _some(found: list[TraceFile], path: AnyPath, links: Sequence[str] = ()) -> list[TraceFile]:
    """`found`, unless that is empty; `links` describes the skipped links.

    Raises:
        NotFoundError: it is empty.
    """
    if not found:
        error = f"`{path}` and its subfolders contain no trace of torch.profiler (JSON, plain or gz)."
        advice = "Record with `on_trace_ready=torch.profiler.tensorboard_trace_handler(dir)` and give that folder."
        raise NotFoundError(" ".join([error, *links]), advice)
    return found


def traces_below(
    logdir: Path,
    prefix: str = "",
    *,
    follow_links: bool = False,
    unlisted: Callable[[OSError], object] = lambda _: None,
) -> Iterator[TraceFile | Link]:
    """Trace files in `logdir` and below, and skipped links. Skips unreadable folders.

    Files named `*.pt.trace.json` are traces, and so is other JSON that begins as one. A skipped link is not read: it
    counts if its name looks like a trace's. A folder is searched once: under its own name if it lies in the logdir,
    else under that of a link to it.

    Args:
        logdir: where to search.
        prefix: prepended to each run's name, for a logdir that has a name of its own.
        follow_links: True if links may lead out of the logdir.
        unlisted: called for each folder that cannot be read, and for files on disks that do not answer; `filename`
            names it.
    """
    root = os.path.realpath(logdir)
    seen: set[tuple[int, int]] = set()
    waiting: deque[tuple[str, frozenset[tuple[int, int]]]] = deque([(os.fspath(logdir), frozenset())])
    while waiting:
        folder, above = waiting.popleft()
        try:
            about = os.stat(folder)  # noqa: PTH116 - faster, and this runs for every folder of a logdir
            with os.scandir(folder) as listed:
                entries = list(listed)
        except OSError as problem:  # forbidden or gone
            unlisted(problem)
            continue
        here = (about.st_dev, about.st_ino)
        if here in above:
            yield Link(TraceFile(_run(folder, logdir, prefix), "", "", Path(folder)), "circle")
        if here in seen:
            continue
        seen.add(here)
        run, rank_folder = _run_with_ranks(folder, logdir, prefix)
        for entry, kind in _kinds(entries):
            path, is_link = Path(entry.path), _is_link(entry)
            if is_link and (leads := _leads(entry.path, root, follow_links=follow_links)) is not None:
                as_run = TraceFile(_run(entry.path, logdir, prefix), "", "", path)
                if kind != "doubtful" or "trace" in entry.name:
                    yield Link(as_run if kind == "folder" else _file(run, path, rank_folder), leads)
            elif kind == "folder":  # links are searched after all other folders
                (waiting.append if is_link else waiting.appendleft)((entry.path, above | {here}))
            elif kind == "trace" or _begins_as_trace(entry.path, unlisted):
                yield _file(run, path, rank_folder)


def _kinds(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[os.DirEntry[str], _Kind]]:
    """Entries that are folders, traces by their names, or doubtful: JSON whose content decides."""
    for entry in entries:
        if _is_folder(entry):
            yield entry, "folder"
        elif is_trace_name(entry.name):
            yield entry, "trace"
        elif may_be_trace(entry.name):
            yield entry, "doubtful"


def _begins_as_trace(path: str, unreadable: Callable[[OSError], object]) -> bool:
    try:
        return is_trace_at(path)
    except (FileNotFoundError, PermissionError):  # most JSON is not a trace
        return False
    except OSError as problem:
        problem.filename = path
        unreadable(problem)
        return False


def _run_with_ranks(folder: str, logdir: Path, prefix: str) -> tuple[str, str]:
    """The name of the run in `folder`, and that of the folder if it is one rank of the run."""
    above, name = os.path.split(folder)
    if folder != os.fspath(logdir) and RANK_FOLDER.fullmatch(name):
        return _run(above, logdir, prefix), name
    return _run(folder, logdir, prefix), ""


def _run(folder: str, logdir: Path, prefix: str) -> str:
    below = os.path.relpath(folder, logdir)
    run = logdir.resolve().name if below == "." else below.replace(os.sep, "/")
    return "/".join(filter(None, (prefix, run)))


def _is_link(entry: os.DirEntry[str]) -> bool:
    """True if it leads elsewhere, as junctions of Windows also do, which Python recognises since 3.12."""
    return entry.is_symlink() or (hasattr(entry, "is_junction") and entry.is_junction())


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _leads(link: str, root: str, *, follow_links: bool) -> Leads | None:
    """The target of a link to skip; None for a link to follow, even if its target does not exist."""
    try:
        real = os.path.realpath(link, strict=True)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            return "circle"
        real = os.path.realpath(link)
    return None if follow_links or is_under(real, root) else "out"


def is_under(real: str, root: str) -> bool:
    """True if one real path is the other, or lies below it."""
    try:
        return os.path.commonpath([root, real]) == root
    except ValueError:  # another drive
        return False


def passed_over(links: Iterable[Link], logdir: AnyPath, option: str) -> Iterator[str]:
    """One or two sentences about the `links` of each kind; `option` follows those that lead out of `logdir`."""
    known = sorted(links)
    for leads, where, advice in (
        ("out", f"out of `{logdir}`", f" `{option}` follows them, if you trust everything there."),
        ("circle", "back to a folder that contains them", ""),
    ):
        names = [f"`{each.file.path}`" for each in known if each.leads == leads]
        if names:
            more = f" and {len(names) - NAMED_LINKS:,} more" if len(names) > NAMED_LINKS else ""
            yield f"Skipped links that lead {where}: {', '.join(names[:NAMED_LINKS])}{more}.{advice}"


@lru_cache(maxsize=256)
def log_once(logger: logging.Logger, text: str) -> None:
    """Logs a warning once, since folders are scanned repeatedly."""
    logger.warning("%s", text)


def traces_among(folder: RemotePath, files: Mapping[RemotePath, Info], prefix: str = "") -> Iterator[TraceFile]:
    """The traces among `files`, all in `folder` or below; `prefix` as above."""
    start = len(folder.address.rstrip("/")) + 1
    doubtful = {file: identity_of(info) for file, info in files.items() if _may_be_trace(file.name)}
    begins = traces_by_content(folder, doubtful)
    for file in files:
        if is_trace_name(file.name) or file in begins:
            run = file.address[start:].rpartition("/")[0]
            above, _, name = run.rpartition("/")
            run, rank_folder = (above, name) if RANK_FOLDER.fullmatch(name) else (run, "")
            yield _file("/".join(filter(None, (prefix, run or folder.name))), file, rank_folder)


def _may_be_trace(name: str) -> bool:
    return may_be_trace(name) and not is_trace_name(name)


def _remote_traces(path: RemotePath) -> Iterator[TraceFile]:
    """`find_traces` for a store.

    Raises:
        NotFoundError: nothing is there, or the store does not show it.
    """
    try:
        if path.info()["type"] == "file":
            return iter([_file(RemotePath(path.address.rpartition("/")[0]).name, path)])
        return traces_among(path, path.files_below())
    except FileNotFoundError:
        raise NotFoundError(f"`{path}` does not exist.", "Check the address.") from None
    except PermissionError as problem:
        error = f"`{path}` cannot be read for lack of permission: {problem.strerror}."
        raise NotFoundError(error, "Set the credentials that the store's package looks for.") from None
    except OSError as problem:
        raise NotFoundError(f"`{path}` cannot be reached: {problem.strerror}.", "Check address and network.") from None


def _file(run: str, path: AnyPath, rank_folder: str = "") -> TraceFile:
    worker, span = name_parts(path.name)
    return TraceFile(run, f"{rank_folder}/{worker}" if rank_folder else worker, span, path)


def only_trace(path: AnyPath, *, follow_links: bool) -> TraceFile:
    """The only trace at `path`.

    Raises:
        NotFoundError: there is none, or there are several.
    """
    found = find_traces(path, follow_links=follow_links)
    if len(found) > 1:
        names = ", ".join(f"`{each.path}`" for each in found[:3])
        raise NotFoundError(f"`{path}` contains {len(found)} traces: {names} … …", "Name one of them.")
    return found[0]
