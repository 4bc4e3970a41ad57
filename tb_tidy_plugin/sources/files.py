"""Source files for display: selects the files that may be read, and reads them.

Every file name in a trace was chosen by whoever wrote that trace. A file is read only if the trace names it and its
real path lies under a folder that the user has opened for it; everything else gets the same answer, so that nobody
learns from it which files exist.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tb_tidy_plugin.trace.files import TraceFile, is_under
from tb_tidy_plugin.trace.remote import NOT_THERE, changed_at, is_file
from tb_tidy_plugin.words.units import Bytes

MAX_BYTES = 512 << 10
"""Most bytes of a source. TensorBoard itself reads it for the page, which takes up to 25 ms; larger files are data."""

COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.DOTALL)
BLANK = re.compile(rb"[ \t\f]*(?:#.*)?", re.DOTALL)
_LINE_END = re.compile(rb"\r\n?|\n")
BOM = b"\xef\xbb\xbf"

EDITORS = re.compile(r"-(?:unix|dos|mac)$")  # Emacs adds the kind of line ends

ENCODINGS = {
    **dict.fromkeys(("utf-8", "utf8", "u8", "utf", "utf-8-sig"), "utf-8"),
    **dict.fromkeys(("latin-1", "latin1", "latin", "l1", "iso-8859-1", "iso8859-1", "iso-latin-1"), "latin-1"),
    **dict.fromkeys(("ascii", "us-ascii", "646"), "ascii"),
}
"""Encodings that a source may name. Others, of which Python knows a hundred, may take quadratic time to decode
(`punycode`), and import a module by a name from the file.
"""

FLAG = "--torchtidy_source_roots"

LONGEST_ENCODING = 40  # characters of its name

SAME_TIME_S = 2.0  # the coarsest file systems store times in steps of 2 s
WRITING_S = 600.0  # a trace that is named after its recording is on disk at most this much later
COPYING_S = 3600.0  # files that were copied, unpacked or checked out together have times this close

NANOSECONDS_PER_UNIT = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}
"""Unit of a span by its number of digits, if it is a time since 1970. torch has written ms (to 2.2) and ns."""


class SourceText(msgspec.Struct, frozen=True):
    """A source file: as it is now, or as it was captured.

    `changed` is True if it is newer than the recording. `path` is the file's real one, None if it is not here.
    """

    lines: list[str]
    changed: bool
    path: Path | None = None


class Unavailable(msgspec.Struct, frozen=True):
    """No source text; `reason` says why and what to do. `unread` is True if the next attempt may succeed."""

    reason: str
    unread: bool = False


def source_roots(flag: str, started_in: Path) -> tuple[Path, ...]:
    """Folders from which any trace may show sources: those of the flag, then the one TensorBoard was started in.

    The latter does not count if it is the root of a file system: services are started there, and nobody meant to open
    the whole disk.
    """
    parts = (part.strip() for part in re.split(f"[,{re.escape(os.pathsep)}]", flag))
    given = [Path(os.path.expanduser(part)) for part in parts if part]  # noqa: PTH111 - Path's raises for unknown users
    implied = [started_in] if started_in != Path(started_in.anchor) else []
    return tuple(dict.fromkeys(started_in / root for root in (*given, *implied)))


def read_source(
    name: str,
    named_in_trace: Collection[str],
    trace: TraceFile,
    roots: Sequence[Path],
    captured: Mapping[str, str] | None = None,
) -> SourceText | Unavailable:
    """The text of the source file that a trace calls `name`.

    Args:
        name: as in the trace; a relative name is looked up in the trace's own folder, then in each root.
        named_in_trace: all names in the trace.
        trace: the trace, a file that our own search has found.
        roots: see `source_roots`.
        captured: texts stored with the trace, by name; as they ran, so they come first.
    """
    if name not in named_in_trace:
        return Unavailable("The page shows only files that the recording names, and it does not name this one.")
    if not name.endswith(".py"):
        return Unavailable("Only Python source files (`.py`) are shown; open this one in your editor.")
    text = captured.get(name) if captured else None
    try:
        path = path_of_source(name, trace, roots)
    except OSError as problem:
        if text is None:
            return _unread(name, problem)
        path = None
    if text is not None:
        return SourceText(lines_of(text), changed=False, path=path)
    if path is None:
        return Unavailable(
            f"`{name}` is in none of the folders whose sources may be shown. If it is on this computer, name the "
            f"folder that it ran from: `tensorboard {FLAG}=FOLDER`, or `tb-tidy serve --source-root FOLDER`."
        )
    return _read(name, path, trace)


def path_of_source(name: str, trace: TraceFile, roots: Sequence[Path]) -> Path | None:
    """The real path of the Python file that a trace calls `name`, None if none may be read.

    Raises:
        OSError: a disk does not answer.
    """
    if not name.endswith(".py"):
        return None
    beside = [trace.path.parent] if isinstance(trace.path, Path) else []
    return next(candidates(name, (*beside, *roots)), None)


def candidates(name: str, allowed: Sequence[Path]) -> Iterator[Path]:
    """Real paths of the files that `name` may mean, nearest first, all under one of `allowed`."""
    real_roots = [os.path.realpath(root) for root in allowed]
    for root in real_roots:
        try:
            # An absolute name stays as it is. Strict: no part of it may stay unresolved because a disk did not answer.
            real = os.path.realpath(os.path.join(root, name), strict=True)  # noqa: PTH118 - as realpath
        except OSError as problem:
            if problem.errno in NOT_THERE:
                continue
            raise
        except ValueError:  # a null byte in the name
            continue
        if real.endswith(".py") and any(is_under(real, base) for base in real_roots) and is_file(Path(real)):
            yield Path(real)


class RecordedFile(msgspec.Struct, frozen=True):
    """What a recording says about a source of which it has no text.

    Attributes:
        functions: first line and name of each function that was called.
        on: line and name of functions that were open when the recording began, or went on after a graph break.
        until_s: latest time of a change, in s since 1970, with which the file can be as recorded; None if unknown.
    """

    functions: tuple[tuple[int, str], ...] = ()
    on: tuple[tuple[int, str], ...] = ()
    until_s: float | None = None


class OwnFile(msgspec.Struct, frozen=True):
    """A source file that may be changed: its real path, its bytes, its encoding, and when it was changed last.

    `text` keeps the line ends; a byte order mark is in `content` only. `changed_s` counts from 1970.
    """

    path: Path
    content: bytes
    text: str
    encoding: str
    changed_s: float

    def written(self, text: str) -> bytes:
        """The file's content with another text, in its own encoding.

        Raises:
            UnicodeEncodeError: the encoding cannot represent the text.
        """
        mark = BOM if self.content.startswith(BOM) else b""
        return mark + text.encode(self.encoding)


def own_file(name: str, roots: Sequence[Path]) -> OwnFile | Unavailable:
    """The file under one of `roots` that a trace calls `name`, to be changed.

    Raises:
        OSError: it cannot be read.
    """
    path = next(candidates(name, roots), None) if name.endswith(".py") else None
    if path is None:
        return Unavailable(
            f"`{name}` is neither in the current folder nor under a `--source-root`. Start `tb-tidy` in the folder "
            "that the script ran from, or name that folder with `--source-root FOLDER`."
        )
    changed_s, content = _content(path)
    encoding = ENCODINGS.get(encoding_of(content))
    if len(content) > MAX_BYTES:
        return Unavailable(f"`{name}` is larger than {Bytes(MAX_BYTES)}.")
    if encoding is None:
        return Unavailable(
            f"`{name}` is encoded in `{encoding_of(content)}`; only UTF-8, Latin-1 and ASCII files can be changed."
        )
    try:
        text = content.removeprefix(BOM).decode(encoding)
    except UnicodeDecodeError:
        return Unavailable(f"`{name}` is not encoded in the encoding that it declares.")
    return OwnFile(path, content, text, encoding, changed_s)


def _content(path: Path) -> tuple[float, bytes]:
    """Time of a regular file's last change, and its bytes, at most one more than `MAX_BYTES`."""
    # The name may have become a pipe or a link since it was checked: neither wait nor follow.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        about = os.fstat(stream.fileno())
        return about.st_mtime, stream.read(MAX_BYTES + 1) if stat.S_ISREG(about.st_mode) else b""


def _read(name: str, path: Path, trace: TraceFile) -> SourceText | Unavailable:
    try:
        changed, content = _content(path)
    except OSError as problem:
        return _unread(name, problem)
    if len(content) > MAX_BYTES:
        return Unavailable(f"`{name}` is larger than {Bytes(MAX_BYTES)}; open it in your editor.")
    encoding = encoding_of(content)
    if encoding not in ENCODINGS:
        return Unavailable(
            f"`{name}` declares the encoding `{encoding}`, but only UTF-8, Latin-1 and ASCII are shown. Open it "
            "in your editor, or save it as UTF-8."
        )
    text = content.removeprefix(BOM).decode(ENCODINGS[encoding], "replace")
    return SourceText(lines_of(text), _is_newer(changed, trace), path)


def _unread(name: str, problem: OSError) -> Unavailable:
    reason = problem.strerror or type(problem).__name__
    advice = "Give the user that runs the server permission to read it."
    if not isinstance(problem, PermissionError):
        advice = "Check the disk or the mount, then ask again."
    return Unavailable(f"`{name}` could not be read: {reason}. {advice}", unread=True)


def encoding_of(content: bytes) -> str:
    """The encoding that a source names in one of its first two lines, found as in Python; else UTF-8.

    The second line counts only if the first is empty or a comment: https://peps.python.org/pep-0263.
    """
    if content.startswith(BOM):
        return "utf-8"
    for line in _LINE_END.split(content, 2)[:2]:
        if match := COOKIE.match(line):
            named = match[1].decode("ascii", "replace")[:LONGEST_ENCODING]
            return EDITORS.sub("", named.lower().replace("_", "-"))
        if not BLANK.fullmatch(line):
            break
    return "utf-8"


def lines_of(text: str) -> list[str]:
    """Lines as Python counts them; `str.splitlines` would also split at form feeds."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def _is_newer(source_mtime: float, trace: TraceFile) -> bool:
    """True if a source was changed after the recording, as far as times on disk can show."""
    until_s = latest_change_s(trace, recorded_at(trace.span), SAME_TIME_S)
    return until_s is not None and source_mtime > until_s


def latest_change_s(trace: TraceFile, recorded_s: float | None, same_s: float | None = None) -> float | None:
    """Latest time of a change with which a source can be as recorded, in s since 1970; None if the trace is gone.

    A trace whose file time is that of its recording lies where it was written, so any later source is a changed one.
    Any other trace was copied or checked out, most likely together with its sources, and then every file has the time
    of that; only a source later than such a copy takes counts as changed.

    Args:
        trace: the trace.
        recorded_s: time of the recording, in s since 1970; None if unknown.
        same_s: the resolution of the file system's times; by default what the trace's time shows of it.
    """
    try:
        trace_mtime = changed_at(trace.path)
    except OSError:
        return None
    in_place = recorded_s is not None and abs(trace_mtime - recorded_s) <= WRITING_S
    if same_s is None:
        same_s = SAME_TIME_S if trace_mtime.is_integer() else 0.0
    return trace_mtime + (same_s if in_place else COPYING_S)


def recorded_at(span: str) -> float | None:
    """Seconds since 1970 in a span, None if it is not a time."""
    unit = NANOSECONDS_PER_UNIT.get(len(span)) if span.isdecimal() else None
    return int(span) * unit / 1e9 if unit else None
