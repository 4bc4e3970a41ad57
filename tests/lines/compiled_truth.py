"""What lines the kernels of compiled programs really compute, by marks that the capture knows nothing of.

A line of `programs/compiled` has a constant that occurs nowhere else, such as `1.00101`: Inductor writes it into the
text of each kernel that computes the line. A product has a comment with two extents that only its operands have, such
as `# 11x13`: the recording has the shapes of each operator.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_tidy_plugin.profile.compiled.graphs import NUMBERED, GraphCall, compiled_graphs_of
from tb_tidy_plugin.profile.events.inputs import plain_shape
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import Sources
from tb_tidy_plugin.sources.cached_lines import with_cached_lines
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.torchfacts.inductor import is_generated
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import Category
from tests.support.recordings import ROOT

PROGRAMS = Path(__file__).parent / "programs" / "compiled"
CONSTANT = re.compile(r"(?<![\d.])1\.0\d{4}(?!\d)")
EXTENTS = re.compile(r"(?<=[# ])(\d+)x(\d+)\b")
KERNEL = re.compile(r"^(cpp_fused_\w+) = async_compile\.cpp_pybinding\(.*?^'''\)", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"^( +)(?=[a-z(@])")

Line = tuple[str, int]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a recording: the lines that its marks prove, and the place that is shown."""

    name: str
    is_backward: bool
    time_ns: int
    true: frozenset[Line]
    place: Frame | None
    marked: frozenset[Line]

    @property
    def shown(self) -> frozenset[Line]:
        """Of the lines shown those with marks: only these can be proved."""
        place = self.place
        if place is None or place.precision == "definition":
            return frozenset()
        return frozenset({(place.file, place.line), *place.also}) & self.marked

    @property
    def verdict(self) -> str:
        """`exact`, `function` where no line is shown, or `wrong`."""
        if self.place is None or self.place.precision == "definition":
            return "function"
        return "exact" if self.shown == self.true else "wrong"


def recorded(programs: Path, out: Path, cache: Path, names: Sequence[str] = (), *, is_late: bool = False) -> Path:
    """The trace of one step of the programs in a folder, compiled by a new process with Inductor's cache there.

    `is_late` imports the capture once all is compiled.
    """
    out.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    late = ["--late"] if is_late else []
    command = [sys.executable, "-m", "tests.lines.compiled_recording", *late, str(programs), str(out), *names]
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=ROOT)
    (trace,) = out.glob("*.pt.trace.json")
    return trace


def moved(folder: Path) -> Path:
    """The programs with a comment before each statement inside a function: the same code on other lines."""
    folder.mkdir()
    for path in PROGRAMS.glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(STATEMENT.sub(r"\1# moved\n\1", line) for line in lines)
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


def without_side_file(trace: Path, folder: Path) -> Path:
    """A copy of a trace as torch alone writes it."""
    folder.mkdir()
    return Path(shutil.copy(trace, folder))


def kernels(trace: Path, programs: Path, cache: Path, *, reads_cache: bool = False) -> list[Kernel]:
    """The kernels of a recording that marks can prove, in row order; `reads_cache` with what Inductor's cache tells."""
    profile = Profile(read_with_side_files(trace))
    profile = with_cached_lines(profile, sources_in(programs), cache if reads_cache else None)
    texts = {path.name: path.read_text(encoding="utf-8") for path in cache.glob("??/c*.py")}
    marks = _marks(programs)
    runs: Counter[tuple[str, bool]] = Counter()
    found = []
    for call in compiled_graphs_of(profile).calls:
        if call.key:
            turn = runs[call.key, call.is_backward]
            runs[call.key, call.is_backward] += 1
            for row, of_kernel in _marks_of_kernels(profile, call, texts):
                is_fused = "cpp_fused" in profile.name(row)
                lines = [marks[mark] for mark in of_kernel if mark in marks]
                true = frozenset(each[min(turn, len(each) - 1)] for each in lines)
                marked = frozenset(line for mark, each in marks.items() if ("x" in mark) != is_fused for line in each)
                if true:
                    place, time_ns = place_of(profile, row), profile.duration_ns(row)
                    found.append(Kernel(profile.name(row), call.is_backward, time_ns, true, place, marked))
    return found


def sources_in(folder: Path) -> Sources:
    """Lines of the programs, by name."""

    def lines_of(name: str) -> list[str] | None:
        path = folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else None

    return lines_of


def _marks(programs: Path) -> Mapping[str, Sequence[Line]]:
    """The lines of each mark; equal functions have the same ones, in the order in which they run."""
    found = defaultdict(list)
    for path in programs.glob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            pairs = ("x".join(pair) for pair in EXTENTS.findall(line.partition("#")[2]))
            for mark in (*CONSTANT.findall(line), *pairs):
                found[mark].append((path.name, number))
    return found


def _marks_of_kernels(profile: Profile, call: GraphCall, texts: Mapping[str, str]) -> Iterator[tuple[int, list[str]]]:
    """The kernels that a generated graph runs, with the marks in their texts and shapes."""
    below = profile.subtree(call.row)[1:]
    names = (profile.name(row).partition("(")[0] for row in below if profile.category(row) is Category.PYTHON)
    (text, *_) = (texts[Path(name).name] for name in names if is_generated(name))
    bodies = {match[1]: match[0] for match in KERNEL.finditer(text)}
    operators = [row for row in below if profile.category(row) is Category.OPERATOR]
    above = profile.tree.parent
    for row in operators:
        if not any(int(above[row]) in profile.subtree(other) for other in operators if other < row):
            body = bodies.get(NUMBERED.sub("", profile.name(row)))
            extents = {extent for shape in map(plain_shape, profile.inputs(row).dims) for extent in shape or ()}
            yield row, CONSTANT.findall(body) if body is not None else _pairs(extents)


def _pairs(extents: set[int]) -> list[str]:
    return [f"{one}x{other}" for one in extents for other in extents if one < other]
