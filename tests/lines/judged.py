"""How many operators of a recording with known lines get their true line."""

from __future__ import annotations

import ast
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.automaton import first_line
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.sources.observed import Observer
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.lines.marked import MARK

Verdict: TypeAlias = Literal["exact", "range", "tie", "declined", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("exact", "range", "tie", "declined", "wrong")

Event: TypeAlias = tuple[str, int]
"""Name and start of an operator, which identify it in a trace with and without markers."""

Places: TypeAlias = Callable[[int], Frame | None]
Method: TypeAlias = Callable[[Profile, Callable[[str], Sequence[str] | None]], Places]


@dataclass(frozen=True)
class Judged:
    """One operator that user code causes, its true line, and where a method puts it."""

    operator: str
    is_bare: bool
    line: int
    end_line: int
    place: Frame | None

    @property
    def verdict(self) -> Verdict:
        """`range`: inside the statement; `tie`: the true line is among those named as equally likely."""
        if self.place is None or self.place.precision == "definition":
            return "declined"
        if self.place.ties:
            return "tie" if self.line in self.place.ties else "wrong"
        if self.place.line == self.line:
            return "exact"
        return "range" if self.line <= self.place.line <= self.end_line else "wrong"


@dataclass(frozen=True)
class Recording:
    """A recording as users have it, and the true lines of its operators: first and last of the instruction."""

    profile: Profile
    file: str
    source: list[str]
    true_lines: dict[Event, tuple[int, int]]

    def judged(self, method: Method) -> list[Judged]:
        """All operators whose line is known, as `method` places them."""
        place = method(self.profile, lambda name: self.source if name.endswith(self.file) else None)
        return [
            Judged(self.profile.name(row), is_bare, *self.true_lines[event], place(row))
            for row, event, is_bare in _operators(self.profile)
            if event in self.true_lines
        ]


def marked_recording(program: Path, marked: Path, *, is_captured: bool = False) -> Recording:
    """A recording with markers; writes it without them beside it, for the methods to see."""
    document = json.loads(marked.read_bytes())
    document["traceEvents"] = [each for each in document["traceEvents"] if not each.get("name", "").startswith(MARK)]
    plain = marked.with_name("plain.pt.trace.json")
    plain.write_text(json.dumps(document))
    true_lines = dict(_true_lines(Profile(read_trace(marked))))
    if is_captured:
        shutil.copy(f"{marked}.tidy.json.gz", f"{plain}.tidy.json.gz")
    return Recording(Profile(read_with_side_files(plain)), program.name, _lines(program), true_lines)


def shared_recording(folder: Path) -> Recording:
    """A recording that came with its true lines."""
    truth = json.loads((folder / "truth.json").read_bytes())
    return Recording(
        Profile(read_trace(folder / "trace.pt.trace.json.gz")),
        "program.py",
        _lines(folder / "program.py"),
        {(each["op"], each["start_ns"]): (each["line"], each["end_line"]) for each in truth},
    )


def _lines(program: Path) -> list[str]:
    return program.read_text(encoding="utf-8").splitlines()


def _true_lines(profile: Profile) -> Iterator[tuple[Event, tuple[int, int]]]:
    """By name and start of each operator the line of the marker before it in the same frame."""
    marks: dict[int | None, list[int]] = {}
    for row in profile.matching(f"^{MARK} ", Category.ANNOTATION, Category.OPERATOR).tolist():
        marks.setdefault(profile.parent(row), []).append(row)
    for row, event, _ in _operators(profile):
        frame = next(above for above in profile.ancestors(row) if _is_own(profile, above))
        around = (frame, *(above for above in profile.ancestors(row) if above > frame))  # annotations hold marks too
        before = [mark for at in around for mark in marks.get(at, ()) if mark < row]
        if before:
            _, line, end_line = profile.table.names[profile.table.name[max(before)]].split()
            yield event, (int(line), int(end_line))


def _operators(profile: Profile) -> Iterator[tuple[int, Event, bool]]:
    """Operators of user code that no other one runs: row, name and start, and whether nothing is between."""
    for row in range(profile.tree.size):
        if profile.category(row) is Category.OPERATOR and not profile.name(row).startswith(MARK):
            above = list(profile.ancestors(row))
            at = next((index for index, each in enumerate(above) if _is_own(profile, each)), None)
            if at is not None and not any(profile.category(each) is Category.OPERATOR for each in above[:at]):
                start = profile.start_ns(row) + profile.table.origin_ns
                between = (profile.category(each) for each in above[:at])
                yield row, (profile.name(row), start), all(each is Category.ANNOTATION for each in between)


def _is_own(profile: Profile, row: int) -> bool:
    frame = parse_frame(profile.name(row)) if profile.category(row) is Category.PYTHON else None
    return frame is not None and frame.own_code


def counted(found: Sequence[Judged]) -> Counter[Verdict]:
    """How many of each verdict."""
    return Counter(each.verdict for each in found)


# Methods


def aligned(profile: Profile, sources: Callable[[str], Sequence[str] | None]) -> Places:
    """What TorchTidy shows."""
    return Aligner(profile, sources).place_of


def definition(profile: Profile, sources: Callable[[str], Sequence[str] | None]) -> Places:
    """The line that the recording names: that of the function's definition, taken for the operator's."""

    def place(row: int) -> Frame | None:
        frame = place_of(profile, row)
        return None if frame is None else _on(frame, frame.line)

    return place


def unique_name(profile: Profile, sources: Callable[[str], Sequence[str] | None]) -> Places:
    """The line on which the function calls something of this name, where it does so on one line only."""
    observer = Observer(profile)
    calls: dict[tuple[str, int, str], dict[str, set[int]]] = {}

    def place(row: int) -> Frame | None:
        frame = place_of(profile, row)
        path = [row, *profile.ancestors(row)]
        at = next((index for index, each in enumerate(path) if _is_own(profile, each)), 0)
        if frame is None or not at:
            return None
        key = (frame.file, frame.line, frame.function.rsplit(".", 1)[-1])
        if key not in calls:
            calls[key] = _calls_of(sources(frame.file) or [], frame.line, key[2])
        lines = calls[key].get(observer.observation(path[at - 1]).name, set())
        return _on(frame, min(lines)) if len(lines) == 1 else None

    return place


def _calls_of(source: Sequence[str], first: int, name: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for function in ast.walk(ast.parse("\n".join(source))):
        if not isinstance(function, ast.FunctionDef) or function.name != name:
            continue
        if first_line(function) != first:
            continue
        for node in ast.walk(function):
            match node:
                case ast.Call(ast.Name(called)):
                    found.setdefault(called, set()).add(node.lineno)
                case ast.Call(ast.Attribute(_, called)):
                    found.setdefault(called, set()).add(node.func.end_lineno or node.lineno)
                case _:  # no call, or of something without a name
                    pass
    return found


def _on(frame: Frame, line: int) -> Frame:
    return Frame(frame.file, line, frame.function, "aligned", frame.own_code)
