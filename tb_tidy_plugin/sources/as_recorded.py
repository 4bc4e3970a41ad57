"""Evidence that a source is not as recorded, from a recording without its text.

A recording names each called function with its first line, and each function that ran when it began with the line that
it was on.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import function_spans, parsed
from tb_tidy_plugin.sources.files import RecordedFile, latest_change_s
from tb_tidy_plugin.sources.frames import Frame, goes_on, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.sets import distinct, without

_CALLING = (ast.Call, ast.Import, ast.ImportFrom, ast.Await, ast.Yield, ast.YieldFrom)


def contradiction(text: str, recorded: RecordedFile) -> str:
    """The first difference of a file's text from the recording, as a sentence; empty if none is known."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for name, first, last in function_spans(text):
        spans.setdefault(name, []).append((first, last))
    if not spans:
        return "The file cannot be compared with the recording: it is too large, or not Python."
    for line, name in recorded.functions:
        if all(first != line for first, _ in spans.get(name, ())):
            return f"The file was changed: `{name}` began on line {line} when it was recorded. Record again."
    calling = _calling_lines(text) if recorded.on else frozenset()
    for line, name in recorded.on:
        around = [first for first, last in spans.get(name, ()) if first <= line <= last]
        if not around or (line not in calling and line not in around):  # it may also have been called first of all
            return f"The file was changed: `{name}` made a call on line {line} when it was recorded. Record again."
    return ""


def recorded_files(profile: Profile, trace: TraceFile, files: Collection[str]) -> dict[str, RecordedFile]:
    """What a profile knows of each of these files, by their names in the recording."""
    table, size = profile.table, profile.tree.size
    is_python = table.category[:size] == Category.PYTHON
    rows: Rows = np.flatnonzero(is_python)
    frames = dict(_frames_in(profile, rows, files))
    opened = _opened(profile, rows)
    called = set(distinct(table.name[without(rows, opened)]).tolist())
    end_ns = int(table.end_ns.max(initial=0))
    base_ns = table.metadata.base_ns
    recorded_s = (base_ns + table.origin_ns + end_ns) / 1e9 if base_ns else None
    until_s = latest_change_s(trace, recorded_s)
    found: dict[str, tuple[set[tuple[int, str]], set[tuple[int, str]]]] = {file: (set(), set()) for file in files}
    for number, frame in frames.items():
        name = frame.function.rpartition(".")[2]
        is_on = number not in called or goes_on(table.names[number])
        if is_on or not name.startswith("<") or name == "<lambda>":  # Pythons differ about the lines of the others
            found[frame.file][is_on].add((frame.line, name))
    return {
        file: RecordedFile(tuple(sorted(functions)), tuple(sorted(on)), until_s)
        for file, (functions, on) in found.items()
    }


def _frames_in(profile: Profile, rows: Rows, files: Collection[str]) -> Iterator[tuple[int, Frame]]:
    """The frames of some files, by the numbers of their names."""
    names = profile.table.names
    for number in distinct(profile.table.name[rows]).tolist():
        frame = parse_frame(names[number])
        if frame is not None and frame.file in files:
            yield number, frame


def _opened(profile: Profile, rows: Rows) -> Rows:
    """Python frames that may have been open when the recording began: the first in each thread, before any operator."""
    table, tree = profile.table, profile.tree
    operators = table.category[: tree.size] == Category.OPERATOR
    first_ns = int(table.start_ns[: tree.size][operators].min(initial=np.iinfo(np.int64).max))
    opened = set[int]()
    seen = set[int]()  # frames with a child among those before
    for row in rows[table.start_ns[rows] <= first_ns].tolist():
        above = int(tree.parent[row])
        while above != ABSENT and profile.category(above) is not Category.PYTHON:
            above = int(tree.parent[above])
        if above == ABSENT or (above in opened and above not in seen):
            opened.add(row)
        seen.add(above)
    return np.array(sorted(opened), np.int64)


def _calling_lines(text: str) -> frozenset[int]:
    """Lines of a source that may make a call."""
    tree = parsed(text)
    found = set[int]()
    for node in ast.walk(tree) if tree is not None else ():
        parts: list[ast.AST] = [node] if isinstance(node, _CALLING) else []
        if isinstance(node, (ast.With, ast.AsyncWith)):
            parts = [item.context_expr for item in node.items]
            found.add(node.lineno)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            parts = [node.iter]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            parts = [*node.decorator_list]
        for part in parts:
            first = getattr(part, "lineno", 0)
            found.update(range(first, (getattr(part, "end_lineno", None) or first) + 1))
    return frozenset(found)
