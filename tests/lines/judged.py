"""How many operators of a marked recording get their true line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import Category
from tests.lines.marked import MARK

Verdict: TypeAlias = Literal["exact", "range", "tie", "declined", "wrong"]


@dataclass(frozen=True)
class Judged:
    """One operator that user code causes, its true line, and where the aligner puts it."""

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


def judged(program: Path, marked: Path, plain: Path) -> list[Judged]:
    """The operators of a marked recording; writes it without its markers to `plain`, for the aligner."""
    document = json.loads(marked.read_bytes())
    document["traceEvents"] = [each for each in document["traceEvents"] if not each.get("name", "").startswith(MARK)]
    plain.write_text(json.dumps(document))
    lines = program.read_text(encoding="utf-8").splitlines()
    true_lines = dict(_true_lines(Profile(read_with_side_files(marked))))
    profile = Profile(read_with_side_files(plain))
    aligner = Aligner(profile, lambda _: lines)
    return [
        Judged(profile.name(row), is_bare, *true_lines[key], aligner.place_of(row))
        for row, key, is_bare in _operators(profile)
        if key in true_lines
    ]


def _true_lines(profile: Profile) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
    """By name and start of each operator the line of the marker before it in the same frame."""
    marks: dict[int | None, list[int]] = {}
    for row in profile.matching(f"^{MARK} ", Category.ANNOTATION, Category.OPERATOR).tolist():
        marks.setdefault(profile.parent(row), []).append(row)
    for row, (name, start), _ in _operators(profile):
        frame = next(above for above in profile.ancestors(row) if _is_own(profile, above))
        before = [mark for mark in marks.get(frame, ()) if profile.start_ns(mark) <= profile.start_ns(row)]
        if before:
            _, line, end_line = profile.table.names[profile.table.name[before[-1]]].split()
            yield (name, start), (int(line), int(end_line))


def _operators(profile: Profile) -> Iterator[tuple[int, tuple[str, int], bool]]:
    """Operators of user code that no other one runs: row, name and start, and whether nothing is between."""
    for row in range(profile.tree.size):
        if profile.category(row) is Category.OPERATOR and not profile.name(row).startswith(MARK):
            above = list(profile.ancestors(row))
            at = next((index for index, each in enumerate(above) if _is_own(profile, each)), None)
            if at is not None and not any(profile.category(each) is Category.OPERATOR for each in above[:at]):
                start = profile.start_ns(row) + profile.table.origin_ns
                yield row, (profile.name(row), start), at == 0


def _is_own(profile: Profile, row: int) -> bool:
    frame = parse_frame(profile.name(row)) if profile.category(row) is Category.PYTHON else None
    return frame is not None and frame.own_code


def counted(found: list[Judged]) -> Counter[str]:
    """How many of each verdict."""
    return Counter(each.verdict for each in found)
